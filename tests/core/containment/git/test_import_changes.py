"""What an agent did in its git folder arrives in the person's repository, and nothing of theirs is lost."""

import os
from functools import partial
from pathlib import Path

import pytest

from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session import recover_sessions
from tests.core.containment.git.git_bench import BWRAP, Bench


def test_what_an_agent_commits_arrives(repo: Bench) -> None:
    """Commits, a new branch, HEAD and index are the person's when the session is over."""
    second = "git status; echo two >> file; git commit -qam second; git checkout -qb feature"
    third = "echo new > new; git add new; git commit -qm third"
    reported = repo.session(f"{second}; {third}; echo staged > st; git add st")
    assert repo.git("log", "--format=%s") == "third\nsecond\nfirst"
    assert repo.git("symbolic-ref", "HEAD") == "refs/heads/feature"
    assert repo.git("log", "--format=%s", "main") == "second\nfirst"
    assert repo.git("status", "--porcelain") == "A  st"
    assert repo.git("fsck", "--strict") == ""
    assert "in your repository: refs/heads/feature, refs/heads/main." in reported
    assert not list((repo.aileron / "git").glob("*"))


def test_it_arrives_while_the_agent_runs(repo: Bench) -> None:
    """At each change of a ref, the index with it; what is staged later comes at the end."""
    agent = repo.begin()
    agent.does("echo two >> file; git commit -qam second")
    agent.folders.import_changes()
    assert repo.git("log", "--format=%s") == "second\nfirst"
    assert repo.git("status", "--porcelain") == ""
    (repo.project / "file").touch()
    # As `git status` does; nothing is staged by it.
    repo.git("update-index", "--refresh", code=None)
    agent.does("echo three >> file; git commit -qam third; git branch side HEAD~1")
    agent.folders.import_changes()
    agent.does("echo x > st; git add st")
    agent.end()
    assert repo.git("log", "--format=%s") == "third\nsecond\nfirst"
    assert repo.git("log", "--format=%s", "side") == "second\nfirst"
    assert repo.git("status", "--porcelain") == "A  st"


def test_a_ref_that_moved_on_both_sides_is_kept_beside(repo: Bench) -> None:
    """Compare-and-swap: the person's stays, the agent's is named, and both can be merged."""
    agent = repo.begin()
    agent.does("echo agent > theirs; git add .; git commit -qm theirs")
    mine = repo.commit("mine", "mine", "x")
    reported = agent.end()
    assert repo.refs()["refs/heads/main"] == mine
    assert "main keeps your value (you changed it too)" in reported
    assert "refs/aileron/ses-1/heads/main" in reported
    assert repo.subject("refs/aileron/ses-1/heads/main") == "theirs"
    assert repo.git("diff", "--cached", "--name-only") == ""


def test_two_sessions_at_once(repo: Bench) -> None:
    """Each on its branch: both arrive. Both on one: the first moves it, the second is kept beside."""
    one, two = repo.begin("ses-1"), repo.begin("ses-2")
    one.does("git branch a; echo 1 >> file; git commit -qam one")
    two.does("git branch b; echo 2 >> file; git commit -qam two")
    one.folders.import_changes()
    two.folders.import_changes()
    two.does("echo 3 >> file; git commit -qam three")
    reported = [one.end(), two.end()]
    assert {"refs/heads/a", "refs/heads/b"} <= {*repo.refs()}
    assert repo.git("log", "--format=%s") == "one\nfirst"
    assert "refs/aileron/ses-2/heads/main" in reported[1]
    assert repo.git("log", "--format=%s", "refs/aileron/ses-2/heads/main") == "three\ntwo\nfirst"
    assert "not moved" not in reported[0]


def test_an_index_that_the_person_touched_is_left_alone(repo: Bench) -> None:
    """So is its branch: else the person's next commit, made of that index, would undo the agent's."""
    agent = repo.begin()
    agent.does("echo more > more; git add more; git commit -qm second; git branch side")
    (repo.project / "staged").write_text("x")
    repo.git("add", "staged")
    reported = agent.end()
    assert repo.subject() == "first"
    assert repo.subject("side") == "second"
    assert repo.subject("refs/aileron/ses-1/heads/main") == "second"
    assert repo.git("diff", "--cached", "--name-only") == "staged"
    assert "main keeps your value (you changed the index while the agent ran)" in reported
    repo.git("commit", "-qm", "mine")
    assert repo.git("show", "--format=", "--name-status") == "A\tstaged"


