"""What the sandbox takes out of the working tree does not come back through git, and no ref takes another's name.

Each attack is shown by the person's own commands: on the code before, the program ran or the file came.
"""

import subprocess
from pathlib import Path

import pytest

from aileron_core.containment.safe_paths import PROTECTED_NAMES
from tests.core.containment.git.git_bench import REPOSITORY, Bench, armed


def stage(name: str, text: str = "x", mode: str = "100644") -> str:
    """Return a script that stages a file without making it in the working tree."""
    written = f"$(echo '{text}' | git hash-object -w --stdin)"
    return f"git update-index --add --cacheinfo {mode},{written},'{name}';"


def repository_in(bench: Bench) -> tuple[str, str]:
    """Return what makes the program, and what makes the folder `t` with it."""
    evil, arm = armed(bench)
    return arm, REPOSITORY.format("t", evil, bench.project)


def visit(bench: Bench, folder: str = "t") -> None:
    """Ask git in a folder, which would run what a repository there names."""
    (bench.project / folder).mkdir(exist_ok=True)
    bench.git("status", where=bench.project / folder, code=None)
    bench.nothing_ran()


@pytest.mark.parametrize(
    ("agent_does", "person_does"),
    [
        ("git checkout -qb feature; git add t; git commit -qm t; git checkout -q main",
         ["checkout feature"]),
        ("git checkout -qb feature; git add t; git commit -qm t", ["checkout feature", "checkout ."]),
        (("git checkout -qb feature; git add t; git commit -qm t; git rm -rqf --cached t;"
          "git commit -qm gone; git checkout -q main"), ["checkout -f feature~1"]),
        (("git checkout -qb s; git add t; git commit -qm t; git checkout -q main;"
          "git merge -q --no-ff -m merged s; git branch -D s"), ["checkout ."]),
        ("git add t; git commit -qm t; git tag -m v v1; git reset -q --soft HEAD~1; git reset -q",
         ["checkout -f v1"]),
        ("git add t; git commit -qm t", ["checkout ."]),
        ("git add t; git commit -qm t", ["stash"]),
        ("git checkout -q --detach; git add t; git commit -qm t", ["checkout ."]),
        ("git add t", ["restore t"]),
        # What else the folder needs stays in the working tree.
        ("git add t/HEAD; git commit -qm t; git rm -q --cached t/HEAD; git commit -qm u",
         ["checkout main~1 -- t"]),
        ("git add t/HEAD", ["restore t"]),
    ],
)  # fmt: skip
def test_a_folder_of_a_repositorys_shape_does_not_come_with_git(
    repo: Bench, agent_does: str, person_does: list[str]
) -> None:
    """On a branch, in a tag, below its tip, on the current branch, staged alone: git obeyed its config."""
    arm, make = repository_in(repo)
    reported = repo.session(arm + make + agent_does)
    for words in person_does:
        repo.git(*words.split(" "), code=None)
    visit(repo)
    assert "t/HEAD" in reported
    assert "is part of what git takes for a repository" in reported


def test_a_lone_head_waits_for_no_commit_that_has_the_rest(repo: Bench) -> None:
    """Neither the tree nor the folder is a repository by itself; a checkout would have made one of both."""
    arm, make = repository_in(repo)
    rest = "git checkout -qb feature; git add t/config t/objects t/refs; git commit -qm t"
    head = "git checkout -q main; mkdir -p t; echo 'ref: refs/heads/main' > t/HEAD"
    reported = repo.session(f"{arm} {make} {rest}; {head}")
    repo.git("checkout", "feature", code=None)
    visit(repo)
    assert "Its HEAD was renamed to HEAD.disarmed" in reported


