"""Whether this machine can contain an agent (bubblewrap, not root, no open abstract sockets), and its system call filter.

The refused calls lead around the other barriers: keyrings belong to the user and to no namespace,
the others reach large parts of the kernel that a sandboxed program has no need of. They fail with
ENOSYS, as on a kernel without them, which programs know how to handle. So do sockets to the host of a virtual
machine, which belong to no network namespace: with EAFNOSUPPORT.

System call numbers differ between architectures, so a process that uses another one (32-bit code on
a 64-bit kernel) is killed at its first call, and every x32 call gets ENOSYS. `ptrace` stays
allowed: debuggers are tools, and the sandbox's process namespace limits what it reaches.
"""

import errno
import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from aileron_core.containment.linux_syscalls import (
    SCOPE_ABI,
    install_seccomp_filter,
    join_empty_keyring,
    landlock_abi,
    no_new_privileges,
    scope_sockets_and_signals,
)
from aileron_core.containment.programs import OR_WITHOUT
from aileron_core.errors import Forbidden, NotFound
from aileron_core.text import escape

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
_AF_VSOCK = 40
_X32 = 0x40000000
"""__X32_SYSCALL_BIT: on x86_64, the calls of the 32-bit ABI for 64-bit processors."""

_NUMBER, _ARCHITECTURE, _ARGUMENT = 0, 4, 16
"""Offsets in struct seccomp_data; of the first argument the lower half, of which alone `socket` takes note."""
_LOAD, _IF_EQUAL, _IF_AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
"""BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_JMP|JGE|K, BPF_RET|K."""
_ALLOW, _KILL, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def build_filter(machine: str) -> bytes | None:
    """Return the filter for the architecture *machine*, as an array of `struct sock_filter`.

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
        _line(_IF_EQUAL, _AF_VSOCK, then=1),
        _line(_RETURN, _ALLOW),
        _line(_RETURN, _ERRNO | errno.EAFNOSUPPORT),
    ]
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


_ACCEPTS = 0x10000
"""__SO_ACCEPTCON in the flags column of /proc/net/unix: a program listens there."""
_PROBE_SECONDS = 10
_MAX_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSupport:
    """What the sandbox is built from on this machine."""

    bwrap: str
    has_landlock_scopes: bool
    """Whether the kernel keeps abstract sockets and signals inside."""
    seccomp_filter: bytes = field(repr=False)
    """The filter of system calls (`seccomp.build_filter`)."""

    def drop_privileges(self) -> None:
        """Drop privileges of this process; to be called in the child, before bubblewrap is executed.

        Every process of the sandbox inherits this, including bubblewrap and Aileron's helper beside
        the agent.
        """
        no_new_privileges()
        join_empty_keyring()
        if self.has_landlock_scopes:
            scope_sockets_and_signals()
        install_seccomp_filter(
            self.seccomp_filter
        )  # last: it refuses what was just done to the keyring


def find_bwrap() -> str | None:
    """Return the path of the system's bubblewrap, None if it is not installed."""
    return shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")


def find_sandbox_support(*, offline: bool, allow_abstract: bool = False) -> SandboxSupport:
    """Return what an agent can be contained with on this machine.

    Args:
        offline: the sandbox has a network namespace of its own, without anybody else's abstract
            sockets.
        allow_abstract: the person accepts that the agent can reach abstract sockets.

    Raises:
        NotFound: bubblewrap is not installed, or this is not Linux.
        Forbidden: this is root, whom no sandbox holds; the kernel refuses the sandbox; there is no
            system
            call filter for this architecture; or abstract sockets would be reachable.
    """
    if sys.platform != "linux":
        raise NotFound(
            "Aileron has no sandbox for this system. Run the agent in a container or as another "
            f"user.{OR_WITHOUT}"
        )
    refuse_root()
    bwrap = find_bwrap()
    if bwrap is None:
        raise NotFound(
            "The sandbox needs bubblewrap, which is not installed. Install the package "
            f"`bubblewrap` (apt, dnf, pacman).{OR_WITHOUT}"
        )
    calls = machine_filter()
    if calls is None:
        raise Forbidden(
            f"Aileron has no system call filter for this machine ({platform.machine()}, "
            f"{8 * struct.calcsize('P')}-bit Python), only for "
            f"{' and '.join(sorted(REFUSED_CALLS))}.{OR_WITHOUT}"
        )
    scopes = landlock_abi() >= SCOPE_ABI
    support = SandboxSupport(bwrap=bwrap, has_landlock_scopes=scopes, seccomp_filter=calls)
    _probe(support)
    reachable = () if scopes or offline or allow_abstract else abstract_listeners()
    if reachable:
        shown = ", ".join(escape(name) for name in reachable[:_MAX_NAMED])
        more = f" and {len(reachable) - _MAX_NAMED} more" if len(reachable) > _MAX_NAMED else ""
        raise Forbidden(
            "This kernel cannot keep the agent from abstract sockets, and these are open: "
            f"{shown}{more}. Use --sandbox=offline, or accept the risk with "
            "--allow-abstract-sockets."
        )
    return support


