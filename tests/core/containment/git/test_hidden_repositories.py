"""Repositories that an agent makes while it runs: out of the person's sight, in the agent's, and never lost."""

import contextlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import pytest

from aileron_core.containment.git import repository_hider
from aileron_core.containment.git.hidden_repositories import README
from aileron_core.containment.git.record import read_hidden
from aileron_core.containment.git.repository import scan_project
from aileron_core.containment.git.repository_hider import RepositoryHider
from aileron_core.containment.sandbox_mounts import SandboxMount, mount_in_sandbox
from tests.core.containment.git.git_bench import Agent, Bench, Shell, armed

MADE = (
    "git config --global user.name A; git config --global user.email a@b;"
    "git init -q -b main sub; cd sub; echo one > f; git add f; git commit -qm one;"
)


def makes(bench: Bench, project: Path | None = None) -> str:
    """Return a script that makes the repository `sub`, armed."""
    evil, arm = armed(bench, project)
    return f"{arm} {MADE} git config core.fsmonitor {evil};"


def entry_names(folder: Path) -> set[str]:
    return {each.name for each in folder.iterdir()}


def contents_of(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def hidden_now(agent: Agent) -> list[Path]:
    return list((agent.folders.folder / "hidden").glob("*"))


@contextlib.contextmanager
def made_repository(repo: Bench, then: str = "") -> Generator[tuple[Agent, Shell]]:
    """Have an agent make the repository `sub`, armed, and go on running."""
    agent = repo.begin()
    with agent.running() as shell:
        shell.does(makes(repo) + then)
        yield agent, shell


QUIET = "git -c core.fsmonitor=false"


def test_the_agents_git_goes_on_and_the_persons_passes_it_by(repo: Bench) -> None:
    """What the person's git met before would have run the agent's program."""
    with made_repository(repo) as (agent, shell):
        shell.hide()
        sub = repo.project / "sub"
        assert entry_names(sub / ".git") == {README}
        assert "while an agent works" in (sub / ".git" / README).read_text()
        (place,) = hidden_now(agent)  # nobody can enter there, so that no file leads there
        assert place.stat().st_mode & 0o777 == 0
        assert f"{place}/content" in shell.does("cat /proc/self/mountinfo")
        repo.status(sub)
        assert repo.git("rev-parse", "--show-toplevel", where=sub) == str(repo.project)
        shell.does(f"cd sub; echo two > f; {QUIET} commit -qam two; {QUIET} switch -qc more")
        assert shell.does(f"cd sub; {QUIET} log --format=%s%d") == "two (HEAD -> more, main)\none"
        shell.does(f"{QUIET} clone -q sub copy; {QUIET} -C sub worktree add -q ../tree")
        assert shell.does(f"{QUIET} -C copy log --format=%s") == "two\none"
        shell.hide()
        assert entry_names(repo.project / "copy" / ".git") == {README}
        shell.does(f"cd tree; echo 3 > f; {QUIET} commit -qam three; cd ..; mv sub moved")
        shell.does(f"{QUIET} -C copy fetch -q ../moved tree")
        assert shell.does(f"{QUIET} -C copy log --format=%s -1 FETCH_HEAD") == "three"
        repo.status(repo.project / "tree")
    reported = agent.end()
    for name in ("moved", "copy"):
        renamed = f"It was renamed to {name}/.git.disarmed"
        assert f"{name}/.git is a new repository. {renamed}" in reported
        assert not (repo.project / name / ".git").exists()
        repo.status(repo.project / name)
    git = repo.project / "moved" / ".git.disarmed"
    (git / "HEAD.disarmed").rename(git / "HEAD")
    git.rename(git.with_name(".git"))
    log = ("-c", "core.fsmonitor=", "log", "--format=%s")
    assert repo.git(*log, where=repo.project / "moved") == "two\none"
    assert not list((repo.aileron / "git").iterdir())


def test_what_the_agent_removed_it_can_make_again(repo: Bench) -> None:
    """It cannot remove what is mounted there; once emptied it is gone with the next look."""
    with made_repository(repo) as (agent, shell):
        shell.hide()
        shell.does("rm -rf sub", code=1)
        shell.hide()
        shell.does(f"rm -rf sub; {MADE}")
        assert hidden_now(agent) == []
        shell.hide()
        assert entry_names(repo.project / "sub" / ".git") == {README}
        assert shell.does("git -C sub log --format=%s") == "one"
    assert "sub/.git is a new repository" in agent.end()


def test_a_file_that_leads_to_a_git_folder_of_the_sessions(repo: Bench) -> None:
    """The agent reads in /proc where its own git folder lies outside, and it may write its settings."""
    evil, arm = armed(repo)
    agent = repo.begin()
    with agent.running() as shell:
        shell.does(f"{arm} git config core.fsmonitor {evil}; mkdir a b")
        own = agent.folders.folder / "0" / "git"
        shell.does(f"echo 'gitdir: {own}' > a/.git; ln -s {own} b/.git; mkdir c; echo no > c/.git")
        shell.hide()
        for name in ("a", "b", "c"):
            repo.status(repo.project / name)
        assert os.path.lexists(repo.project / "b" / ".git.disarmed")
        assert (repo.project / "c" / ".git").exists()
    assert "a/.git is a new repository. It was renamed to a/.git.disarmed" in agent.end()


@pytest.mark.parametrize("closed", ["0 sub/.git", "0300 sub", "0555 sub sub/.git"])
def test_modes_keep_nothing_in_sight(repo: Bench, closed: str) -> None:
    """A folder that cannot be listed may still be entered."""
    with made_repository(repo, f"cd ..; chmod {closed}") as (agent, shell):
        shell.hide()
        shell.hide()
        assert entry_names(repo.project / "sub" / ".git") == {README}
        assert shell.does(f"chmod -R u+rwx sub; {QUIET} -C sub log --format=%s") == "one"
    assert "sub/.git is a new repository" in agent.end()


@pytest.mark.parametrize("inner", ["in", README])
def test_a_git_folder_that_is_none_may_hold_one(repo: Bench, inner: str) -> None:
    sub, moves = repo.project / "sub", f"cd ..; mkdir -p x/.git; mv sub/.git x/.git/{inner}"
    with made_repository(repo, f"{moves}; echo 'gitdir: ../x/.git/{inner}' > sub/.git") as (
        agent,
        shell,
    ):
        shell.hide()
        repo.status(sub)
        assert shell.does(f"{QUIET} -C sub log --format=%s") == "one"
    agent.end()
    repo.status(sub)


def test_a_project_that_was_no_repository(repo: Bench) -> None:
    project = repo.folder / "plain"
    project.mkdir()
    evil, arm = armed(repo, project)
    agent = repo.begin(project=project)
    with agent.running() as shell:
        shell.does(f"cd {project}; {arm} {MADE} mv .git ..; git -C .. config core.fsmonitor {evil}")
        shell.hide()
        assert entry_names(project / ".git") == {README}
        repo.status(project)
        assert shell.does(f"{QUIET} -C {project} log --format=%s") == "one"
    assert ".git is a new repository. It was renamed to .git.disarmed" in agent.end()


def test_where_the_sandbox_cannot_be_joined_it_is_disabled_at_once(repo: Bench) -> None:
    """The person's safety comes first; the agent's git loses the repository, and the person is told."""
    agent = repo.begin()
    agent.does(makes(repo))
    hider = RepositoryHider(agent.folders.folder, agent.folders.record, os.getppid() + 2**22)
    hider.hide(scan_project(repo.project))
    repo.status(repo.project / "sub")
    assert (repo.project / "sub" / ".git.disarmed" / "HEAD.disarmed").exists()
    assert hidden_now(agent) == []
    reported = agent.end()
    assert "sub/.git is a new repository. It was renamed to sub/.git.disarmed" in reported
    assert "while the agent ran, so the agent's git lost it (the sandbox cannot be" in reported
    assert entry_names(repo.project / "sub") == {"f", ".git.disarmed"}


def test_on_another_file_system_it_is_disabled_at_once(repo: Bench) -> None:
    """Nothing can be moved from there to Aileron's home."""
    memory = Path("/dev/shm")
    if not memory.is_dir() or memory.stat().st_dev == repo.folder.stat().st_dev:
        pytest.skip("needs a second file system")
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        project = Path(folder)
        agent = repo.begin(project=project)
        with agent.running() as shell:
            shell.does(makes(repo, project))
            shell.hide()
            repo.status(project / "sub")
            assert entry_names(project / "sub") == {"f", ".git.disarmed"}
        assert "It was renamed while the agent ran" in agent.end()


def test_a_folder_that_is_gone_at_the_end(repo: Bench) -> None:
    with made_repository(repo) as (agent, shell):
        shell.hide()
    (repo.project / "sub").rename(repo.folder / "elsewhere")
    reported = agent.end()
    kept_at = repo.aileron / "aside" / "ses-1" / "hidden-0"
    assert f"It is now {kept_at}." in reported
    assert (kept_at / "HEAD.disarmed").exists()


def test_of_two_sessions_in_a_project_none_loses_or_arms_anything(repo: Bench) -> None:
    """Whichever hides it, the agents of both go on with it; the other passes the stand-in by, at its end too."""
    one, two = repo.begin("ses-1"), repo.begin("ses-2")
    with one.running() as first, two.running() as second:
        for shell in (first, second, first, second):  # to know of each other
            shell.hide()
        first.does(makes(repo))
        second.hide()
        first.hide()
        assert (len(hidden_now(one)), len(hidden_now(two))) == (0, 1)
        repo.status(repo.project / "sub")
        first.does(f"cd sub; echo 2 > f; {QUIET} commit -qam two")
        assert second.does(f"{QUIET} -C sub log --format=%s") == "two\none"
        assert "sub" not in one.end()
        repo.status(repo.project / "sub")
        assert second.does(f"{QUIET} -C sub log --format=%s") == "two\none"
    assert "sub/.git is a new repository" in two.end()
    repo.status(repo.project / "sub")
    assert (repo.project / "sub" / ".git.disarmed" / "HEAD.disarmed").exists()


@pytest.mark.parametrize("mounted", [False, True])
def test_two_sessions_that_hide_the_same_at_once(
    repo: Bench, monkeypatch: pytest.MonkeyPatch, mounted: bool
) -> None:
    """The second finds the first one's stand-in in its hands, and puts it back."""
    one, two = repo.begin("ses-1"), repo.begin("ses-2")
    with one.running() as first, two.running() as second:
        first.does(makes(repo))

        def first_is_quicker(namespace: int, mounts: Sequence[SandboxMount]) -> list[str | None]:
            monkeypatch.undo()
            results = mount_in_sandbox(namespace, mounts) if mounted else None
            first.hide()
            return results or mount_in_sandbox(namespace, mounts)

        monkeypatch.setattr(repository_hider, "mount_in_sandbox", first_is_quicker)
        second.hide()
        assert (len(hidden_now(one)), len(hidden_now(two))) == (1, 0)
        assert first.does(f"{QUIET} -C sub log --format=%s") == "one"
        repo.status(repo.project / "sub")
    two.end()
    assert "sub/.git is a new repository" in one.end()
    assert entry_names(repo.project / "sub") == {"f", ".git.disarmed"}


@pytest.mark.parametrize(
    ("at", "swap"),
    [
        ("mount_in_sandbox", "rmdir $sub/.git.ses-1-0; ln -s $mine $sub/.git.ses-1-0"),
        ("mount_in_sandbox", "ln -s $mine/.git/config $sub/.git.ses-1-0/README-aileron.txt"),
        ("mount_in_sandbox", "mv $sub/.git.ses-1-0 $sub/x; mv $mine $sub/.git.ses-1-0"),
        ("after", "rmdir $sub/.git.ses-1-0; ln -s $mine $sub/.git.ses-1-0"),
        ("after", "mv $sub/.git.ses-1-0 $sub/x; mv $mine $sub/.git.ses-1-0"),
        ("exchange_names", "mv $sub/.git $sub/x; ln -s $mine/.git $sub/.git"),
        ("exchange_names", "mv $sub $sub.x; ln -s $mine $sub"),
        ("exchange_names", "rm -r $sub/.git; touch $sub/.git"),
    ],
)
def test_what_an_agent_swaps_meanwhile_harms_nobody_else(
    repo: Bench, monkeypatch: pytest.MonkeyPatch, at: str, swap: str
) -> None:
    """Nothing of the person's is written to, renamed or lost, wherever a link leads."""
    mine = repo.repository("mine")
    with made_repository(repo) as (agent, shell):
        before = contents_of(mine)
        name = "mount_in_sandbox" if at == "after" else at
        original = getattr(repository_hider, name)

        def swapped(*args: Any) -> Any:
            monkeypatch.undo()
            done = original(*args) if at == "after" else None
            script = swap.replace("$sub", f"{repo.project}/sub").replace("$mine", str(mine))
            subprocess.run(["sh", "-ec", script], check=True)
            return done or original(*args)

        monkeypatch.setattr(repository_hider, name, swapped)
        for _ in range(2):
            shell.hide()
        for folder in repo.project.glob("*/"):
            repo.status(folder)
    agent.end()
    if mine.exists():
        assert contents_of(mine) == before
    else:  # it was moved into the project, as every program of the person's could
        (moved,) = repo.project.glob("sub/.git*/.git*/HEAD*")
        assert moved.read_text() == before[mine / ".git" / "HEAD"].decode()


@pytest.mark.parametrize("at", ["mount_in_sandbox", "exchange_names"])
def test_a_kill_in_the_middle_of_it(repo: Bench, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    """The record is written before anything in the project changes, and what is left at any point ends well."""
    with made_repository(repo) as (agent, shell):

        def killed(*_: object) -> None:
            raise KeyboardInterrupt

        with monkeypatch.context() as patch:
            patch.setattr(repository_hider, at, killed)
            with pytest.raises(KeyboardInterrupt):
                shell.hide()
        assert len(read_hidden(agent.folders.folder).hidden) == 1
    assert agent.end().count("sub/.git is a new repository") == 1
    assert entry_names(repo.project / "sub") == {"f", ".git.disarmed"}
    assert not list((repo.aileron / "git").iterdir())


def test_what_joins_a_sandbox_reads_nothing_there_to_say_why_it_failed() -> None:
    """A traceback would show lines of its source, and decode them as the agent's own file there says."""
    with Path("/proc/self/ns/net").open() as own:  # whose user namespace it is in already
        done = subprocess.run(
            [sys.executable, "-I", "-m", "aileron_core.containment.sandbox_mounts", str(own.fileno())],
            input="[]", capture_output=True, text=True, pass_fds=(own.fileno(),), check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