def test_marks_and_conflicts_in_the_index_arrive_or_stay(repo: Bench) -> None:
    """A mark of the person's on another file stays; a conflict of the agent's merge is one outside."""
    repo.commit("other", "other", "x")
    repo.git("update-index", "--assume-unchanged", "other")
    side = "git checkout -qb side; echo s >> file; git commit -qam s; git checkout -q main"
    reported = repo.session(f"{side}; echo m >> file; git commit -qam m; git merge side || true")
    assert repo.git("ls-files", "-v", "other") == "h other"
    assert repo.git("diff", "--name-only", "--diff-filter=U") == "file"
    assert "The agent's MERGE_HEAD is kept as refs/aileron/ses-1/MERGE_HEAD" in reported


def test_a_merge_of_the_persons_that_the_agent_ends(repo: Bench) -> None:
    """It goes on inside, and is over outside when the agent committed it."""
    repo.diverge()
    repo.git("merge", "side", code=1)
    repo.session("echo both > file; git add file; git commit -qm merged")
    assert repo.git("log", "-1", "--format=%s %P").count(" ") == 2
    assert repo.git("status", "--porcelain") == ""
    assert not (repo.project / ".git" / "MERGE_HEAD").exists()


def test_a_branch_that_the_agent_deleted_can_be_had_again(repo: Bench) -> None:
    """It goes, and what it was has a name; one that the person moved meanwhile stays."""
    repo.git("branch", "old")
    repo.git("branch", "both")
    was = repo.refs()["refs/heads/old"]
    agent = repo.begin()
    agent.does("git branch -q -D old both")
    repo.git("update-ref", "refs/heads/both", repo.git("commit-tree", "-m", "x", "HEAD^{tree}"))
    reported = agent.end()
    refs = repo.refs()
    assert "refs/heads/old" not in refs
    assert refs["refs/aileron/ses-1/deleted/heads/old"] == was
    assert "refs/heads/both" in refs
    assert "The agent deleted refs/heads/both, but it was kept" in reported


def test_a_stash_of_the_agents_is_named_and_the_persons_stays(repo: Bench) -> None:
    """A stash lives in a reflog; each new entry gets a ref."""
    (repo.project / "file").write_text("mine\n")
    repo.git("stash")
    mine = repo.git("stash", "list")
    agent = repo.begin()
    assert agent.does("git stash list").count("\n") == 0
    agent.does("echo a > file; git stash -q; echo b > file; git stash -q; git stash list")
    reported = agent.end()
    assert repo.git("stash", "list") == mine
    for number, text in enumerate(("b", "a")):
        assert f"The agent's stash is kept as refs/aileron/ses-1/stash/{number}" in reported
        assert repo.git("show", f"refs/aileron/ses-1/stash/{number}:file") == text


def test_a_detached_head_moves_and_one_that_conflicts_is_kept(repo: Bench) -> None:
    repo.git("checkout", "-q", "--detach")
    repo.session("echo two >> file; git commit -qam second")
    assert repo.subject() == "second"
    agent = repo.begin("ses-2")
    agent.does("echo three >> file; git commit -qam third")
    mine = repo.commit("mine", "mine", "x")
    reported = agent.end()
    assert repo.git("rev-parse", "HEAD") == mine
    assert repo.subject("refs/aileron/ses-2/HEAD") == "third"
    assert "HEAD" in reported


def test_a_shallow_clone(repo: Bench) -> None:
    """It works inside, and stays what it is; history that the agent fetched so is cut off there too."""
    for number in range(3):
        repo.commit(f"c{number}", "file", f"{number}\n")
    url = f"file://{repo.project}"
    repo.git("clone", "-q", "--depth=1", url, "shallow", where=repo.folder)
    shallow = repo.folder / "shallow"
    repo.commit("later", "file", "later\n")
    repo.commit("latest", "file", "latest\n")
    repo.git("clone", "-q", "--bare", url, str(shallow / "up.git"), where=repo.folder)
    before = (shallow / ".git" / "shallow").read_text()
    fetch = "git -c protocol.file.allow=always -c safe.directory='*' fetch -q --depth=1"
    commits = "echo x >> file; git commit -qam mine;"
    reported = repo.session(f"{commits} {fetch} file://{shallow}/up.git main:upstream", shallow)
    assert repo.git("log", "--format=%s", where=shallow) == "mine\nc2"
    assert repo.git("log", "--format=%s", "upstream", where=shallow) == "latest"
    assert (shallow / ".git" / "shallow").read_text().startswith(before)
    assert "a shallow fetch: its history is cut off at 1 commit" in reported
    assert repo.git("fsck", where=shallow) == ""


