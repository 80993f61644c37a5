"""The person's next git command, where an agent worked, runs no program of the agent's.

Each attack ran outside when `.git` was mounted writable, with a list of names in it read-only.
The last ones are the same as an ordinary user: started as root, all of it runs as nobody.
"""

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from aileron_core.containment.git import new_repositories
from aileron_core.containment.git.new_repositories import disable_new_repositories, file_identity
from aileron_core.containment.git.repository import RepositoryScan, scan_project
from aileron_core.containment.git.sandboxed_git import SandboxedGit
from aileron_core.errors import Forbidden
from tests.core.containment.git import git_bench
from tests.core.containment.git.git_bench import (
    BWRAP,
    HOOKS,
    REPOSITORY,
    Bench,
    all_settings,
    armed,
)
from tests.support.making import program
from tests.support.ordinary import USER, as_ordinary, ordinary_folder
from tests.support.variants import variants


def person_works(bench: Bench, *folders: Path) -> None:
    """Do what a person does with git, in the project and in *folders*; nothing of the agent's may run."""
    (bench.project / "file").write_text("changed by the person\n")
    for where in (*folders, bench.project):
        for words in (
            ("status",), ("diff",), ("log", "-p", "-2"), ("add", "-A"), ("commit", "-m", "mine"),
            ("checkout", "-q", "-B", "other"), ("stash", "list"), ("submodule", "status"),
            ("checkout", "-q", "-f", "main"), ("gc", "--auto"),
        ):  # fmt: skip
            bench.git(*words, where=where, code=None)
    bench.nothing_ran()


def test_commondir(repo: Bench) -> None:
    """A file in `.git` that sends git elsewhere for its config."""
    evil, arm = armed(repo)
    agent = repo.begin()
    agent.does(
        arm + REPOSITORY.format("elsewhere", evil, repo.project) + "rm -f .git/commondir;"
        "cp -r .git/refs .git/objects .git/packed-refs elsewhere; echo ../elsewhere > .git/commondir"
    )
    repo.status()
    reported = agent.end()
    person_works(repo)
    assert "elsewhere is new, and git would treat it as a repository" in reported


def test_a_staged_and_committed_gitlink_with_a_repository_behind_it(repo: Bench) -> None:
    """git looks into what its index calls a submodule, under that one's config."""
    evil, arm = armed(repo)
    agent = repo.begin()
    agent.does(
        arm + "git init -q nested; cd nested; git commit -q --allow-empty -m n;"
        f"git config core.fsmonitor {evil}; cd ..; git add nested; git commit -qm gitlink;"
        "git branch second; git tag third"
    )
    agent.folders.import_changes()
    for words in (("status",), ("diff",), ("submodule", "status"), ("commit", "-am", "mine")):
        repo.git(*words, code=None)  # while the agent still runs
    repo.nothing_ran()
    reported = agent.end()
    person_works(repo, repo.project / "nested")
    assert "160000" not in repo.git("ls-files", "--stage")
    assert "refs/heads/main keeps your value (nested is another repository)" in reported
    for name in ("heads/second", "tags/third"):
        aside = f"is kept as refs/aileron/ses-1/{name}"
        assert f"refs/{name} {aside} (nested is another repository)" in reported
    assert "160000" not in repo.git("ls-tree", "-r", "main")
    assert not {"refs/heads/second", "refs/tags/third"} & {*repo.refs()}
    assert "nested was staged, and left out of your index: it is another repository." in reported
    assert "nested/.git is a new repository. It was renamed to nested/.git.disarmed" in reported
    assert repo.git("cat-file", "-t", "refs/aileron/ses-1/heads/second") == "commit"


