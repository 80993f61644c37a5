"""Who opened a session, as a front end shows it and its record keeps it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessView:
    """Who opened a session, as the kernel saw it when it did (Linux; elsewhere there is none)."""

    pid: int
    executable: str
    """Empty where the kernel does not say."""
    cwd: str
    parents: tuple[tuple[int, str], ...]
    """(pid, name) of its parents, the nearest first; at most 8."""
    started_at: float | None
    """Epoch seconds; None where the kernel does not say."""

    def to_json(self) -> dict[str, Any]:
        """Return it as the record of a session's opening keeps it."""
        return {
            "pid": self.pid,
            "executable": self.executable,
            "cwd": self.cwd,
            "parents": [[pid, name] for pid, name in self.parents],
            "started_at": self.started_at,
        }

    @classmethod
    def from_json(cls, stored: object) -> "ProcessView | None":
        """Read what `to_json` returned; None for anything else (another program wrote it)."""
        if not isinstance(stored, Mapping):
            return None
        fields = cast("Mapping[str, Any]", stored)
        try:
            parents = cast("Sequence[tuple[Any, Any]]", fields["parents"])
            started = fields["started_at"]
            return cls(
                pid=int(fields["pid"]),
                executable=str(fields["executable"]),
                cwd=str(fields["cwd"]),
                parents=tuple((int(pid), str(name)) for pid, name in parents),
                started_at=None if started is None else float(started),
            )
        except (KeyError, TypeError, ValueError, OverflowError):
            return None
