"""What an agent did in its git folder arrives in the person's repository, and nothing of theirs is lost."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from git_bench import BWRAP, Bench

from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session import recover_sessions


def test_what_an_agent_commits_arrives(bench: Bench) -> None:
    """Commits, a new branch, HEAD and index are the person's when the session is over."""
    agent = bench.begin()
    agent.does("git status; echo two >> file; git commit -qam second; git checkout -qb feature")
    agent.does("echo new > new; git add new; git commit -qm third; echo staged > st; git add st")
    reported = agent.end()
    assert bench.git("log", "--format=%s") == "third\nsecond\nfirst"
    assert bench.git("symbolic-ref", "HEAD") == "refs/heads/feature"
    assert bench.git("log", "--format=%s", "main") == "second\nfirst"
    assert bench.git("status", "--porcelain") == "A  st"
    assert bench.git("fsck", "--strict") == ""
    assert "in your repository: refs/heads/feature, refs/heads/main." in reported
    assert not list((bench.aileron / "git").glob("*"))


def test_it_arrives_while_the_agent_runs(bench: Bench) -> None:
    """At each change of a ref, the index with it; what is staged later comes at the end."""
    agent = bench.begin()
    agent.does("echo two >> file; git commit -qam second")
    agent.folders.import_changes()
    assert bench.git("log", "--format=%s") == "second\nfirst"
    assert bench.git("status", "--porcelain") == ""
    agent.does("echo three >> file; git commit -qam third; git branch side HEAD~1")
    agent.folders.import_changes()
    agent.end()
    assert bench.git("log", "--format=%s") == "third\nsecond\nfirst"
    assert bench.git("log", "--format=%s", "side") == "second\nfirst"
    assert bench.git("status", "--porcelain") == ""


def test_a_ref_that_moved_on_both_sides_is_kept_beside(bench: Bench) -> None:
    """Compare-and-swap: the person's stays, the agent's is named, and both can be merged."""
    agent = bench.begin()
    agent.does("echo agent > theirs; git add .; git commit -qm theirs")
    mine = bench.commit("mine", "mine", "x")
    reported = agent.end()
    assert bench.refs()["refs/heads/main"] == mine
    assert "main keeps your value (you changed it too)" in reported
    assert "refs/aileron/ses-1/heads/main" in reported
    assert bench.git("log", "-1", "--format=%s", "refs/aileron/ses-1/heads/main") == "theirs"
    assert bench.git("diff", "--cached", "--name-only") == ""


def test_two_sessions_at_once(bench: Bench) -> None:
    """Each on its branch: both arrive. Both on one: the first moves it, the second is kept beside."""
    one, two = bench.begin("ses-1"), bench.begin("ses-2")
    one.does("git branch a; echo 1 >> file; git commit -qam one")
    two.does("git branch b; echo 2 >> file; git commit -qam two")
    one.folders.import_changes()
    two.folders.import_changes()
    two.does("echo 3 >> file; git commit -qam three")
    reported = [one.end(), two.end()]
    refs = bench.refs()
    assert {"refs/heads/a", "refs/heads/b"} <= {*refs}
    assert bench.git("log", "--format=%s") == "one\nfirst"
    assert "refs/aileron/ses-2/heads/main" in reported[1]
    assert bench.git("log", "--format=%s", "refs/aileron/ses-2/heads/main") == "three\ntwo\nfirst"
    assert "not moved" not in reported[0]


def test_an_index_that_the_person_touched_is_left_alone(bench: Bench) -> None:
    """So is its branch: else the person's next commit, made of that index, would undo the agent's."""
    agent = bench.begin()
    agent.does("echo more > more; git add more; git commit -qm second; git branch side")
    (bench.project / "staged").write_text("x")
    bench.git("add", "staged")
    reported = agent.end()
    assert bench.git("log", "-1", "--format=%s") == "first"
    assert bench.git("log", "-1", "--format=%s", "side") == "second"
    assert bench.git("log", "-1", "--format=%s", "refs/aileron/ses-1/heads/main") == "second"
    assert bench.git("diff", "--cached", "--name-only") == "staged"
    assert "main keeps your value (you changed the index while the agent ran)" in reported
    bench.git("commit", "-qm", "mine")
    assert bench.git("show", "--format=", "--name-status") == "A\tstaged"


