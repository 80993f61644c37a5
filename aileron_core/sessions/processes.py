"""What the kernel reports about a process (on Linux; elsewhere nothing is known or claimed).

Read here and not by psutil, which takes a program's word where the kernel's is missing or long: the
first word of a command line for the executable that it may not see, and for a name of 15 characters.
"""

import os
import re
import socket
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from aileron_core.console_port.session_terms import ProcessView

_MAX_ANCESTORS = 64
_MAX_PARENTS = 8
_MAX_PATH = 1024
"""Characters of a path. Linux allows 4,096 bytes; the rest is named by its length."""


def read_process(pid: int) -> ProcessView | None:
    """Return what the kernel reports about *pid* now; None where it reports nothing.

    All of it is of one process, even where its number is given to another meanwhile. Names and
    paths are of its owner's choosing, so they are as hostile as any text.
    """
    try:
        folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        parent, ticks = _stat(folder)
        return ProcessView(
            pid=pid,
            executable=_link(folder, "exe"),
            cwd=_link(folder, "cwd"),
            parents=_parents(parent),
            started_at=_epoch(ticks),
        )
    except (OSError, ValueError, IndexError):
        return None  # it has ended
    finally:
        os.close(folder)


def is_stopped(process: ProcessView) -> bool:
    """Return whether *process* is still there and has been stopped, by Ctrl-Z for example."""
    with suppress(OSError, ValueError, IndexError):
        folder = os.open(f"/proc/{process.pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fields = _read(folder, "stat").rpartition(")")[2].split()
            return fields[0] == "T" and _epoch(int(fields[19])) == process.started_at
        finally:
            os.close(folder)
    return False


def _stat(folder: int) -> tuple[int, int]:
    """Return the parent's pid and the start in clock ticks since boot (proc(5), fields 4 and 22)."""
    # The name in parentheses may hold blanks and parentheses of its own.
    fields = _read(folder, "stat").rpartition(")")[2].split()
    return int(fields[1]), int(fields[19])


def _read(folder: int, name: str) -> str:
    handle = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    try:
        return os.read(handle, 4096).decode("utf-8", "backslashreplace")
    finally:
        os.close(handle)


def _link(folder: int, name: str) -> str:
    """Return where a link of the process leads; empty where that is not for us to see."""
    try:
        target = os.readlink(name, dir_fd=folder)
    except PermissionError:
        return ""
    except FileNotFoundError:
        return ""  # a thread of the kernel has none
    text = os.fsencode(target).decode("utf-8", "backslashreplace")
    if len(text) > _MAX_PATH:
        return f"{text[:_MAX_PATH]}… ({len(text)} characters)"
    return text


def _parents(pid: int) -> tuple[tuple[int, str], ...]:
    parents: list[tuple[int, str]] = []
    while pid > 0 and len(parents) < _MAX_PARENTS:
        try:
            folder = os.open(f"/proc/{pid}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            break
        try:
            name = _read(folder, "comm").removesuffix("\n")
            parent, _ = _stat(folder)
        except (OSError, ValueError, IndexError):
            break
        finally:
            os.close(folder)
        parents.append((pid, name))
        pid = parent
    return tuple(parents)


def _epoch(ticks: int) -> float | None:
    """Return the epoch seconds of a moment in clock ticks since boot."""
    with suppress(OSError):
        match = re.search(r"^btime (\d+)$", Path("/proc/stat").read_text("ascii"), re.MULTILINE)
        if match is not None:
            return int(match[1]) + ticks / os.sysconf("SC_CLK_TCK")
    return None


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        return int(stat.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def is_ancestor(candidate: int, pid: int) -> bool:
    """Return whether *candidate* is *pid* or one of its parents (init is nobody's claim)."""
    for _ in range(_MAX_ANCESTORS):
        if pid <= 1:
            return False
        if pid == candidate:
            return True
        pid = _parent(pid)
    return False


def is_below_sshd(pid: int) -> bool:
    """Return whether a near parent of *pid* is root's sshd, as of what ssh runs here; only root can look so."""
    parents = _parents(_parent(pid))
    return any(name.startswith("sshd") and _user(each) == 0 for each, name in parents)


class Holders(NamedTuple):
    """Which processes of this user hold a connection."""

    pids: frozenset[int] = frozenset()
    seen: bool = True
    """Whether these were seen to hold it, or nothing is known. If not, one of this user's holds it that lets
    nobody look, as sshd does: one of these, or none at all where it is on its way between two."""


def pids_at(client: tuple[str, int], server: tuple[str, int]) -> Holders:
    """Return which processes of ours hold *client*'s end of its TCP connection to *server*, both IPv4.

    Nothing is known where the kernel does not say: another user's, another network's, no Linux. It looks through
    the open files of all our processes, which takes milliseconds: not on a loop, nor because a stranger asks.
    """
    inode, user = _socket(_hex_address(*client), _hex_address(*server))
    if inode == "0":
        return Holders()
    found, closed = set[int](), set[int]()
    for pid in (int(each.name) for each in Path("/proc").iterdir() if each.name.isdigit()):
        try:
            if any(_target(e) == f"socket:[{inode}]" for e in Path(f"/proc/{pid}/fd").iterdir()):
                found.add(pid)
        except PermissionError:
            if _user(pid) == os.getuid():
                closed.add(pid)
        except OSError:
            pass  # it has ended
    if found or user != os.getuid():
        return Holders(frozenset(found))
    return Holders(frozenset(closed), seen=False)


def _user(pid: int) -> int | None:
    with suppress(OSError, ValueError, IndexError):
        status = Path(f"/proc/{pid}/status").read_text("utf-8", "replace")
        return int(status.partition("\nUid:")[2].split()[0])
    return None


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:  # it was closed meanwhile
        return ""


def _socket(client: str, server: str) -> tuple[str, int]:
    """Return inode and user of a connected socket by the kernel's names of its two ends; inode 0: it is not there."""
    mapped = "0" * 16 + "FFFF0000"  # a socket of IPv6 that is connected over IPv4
    for table, prefix in (("tcp", ""), ("tcp6", mapped)):
        with suppress(OSError):
            for line in Path(f"/proc/net/{table}").read_text("ascii").splitlines()[1:]:
                fields = line.split()
                if fields[1:3] == [prefix + client, prefix + server]:
                    return fields[9], int(fields[7])
    return "0", 0


def _hex_address(host: str, port: int) -> str:
    """Return an IPv4 address as `/proc/net/tcp` has it, in the machine's byte order."""
    number = int.from_bytes(socket.inet_aton(host), sys.byteorder)
    return f"{number:08X}:{port:04X}"