def refuse_root() -> None:
    """Refuse to contain a process of root's, even one that is not called root in its user namespace.

    Raises:
        Forbidden: this is root.
    """
    if is_root_outside(os.geteuid(), _uid_map()):
        raise Forbidden(
            "Aileron cannot sandbox what runs as root: even in a sandbox, root's "
            "programs can change kernel settings and read every file. Run the console and the "
            "agent as an ordinary user (`runuser -u USER -- aileron console`, `runuser -u USER "
            f"-- aileron launch ...`).{OR_WITHOUT}"
        )


def machine_filter() -> bytes | None:
    """Return the system call filter for this machine's architecture, None if there is none."""
    # A 32-bit Python on a 64-bit kernel speaks another architecture than the machine's name says.
    return build_filter(platform.machine()) if struct.calcsize("P") == 8 else None


def is_root_outside(euid: int, uid_map: str) -> bool:
    """Return whether *euid* is root outside its user namespace, whatever it is called inside.

    Args:
        euid: the effective user id inside.
        uid_map: the text of /proc/self/uid_map; an *euid* that it does not map is taken as it is.
    """
    rows = [[int(word) for word in line.split()] for line in uid_map.splitlines()]
    for inside, outside, count in rows:
        if inside <= euid < inside + count:
            return outside + euid - inside == 0
    return euid == 0


def _uid_map() -> str:
    try:
        return Path("/proc/self/uid_map").read_text(encoding="ascii")
    except OSError:
        return ""


def _probe(support: SandboxSupport) -> None:
    """Build a minimal sandbox to see whether the kernel or a policy forbids user namespaces or filters."""
    command = [support.bwrap, "--unshare-user", "--unshare-pid", "--disable-userns"]
    with tempfile.TemporaryFile() as rules:  # bubblewrap installs it: a console has threads
        rules.write(support.seccomp_filter)
        rules.seek(0)
        command += ["--seccomp", str(rules.fileno()), "--ro-bind", "/", "/", "true"]
        try:
            tried = subprocess.run(
                command, capture_output=True, text=True, timeout=_PROBE_SECONDS, check=False,
                pass_fds=(rules.fileno(),),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            message = f"it took longer than {_PROBE_SECONDS} s"
        else:
            if tried.returncode == 0:
                return
            message = escape(tried.stderr.strip()[:300])
    hint = ""
    if Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").exists():
        hint = " AppArmor forbids user namespaces here. Give bwrap a profile that allows `userns`."
    raise Forbidden(f"bubblewrap cannot create a sandbox here ({message}).{hint}{OR_WITHOUT}")


def abstract_listeners() -> tuple[str, ...]:
    """Return the sorted names of the abstract sockets that have a listener."""
    try:
        table = Path("/proc/net/unix").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    names: set[str] = set()
    for line in table.splitlines()[1:]:
        parts = line.split(None, 7)
        if len(parts) == 8 and parts[7].startswith("@") and int(parts[3], 16) & _ACCEPTS:
            names.add(parts[7])
    return tuple(sorted(names))