def test_an_index_that_was_only_read_again_counts_as_untouched(bench: Bench) -> None:
    """`git status` writes the index too; nothing was staged."""
    agent = bench.begin()
    agent.does("echo two >> file; git commit -qam second; echo x > st; git add st")
    (bench.project / "file").touch()
    bench.git("update-index", "--refresh", code=None)
    agent.end()
    assert bench.git("status", "--porcelain") == "A  st"


def test_marks_and_conflicts_in_the_index_arrive_or_stay(bench: Bench) -> None:
    """A mark of the person's on another file stays; a conflict of the agent's merge is one outside."""
    bench.commit("other", "other", "x")
    bench.git("update-index", "--assume-unchanged", "other")
    reported = bench.session(
        "git checkout -qb side; echo s >> file; git commit -qam s; git checkout -q main;"
        "echo m >> file; git commit -qam m; git merge side || true"
    )
    assert bench.git("ls-files", "-v", "other") == "h other"
    assert bench.git("diff", "--name-only", "--diff-filter=U") == "file"
    assert "The agent's MERGE_HEAD is kept as refs/aileron/ses-1/MERGE_HEAD" in reported


def test_a_merge_of_the_persons_that_the_agent_ends(bench: Bench) -> None:
    """It goes on inside, and is over outside when the agent committed it."""
    bench.git("checkout", "-q", "-b", "side")
    bench.commit("s", "file", "s\n")
    bench.git("checkout", "-q", "main")
    bench.commit("m", "file", "m\n")
    bench.git("merge", "side", code=1)
    bench.session("echo both > file; git add file; git commit -qm merged")
    assert bench.git("log", "-1", "--format=%s %P").count(" ") == 2
    assert bench.git("status", "--porcelain") == ""
    assert not (bench.project / ".git" / "MERGE_HEAD").exists()


def test_a_branch_that_the_agent_deleted_can_be_had_again(bench: Bench) -> None:
    """It goes, and what it was has a name; one that the person moved meanwhile stays."""
    bench.git("branch", "old")
    bench.git("branch", "both")
    was = bench.refs()["refs/heads/old"]
    agent = bench.begin()
    agent.does("git branch -q -D old both")
    bench.git("update-ref", "refs/heads/both", bench.git("commit-tree", "-m", "x", "HEAD^{tree}"))
    reported = agent.end()
    refs = bench.refs()
    assert "refs/heads/old" not in refs
    assert refs["refs/aileron/ses-1/deleted/heads/old"] == was
    assert "refs/heads/both" in refs
    assert "The agent deleted refs/heads/both, but it was kept" in reported


def test_a_stash_of_the_agents_is_named_and_the_persons_stays(bench: Bench) -> None:
    """A stash lives in a reflog; each new entry gets a ref."""
    (bench.project / "file").write_text("mine\n")
    bench.git("stash")
    mine = bench.git("stash", "list")
    agent = bench.begin()
    assert agent.does("git stash list").count("\n") == 0
    agent.does("echo a > file; git stash -q; echo b > file; git stash -q; git stash list")
    reported = agent.end()
    assert bench.git("stash", "list") == mine
    for number, text in enumerate(("b", "a")):
        assert f"The agent's stash is kept as refs/aileron/ses-1/stash/{number}" in reported
        assert bench.git("show", f"refs/aileron/ses-1/stash/{number}:file") == text


