"""What a rehearsed command wants that a rehearsal does not have: seen as it asks the kernel for it.

A seccomp filter has the kernel ask this process about some system calls.

* Sockets that reach beyond the command's own processes are refused here, and no socket is connected by
  its name: some lead out of any namespace. A datagram socket is among them, as it needs no connection.
* Signals and renames go on; they are reported where their result cannot be what it would be for real.
  Their arguments are in the command's memory, which it can change meanwhile: that can hide such a wish,
  and gains nothing.
* Memory is what its processes hold, looked at every few thousandths of a second. What could be held by
  none, as a file without a name, is not there.
"""

import contextlib
import ctypes
import errno
import fcntl
import os
import platform
import select
import stat
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

_CALLS = {
    "x86_64": {
        "shmget": 29, "socket": 41, "connect": 42, "socketpair": 53, "kill": 62, "rename": 82,
        "rt_sigqueueinfo": 129, "renameat": 264, "renameat2": 316, "memfd_create": 319, "memfd_secret": 447,
    },
    "aarch64": {
        "renameat": 38, "kill": 129, "rt_sigqueueinfo": 138, "shmget": 194, "socket": 198,
        "socketpair": 199, "connect": 203, "renameat2": 276, "memfd_create": 279, "memfd_secret": 447,
    },
}  # fmt: skip
_SECCOMP = {"x86_64": 317, "aarch64": 277}
_SET_MODE_FILTER, _NEW_LISTENER = 1, 8
_UNIX, _NETLINK = 1, 16
_FAMILIES = {2: "IPv4", 10: "IPv6", 17: "packet", 40: "virtual machine"}
_LOAD, _AND, _IF_EQUAL, _RETURN = 0x20, 0x54, 0x15, 0x06
_TYPE, _STREAM, _SEQUENCED = 0xF, 1, 5
"""Of a socket's type: the mask, SOCK_STREAM and SOCK_SEQPACKET."""
_ALLOW, _NOTIFY = 0x7FFF0000, 0x7FC00000
_LOOK_SECONDS = 0.004
"""How often memory is looked at, and orphans are reaped."""
_NUMBER, _ARGUMENTS = 0, 16
"""Offsets in struct seccomp_data; of an argument, the lower half on these little-endian machines."""
_NOTIFICATION, _ANSWER = struct.Struct("=QIIiIQ6Q"), struct.Struct("=QqiI")
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
_REFUSED = {
    **dict.fromkeys(("socket", "socketpair", "connect"), errno.EACCES),
    **dict.fromkeys(("memfd_create", "memfd_secret", "shmget"), errno.ENOSYS),
}
_SHARES = (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:")
_WHOLES = (b"RssAnon:", b"RssShmem:", b"VmSwap:")
_AT_FDCWD = -100
_MAX_PATH = 4096

Report = Callable[[dict[str, object]], None]


def listen() -> int:
    """Have the kernel ask about what this process's children want; return the descriptor where it asks.

    Raises:
        OSError: it cannot.
    """
    machine = platform.machine()
    calls = _CALLS.get(machine)
    if calls is None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS), machine)
    program = _filter(calls)
    buffer = ctypes.create_string_buffer(program, len(program))
    head = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)
    listener: int = libc.syscall(_SECCOMP[machine], _SET_MODE_FILTER, _NEW_LISTENER, head)
    if listener < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), "seccomp")
    return listener


def _filter(calls: Mapping[str, int]) -> bytes:
    """Return the filter, which follows one that has refused every other architecture.

    Only streams between processes, and what asks the kernel about the network, need no question.
    """
    sockets = [calls["socket"], calls["socketpair"]]
    others = sorted({*calls.values()} - {*sockets})
    lines = [(_LOAD, 0, 0, _NUMBER)]
    # To the last line: past those that follow here, and the ten below.
    lines += [(_IF_EQUAL, len(others) - at + 9, 0, each) for at, each in enumerate(others)]
    lines += [
        (_IF_EQUAL, 1, 0, sockets[0]),
        (_IF_EQUAL, 0, 7, sockets[1]),
        (_LOAD, 0, 0, _ARGUMENTS),
        (_IF_EQUAL, 5, 0, _NETLINK),
        (_IF_EQUAL, 0, 5, _UNIX),
        (_LOAD, 0, 0, _ARGUMENTS + 8),
        (_AND, 0, 0, _TYPE),
        (_IF_EQUAL, 1, 0, _STREAM),
        (_IF_EQUAL, 0, 1, _SEQUENCED),
        (_RETURN, 0, 0, _ALLOW),
        (_RETURN, 0, 0, _NOTIFY),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in lines)