def test_a_worktree(repo: Bench) -> None:
    """Commits on its branch arrive; a branch that another work tree has out does not move under it."""
    tree = repo.folder / "wörk tree"
    repo.git("worktree", "add", "-q", "-b", "side", str(tree))
    agent = repo.begin(project=tree)
    assert agent.does("git status --porcelain; git rev-parse --abbrev-ref HEAD") == "side"
    agent.does("echo x > new; git add new; git commit -qm inside; git branch -f main HEAD")
    agent.does("echo y > .git", code=2)
    reported = agent.end()
    assert repo.subject(where=tree) == "inside"
    assert repo.git("status", "--porcelain", where=tree) == ""
    assert repo.subject() == "first"
    assert repo.git("status", "--porcelain") == ""
    assert "main keeps your value (it is checked out in another work tree)" in reported


def test_submodules(repo: Bench) -> None:
    """In the project above one, and in a submodule itself."""
    part = repo.submodule()
    inside = "cd deep/part; echo y >> of-other; git commit -qam inside; cd ../.."
    repo.session(f"{inside}; git add deep/part; git commit -qm bumped")
    assert repo.subject(where=part) == "inside"
    assert repo.subject() == "bumped"
    assert repo.git("status", "--porcelain") == ""
    assert repo.git("submodule", "status").startswith(repo.git("rev-parse", "HEAD", where=part))
    repo.session("echo z >> of-other; git commit -qam again", part)
    assert repo.subject(where=part) == "again"
    assert repo.git("status", "--porcelain", where=part) == ""


def test_a_big_repository_is_not_copied(repo: Bench) -> None:
    """The objects stay where they are; only what is new is packed."""
    for number in range(8):
        (repo.project / f"big{number}").write_bytes(os.urandom(10 * 1024 * 1024))
    repo.git("config", "core.compression", "0")
    repo.git("add", ".")
    repo.git("commit", "-qm", "big")
    agent = repo.begin()
    whole = sum(path.stat().st_size for path in agent.folders.folder.rglob("*") if path.is_file())
    assert whole < 1024 * 1024
    agent.does("echo x > small; git add small; git commit -qm small")
    agent.end()
    new = [*(repo.project / ".git/objects/pack").iterdir()]
    assert 0 < sum(path.stat().st_size for path in new) < 100_000
    assert repo.subject() == "small"


def test_the_objects_of_the_person_cannot_be_changed(repo: Bench) -> None:
    """Read-only, and so is everything else of theirs: the agent has no name for it."""
    agent = repo.begin()
    said = agent.does(
        "cat .git/objects/info/alternates; rm -rf /run/aileron/objects/0/0/* || true; "
        "echo x > .git/config; rm -rf .git/refs .git/objects; mv .git .g2 || echo held"
    )
    assert said.endswith("held")
    assert "could not be copied to your repository" in agent.end()
    assert repo.git("fsck") == ""
    assert repo.git("log", "--format=%s") == "first"


def test_what_does_not_pass_gits_checks_is_kept_aside_and_named(repo: Bench) -> None:
    """One bad ref takes nothing else with it; the agent's folder stays, under settings of ours."""
    reported = repo.session(
        "echo x > n; git add n; git commit -qm good; git config core.fsmonitor evil;"
        "tree=$(printf '100644 blob %s\\t.git\\n' $(git rev-parse HEAD:n) | git mktree);"
        "git update-ref refs/heads/bad $(git commit-tree -m bad $tree)"
    )
    assert repo.subject() == "good"
    assert "refs/heads/bad" not in repo.refs()
    assert "bad could not be copied to your repository" in reported
    assert "The agent's last changes in git" not in reported
    (kept,) = (repo.aileron / "aside" / "ses-1").iterdir()
    assert str(kept) in reported
    assert "fsmonitor" not in (kept / "config").read_text()
    assert repo.git(f"--git-dir={kept}", "log", "-1", "--format=%s", "bad") == "bad"


