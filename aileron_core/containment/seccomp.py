"""The seccomp filter for contained programs, built as BPF instructions. Pure.

The refused calls lead around the other barriers: keyrings belong to the user and to no namespace,
the others reach large parts of the kernel that a sandboxed program has no need of. They fail with
ENOSYS, as on a kernel without them, which programs know how to handle. So do sockets to the host of a virtual
machine, which belong to no network namespace: with EAFNOSUPPORT.

System call numbers differ between architectures, so a process that uses another one (32-bit code on
a 64-bit kernel) is killed at its first call, and every x32 call gets ENOSYS. `ptrace` stays
allowed: debuggers are tools, and the sandbox's process namespace limits what it reaches.
"""

import errno
import struct
from collections.abc import Mapping
from types import MappingProxyType

REFUSED_CALLS: Mapping[str, Mapping[str, int]] = MappingProxyType({
    "x86_64": MappingProxyType({
        "kexec_load": 246, "add_key": 248, "request_key": 249, "keyctl": 250, "perf_event_open": 298,
        "kexec_file_load": 320, "bpf": 321, "userfaultfd": 323, "io_uring_setup": 425,
        "io_uring_enter": 426, "io_uring_register": 427,
    }),
    # include/uapi/asm-generic/unistd.h: every architecture that is younger than that file.
    "aarch64": MappingProxyType({
        "kexec_load": 104, "add_key": 217, "request_key": 218, "keyctl": 219, "perf_event_open": 241,
        "bpf": 280, "userfaultfd": 282, "kexec_file_load": 294, "io_uring_setup": 425,
        "io_uring_enter": 426, "io_uring_register": 427,
    }),
})  # fmt: skip
"""The refused calls and their numbers, by architecture (as `platform.machine` names it)."""

_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH_* of linux/audit.h."""
_SOCKET = {"x86_64": 41, "aarch64": 198}
"""The number of `socket`."""
_SOCKETPAIR = {"x86_64": 53, "aarch64": 199}
_AF_UNIX, _AF_VSOCK = 1, 40
_STREAMS = [kind | flags for kind in (1, 5) for flags in (0, 0x800, 0x80000, 0x80800)]
"""SOCK_STREAM and SOCK_SEQPACKET, with SOCK_NONBLOCK and SOCK_CLOEXEC: a pair of datagrams can send to others."""
_X32 = 0x40000000
"""__X32_SYSCALL_BIT: on x86_64, the calls of the 32-bit ABI for 64-bit processors."""

_NUMBER, _ARCHITECTURE, _ARGUMENT, _SECOND_ARGUMENT = 0, 4, 16, 24
"""Offsets in struct seccomp_data; of an argument the lower half, of which alone `socket` takes note."""
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
"""BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_RET|K."""
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def build_filter(machine: str, *, unix_sockets: bool = True) -> bytes | None:
    """Return the filter for the architecture *machine*, as an array of `struct sock_filter`.

    Args:
        unix_sockets: whether a program may make one, other than a pair of streams, which reach nobody else. Who is
            given a folder's descriptor through one has it as it was mounted where that comes from.

    Returns:
        None for an architecture whose system call numbers are not known here.
    """
    calls = REFUSED_CALLS.get(machine)
    if calls is None:
        return None
    numbers = sorted(calls.values())
    families = [
        _line(_IF_EQUAL, _SOCKET[machine], then=1),
        _line(_RETURN, _ALLOW),
        _line(_LOAD, _ARGUMENT),
        _line(_IF_EQUAL, _AF_VSOCK, then=2),
        _line(_IF_EQUAL, _AF_VSOCK if unix_sockets else _AF_UNIX, then=1),
        _line(_RETURN, _ALLOW),
        _line(_RETURN, _ERRNO | errno.EAFNOSUPPORT),
    ]
    if not unix_sockets:
        pairs = [
            _line(_LOAD, _SECOND_ARGUMENT),
            *(_line(_IF_EQUAL, each, then=len(_STREAMS) - at) for at, each in enumerate(_STREAMS)),
            _line(_RETURN, _ERRNO | errno.EAFNOSUPPORT),
            _line(_RETURN, _ALLOW),
        ]
        is_pair = _line(_IF_EQUAL, _SOCKETPAIR[machine], then=1)
        families = [is_pair, _line(_IF_AT_LEAST, 0, then=len(pairs)), *pairs, *families]
    unsupported = len(numbers) + len(families)
    lines = [
        _line(_LOAD, _ARCHITECTURE),
        _line(_IF_EQUAL, _ARCH[machine], then=1),
        _line(_RETURN, _KILL),
        _line(_LOAD, _NUMBER),
    ]
    if machine == "x86_64":
        lines.append(_line(_IF_AT_LEAST, _X32, then=unsupported))
    lines += [
        _line(_IF_EQUAL, number, then=unsupported - at - 1) for at, number in enumerate(numbers)
    ]
    lines += [*families, _line(_RETURN, _ERRNO | errno.ENOSYS)]
    return b"".join(lines)


def _line(code: int, value: int, *, then: int = 0) -> bytes:
    """Return one BPF instruction; *then* is how many to skip when its condition holds."""
    return struct.pack("=HBBI", code, then, 0, value)