def test_a_detached_head_moves_and_one_that_conflicts_is_kept(bench: Bench) -> None:
    """HEAD is moved like a ref."""
    bench.git("checkout", "-q", "--detach")
    agent = bench.begin("ses-1")
    agent.does("echo two >> file; git commit -qam second")
    agent.end()
    assert bench.git("log", "-1", "--format=%s", "HEAD") == "second"
    agent = bench.begin("ses-2")
    agent.does("echo three >> file; git commit -qam third")
    mine = bench.commit("mine", "mine", "x")
    reported = agent.end()
    assert bench.git("rev-parse", "HEAD") == mine
    assert bench.git("log", "-1", "--format=%s", "refs/aileron/ses-2/HEAD") == "third"
    assert "HEAD" in reported


def test_a_shallow_clone(bench: Bench) -> None:
    """It works inside, and stays what it is; history that the agent fetched so is cut off there too."""
    for number in range(3):
        bench.commit(f"c{number}", "file", f"{number}\n")
    url = f"file://{bench.project}"
    bench.git("clone", "-q", "--depth=1", url, "shallow", where=bench.folder)
    shallow = bench.folder / "shallow"
    bench.commit("later", "file", "later\n")
    bench.commit("latest", "file", "latest\n")
    bench.git("clone", "-q", "--bare", url, str(shallow / "up.git"), where=bench.folder)
    before = (shallow / ".git" / "shallow").read_text()
    agent = bench.begin(project=shallow)
    allow = "git -c protocol.file.allow=always -c safe.directory='*'"
    agent.does(
        f"echo x >> file; git commit -qam mine; {allow} fetch -q --depth=1 "
        f"file://{shallow}/up.git main:upstream"
    )
    reported = agent.end()
    assert bench.git("log", "--format=%s", where=shallow) == "mine\nc2"
    assert bench.git("log", "--format=%s", "upstream", where=shallow) == "latest"
    assert (shallow / ".git" / "shallow").read_text().startswith(before)
    assert "a shallow fetch: its history is cut off at 1 commit" in reported
    assert bench.git("fsck", where=shallow) == ""


def test_a_worktree(bench: Bench) -> None:
    """Commits on its branch arrive; a branch that another work tree has out does not move under it."""
    tree = bench.folder / "wörk tree"
    bench.git("worktree", "add", "-q", "-b", "side", str(tree))
    agent = bench.begin(project=tree)
    assert agent.does("git status --porcelain; git rev-parse --abbrev-ref HEAD") == "side"
    agent.does("echo x > new; git add new; git commit -qm inside; git branch -f main HEAD")
    agent.does("echo y > .git", code=2)
    reported = agent.end()
    assert bench.git("log", "-1", "--format=%s", where=tree) == "inside"
    assert bench.git("status", "--porcelain", where=tree) == ""
    assert bench.git("log", "-1", "--format=%s") == "first"
    assert bench.git("status", "--porcelain") == ""
    assert "main keeps your value (it is checked out in another work tree)" in reported


def test_submodules(bench: Bench) -> None:
    """In the project above one, and in a submodule itself."""
    other = bench.repository("other")
    bench.git("submodule", "add", "-q", str(other), "deep/part")
    bench.git("commit", "-qm", "with a part")
    part = bench.project / "deep" / "part"
    agent = bench.begin("ses-1")
    agent.does(
        "cd deep/part; echo y >> of-other; git commit -qam inside; cd ../..;"
        "git add deep/part; git commit -qm bumped"
    )
    agent.end()
    assert bench.git("log", "-1", "--format=%s", where=part) == "inside"
    assert bench.git("log", "-1", "--format=%s") == "bumped"
    assert bench.git("status", "--porcelain") == ""
    assert bench.git("submodule", "status").startswith(bench.git("rev-parse", "HEAD", where=part))
    agent = bench.begin("ses-2", project=part)
    agent.does("echo z >> of-other; git commit -qam again")
    agent.end()
    assert bench.git("log", "-1", "--format=%s", where=part) == "again"
    assert bench.git("status", "--porcelain", where=part) == ""


