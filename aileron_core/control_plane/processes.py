"""What the kernel says of a process (Linux; elsewhere nothing is known and nothing is claimed)."""

from pathlib import Path

__all__ = ["executable_of", "is_ancestor"]

_DEEPEST = 64


def executable_of(pid: int) -> str:
    """Return the path of the program that *pid* runs; empty where the kernel does not say."""
    try:
        return str(Path(f"/proc/{pid}/exe").readlink())
    except OSError:
        return ""


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        # The name in parentheses may hold blanks and parentheses of its own.
        return int(stat.rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def is_ancestor(candidate: int, pid: int) -> bool:
    """Return whether *candidate* is *pid* or one of its parents (init is nobody's claim)."""
    for _ in range(_DEEPEST):
        if pid <= 1:
            return False
        if pid == candidate:
            return True
        pid = _parent(pid)
    return False