def test_a_repository_that_the_person_tracks_is_not_changed(repo: Bench) -> None:
    """A fixture of theirs on another branch: its config alone would be enough."""
    evil, arm = armed(repo)
    made = REPOSITORY.format("t", "", repo.project).replace("fsmonitor", "x")
    subprocess.run(["sh", "-ec", made], cwd=repo.project, check=True)
    repo.git("checkout", "-qb", "feature")
    repo.git("add", "t")
    repo.git("commit", "-qm", "fixture")
    repo.git("checkout", "-q", "main")
    config = f"[core]\n\tfsmonitor = {evil}\n\trepositoryformatversion = 0\n"
    config += f"\tworktree = {repo.project}"
    reported = repo.session(
        f"{arm} git symbolic-ref HEAD refs/heads/feature; git reset -q; {stage('t/config', config)}"
        "git commit -qm armed; git symbolic-ref HEAD refs/heads/main; git reset -q"
    )
    repo.git("checkout", "-qf", "feature")
    visit(repo)
    assert "refs/heads/feature keeps your value (t/config is part of what git" in reported


def test_no_protected_name_comes_with_git(repo: Bench) -> None:
    """Every one of the list, as a file and as a folder, however it is spelled; the others come."""
    names = [*PROTECTED_NAMES, ".VSCode", ".ENVRC", ".clau\u200dde"]
    script = ""
    for number, name in enumerate(names):
        for kind, path in (("file", name), ("folder", f"{name}/settings.json")):
            script += f"git reset -q; {stage(path)} git update-ref refs/heads/{kind}-{number} "
            script += "$(git commit-tree -p HEAD -m x $(git write-tree));"
    reported = repo.session(
        script
        + f"git reset -q; {stage('sub/.vscode/x')} {stage('.envrc', mode='120000')} git commit -qm link;"
        f"git reset -q --soft HEAD~1; git reset -q; {stage('sub/.vscode/x')} git commit -qm sub"
    )
    refs = repo.refs()
    assert [name for name in refs if name.startswith("refs/heads/")] == ["refs/heads/main"]
    aside = [name for name in refs if name.startswith("refs/aileron/ses-1/heads/")]
    assert len(aside) == 2 * len(names)
    assert repo.subject() == "sub"
    assert "`git for-each-ref refs/aileron/ses-1` lists" in reported


def test_a_staged_protected_name_is_left_out_of_the_index(repo: Bench) -> None:
    """What the person has there stays, and the rest is staged."""
    repo.commit("mine", ".vscode/tasks.json", "mine\n")
    reported = repo.session(stage(".envrc") + stage(".vscode/tasks.json") + "echo x > x; git add x")
    for words in (("restore", "."), ("restore", ".envrc"), ("checkout", "."), ("stash",)):
        repo.git(*words, code=None)
        assert not (repo.project / ".envrc").exists()
        assert (repo.project / ".vscode" / "tasks.json").read_text() == "mine\n"
    assert repo.git("stash", "show", "--name-status") == "A\tx"
    left_out = "was staged, and left out of your index: it is obeyed by your own tools."
    assert f".envrc, .vscode/tasks.json {left_out}" in reported


def test_a_repository_that_tracks_a_protected_name_goes_on(repo: Bench) -> None:
    """What is the person's own is no finding: in a commit, a merge, a branch of an old commit, the index."""
    repo.commit("mine", ".vscode/tasks.json", "mine\n")
    repo.git("branch", "old")
    repo.commit("later", "later", "x")
    side = "git checkout -qb a old; echo a > a; git add a; git commit -qm a; git checkout -q main"
    gone = "git merge -q -m merged a; git rm -q --cached .vscode/tasks.json; git commit -qm without"
    again = "git add .vscode; git commit -qm again; echo st > st; git add st"
    reported = repo.session(f"{side}; {gone}; {again}")
    assert "The agent's commits are in your repository: refs/heads/a, refs/heads/main." in reported
    assert repo.subject() == "again"
    assert repo.git("status", "--porcelain") == "A  st"