def test_a_big_repository_is_not_copied(bench: Bench) -> None:
    """The objects stay where they are; only what is new is packed."""
    for number in range(8):
        (bench.project / f"big{number}").write_bytes(os.urandom(10 * 1024 * 1024))
    bench.git("config", "core.compression", "0")
    bench.git("add", ".")
    bench.git("commit", "-qm", "big")
    agent = bench.begin()
    whole = sum(path.stat().st_size for path in agent.folders.folder.rglob("*") if path.is_file())
    assert whole < 1024 * 1024
    agent.does("echo x > small; git add small; git commit -qm small")
    agent.end()
    new = [*(bench.project / ".git/objects/pack").iterdir()]
    assert 0 < sum(path.stat().st_size for path in new) < 100_000
    assert bench.git("log", "-1", "--format=%s") == "small"


def test_the_objects_of_the_person_cannot_be_changed(bench: Bench) -> None:
    """Read-only, and so is everything else of theirs: the agent has no name for it."""
    agent = bench.begin()
    said = agent.does(
        "cat .git/objects/info/alternates; rm -rf /run/aileron/objects/0/0/* || true; "
        "echo x > .git/config; rm -rf .git/refs .git/objects; mv .git .g2 || echo held"
    )
    assert said.endswith("held")
    reported = agent.end()
    assert "could not be copied to your repository" in reported
    assert bench.git("fsck") == ""
    assert bench.git("log", "--format=%s") == "first"


def test_what_does_not_pass_gits_checks_is_kept_aside_and_named(bench: Bench) -> None:
    """One bad ref takes nothing else with it; the agent's folder stays, under settings of ours."""
    reported = bench.session(
        "echo x > n; git add n; git commit -qm good; git config core.fsmonitor evil;"
        "tree=$(printf '100644 blob %s\\t.git\\n' $(git rev-parse HEAD:n) | git mktree);"
        "git update-ref refs/heads/bad $(git commit-tree -m bad $tree)"
    )
    assert bench.git("log", "-1", "--format=%s") == "good"
    assert "refs/heads/bad" not in bench.refs()
    assert "bad could not be copied to your repository" in reported
    (kept,) = (bench.aileron / "aside" / "ses-1").iterdir()
    assert str(kept) in reported
    assert "fsmonitor" not in (kept / "config").read_text()
    assert bench.git(f"--git-dir={kept}", "log", "-1", "--format=%s", "bad") == "bad"


def test_refs_that_are_no_branches_are_kept_beside(bench: Bench) -> None:
    """A replacement would show one commit as another; a branch that names no commit breaks tools."""
    reported = bench.session(
        "echo x > n; git add n; git commit -qm good; git replace HEAD~1 HEAD;"
        "git update-ref refs/tags/tree HEAD^{tree}; git update-ref refs/aileron/ses-1/heads/x HEAD;"
        "git symbolic-ref refs/heads/alias refs/heads/main"
    )
    refs = bench.refs()
    assert not [name for name in refs if name.startswith("refs/replace")]
    assert "refs/tags/tree" not in refs
    assert "refs/heads/alias" not in refs
    assert "refs/aileron/ses-1/tags/tree" in reported
    assert "refs of the agent's, for example refs/aileron/ses-1/heads/x, did not" in reported


def test_logins_and_programs_stay_out_of_the_agents_settings(bench: Bench) -> None:
    """It gets remotes, branches and a name; of a URL not its login."""
    bench.git("remote", "add", "origin", "https://me:secret@example.com/x.git")
    bench.git("config", "http.extraHeader", "Authorization: secret")
    bench.git("config", "core.sshCommand", "secret")
    bench.git("config", "--global", "user.name", 'Zoë "the" \\ Person')
    agent = bench.begin()
    listed = agent.does("git config --list")
    assert "secret" not in listed
    assert "remote.origin.url=https://example.com/x.git" in listed
    assert agent.does("git config user.name") == 'Zoë "the" \\ Person'
    assert agent.end() == ""


