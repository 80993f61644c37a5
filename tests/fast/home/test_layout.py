"""Whose home it is, and who owns it now."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from aileron_core.errors import HomeError
from aileron_core.home import owner
from aileron_core.home.layout import Home, HomeLock
from aileron_core.home.owner import lock_owner, read_daemon_file


def test_a_new_home_is_closed_to_others(tmp_path: Path) -> None:
    """0700, and so is everything in it, also where it lay open before."""
    home = Home(tmp_path / "home")
    home.path.mkdir(mode=0o755)
    (home.path / "log").mkdir(mode=0o755)
    home.prepare()
    for path in (home.path, home.actions, home.sockets, home.log_file, home.path / "store"):
        assert path.stat().st_mode & 0o777 == 0o700, path


def test_a_folder_of_another_program_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    """A home that belongs to another program of that name is refused with a sentence."""
    folder = tmp_path / "aileron"
    folder.mkdir(mode=0o755)
    (folder / "flaps.cfg").write_text("theirs", encoding="utf-8")
    (folder / "log").mkdir(mode=0o755)
    with pytest.raises(HomeError, match=r"files of another program \(flaps\.cfg\)"):
        Home(folder).prepare()
    assert sorted(path.name for path in folder.iterdir()) == ["flaps.cfg", "log"]
    assert folder.stat().st_mode & 0o777 == 0o755
    assert (folder / "log").stat().st_mode & 0o777 == 0o755


def test_a_file_in_place_of_the_home_is_a_sentence(tmp_path: Path) -> None:
    """House rule: errors say what failed, on what, and what to do next."""
    (tmp_path / "home").write_text("", encoding="utf-8")
    with pytest.raises(HomeError, match="cannot be used as Aileron's home"):
        Home(tmp_path / "home").prepare()


def test_one_process_owns_a_home_and_the_second_is_told_who(tmp_path: Path) -> None:
    """The lock is on the directory's handle; no file to unlink."""
    home = Home(tmp_path / "home")
    home.prepare()
    assert lock_owner(home.path) is None
    first, second = HomeLock(home), HomeLock(home)
    first.acquire()
    assert lock_owner(home.path) == os.getpid()
    for entry in home.path.iterdir():
        if entry.is_file():
            entry.unlink()
    with pytest.raises(HomeError, match=rf"is already running on .* \(process {os.getpid()}\)"):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the pid in daemon.json counts")
def test_the_owner_is_found_where_st_dev_is_not_the_device_of_the_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: on btrfs every command said that no console runs."""
    home = Home(tmp_path / "home")
    home.prepare()
    lock = HomeLock(home)
    lock.acquire()
    whole = os.fstat

    def other_device(handle: int) -> os.stat_result:
        found = list(whole(handle))
        found[2] = os.makedev(0, 4095)
        return os.stat_result(found)

    monkeypatch.setattr(owner.os, "fstat", other_device)
    assert lock_owner(home.path) == os.getpid()
    lock.release()


def test_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.prepare()
    code = (
        "import sys; from pathlib import Path\n"
        "from aileron_core.home.layout import Home, HomeLock\n"
        "lock = HomeLock(Home(Path(sys.argv[1]))); lock.acquire()\n"
        "print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(home.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "locked\n"
        assert lock_owner(home.path) == child.pid
        with pytest.raises(HomeError, match=f"process {child.pid}"):
            HomeLock(home).acquire()
        child.kill()
    lock = HomeLock(home)
    lock.acquire()
    lock.release()


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"', "\x00"])
def test_an_unreadable_address_file_says_nothing(tmp_path: Path, text: str) -> None:
    """`daemon.json` is a hint: no content of it is an error."""
    home = Home(tmp_path)
    home.daemon_file.write_text(text, encoding="utf-8")
    assert read_daemon_file(home.path) == {}