def test_a_gitlink_in_a_merge_or_in_history_alone(repo: Bench) -> None:
    """The tip does not show it; whoever checks out what lies below it gets it."""
    reported = repo.session(
        "o=$(git rev-parse HEAD); git update-index --add --cacheinfo 160000,$o,sub;"
        "git commit -qm with; git rm -q --cached sub; git commit -qm without; git checkout -qb b $o;"
        "echo x > x; git add x; git commit -qm x; git checkout -qb c $o; echo y > y; git add y;"
        "git commit -qm y; git update-index --add --cacheinfo 160000,$o,evilmerge; t=$(git write-tree);"
        "git reset -q; git branch merged $(git commit-tree -p b -p c -m m $t)"
    )
    refs = repo.refs()
    assert "main keeps your value (sub is another repository)" in reported
    assert "merged is kept as refs/aileron/ses-1/heads/merged (evilmerge is another" in reported
    assert "refs/heads/merged" not in refs
    assert {"refs/heads/b", "refs/heads/c"} <= {*refs}


STAGED = "git update-index --add --cacheinfo 160000,$(git rev-parse HEAD),nested;"
ODD_MODE = """
import hashlib, sys
index = open('.git/index', 'r+b')
data = bytearray(index.read())
at = data.index(b'nested\\0') - 62 + 24
data[at:at + 4] = int(sys.argv[1], 8).to_bytes(4, 'big')
index.seek(0)
index.write(data[:-20] + hashlib.sha1(data[:-20]).digest())
"""


@pytest.mark.parametrize(
    "stages",
    [
        "git -C nested commit -q --allow-empty -m n; git add nested",
        *(f"{STAGED}/usr/bin/python3 odd.py {mode}" for mode in ("040755", "160755")),
    ],
    ids=["a gitlink", "040755", "160755"],
)
def test_an_index_with_modes_that_git_takes_for_a_repository(repo: Bench, stages: str) -> None:
    """git rounds them to those that it knows, when it makes an index from what another one says.

    The rest of the index arrives without it, while the repository behind it is still armed.
    """
    evil, arm = armed(repo)
    (repo.project / "odd.py").write_text(ODD_MODE)
    agent = repo.begin()
    makes = f"{arm} git init -q nested; git -C nested config core.fsmonitor {evil};"
    agent.does(f"{makes} echo x > x; git add x; {stages}")
    agent.folders.import_changes()
    assert repo.git("status", "--porcelain", "x") == "A  x"
    repo.status()
    assert "nested" not in repo.git("ls-files", "--stage")
    assert "nested was staged, and left out of your index: it is another" in agent.end()


@pytest.mark.parametrize(
    "attack",
    [
        "git reset -q --soft $(git commit-tree -p HEAD -p HEAD~1 -m m HEAD~1^{tree});",
        "git reset -q --soft HEAD~1;",
        "git symbolic-ref HEAD refs/heads/old;",
    ],
)
def test_a_gitlink_of_the_persons_own_history(repo: Bench, attack: str) -> None:
    """The tree that HEAD names is what `git reset` makes the index from, whoever committed it."""
    evil, arm = armed(repo)
    repo.git("update-index", "--add", "--cacheinfo", f"160000,{repo.git('rev-parse', 'HEAD')},sub")
    repo.git("commit", "-qm", "with")
    repo.git("branch", "old")
    repo.git("rm", "-q", "--cached", "sub")
    before = repo.commit("without", "file", "two\n")
    agent = repo.begin()
    makes = f"git init -q sub; git -C sub config core.fsmonitor {evil}; cd sub;"
    agent.does(f"{arm} {attack} {makes} git commit -q --allow-empty -m n")
    agent.folders.import_changes()
    repo.git("reset", "-q")
    repo.status()
    agent.end()
    assert repo.git("rev-parse", "HEAD") == before


@pytest.mark.parametrize("value", ["../settings/git", "{project}/settings/git"])
def test_a_file_of_the_project_that_the_settings_include(repo: Bench, value: str) -> None:
    """It is the person's settings, though it lies among what the agent works on."""
    evil, arm = armed(repo)
    settings = program(repo.project / "settings" / "git", "[alias]\n\tst = status\n")
    repo.git("config", "include.path", value.format(project=repo.project))
    attack = f"git config --file settings/git core.fsmonitor {evil} || mv settings s2"
    repo.session(f"{arm} {attack} || rm settings/git", code=None)
    person_works(repo)
    assert settings.read_text() == "[alias]\n\tst = status\n"