def test_refs_that_are_no_branches_are_kept_beside(repo: Bench) -> None:
    """A replacement would show one commit as another; a branch that names no commit breaks tools."""
    reported = repo.session(
        "echo x > n; git add n; git commit -qm good; git replace HEAD~1 HEAD;"
        "git update-ref refs/tags/tree HEAD^{tree}; git update-ref refs/aileron/ses-1/heads/x HEAD;"
        "git symbolic-ref refs/heads/alias refs/heads/main"
    )
    refs = repo.refs()
    assert not [name for name in refs if name.startswith("refs/replace")]
    assert "refs/tags/tree" not in refs
    assert "refs/heads/alias" not in refs
    assert "refs/aileron/ses-1/tags/tree" in reported
    assert "refs of the agent's, for example refs/aileron/ses-1/heads/x, did not" in reported


def test_logins_and_programs_stay_out_of_the_agents_settings(repo: Bench) -> None:
    """It gets remotes, branches and a name; of a URL not its login."""
    repo.git("remote", "add", "origin", "https://me:secret@example.com/x.git")
    repo.git("config", "http.extraHeader", "Authorization: secret")
    repo.git("config", "core.sshCommand", "secret")
    repo.git("config", "--global", "user.name", 'Zoë "the" \\ Person')
    agent = repo.begin()
    listed = agent.does("git config --list")
    assert "secret" not in listed
    assert "remote.origin.url=https://example.com/x.git" in listed
    assert agent.does("git config user.name") == 'Zoë "the" \\ Person'
    assert agent.end() == ""


def new(bench: Bench, *format_: str) -> Path:
    bench.git("init", "-q", *format_, "-b", "main", "new", where=bench.folder)
    return bench.folder / "new"


@pytest.mark.parametrize(
    "kind", ["without a commit", "sha256", "borrowing", "sparse", "of a bare one", "rebasing"]
)
def test_unusual_repositories(repo: Bench, kind: str) -> None:
    """Other hashes, objects of another repository, a sparse tree, no main work tree, a rebase half done."""
    where = repo.project
    match kind:
        case "without a commit":
            where = new(repo)
        case "sha256":
            where = new(repo, "--object-format=sha256")
            repo.commit("first", "file", "one\n", where=where)
        case "borrowing":
            where = repo.folder / "borrowing"
            repo.git("clone", "-q", "--shared", str(repo.project), str(where))
        case "sparse":
            repo.commit("d", "d/x", "1")
            repo.git("sparse-checkout", "set", "--cone", "e")
        case "of a bare one":
            where, bare = repo.folder / "tree", repo.folder / "bare.git"
            repo.git("clone", "-q", "--bare", str(repo.project), str(bare))
            repo.git("worktree", "add", "-q", str(where), where=bare)
        case _:
            repo.diverge()
            repo.git("rebase", "side", code=1)
    repo.session("echo 2 > file; git add file; git commit -qm second; git status", where)
    assert repo.subject(where=where) == "second"
    assert repo.git("status", "--porcelain", where=where) == ""
    repo.git("fsck", "--strict", where=where)


def test_a_repository_without_a_stand_in_is_read_only_and_named(repo: Bench) -> None:
    """A partial clone fetches as it goes; a `.git` file that is not named back may lead anywhere."""
    repo.git("config", "uploadpack.allowFilter", "true")
    url = f"file://{repo.project}"
    repo.git("clone", "-q", "--filter=blob:none", url, "partial", where=repo.folder)
    agent = repo.begin("ses-1", repo.folder / "partial")
    agent.does("touch .git/x", code=1)
    assert "it is a partial clone" in agent.folders.notices[0]
    assert agent.end() == ""
    agent = repo.begin("ses-2", new(repo, "--separate-git-dir", str(repo.folder / "o.git")))
    agent.does("echo x >> .git", code=2)
    agent.does("git status", code=128)
    assert ".git is read-only for the agent" in agent.folders.notices[0]
    assert agent.end() == ""


