"""Whether this machine can contain an agent, and what would be left open."""

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from aileron_core.containment.linux import (
    SCOPE_ABI,
    forget_keyring,
    landlock_abi,
    no_new_privileges,
    scope_sockets_and_signals,
)
from aileron_core.errors import Forbidden, NotFound
from aileron_core.text import escape

__all__ = ["SandboxSupport", "abstract_listeners", "find_bwrap", "find_support"]

_ACCEPTS = 0x10000
"""__SO_ACCEPTCON in the flags column of /proc/net/unix: somebody listens there."""
_TRIED_SECONDS = 10
_NAMED = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSupport:
    """What this machine's sandbox is made of."""

    bwrap: str
    scopes: bool
    """Whether the kernel keeps abstract sockets and signals inside."""

    def prepare(self) -> None:
        """Take rights from this process; called in the child, before bubblewrap starts."""
        no_new_privileges()
        forget_keyring()
        if self.scopes:
            scope_sockets_and_signals()


def find_bwrap() -> str | None:
    """Return the system's bubblewrap, None where there is none."""
    return shutil.which("bwrap", path="/usr/bin:/bin:/usr/local/bin")


def find_support(*, offline: bool, allow_abstract: bool = False) -> SandboxSupport:
    """Return what contains an agent here.

    Args:
        offline: it gets a network of its own, in which there are no abstract sockets of others.
        allow_abstract: the person accepts that it reaches them.

    Raises:
        NotFound: bubblewrap is not installed, or this is not Linux.
        Forbidden: the kernel refuses it, or abstract sockets would be reachable.
    """
    if sys.platform != "linux":
        raise NotFound(
            "There is no sandbox for agents on this system. Use a container or another user, or "
            "start with --no-sandbox: the console marks the session as uncontained."
        )
    bwrap = find_bwrap()
    if bwrap is None:
        raise NotFound(
            "bubblewrap is not installed, so the agent cannot be contained. Install the package "
            "`bubblewrap` (apt, dnf, pacman), or start with --no-sandbox."
        )
    _try(bwrap)
    scopes = landlock_abi() >= SCOPE_ABI
    reachable = () if scopes or offline or allow_abstract else abstract_listeners()
    if reachable:
        shown = ", ".join(escape(name) for name in reachable[:_NAMED])
        more = f" and {len(reachable) - _NAMED} more" if len(reachable) > _NAMED else ""
        raise Forbidden(
            f"This kernel cannot keep the agent from abstract sockets, and there are some: {shown}"
            f"{more}. Use --sandbox=offline, or accept that with --allow-abstract-sockets."
        )
    return SandboxSupport(bwrap=bwrap, scopes=scopes)


def _try(bwrap: str) -> None:
    """Make the smallest sandbox there is: the kernel or a policy may forbid user namespaces."""
    command = [bwrap, "--unshare-user", "--unshare-pid", "--disable-userns", "--ro-bind", "/", "/"]
    tried = subprocess.run(
        [*command, "true"], capture_output=True, text=True, timeout=_TRIED_SECONDS, check=False
    )
    if tried.returncode == 0:
        return
    said = escape(tried.stderr.strip()[:300])
    hint = ""
    if Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns").exists():
        hint = " AppArmor forbids user namespaces here: give bwrap a profile that allows `userns`."
    raise Forbidden(
        f"bubblewrap cannot make a sandbox here ({said}).{hint} Start with --no-sandbox to go without."
    )


def abstract_listeners(table: str | None = None) -> tuple[str, ...]:
    """Return the names of the abstract sockets that somebody listens on, sorted.

    Args:
        table: the text of /proc/net/unix; read where it is not given.
    """
    if table is None:
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