def test_a_changed_protected_file_leaves_the_current_branch_where_it_was(repo: Bench) -> None:
    """Index, HEAD and branch stay together; the commit is kept aside, and the sentence says why."""
    mine = repo.commit("mine", ".vscode/tasks.json", "mine\n")
    agent = repo.begin()
    staged = stage(".vscode/tasks.json", "theirs")
    agent.does(f"{staged} echo x > x; git add x; git commit -qm theirs; git branch other HEAD~1")
    agent.folders.import_changes()
    assert repo.git("rev-parse", "HEAD") == mine
    reported = agent.end()
    assert repo.git("rev-parse", "HEAD") == mine
    assert repo.git("status", "--porcelain") == "?? x"
    assert repo.subject("refs/aileron/ses-1/heads/main") == "theirs"
    why = "refs/heads/main keeps your value (.vscode/tasks.json is obeyed by your own tools)."
    assert f"{why} The agent's is kept as refs/aileron/ses-1/heads/main." in reported
    repo.git("merge", "-q", "--ff-only", "refs/aileron/ses-1/heads/main", code=None)
    repo.git("reset", "-q", "--hard", mine)
    again = repo.begin("ses-2")  # what was set aside is not the person's own by that
    again.does("git branch aside " + repo.git("rev-parse", "refs/aileron/ses-1/heads/main"))
    assert "refs/heads/aside is kept as refs/aileron/ses-2/heads/aside (.vscode" in again.end()


@pytest.mark.parametrize(
    "attack",
    ["git reset -q --soft old;", "git symbolic-ref HEAD refs/heads/old;",
     "git reset -q --soft $(git commit-tree -p HEAD -p old -m m old^{tree});"],
)  # fmt: skip
def test_what_the_persons_history_once_had_does_not_come_back(repo: Bench, attack: str) -> None:
    """The current tree counts: an old commit, another branch, or a merge brings back what is gone."""
    repo.commit("with", ".envrc", "old\n")
    repo.git("branch", "old")
    repo.git("rm", "-q", ".envrc")
    repo.git("commit", "-qm", "without")
    repo.session(attack)
    for words in (("checkout", "."), ("reset", "-q", "--hard")):
        repo.git(*words, code=None)
        assert not (repo.project / ".envrc").exists()
    assert repo.git("symbolic-ref", "HEAD") == "refs/heads/main"


def test_a_file_that_the_settings_include_does_not_come_with_a_commit(repo: Bench) -> None:
    """It was read-only in the sandbox; a commit needs no working tree."""
    evil, arm = armed(repo)
    repo.commit("settings", "settings/git", "[alias]\n\tst = status\n")
    repo.git("config", "include.path", "../settings/git")
    staged = stage("settings/git", f"[core]\n\tfsmonitor = {evil}")
    reported = repo.session(f"{arm} {staged} git commit -qm x")
    repo.git("checkout", ".")
    repo.status()
    assert "settings/git was read-only for the agent" in reported


def test_a_submodule_does_not_move_to_a_commit_that_was_set_aside(repo: Bench) -> None:
    """Its objects are there: `git submodule update` would check it out. Another commit goes on."""
    repo.submodule("part")
    evil, arm = armed(repo)
    make = REPOSITORY.format("t", evil, repo.project / "part")
    reported = repo.session(
        f"{arm} cd part; git checkout -q --detach; {make} git add t; git commit -qm t;"
        "t=$(git rev-parse HEAD); cd ..; git add part; git commit -qm armed; git checkout -qb good HEAD~1; cd part;"
        "git checkout -q main; echo y >> of-other; git commit -qam y; cd ..; git add part;"
        "git commit -qm good; git checkout -q main; git -C part checkout -q $t"
    )
    repo.git("submodule", "update", "--force", code=None)
    visit(repo, "part/t")
    assert "(part is a submodule at a commit that was set aside)" in reported
    assert repo.subject("good") == "good"
    assert repo.subject(where=repo.project / "part") == "other"


def test_only_new_commits_are_read(repo: Bench) -> None:
    """However long the history is: a tree of an old commit is gone here, and nobody misses it."""
    tree = repo.git("rev-parse", "HEAD^{tree}")
    for number in range(5):
        repo.commit(f"c{number}", "file", f"{number}\n")
    agent = repo.begin()
    agent.does("echo x > x; git add x; git commit -qm new; git branch side HEAD~2")
    Path(repo.project, ".git", "objects", tree[:2], tree[2:]).unlink()
    agent.end()
    assert repo.subject() == "new"
    assert "refs/heads/side" in repo.refs()