@pytest.mark.parametrize(
    "attack",
    [
        "git config --file .git/modules/deep/part/config core.fsmonitor {evil}",
        "git config --file $(git -C deep/part rev-parse --git-dir)/config core.fsmonitor {evil}",
        "{elsewhere} echo gitdir: ../elsewhere > deep/part/.git",
        "rm -f deep/part/.git; mkdir deep/part/.git; {fake}",
        "mv deep deeper; mkdir -p deep/part/.git; {fake}",
    ],
)
def test_submodules(repo: Bench, attack: str) -> None:
    """Their git folders lie in the one above; a path with slashes hid them from a list of names."""
    evil, arm = armed(repo)
    where = repo.submodule()
    fake = REPOSITORY.format("deep/part/.git", evil, where)
    elsewhere = REPOSITORY.format("deep/elsewhere", evil, where)
    agent = repo.begin()
    script = attack.format(evil=evil, fake=fake, elsewhere=elsewhere)
    agent.does(f"{arm} set +e; {script}", code=None)
    person_works(repo, where)
    agent.end()
    person_works(repo, where)
    assert (where / ".git").is_file()


@pytest.mark.parametrize("gone", [False, True])
def test_a_submodule_that_is_not_checked_out(repo: Bench, gone: bool) -> None:
    """git's index says that a repository belongs there; the agent may not bring one."""
    repo.submodule()
    repo.git("clone", "-q", str(repo.project), "clone", where=repo.folder)
    clone = repo.folder / "clone"
    if gone:
        shutil.rmtree(clone / "deep")
    evil, arm = armed(repo, clone)
    agent = repo.begin(project=clone)
    assert "deep/part is not checked out" in agent.folders.notices[0]
    attack = "mv deep deeper; mv deep/part p2; mkdir -p deep/part/.git;"
    fake = REPOSITORY.format("deep/part/.git", evil, clone / "deep" / "part")
    agent.does(arm + "set +e;" + attack + fake, code=None)
    repo.status(clone)
    agent.end()
    repo.status(clone)


@pytest.mark.parametrize("name", ["bare", "deep/er/x.git", "file.git.disarmed"])
def test_a_folder_of_a_repositorys_shape(repo: Bench, name: str) -> None:
    """git takes the folder that it is started in for a repository, without any `.git`."""
    evil, arm = armed(repo)
    reported = repo.session(arm + REPOSITORY.format(name, evil, repo.project))
    person_works(repo, repo.project / name, repo.project / name / "refs")
    assert f"{name} is new, and git would treat it as a repository" in reported
    assert (repo.project / name / "HEAD.disarmed").read_text() == "ref: refs/heads/main\n"


@pytest.mark.parametrize(
    ("attack", "left"),
    [
        ("mkdir sub; {fake}", "sub/.git.disarmed"),
        ("mkdir sub; {elsewhere} echo 'gitdir: ../elsewhere' > sub/.git", "sub/.git.disarmed"),
        ("mkdir sub; {elsewhere} ln -s ../elsewhere sub/.git", "sub/.git.disarmed"),
        ("mkdir sub; {fake} chmod 0555 sub", "sub/.git.disarmed"),
        ("mkdir sub; {fake} chmod 0 sub/.git sub", "sub/.git.disarmed"),
        ("mkdir sub; touch sub/.git.disarmed; {fake}", "sub/.git.disarmed-2"),
        ("mkdir -p sub/.git; {fake} cp -r sub/.git sub/inner; mv sub/inner sub/.git/inner",
         "sub/.git.disarmed/inner/HEAD.disarmed"),
    ],
)  # fmt: skip
def test_a_new_repository_in_the_project(repo: Bench, attack: str, left: str) -> None:
    """A folder, a file, a link; in a folder that was closed; one inside another."""
    evil, arm = armed(repo)
    fake = REPOSITORY.format("sub/.git", evil, repo.project)
    elsewhere = REPOSITORY.format("elsewhere", evil, repo.project)
    reported = repo.session(arm + attack.format(fake=fake, elsewhere=elsewhere))
    assert "sub/.git is a new repository" in reported
    sub = repo.project / "sub"
    sub.chmod(0o755)
    assert (repo.project / left).exists() or (repo.project / left).is_symlink()
    person_works(repo, sub, *[path for path in sub.rglob("*") if path.is_dir()])