class Attendant:
    """Answers the kernel in the first process of a rehearsal."""

    def __init__(self, unders: Mapping[int, int], room: Callable[[], int], report: Report) -> None:
        """Begin with nothing reported.

        Args:
            unders: by the device of each overlay a descriptor of the folder under it.
            room: how many bytes of memory the command may have now.
        """
        self._unders = unders
        self._room = room
        self._report = report
        self._numbers = {
            number: name for name, number in _CALLS.get(platform.machine(), {}).items()
        }

    def attend(self, listener: int, child: int) -> int:
        """Answer until the process *child* has ended, and return its status."""
        ended = os.pidfd_open(child)
        poll = select.poll()
        poll.register(listener, select.POLLIN)
        poll.register(ended, select.POLLIN)
        next_look = 0.0
        while True:
            ready = [number for number, _ in poll.poll(_LOOK_SECONDS * 1000)]
            if (began := time.monotonic()) >= next_look:
                if memory_in_use(room := self._room()) > room:
                    self._report({"memory": room})
                    return 0  # with this process the kernel ends all others, at once
                next_look = max(began + _LOOK_SECONDS, 2 * time.monotonic() - began)
            # Orphans of the command are this process's children, and count as long as they are not waited for.
            while (gone := os.waitpid(-1, os.WNOHANG))[0]:
                if gone[0] == child:
                    return gone[1]
            if listener not in ready:
                continue
            buffer = bytearray(_NOTIFICATION.size)
            try:
                fcntl.ioctl(listener, _RECEIVE, buffer)
            except OSError:  # who asked is gone
                continue
            asked, process, _, number, _, _, *arguments = _NOTIFICATION.unpack(buffer)
            call = self._numbers.get(number, "")
            refused = _REFUSED.get(call, 0)
            # What cannot be read, the kernel refuses too.
            with contextlib.suppress(OSError, ValueError, struct.error):
                refused = self._look(process, call, arguments) or refused
            answer = _ANSWER.pack(asked, 0, -refused, 0 if refused else _CONTINUE)
            with contextlib.suppress(OSError):
                fcntl.ioctl(listener, _SEND, answer)

    def _look(self, process: int, call: str, arguments: list[int]) -> int:
        """Report what is wanted, if it is; return the error that the command gets in place of its usual one."""
        match call:
            case "socket" | "socketpair":
                family = arguments[0] & 0xFFFFFFFF
                if family == _UNIX:
                    self._report({"cannot": "opens a datagram socket"})
                else:
                    self._report({"network": _FAMILIES.get(family, f"address family {family}")})
            case "connect":
                return self._look_at_address(process, arguments[1], arguments[2])
            case "memfd_create" | "memfd_secret" | "shmget":
                pass
            case "kill" | "rt_sigqueueinfo":
                target = ctypes.c_int32(arguments[0] & 0xFFFFFFFF).value
                if target > 0 and not Path(f"/proc/{target}").exists():
                    self._report({"signal": target})
            case "rename":
                self._look_at_folder(process, _AT_FDCWD, arguments[0])
            case _:
                folder = ctypes.c_int32(arguments[0] & 0xFFFFFFFF).value
                self._look_at_folder(process, folder, arguments[1])
        return 0

    def _look_at_address(self, process: int, address: int, size: int) -> int:
        data = _memory(process, address, min(size, 110))
        if struct.unpack_from("=H", data)[0] != _UNIX:
            return errno.ECONNREFUSED
        if data[2:3] in (b"", b"\0"):
            self._report({"cannot": "connects to a socket without a path"})
            return errno.ECONNREFUSED
        path = _place(process, _AT_FDCWD, data[2:].split(b"\0")[0])
        if not os.path.lexists(path):  # as for what many programs look for first
            return errno.ENOENT
        self._report({"cannot": f"connects to the socket {os.path.realpath(path)}"})
        return errno.ECONNREFUSED

    def _look_at_folder(self, process: int, folder: int, address: int) -> None:
        """Report the rename of a folder that lies under an overlay, which the kernel refuses there."""
        path = _place(process, folder, _text(process, address))
        above = os.path.realpath(os.path.dirname(path))  # noqa: PTH120 - its links are what matters
        full = f"{above}/{os.path.basename(path.rstrip('/'))}"  # noqa: PTH119
        status = os.lstat(full)
        under = self._unders.get(status.st_dev)
        if under is None or not stat.S_ISDIR(status.st_mode):
            return
        top = Path(full)
        while top.parent != top and os.lstat(top.parent).st_dev == status.st_dev:
            top = top.parent
        inside = os.path.relpath(full, top)
        if stat.S_ISDIR(os.stat(inside, dir_fd=under, follow_symlinks=False).st_mode):
            self._report({"cannot": f"renames the folder {full}"})


