"""Whose home it is, which process owns it, and whether that is the one that answers."""

import fcntl
import io
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from subprocess import PIPE
from typing import IO, Any

import pytest

from aileron_core.errors import HomeError
from aileron_core.home import owner
from aileron_core.home.layout import Home, HomeLock
from aileron_core.home.owner import (
    OwnerNotVerified,
    connect_to_owner,
    connect_unix,
    lock_owner,
    peer_of,
    read_daemon_file,
)
from aileron_core.server.sockets import bind_unix


@pytest.fixture
def prepared(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.prepare()
    return home


@pytest.fixture
def lock(prepared: Home) -> Iterator[HomeLock]:
    lock = HomeLock(prepared)
    yield lock
    lock.release()


@pytest.fixture
def owned(prepared: Home, lock: HomeLock) -> Home:
    lock.acquire()
    return prepared


def holding(home: Home) -> "subprocess.Popen[bytes]":
    """Return a process that owns the home."""
    code = (
        "import sys; from pathlib import Path\n"
        "from aileron_core.home.layout import Home, HomeLock\n"
        "lock = HomeLock(Home(Path(sys.argv[1]))); lock.acquire()\n"
        "print(flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(home.path)]
    child = subprocess.Popen(command, stdin=PIPE, stdout=PIPE, bufsize=0)
    assert child.stdout is not None
    assert child.stdout.readline() == b"\n"
    return child


def test_another_users_home_has_no_owner(owned: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever locks a folder that is not ours may be anybody."""
    ours = os.getuid()
    monkeypatch.setattr(owner.os, "getuid", lambda: ours + 1)
    with pytest.raises(OwnerNotVerified, match="belongs to another user") as raised:
        lock_owner(owned.path)
    assert raised.value.reason == "foreign_home"


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_nobody_is_believed_without_the_kernel(
    owned: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`daemon.json` is no substitute for it: any program of this user can write that."""
    owned.daemon_file.write_text(f'{{"pid": {os.getpid()}}}', encoding="utf-8")

    def no_proc(path: str, *_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(owner, "open", no_proc, raising=False)
    with pytest.raises(OwnerNotVerified, match="kernel does not say") as raised:
        lock_owner(owned.path)
    assert raised.value.reason == "unknown"
    with pytest.raises(HomeError, match="another process"):
        HomeLock(owned).acquire()


@pytest.mark.parametrize(
    ("content", "locked", "pid"),
    [('{"pid": 7}', True, 7), ('{"pid": 7}', False, None), ('{"pid": "7"}', True, None), ("", True, None)],
)  # fmt: skip
def test_where_the_kernel_has_no_table_the_pid_on_file_counts_while_the_lock_is_taken(
    prepared: Home, monkeypatch: pytest.MonkeyPatch, content: str, locked: bool, pid: int | None
) -> None:
    """macOS: what a dead console left in `daemon.json` makes nobody an owner."""
    prepared.daemon_file.write_text(content, encoding="utf-8")
    lock = HomeLock(prepared)
    if locked:
        lock.acquire()
    monkeypatch.setattr(owner.sys, "platform", "darwin")
    assert lock_owner(prepared.path) == pid
    lock.release()


@pytest.mark.parametrize("long", [False, True])
def test_a_connection_to_the_owner_is_given_where_it_answers(tmp_path: Path, long: bool) -> None:
    home = Home(tmp_path / ("h" * 100 if long else "home"))
    home.prepare()
    with pytest.raises(OwnerNotVerified) as raised:
        connect_to_owner(home.path, 5)
    assert raised.value.reason == "free"
    lock = HomeLock(home)
    lock.acquire()
    with pytest.raises(OwnerNotVerified) as raised:
        connect_to_owner(home.path, 5)
    assert raised.value.reason == "silent"
    with bind_unix(home.socket), connect_to_owner(home.path, 5) as connection:
        assert peer_of(connection) == (os.getpid(), os.getuid())
    lock.release()


class PagedFile(io.FileIO):
    """Runs *between* once, after the first page was read."""

    def __init__(self, path: str, between: Callable[[], object]) -> None:
        super().__init__(path)
        self._between: Callable[[], object] | None = between
        self._begun = False

    def readinto(self, buffer: object, /) -> int:
        if self._begun and self._between is not None:
            self._between()
            self._between = None
        self._begun = True
        return super().readinto(buffer)  # pyright: ignore[reportArgumentType]


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_the_owner_is_found_while_other_locks_come_and_go(
    tmp_path: Path, prepared: Home, lock: HomeLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression: on a busy machine a command said that no console runs, one time in fifty.

    The kernel counts the lines that it has given: where locks end after the first page, the second
    begins as many lines too late.
    """
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})  # the kernel has a list of locks for each
    with ExitStack() as others:
        try:
            lock.acquire()
            for number in range(200):  # of 56 bytes each: more than two pages, listed before ours
                file = others.enter_context((tmp_path / str(number)).open("w"))
                fcntl.flock(file, fcntl.LOCK_EX)
        finally:
            os.sched_setaffinity(0, processors)
        reads: list[str] = []

        def paged(path: str, *_: object, **more: Any) -> IO[Any]:
            if path != "/proc/locks":
                return Path(path).open(errors=more.get("errors"))
            reads.append(path)
            return io.BufferedReader(PagedFile(path, others.close))

        monkeypatch.setattr(owner, "open", paged, raising=False)
        assert lock_owner(prepared.path) == os.getpid()
    assert len(reads) > 1, "the first reading found it: this proves nothing"


def test_a_home_is_opened_while_somebody_asks_who_owns_it(prepared: Home, lock: HomeLock) -> None:
    """Who asks holds a shared lock for a moment; a console that starts then does not give up."""
    handle = os.open(prepared.path, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_SH)
    threading.Timer(0.1, os.close, [handle]).start()
    lock.acquire()
    assert lock_owner(prepared.path) == os.getpid()


def test_a_console_that_was_restarted_while_it_was_asked_for_is_believed(
    prepared: Home, lock: HomeLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that held the lock before the connection is not the one that answers it."""
    with holding(prepared) as before, bind_unix(prepared.socket):

        def restarted(path: str, timeout: float) -> socket.socket:
            before.kill()
            before.wait()
            lock.acquire()
            return connect_unix(path, timeout)

        monkeypatch.setattr(owner, "connect_unix", restarted)
        with connect_to_owner(prepared.path, 5) as connection:
            assert peer_of(connection) == (os.getpid(), os.getuid())


def test_a_new_home_is_closed_to_others(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.path.mkdir(mode=0o755)
    (home.path / "log").mkdir(mode=0o755)
    home.prepare()
    for path in (home.path, home.actions, home.sockets, home.log_file, home.path / "store"):
        assert path.stat().st_mode & 0o777 == 0o700, path


def test_a_folder_of_another_program_and_a_file_are_refused_as_home(tmp_path: Path) -> None:
    folder = tmp_path / "aileron"
    folder.mkdir(mode=0o755)
    (folder / "flaps.cfg").write_text("theirs", encoding="utf-8")
    (folder / "log").mkdir(mode=0o755)
    with pytest.raises(HomeError, match=r"files of another program \(flaps\.cfg\)"):
        Home(folder).prepare()
    assert sorted(path.name for path in folder.iterdir()) == ["flaps.cfg", "log"]
    assert folder.stat().st_mode & 0o777 == 0o755
    assert (folder / "log").stat().st_mode & 0o777 == 0o755
    (tmp_path / "home").write_text("", encoding="utf-8")
    with pytest.raises(HomeError, match="cannot be used as Aileron's home"):
        Home(tmp_path / "home").prepare()


def test_one_process_owns_a_home_and_the_second_is_told_who(prepared: Home) -> None:
    assert lock_owner(prepared.path) is None
    first, second = HomeLock(prepared), HomeLock(prepared)
    first.acquire()
    assert lock_owner(prepared.path) == os.getpid()
    for entry in prepared.path.iterdir():
        if entry.is_file():
            entry.unlink()
    with pytest.raises(HomeError, match=rf"is already running on .* \(process {os.getpid()}\)"):
        second.acquire()
    first.release()
    first.release()
    second.acquire()
    second.release()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the pid in daemon.json counts")
def test_the_owner_is_found_on_btrfs_too(owned: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Regression: on btrfs every command said that no console runs."""
    whole = os.fstat

    def other_device(handle: int) -> os.stat_result:
        found = list(whole(handle))
        found[2] = os.makedev(0, 4095)
        return os.stat_result(found)

    monkeypatch.setattr(owner.os, "fstat", other_device)
    assert lock_owner(owned.path) == os.getpid()


def test_the_lock_ends_with_its_process(prepared: Home, lock: HomeLock) -> None:
    with holding(prepared) as child:
        assert lock_owner(prepared.path) == child.pid
        with pytest.raises(HomeError, match=f"process {child.pid}"):
            HomeLock(prepared).acquire()
        child.kill()
    lock.acquire()


@pytest.mark.parametrize("text", ["", "[]", "{", '"x"', "\x00"])
def test_an_unreadable_address_file_says_nothing(tmp_path: Path, text: str) -> None:
    """`daemon.json` is a hint: no content of it is an error."""
    home = Home(tmp_path)
    home.daemon_file.write_text(text, encoding="utf-8")
    assert read_daemon_file(home.path) == {}