def test_what_lay_there_before_cannot_be_changed(repo: Bench) -> None:
    """A fixture of a repository's shape, and one that nobody can follow, are read-only."""
    repo.git("init", "-q", "--bare", "fixtures/x.git")
    program(repo.project / "lost" / ".git", "gitdir: /nowhere\n")
    agent = repo.begin()
    agent.does("echo x >> fixtures/x.git/config", code=2)
    agent.does("mv fixtures f2", code=1)
    agent.does("echo x >> lost/.git", code=2)
    assert agent.end() == ""
    assert (repo.project / "fixtures" / "x.git" / "HEAD").exists()


def test_a_project_that_is_a_git_folder_or_has_a_link_for_one_is_refused(repo: Bench) -> None:
    """Its config and hooks would be files of the project; nothing can be mounted over a link.

    Nor is there a session where the agent could write a missing file that the person's settings include.
    """
    repo.git("init", "-q", "--bare", "up.git")
    for folder in (".git/hooks", "up.git"):
        with pytest.raises(Forbidden, match="is a git folder"):
            repo.begin(project=repo.project / folder)
    repo.git("config", "includeIf.gitdir:/nowhere/.path", "../settings")
    with pytest.raises(Forbidden, match=r"Your git settings include .*/project/settings"):
        repo.begin()
    (repo.project / ".git").rename(repo.folder / "real.git")
    (repo.project / ".git").symlink_to(repo.folder / "real.git")
    with pytest.raises(Forbidden, match="is a symbolic link"):
        repo.begin()
    assert not list((repo.aileron / "git").glob("*"))


PROGRAMS = {
    "core.fsmonitor": ("status",), "core.pager": ("log",),
    "core.editor": ("commit", "--allow-empty"), "sequence.editor": ("rebase", "-i", "--root"),
    "diff.external": ("diff",), "diff.evil.command": ("diff",), "diff.evil.textconv": ("log", "-p"),
    "filter.evil.clean": ("add", "file"),
    "filter.evil.smudge": ("checkout", "-f", "HEAD~0", "--", "file"),
    "filter.evil.process": ("add", "file"), "merge.evil.driver": ("merge", "side"),
    "gpg.program": ("commit", "-S", "--allow-empty", "-m", "x"), "alias.evil": ("evil",),
    "core.sshCommand": ("fetch", "ssh://localhost/x"),
    "core.gitProxy": ("fetch", "git://localhost/x"), "core.askPass": ("credential", "fill"),
    "credential.helper": ("credential", "fill"),
    "core.hooksPath": ("commit", "--allow-empty", "-m", "x"), "pager.log": ("log",),
}  # fmt: skip


def use(bench: Bench, words: tuple[str, ...]) -> None:
    """Run one of the person's commands over a changed file, whatever comes of it."""
    if words[0] not in ("rebase", "merge"):
        (bench.project / "file").write_text("changed by the person\n")
    env = {
        "HOME": str(bench.person), "PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_AUTHOR_NAME": "p", "GIT_AUTHOR_EMAIL": "p@q", "GIT_COMMITTER_NAME": "p",
        "GIT_COMMITTER_EMAIL": "p@q", "GIT_TERMINAL_PROMPT": "0", "TERM": "dumb", "PAGER": "cat", "EDITOR": "true",
    }  # fmt: skip
    command = ["git", *words]
    if words == ("log",):  # of a terminal, or no pager would start
        command = ["script", "-qec", "git log", "/dev/null"]
    subprocess.run(
        command, cwd=bench.project, env=env, input=b"protocol=https\nhost=localhost\n\n",
        capture_output=True, timeout=30, check=False,
    )  # fmt: skip


