"""What a session left where the person's own tools would obey it: moved aside, told, and remembered."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_core.containment.protected_paths import (
    ProtectedPaths,
    UnfinishedSession,
    finish_sessions,
    move_aside,
    refuse_unfinished,
)
from aileron_core.containment.safe_paths import open_folder
from aileron_core.errors import Forbidden
from aileron_core.launch.repositories import save_notices, take_notices
from tests.support.ordinary import USER, as_ordinary, ordinary_folder


@pytest.fixture
def own_folder() -> Iterator[Path]:
    with ordinary_folder() as found:
        yield found


@pytest.mark.parametrize(("of_folder", "of_project"), [(0o555, 0o755), (0, 0o755), (0o555, 0o555)])
def test_no_mode_keeps_a_name_in_place(own_folder: Path, of_folder: int, of_project: int) -> None:
    """A 0555 folder among them stops neither itself nor those after it."""
    project, aside = own_folder / "project", own_folder / "aside"

    def check() -> None:
        project.mkdir(mode=0o555)
        assert ProtectedPaths.capture(project).restore(aside).notices == ()
        assert project.stat().st_mode & 0o777 == 0o555  # as the person made it
        project.chmod(0o755)
        protected = ProtectedPaths.capture(project)
        for name in (".mcp.json", ".envrc", ".Rprofile"):
            (project / name).write_text("evil")
        (project / ".vscode").mkdir()
        (project / ".vscode" / "tasks.json").write_text("evil")
        (project / ".vscode").chmod(of_folder)
        project.chmod(of_project)
        restored = protected.restore(aside)
        assert restored.remaining == ()
        assert [*project.iterdir()] == []
        names = [".Rprofile", ".envrc", ".mcp.json", ".vscode"]
        assert sorted(each.name for each in aside.iterdir()) == names
        moved = [each.partition(" is new. It was moved to")[0] for each in restored.notices]
        assert sorted(moved) == names

    as_ordinary(check)


def test_what_cannot_go_to_another_file_system_gets_another_name(project: Path) -> None:
    """Nothing of it is copied; no tool looks for it under that name."""
    shared = Path("/dev/shm")
    if not shared.is_dir() or shared.stat().st_dev == project.stat().st_dev:
        pytest.skip("needs two file systems")
    protected = ProtectedPaths.capture(project)
    (project / ".vscode").mkdir()
    with tempfile.TemporaryDirectory(dir=shared) as aside:
        restored = protected.restore(Path(aside))
    (left,) = project.iterdir()
    assert left.name.startswith(".vscode.aside-")
    assert left.name in restored.notices[0]
    assert restored.remaining == ()


@pytest.mark.skipif(os.getuid() != 0, reason="files of another user are made by root")
def test_what_stays_is_reported_remembered_and_refused(own_folder: Path) -> None:
    """Here it belongs to somebody else; the others go, and no launch trusts it until it is away."""
    project, home = own_folder / "project", own_folder / "home"
    project.mkdir()
    os.chown(project, USER, USER)
    project.chmod(0o1777)  # what others own there stays theirs
    watch = UnfinishedSession.begin(home, ProtectedPaths.capture(project), "session")
    (project / ".claude").mkdir()
    (project / ".envrc").write_text("evil")
    os.chown(project / ".envrc", USER, USER)
    for each in (home, *home.rglob("*")):
        os.chown(each, USER, USER)
    os.chown(project, 0, 0)

    def ended() -> None:
        (stays,) = [reported for reported in watch.finish() if "could not be moved" in reported]
        assert stays.startswith(".claude is new")
        assert not (project / ".envrc").exists()

    def launched_again() -> None:
        reported = list(finish_sessions(home))
        assert len(reported) == 1
        assert ".claude is new and could not be moved away" in reported[0]
        with pytest.raises(Forbidden, match=r"left \.claude in"):
            refuse_unfinished(home, project)
        refuse_unfinished(home, own_folder)  # another project is not meant

    as_ordinary(ended)
    watch.release()
    as_ordinary(launched_again)
    (project / ".claude").rmdir()
    assert list(finish_sessions(home)) == []
    refuse_unfinished(home, project)
    assert list((home / "aside" / "watched").iterdir()) == []


KILLED = """
import os, signal, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from aileron_core.containment.protected_paths import ProtectedPaths
from aileron_core.containment.protected_paths import UnfinishedSession
project, home = Path(sys.argv[2]), Path(sys.argv[3])
UnfinishedSession.begin(home, ProtectedPaths.capture(project), "session")
(project / ".envrc").write_text("evil")
print("up", flush=True)
sys.stdin.read()
"""


def test_a_killed_launcher_leaves_its_doors_to_others(project: Path, tmp_path: Path) -> None:
    """While it lives nobody touches them; then the console, or the next launch, closes them."""
    home = tmp_path / "home"
    root = str(Path(__file__).resolve().parents[3])
    launcher = subprocess.Popen(
        [sys.executable, "-I", "-c", KILLED, root, str(project), str(home)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert launcher.stdout.readline() == b"up\n"
    assert list(finish_sessions(home)) == []
    refuse_unfinished(home, project)
    assert (project / ".envrc").exists()
    launcher.kill()
    launcher.wait(60)
    launcher.stdin.close()
    launcher.stdout.close()
    (reported,) = finish_sessions(home)
    assert reported.startswith(f"In {project}: .envrc is new. It was moved to {home}")
    assert not (project / ".envrc").exists()
    assert list(finish_sessions(home)) == []


def test_a_record_that_cannot_be_read_is_told_and_what_is_found_once(tmp_path: Path) -> None:
    """Nothing is dropped in silence. What cannot be moved away the console finds whenever a session ends."""
    watched = tmp_path / "aside" / "watched"
    watched.mkdir(parents=True)
    (watched / "1.json").write_text("[1]")
    (watched / "2.json").write_bytes(b"\xff")
    reported = list(finish_sessions(tmp_path))
    assert ["cannot be read" in each for each in reported] == [True, True]
    refuse_unfinished(tmp_path, tmp_path)
    take_notices(tmp_path)
    for _ in range(3):
        save_notices(tmp_path, [".envrc is new", "a/.git is new"])
    save_notices(tmp_path, ["b/.git is new"])
    assert take_notices(tmp_path) == [".envrc is new", "a/.git is new", "b/.git is new"]
    assert take_notices(tmp_path) == []


@pytest.mark.parametrize("name", [".vscode", ".envrc"])
def test_a_link_that_leads_to_something_else_is_moved_aside(
    project: Path, tmp_path: Path, name: str
) -> None:
    """The link itself was not touched; what it leads to, or a folder on the way, is the agent's now."""
    (project / "conf" / "vscode").mkdir(parents=True)
    (project / ".vscode").symlink_to("conf/vscode")
    (project / ".envrc").symlink_to("conf/envrc")
    protected = ProtectedPaths.capture(project)
    assert protected.restore(tmp_path / "aside").notices == ()
    if name == ".envrc":
        (project / "conf" / "envrc").write_text("evil")
    else:
        (project / "conf").rename(project / "old")
        (project / "conf" / "vscode").mkdir(parents=True)
    (reported,) = protected.restore(tmp_path / "aside").notices
    assert reported.startswith(f"{name} is a link that now leads somewhere else")
    assert not os.path.lexists(project / name)


def test_nothing_is_moved_through_a_link(project: Path, tmp_path: Path) -> None:
    """A folder on the way that the agent replaced by a link is not followed."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "config").write_text("theirs")
    (project / "conf").symlink_to(outside)
    with open_folder(project) as handle, pytest.raises(OSError, match="symbolic links"):
        move_aside(handle, "conf/config", tmp_path / "aside")
    assert (outside / "config").read_text() == "theirs"


def test_what_another_has_just_closed_is_not_closed_twice(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that the person makes after a session's protected were closed is theirs, and stays."""
    home = tmp_path / "home"
    watch = UnfinishedSession.begin(home, ProtectedPaths.capture(project), "ses-1")
    watch.release()  # as if its launcher had been killed

    def another_was_first(handle: int, how: int) -> None:
        watch.path.unlink()
        (project / ".envrc").write_text("export MINE=1\n")

    monkeypatch.setattr("aileron_core.containment.protected_paths.fcntl.flock", another_was_first)
    assert list(finish_sessions(home)) == []
    assert (project / ".envrc").exists()