def _sha256(bench: Bench) -> Path:
    path = bench.folder / "sha256"
    path.mkdir()
    bench.git("init", "-q", "--object-format=sha256", "-b", "main", where=path)
    bench.commit("first", "file", "one\n", where=path)
    return path


def _borrowing(bench: Bench) -> Path:
    bench.git("clone", "-q", "--shared", str(bench.project), "borrowing", where=bench.folder)
    return bench.folder / "borrowing"


def _sparse(bench: Bench) -> Path:
    (bench.project / "d").mkdir()
    bench.commit("d", "d/x", "1")
    bench.git("sparse-checkout", "set", "--cone", "e")
    return bench.project


def _of_a_bare_one(bench: Bench) -> Path:
    bench.git("clone", "-q", "--bare", str(bench.project), "bare.git", where=bench.folder)
    tree = bench.folder / "tree"
    bench.git("worktree", "add", "-q", str(tree), where=bench.folder / "bare.git")
    return tree


def _rebasing(bench: Bench) -> Path:
    bench.git("checkout", "-q", "-b", "side")
    bench.commit("s", "file", "s\n")
    bench.git("checkout", "-q", "main")
    bench.commit("m", "file", "m\n")
    bench.git("rebase", "side", code=1)
    return bench.project


def _without_a_commit(bench: Bench) -> Path:
    path = bench.folder / "new"
    path.mkdir()
    bench.git("init", "-q", "-b", "main", where=path)
    return path


@pytest.mark.parametrize(
    "kind", [_without_a_commit, _sha256, _borrowing, _sparse, _of_a_bare_one, _rebasing]
)
def test_unusual_repositories(bench: Bench, kind: Callable[[Bench], Path]) -> None:
    """Other hashes, objects of another repository, a sparse tree, no main work tree, a rebase half done."""
    where = kind(bench)
    bench.session(
        "echo 2 > file; git add file; git commit -qm second; git status --porcelain", where
    )
    assert bench.git("log", "-1", "--format=%s", where=where) == "second"
    assert bench.git("status", "--porcelain", where=where) == ""
    bench.git("fsck", "--strict", where=where)


def test_a_repository_without_a_stand_in_is_read_only_and_named(bench: Bench) -> None:
    """A partial clone fetches as it goes; a `.git` file that is not named back may lead anywhere."""
    bench.git("config", "uploadpack.allowFilter", "true")
    url = f"file://{bench.project}"
    bench.git("clone", "-q", "--filter=blob:none", url, "partial", where=bench.folder)
    agent = bench.begin("ses-1", bench.folder / "partial")
    agent.does("touch .git/x", code=1)
    assert "it is a partial clone" in agent.folders.notices[0]
    assert agent.end() == ""
    other = bench.folder / "other"
    other.mkdir()
    bench.git("init", "-q", "--separate-git-dir", str(bench.folder / "o.git"), where=other)
    agent = bench.begin("ses-2", other)
    agent.does("echo x >> .git", code=2)
    agent.does("git status", code=128)
    assert ".git is read-only for the agent" in agent.folders.notices[0]
    assert agent.end() == ""


@pytest.mark.parametrize(
    "script",
    [
        "rm .git/index; mkfifo .git/index",
        "rm -rf .git/objects; ln -s /etc .git/objects",
        "ln -sf /etc/passwd .git/HEAD",
        "echo 'ref: refs/heads/../../config' > .git/HEAD",
        "rm -rf .git/refs .git/packed-refs",
        "chmod 0 .git/*",
        "rm .git/index; ln -s /etc/passwd .git/index",
    ],
)
def test_a_broken_git_folder_is_kept_aside_and_breaks_nothing(bench: Bench, script: str) -> None:
    """What cannot be read is not lost, the person is told, and their repository stays as it is."""
    reported = bench.session("echo two >> file; git commit -qam second;" + script)
    assert "The agent's last changes in git could not be copied to your repository" in reported
    assert str(bench.aileron / "aside" / "ses-1" / "git-0") in reported
    assert (bench.aileron / "aside" / "ses-1" / "git-0").is_dir()
    assert bench.git("log", "--format=%s") == "first"
    assert bench.git("diff", "--name-only") == "file"
    assert not list((bench.aileron / "git").iterdir())