@pytest.mark.parametrize("names", [(), tuple(PROGRAMS)], ids=["git's own list", "programs"])
def test_no_setting_that_git_knows_reaches_the_person(repo: Bench, names: tuple[str, ...]) -> None:
    """In the config, a worktree's, an included file; every hook; attributes."""
    repo.diverge()
    repo.git("config", "extensions.worktreeConfig", "true")
    assert len(git_bench.names_of_git()) > 500
    evil, arm = armed(repo)
    agent = repo.begin()
    agent.does(arm + all_settings(evil, names))
    person_works(repo)
    reported = agent.end()
    person_works(repo)
    for words in {*PROGRAMS.values()}:
        use(repo, words)
    repo.nothing_ran()
    assert "The agent's git settings and hooks were not copied" in reported
    assert "The agent's git settings cannot be read" not in reported


@pytest.mark.parametrize("name", variants(PROGRAMS, 4))
def test_the_same_setting_in_the_persons_own_config_runs(repo: Bench, name: str) -> None:
    """So that the test above shows something: the commands there do obey these settings."""
    repo.diverge()
    evil, arm = armed(repo)
    hooks = repo.folder / "hooks"
    hooks.mkdir()
    subprocess.run(["sh", "-ec", arm], check=True)
    for hook in HOOKS:
        (hooks / hook).symlink_to(evil)
    (repo.project / ".gitattributes").write_text("file diff=evil filter=evil merge=evil\n")
    value = {"core.hooksPath": str(hooks)}
    value |= dict.fromkeys(("alias.evil", "credential.helper"), f"!{evil}")
    repo.git("config", name, value.get(name, evil))
    repo.git("add", "-A", code=None)
    repo.git("-c", f"{name}=", "commit", "-qm", "attributes", code=None)
    repo.ran.unlink(missing_ok=True)
    use(repo, PROGRAMS[name])
    assert repo.ran.exists()


def test_a_repository_that_another_agent_made_shows_no_objects(repo: Bench) -> None:
    """What it borrows from would be shown to the agent of the next session."""
    other = repo.repository("other")
    repo.commit("secret", "key", "secret\n", where=other)
    key = repo.git("rev-parse", "HEAD:key", where=other)
    first = repo.begin()
    first.does(f"git init -q sub; echo {other}/.git/objects > sub/.git/objects/info/alternates")
    second = repo.begin("ses-2")
    assert second.does(f"git -C sub cat-file -p {key}", code=128) == ""
    assert "sub/.git is read-only for the agent" in second.folders.notices[0]
    assert "sub/.git is a new repository" in first.end()
    second.end()


def test_a_folder_that_lies_too_deep_is_named(repo: Bench) -> None:
    """No path is long enough to look into it; a folder above can be moved, and then one is."""
    agent = repo.begin()
    name = "d" * 200
    agent.does(f"for i in $(seq 30); do mkdir {name}; cd -P ./{name}; done; mkdir .git", code=None)
    assert f"{name} cannot be searched for new repositories. Do not run git there." in agent.end()


