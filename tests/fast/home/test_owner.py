"""Which process owns a home, and whether it is the one that answers."""

import os
import sys
from pathlib import Path

import pytest

from aileron_core.errors import HomeError
from aileron_core.home import owner
from aileron_core.home.layout import Home, HomeLock
from aileron_core.home.owner import OwnerNotVerified, connect_to_owner, lock_owner, peer_of
from aileron_core.server.sockets import bind_unix


def test_a_home_of_another_user_has_no_owner_to_believe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever locks a folder that is not ours may be anybody."""
    home = Home(tmp_path / "home")
    home.prepare()
    lock = HomeLock(home)
    lock.acquire()
    ours = os.getuid()
    monkeypatch.setattr(owner.os, "getuid", lambda: ours + 1)
    with pytest.raises(OwnerNotVerified, match="belongs to another user") as raised:
        lock_owner(home.path)
    assert raised.value.reason == "foreign_home"
    lock.release()


@pytest.mark.skipif(sys.platform != "linux", reason="/proc is Linux's")
def test_without_the_kernels_table_nobody_is_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`daemon.json` is no substitute for it: any program of this user can write that."""
    home = Home(tmp_path / "home")
    home.prepare()
    home.daemon_file.write_text(f'{{"pid": {os.getpid()}}}', encoding="utf-8")
    lock = HomeLock(home)
    lock.acquire()

    def no_proc(path: str, *_: object, **__: object) -> None:
        raise FileNotFoundError(2, "No such file or directory", path)

    monkeypatch.setattr(owner, "open", no_proc, raising=False)
    with pytest.raises(OwnerNotVerified, match="kernel does not say") as raised:
        lock_owner(home.path)
    assert raised.value.reason == "unknown"
    with pytest.raises(HomeError, match="another process"):
        HomeLock(home).acquire()
    lock.release()


@pytest.mark.parametrize(
    ("content", "locked", "pid"),
    [('{"pid": 7}', True, 7), ('{"pid": 7}', False, None), ('{"pid": "7"}', True, None), ("", True, None)],
)  # fmt: skip
def test_where_the_kernel_has_no_table_the_pid_on_file_counts_while_the_lock_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str, locked: bool, pid: int | None
) -> None:
    """macOS: what a dead console left in `daemon.json` makes nobody an owner."""
    home = Home(tmp_path / "home")
    home.prepare()
    home.daemon_file.write_text(content, encoding="utf-8")
    lock = HomeLock(home)
    if locked:
        lock.acquire()
    monkeypatch.setattr(owner.sys, "platform", "darwin")
    assert lock_owner(home.path) == pid
    lock.release()


@pytest.mark.parametrize("long", [False, True])
def test_a_connection_to_the_owner_is_given_only_where_the_owner_answers(
    tmp_path: Path, long: bool
) -> None:
    """Nobody, a folder without a listener, the owner itself; also at a path too long for a socket."""
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