def test_an_additional_work_tree_of_the_agents(bench: Bench) -> None:
    """Its folder is no repository any more when the agent has ended; its commits have a name."""
    reported = bench.session(
        "git worktree add -q --detach wt; cd wt; echo z > z; git add z; git commit -qm inside"
    )
    assert bench.git("log", "-1", "--format=%s", "refs/aileron/ses-1/worktrees/wt") == "inside"
    assert "refs/aileron/ses-1/worktrees/wt" in reported
    assert "wt/.git is a new repository" in reported


def test_a_killed_launch_is_brought_back_by_whoever_comes_next(bench: Bench) -> None:
    """Once, and not while its launcher lives: the kernel lets go of the lock with the process."""
    agent = bench.begin()
    agent.does(
        "echo two >> file; git commit -qam second; git init -q nested; echo x > x; git add x"
    )
    home = bench.aileron
    again = partial(recover_sessions, bwrap=BWRAP, parent=home / "git", leftovers=home / "aside")
    assert again() == []
    assert bench.git("log", "--format=%s") == "first"
    os.close(agent.folders.lock_descriptor)
    reported = "\n".join(again())
    assert bench.git("log", "--format=%s") == "second\nfirst"
    assert "x" in bench.git("diff", "--cached", "--name-only")
    assert (
        f"{bench.project}, from a launch that was killed: nested/.git is a new repository"
        in reported
    )
    assert again() == []
    assert not list((bench.aileron / "git").iterdir())


def test_a_ref_with_a_separator_of_lines_in_its_name(bench: Bench) -> None:
    """Python takes more characters for the end of a line than git does."""
    agent = bench.begin()
    agent.does("echo two >> file; git commit -qam second; git branch x\u2028y; git branch x\x85y")
    assert "could not be copied to your repository" not in agent.end()
    assert bench.git("log", "-1", "--format=%s") == "second"
    assert bench.git("rev-parse", "x\u2028y") == bench.git("rev-parse", "x\x85y")


def test_hostile_names_are_shown_and_never_obeyed(bench: Bench) -> None:
    """In refs, folders, settings: what an agent named is drawn with its marks."""
    agent = bench.begin()
    agent.does(
        'bad=$(printf \'x\\033[31m\\nROW\\342\\200\\256\\377\'); mkdir "$bad"; git init -q "$bad";'
        "name=$(printf 'tags/odd/\\342\\200\\256\\377'); git update-ref \"refs/$name\" HEAD^{tree};"
        "git update-ref refs/heads/other/$(printf '\\342\\200\\256') HEAD; git worktree add -q --detach \"$bad/w\""
    )
    reported = agent.end()
    assert reported.isprintable() or {each for each in reported if not each.isprintable()} == {"\n"}
    assert not [line for line in reported.splitlines() if line.startswith("ROW")]
    assert "is a new repository" in reported
    assert "refs/aileron/ses-1/tags/odd/" in reported


def test_a_repository_that_fails_keeps_no_other_back(bench: Bench) -> None:
    """The one is tried again later and named; what the agent did in the other is there already."""
    inner = bench.repository("project/inner")
    agent = bench.begin()
    agent.does("echo x > x; git add x; cd inner; echo y > y; git add y; git commit -qm there")
    lock = bench.project / ".git" / "index.lock"
    lock.touch()
    with pytest.raises(GitFailed, match=r"^\.: the index is locked by another program\.$"):
        agent.folders.import_changes()
    assert bench.git("log", "-1", "--format=%s", where=inner) == "there"
    lock.unlink()
    agent.end()
    assert bench.git("status", "--porcelain", "x") == "A  x"