def memory_in_use(enough: int) -> int:
    """Return the bytes of memory of all processes here but the first; what they share counts once, where it matters.

    Args:
        enough: up to so many bytes, what is shared is counted with each process: that waits for no lock of theirs.

    Source: proc_pid_status(5) and smaps_rollup in proc_pid_smaps(5).
    """
    others = [each for each in os.listdir("/proc") if each.isdecimal() and each != "1"]  # noqa: PTH208
    wholes = sum(_kilobytes(each, "status", _WHOLES) for each in others) * 1024
    if wholes <= enough:
        return wholes
    return sum(_kilobytes(each, "smaps_rollup", _SHARES) for each in others) * 1024


def _kilobytes(process: str, file: str, names: tuple[bytes, ...]) -> int:
    """Return the sum of the fields *names*; 0 where it may not be read, or the process has ended."""
    try:
        with open(f"/proc/{process}/{file}", "rb") as lines:  # noqa: PTH123 - much quicker
            return sum(int(line.split()[1]) for line in lines if line.startswith(names))
    except OSError:
        return 0


def _memory(process: int, address: int, size: int) -> bytes:
    handle = os.open(f"/proc/{process}/mem", os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.pread(handle, size, address)
    finally:
        os.close(handle)


def _text(process: int, address: int) -> bytes:
    """Read a path, which may end just before memory that cannot be read."""
    page = 4096 - address % 4096
    data = _memory(process, address, page)
    if b"\0" not in data and len(data) < _MAX_PATH:
        data += _memory(process, address + page, _MAX_PATH - len(data))
    return data.split(b"\0")[0]


def _place(process: int, folder: int, path: bytes) -> str:
    if path.startswith(b"/"):
        return os.fsdecode(path)
    base = "cwd" if folder == _AT_FDCWD else f"fd/{folder}"
    return f"{os.readlink(f'/proc/{process}/{base}')}/{os.fsdecode(path)}"  # noqa: PTH115


def said(reports: list[dict[str, Any]]) -> str | None:
    """Return why a rehearsal does not count, None if it does."""
    network = sorted({each["network"] for each in reports if "network" in each})
    signals = sorted({each["signal"] for each in reports if "signal" in each})
    others = sorted({each["cannot"] for each in reports if "cannot" in each})
    if memory := [each["memory"] for each in reports if "memory" in each]:
        return f"It uses more memory than a rehearsal has (now {memory[0] >> 20} MiB)."
    if network:
        return f"It opens a network socket ({', '.join(network)}); a rehearsal has no network."
    if signals:
        numbers = ", ".join(str(each) for each in signals)
        return f"It signals process {numbers}; a rehearsal sees only its own processes."
    if others:
        return f"It {others[0]}, which a rehearsal cannot do."
    return None