def test_nothing_is_renamed_through_a_link(repo: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another session may swap a folder for a link to one of the person's while one ends."""
    real = repo.repository("mine")
    (repo.project / "sub" / ".git").mkdir(parents=True)

    def swapped(project: Path) -> RepositoryScan:
        found = scan_project(project)
        if (project / "sub").is_dir() and not (project / "sub").is_symlink():
            (project / "sub").rename(project / "was")
            (project / "sub").symlink_to(real)
        return found

    monkeypatch.setattr(new_repositories, "scan_project", swapped)
    known = {".git": file_identity(repo.project / ".git")}
    reported = disable_new_repositories(repo.project, known, (), ())
    assert (real / ".git" / "HEAD").exists()
    why = "sub/.git is new, git would treat it as a repository, and it could not be renamed"
    assert why in reported[0]
    assert (repo.project / "was" / ".git.disarmed").is_dir()


def test_a_folder_of_a_larger_repository_cannot_become_one_while_an_agent_runs(repo: Bench) -> None:
    """The person's `git status` there is about the repository above, and nothing stays behind."""
    repo.project = service = repo.project / "service"
    service.mkdir()
    evil, arm = armed(repo)
    one, two = repo.begin("ses-1"), repo.begin("ses-2")
    makes = "git init -q .; git init -q made; mv made/.git .git; mv .git away;"
    for agent in (one, two):
        agent.does(f"{arm} {makes} git config -f .git/config core.fsmonitor {evil}", code=None)
    repo.status(service)
    one.end()
    two.does(f"git init -q .; git config core.fsmonitor {evil}", code=None)
    repo.status(service)
    two.end()
    assert not (service / ".git").exists()


def on_a_bench(body: Callable[[Bench], None]) -> None:
    with ordinary_folder() as folder:
        as_ordinary(lambda: body(Bench(folder)))


def test_an_ordinary_user(repo: Bench) -> None:
    """Commits arrive, nothing of the agent's runs, a closed folder is opened and disarmed."""

    def session(bench: Bench) -> None:
        evil, arm = armed(bench)
        closed = "mkdir sub; git init -q sub; chmod 0555 sub; mkdir -p a/b; git init -q a/b"
        script = f"echo 2 >> file; git commit -qam second; {closed}; chmod 0 a/b/.git a/b a"
        reported = bench.session(f"{arm} {script}; {all_settings(evil)}")
        for words in (("status",), ("diff",), ("log", "-p")):
            bench.git(*words)
        assert bench.git("log", "--format=%s") == "second\nfirst"
        for name in ("sub", "a/b"):
            assert f"{name}/.git is a new repository" in reported, reported
        bench.nothing_ran()
        assert (bench.project / ".git" / "refs" / "heads" / "main").stat().st_uid == USER

    on_a_bench(session)


_LOOP = "for _ in range(1200): os.mkdir('deep'); os.chdir('deep')"
DEEP = f"python3 -c \"import os\nos.chdir('.git')\n{_LOOP}\""


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("chmod 0 .git", id="its git folder"),
        pytest.param("chmod 0 .git/*", id="all in it"),
        pytest.param("mkdir .git/hooks; touch .git/hooks/x; chmod 0 .git/hooks", id="its hooks"),
        pytest.param("chmod 0444 sub", id="a folder that can be listed and not entered"),
        pytest.param("echo x > .git/HEAD; chmod 0500 .git/objects/info", id="its list of objects"),
        pytest.param(
            "rm -r .git/HEAD .git/objects/info; mkdir -p .git/objects/info/alternates",
            id="a folder for a file",
        ),
        pytest.param("rm .git/config; mkdir .git/config", id="a folder for its settings"),
        pytest.param(
            "mkdir -p .git/hooks .git/hooks.of-the-agent/x .git/config.of-the-agent; echo x > .git/HEAD",
            id="the names of ours",
        ),
        pytest.param(DEEP, id="folders deeper than a path or descriptors reach"),
    ],
)
def test_what_an_agent_closed_or_planted_stops_nothing_and_arms_nothing(
    repo: Bench, script: str
) -> None:
    """Its work arrives or is kept aside, a new repository is disarmed, and nothing is left to fail again.

    Whatever modes and names it gave there: root would pass them by.
    """

    def session_that_leaves_it(bench: Bench) -> None:
        evil, arm = armed(bench)
        makes = f"git init -q sub; git -C sub config core.fsmonitor {evil};"
        reported = bench.session(f"{arm} echo 2 >> file; git commit -qam second; {makes} {script}")
        bench.git("status", where=bench.project / "sub", code=None)
        bench.nothing_ran()
        assert "sub/.git is a new repository" in reported, reported
        arrived = bench.git("log", "--format=%s") == "second\nfirst"
        assert arrived or (bench.aileron / "aside" / "ses-1" / "git-0").is_dir(), reported
        assert not list((bench.aileron / "git").iterdir())

    on_a_bench(session_that_leaves_it)


def test_git_runs_behind_the_filter_of_system_calls_and_alone(repo: Bench) -> None:
    """A fault of git's, met by what an agent wrote, is still in a sandbox with all of its walls."""
    box = SandboxedGit(bwrap=BWRAP, git_dir="/none")
    status = box.run("-c", "alias.look=!cat /proc/self/status", "look").decode()
    assert "\nSeccomp:\t2\n" in status
    assert "\nCapEff:\t0000000000000000\n" in status
    links = box.run("-c", "alias.look=!cat /proc/net/dev", "look").decode().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in links] == ["lo"]
