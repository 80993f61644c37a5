"""Whether this machine can contain an agent: bubblewrap, not root, a system call filter, no open abstract sockets."""

import os
import platform
import shutil
import struct
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from aileron_core.containment.linux_syscalls import (
    SCOPE_ABI,
    install_seccomp_filter,
    join_empty_keyring,
    landlock_abi,
    no_new_privileges,
    scope_sockets_and_signals,
)
from aileron_core.containment.programs import OR_WITHOUT
from aileron_core.containment.seccomp import REFUSED_CALLS, build_filter
from aileron_core.errors import Forbidden, NotFound
from aileron_core.text import escape

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


def find_sandbox_support(
    *, offline: bool, allow_abstract: bool = False, unix_sockets: bool = True
) -> SandboxSupport:
    """Return what an agent can be contained with on this machine.

    Args:
        offline: the sandbox has a network namespace of its own, without anybody else's abstract
            sockets.
        allow_abstract: the person accepts that the agent can reach abstract sockets.
        unix_sockets: as of `build_filter`.

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
    calls = machine_filter(unix_sockets=unix_sockets)
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


def machine_filter(*, unix_sockets: bool = True) -> bytes | None:
    """Return the system call filter for this machine's architecture, None if there is none."""
    # A 32-bit Python on a 64-bit kernel speaks another architecture than the machine's name says.
    machine = platform.machine()
    return build_filter(machine, unix_sockets=unix_sockets) if struct.calcsize("P") == 8 else None


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