@pytest.mark.parametrize(
    "script",
    [
        *("rm .git/index; mkfifo .git/index", "ln -sf /etc/passwd .git/HEAD", "chmod 0 .git/*"),
        *("rm -rf .git/objects; ln -s /etc .git/objects", "rm -rf .git/refs .git/packed-refs"),
        "echo 'ref: refs/heads/../../config' > .git/HEAD",
        "rm .git/index; ln -s /etc/passwd .git/index",
    ],
)
def test_a_broken_git_folder_is_kept_aside_and_breaks_nothing(repo: Bench, script: str) -> None:
    """What cannot be read is not lost, the person is told, and their repository stays as it is."""
    reported = repo.session("echo two >> file; git commit -qam second;" + script)
    assert "The agent's last changes in git could not be copied to your repository" in reported
    assert str(repo.aileron / "aside" / "ses-1" / "git-0") in reported
    assert (repo.aileron / "aside" / "ses-1" / "git-0").is_dir()
    assert repo.git("log", "--format=%s") == "first"
    assert repo.git("diff", "--name-only") == "file"
    assert not list((repo.aileron / "git").iterdir())


def test_an_additional_work_tree_of_the_agents(repo: Bench) -> None:
    """Its folder is no repository any more when the agent has ended; its commits have a name."""
    commits = "cd wt; echo z > z; git add z; git commit -qm inside"
    reported = repo.session(f"git worktree add -q --detach wt; {commits}")
    assert repo.subject("refs/aileron/ses-1/worktrees/wt") == "inside"
    assert "refs/aileron/ses-1/worktrees/wt" in reported
    assert "wt/.git is a new repository" in reported


def test_a_killed_launch_is_brought_back_by_whoever_comes_next(repo: Bench) -> None:
    """Once, and not while its launcher lives: the kernel lets go of the lock with the process."""
    agent = repo.begin()
    agent.does("echo 2 >> file; git commit -qam second; git init -q nested; echo x > x; git add x")
    home = repo.aileron
    again = partial(recover_sessions, bwrap=BWRAP, parent=home / "git", leftovers=home / "aside")
    assert again() == []
    assert repo.git("log", "--format=%s") == "first"
    os.close(agent.folders.lock_descriptor)
    reported = "\n".join(again())
    assert repo.git("log", "--format=%s") == "second\nfirst"
    assert "x" in repo.git("diff", "--cached", "--name-only")
    killed = f"{repo.project}, from a launch that was killed"
    assert f"{killed}: nested/.git is a new repository" in reported
    assert again() == []
    assert not list((repo.aileron / "git").iterdir())


def test_hostile_names_are_shown_and_never_obeyed(repo: Bench) -> None:
    """In refs, folders, settings: what an agent named is drawn with its marks.

    Python takes more characters for the end of a line than git does.
    """
    reported = repo.session(
        "echo two >> file; git commit -qam second; git branch x\u2028y; git branch x\x85y;"
        'bad=$(printf \'x\\033[31m\\nROW\\342\\200\\256\\377\'); mkdir "$bad"; git init -q "$bad";'
        "name=$(printf 'tags/odd/\\342\\200\\256\\377'); git update-ref \"refs/$name\" HEAD^{tree};"
        "git update-ref refs/heads/other/$(printf '\\342\\200\\256') HEAD; git worktree add -q --detach \"$bad/w\""
    )
    assert reported.isprintable() or {each for each in reported if not each.isprintable()} == {"\n"}
    assert not [line for line in reported.splitlines() if line.startswith("ROW")]
    assert repo.subject() == "second"
    assert repo.git("rev-parse", "x\u2028y") == repo.git("rev-parse", "x\x85y")
    assert "is a new repository" in reported
    assert "refs/aileron/ses-1/tags/odd/" in reported


def test_a_repository_that_fails_keeps_no_other_back(repo: Bench) -> None:
    """The one is tried again later and named; what the agent did in the other is there already."""
    inner = repo.repository("project/inner")
    agent = repo.begin()
    agent.does("echo x > x; git add x; cd inner; echo y > y; git add y; git commit -qm there")
    lock = repo.project / ".git" / "index.lock"
    lock.touch()
    with pytest.raises(GitFailed, match=r"^\.: the index is locked by another program\.$"):
        agent.folders.import_changes()
    assert repo.subject(where=inner) == "there"
    lock.unlink()
    agent.end()
    assert repo.git("status", "--porcelain", "x") == "A  x"
