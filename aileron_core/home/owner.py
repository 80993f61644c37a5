"""Who owns a home: which process holds its lock, and whether that process is the one that answers.

The relay and the command line send a byte to a console only after this module has verified it. It
imports the standard library alone, because the relay takes it along to where Aileron is not installed.
"""

import errno
import fcntl
import json
import os
import socket
import struct
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple, cast

_LONGEST_NAME = 100  # bytes; a socket's address has room for 104 (macOS) or 108 (Linux)
_LOCAL_PEERPID, _SOL_LOCAL = 2, 0  # <sys/un.h> of macOS; the socket module does not name them
_TABLE_READS = 50
"""How often the table of locks is read for a lock that is held and not in it."""

_Path = str | os.PathLike[str]
_Reason = Literal["free", "foreign_home", "unknown", "silent", "other_user", "impostor"]


class Peer(NamedTuple):
    """The other end of a Unix socket, from the kernel."""

    pid: int
    uid: int


class OwnerNotVerified(Exception):
    """No process was verified to be the home's console; the text says why, as a sentence.

    `reason`: `free`, nobody holds the lock; `foreign_home`, the home is another user's; `unknown`,
    the kernel does not tell who holds the lock; `silent`, nothing answers at the socket;
    `other_user` or `impostor`, another user's process answers, or one that does not hold the lock.
    """

    def __init__(self, reason: _Reason, text: str) -> None:
        super().__init__(text)
        self.reason: _Reason = reason


def socket_path(home: _Path) -> str:
    """Return where the console of *home* listens for its user's own programs."""
    return os.path.join(home, "run", "console.sock")  # noqa: PTH118 - pathlib costs the relay 5 ms


def connect_to_owner(home: _Path, timeout: float | None) -> socket.socket:
    """Return a connection to the process that owns *home*. Nothing was sent on it yet.

    Args:
        timeout: seconds, of connecting and of each later wait; None waits for ever.

    Raises:
        OwnerNotVerified: there is none, or what answers is not that process.
    """
    owner = lock_owner(home)
    if owner is None:
        raise OwnerNotVerified("free", f"No console is running on {home}.")
    path = socket_path(home)
    try:
        connection = connect_unix(path, timeout)
    except OSError as error:
        raise OwnerNotVerified(
            "silent", f"The console cannot be reached at {path} ({error.strerror})."
        ) from error
    peer = peer_of(connection)
    if peer == (owner, os.getuid()):
        return connection
    if peer == (lock_owner(home), os.getuid()):  # the console was restarted in between
        return connection
    connection.close()
    if peer is not None and peer.uid != os.getuid():
        raise OwnerNotVerified("other_user", f"A process of another user answers at {path}.")
    raise OwnerNotVerified("impostor", f"A process that does not own {home} answers at {path}.")


def connect_unix(path: _Path, timeout: float | None) -> socket.socket:
    """Return a connection to the Unix socket at *path*, however long that is; see `short_socket_path`.

    Raises:
        OSError: nothing listens there.
    """
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.settimeout(timeout)
        with short_socket_path(path) as name:
            connection.connect(name)
    except OSError:
        connection.close()
        raise
    return connection


@contextmanager
def short_socket_path(path: _Path) -> Generator[str]:
    """Yield a name for *path* that fits into a socket's address.

    Raises:
        OSError: its folder cannot be opened; with ENAMETOOLONG, this system has no such name.
    """
    path = os.fspath(path)
    if len(os.fsencode(path)) <= _LONGEST_NAME:
        yield path
        return
    if sys.platform != "linux":
        raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
    folder, name = os.path.split(path)
    handle = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{handle}/{name}"
    finally:
        os.close(handle)


def peer_of(connection: socket.socket) -> Peer | None:
    """Return who is at the other end; None for TCP, or where the kernel does not say."""
    if connection.family != socket.AF_UNIX:
        return None
    if sys.platform == "linux":
        raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        pid, uid, _ = struct.unpack("3i", raw)
        return Peer(pid, uid)
    try:
        pid = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
    except OSError:
        return None
    # The socket is 0600 in a 0700 folder: whoever is there is this user (macOS has no SO_PEERCRED).
    return Peer(pid, os.getuid())


def lock_owner(home: _Path) -> int | None:
    """Return the process that holds the lock of *home*; None if nobody does, or there is no home.

    Linux: who has the exclusive lock on the folder, by `/proc/locks`. Elsewhere, where no system
    tells who holds a lock: the pid in `daemon.json`, if the lock is taken.

    Raises:
        OwnerNotVerified: the home is another user's, or the kernel does not tell.
    """
    try:
        handle = os.open(home, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(handle)
        if status.st_uid != os.getuid():
            raise OwnerNotVerified(
                "foreign_home",
                f"{home} belongs to another user. Set AILERON_HOME to a folder of your own.",
            )
        if sys.platform == "linux":
            return _exclusive_lock_on(handle, status)
        return _pid_on_file(home) if _is_locked(handle) else None
    except OSError as error:
        raise OwnerNotVerified(
            "unknown",
            f"The kernel does not say which process owns {home} ({error}). Mount /proc, or set"
            " AILERON_URL to the session's own socket.",
        ) from error
    finally:
        os.close(handle)


def _exclusive_lock_on(handle: int, status: os.stat_result) -> int | None:
    device = f"{os.major(status.st_dev):02x}:{os.minor(status.st_dev):02x}"
    places = {f"{each}:{status.st_ino}".encode() for each in (device, _mounted_device(handle))}
    # The kernel gives the table a page at a time, and skips some of its lines where other locks end
    # between two pages: that a lock is not in it does not say that nobody holds it.
    for _ in range(_TABLE_READS):
        owner = _listed_owner(places)
        if owner is not None or not _is_locked(handle):
            return owner
    raise OSError("its lock is held from outside of this process namespace")


def _listed_owner(places: set[bytes]) -> int | None:
    with open("/proc/locks", "rb") as locks:  # noqa: PTH123
        for line in locks:
            # "3: FLOCK  ADVISORY  WRITE 812 fd:00:1573 0 EOF"; who waits for it has "->" second.
            # Only the exclusive lock makes an owner: anybody who may read can hold a shared one.
            fields = line.split()
            if fields[1:4] == [b"FLOCK", b"ADVISORY", b"WRITE"] and fields[5] in places:
                return int(fields[4])
    return None


def _mounted_device(handle: int) -> str:
    """Return `major:minor` as `/proc/locks` has them: on btrfs `st_dev` is another number."""
    with open(f"/proc/self/fdinfo/{handle}") as lines:  # noqa: PTH123
        mount = next((line.split()[1] for line in lines if line.startswith("mnt_id:")), "")
    with open("/proc/self/mountinfo", errors="replace") as mounts:  # noqa: PTH123
        for line in mounts:
            fields = line.split(" ", 3)
            if fields[0] == mount:
                major, _, minor = fields[2].partition(":")
                return f"{int(major):02x}:{int(minor):02x}"
    return ""


def _is_locked(handle: int) -> bool:
    try:
        # Shared: two that ask at once must not take each other for an owner.
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _pid_on_file(home: _Path) -> int | None:
    pid = read_daemon_file(home).get("pid")
    return pid if isinstance(pid, int) and pid > 0 else None


def read_daemon_file(home: _Path) -> dict[str, Any]:
    """Return what `daemon.json` says, empty if it is missing or unreadable.

    A hint for people and for dialling. Who answers there is never given a token for it.
    """
    try:
        with open(os.path.join(home, "daemon.json"), "rb") as file:  # noqa: PTH118, PTH123
            content = json.load(file)
    except (OSError, ValueError):
        return {}
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}