@pytest.fixture
def cloned(repo: Bench) -> Bench:
    """A bench whose project has a remote with a branch that is ahead."""
    repo.git("clone", "-q", "--bare", str(repo.project), "up.git", where=repo.folder)
    repo.git("remote", "add", "origin", str(repo.folder / "up.git"))
    repo.commit("upstream", "up", "x")
    repo.git("push", "-q", "origin", "main")
    repo.git("reset", "-q", "--hard", "HEAD~1")
    repo.git("fetch", "-q", "origin")
    return repo


EVIL = "echo e > e; git add e; e=$(git commit-tree -p HEAD -m evil $(git write-tree)); git reset -q; rm e;"


@pytest.mark.parametrize(
    ("ref", "person_does"),
    [
        *((f"{kind}/origin/main", "merge origin/main") for kind in ("tags", "heads")),
        *((f"tags/{each}", f"log {each}") for each in ("HEAD", "main", "heads/main", "MAIN")),
        *((f"tags/{each}", f"log {each}") for each in ("stash", "{short}", "v1-0-g{short}")),
        *((f"heads/{each}", f"log {each}") for each in ("origin", "refs/heads/new", "{full}")),
    ],
)
def test_no_ref_takes_the_name_of_another(cloned: Bench, ref: str, person_does: str) -> None:
    """A tag goes before a branch, and both before a remote's: `git merge origin/main` merged the agent's."""
    upstream = cloned.git("rev-parse", "refs/remotes/origin/main")
    words = {"short": upstream[:7], "full": upstream}
    reported = cloned.session(EVIL + f"git update-ref refs/{ref.format(**words)} $e")
    cloned.git(*person_does.format(**words).split(" "), code=None)
    assert "evil" not in cloned.git(*person_does.format(**words).split(" "), code=None)
    assert "evil" not in cloned.git("log", "--format=%s", "HEAD")
    aside = f"refs/aileron/ses-1/{ref.format(**words)}"
    assert cloned.subject(aside) == "evil"
    assert f"is kept as {aside} (git could take its short name for something else)" in reported


def test_of_a_branch_and_a_tag_with_one_name_one_is_set_aside(repo: Bench) -> None:
    """Both are the agent's; git would take the tag. Ordinary names come."""
    names = "git branch v1; git update-ref refs/tags/v1 $e; git branch fix/ahead; git tag v1.2.3"
    reported = repo.session(EVIL + names)
    assert {name for name in repo.refs() if not name.startswith("refs/aileron/")} == {
        "refs/heads/main", "refs/heads/v1", "refs/heads/fix/ahead", "refs/tags/v1.2.3",
    }  # fmt: skip
    assert "refs/tags/v1 is kept as refs/aileron/ses-1/tags/v1" in reported
    assert "in your repository: refs/heads/fix/ahead, refs/heads/v1, refs/tags/v1.2.3." in reported


def test_only_branches_and_tags_are_imported(cloned: Bench) -> None:
    """Remote branches, notes, replacements and the like stay what they are, and are counted."""
    before = cloned.refs()
    agent = cloned.begin()
    agent.does(
        EVIL
        + "git update-ref refs/remotes/origin/main $e; git update-ref refs/remotes/origin/x $e;"
        "git notes add -m note; git replace HEAD $e; git update-ref refs/bisect/bad $e;"
        "git symbolic-ref refs/remotes/origin/HEAD refs/remotes/origin/x;"
        "git update-ref refs/aileron/ses-1/heads/main $e"
    )
    agent.folders.import_changes()
    reported = agent.end()
    assert cloned.refs() == before
    assert "7 refs of the agent's, for example refs/aileron/ses-1/heads/main, did not" in reported


def test_more_refs_than_are_named_are_counted_with_the_command_that_lists_them(repo: Bench) -> None:
    """Told eight of 1,500 by the last part of their names, nobody could find the others."""
    creates = "for i in $(seq 150); do echo create refs/tags/deep/x$i HEAD; done"
    reported = repo.session(f"{creates} | git update-ref --stdin")
    command = "git for-each-ref refs/heads refs/tags"
    assert f"150 branches and tags, which `{command}` lists among yours" in reported
    assert len(repo.git(*command.split(" ")[1:]).splitlines()) == 151
