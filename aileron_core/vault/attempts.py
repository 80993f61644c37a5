"""Wrong passphrases: counted over restarts, and each slower than the one before."""

import json
from dataclasses import dataclass
from pathlib import Path

from aileron_core.clock import Clock
from aileron_core.errors import RateLimited
from aileron_core.vault.atomic_file import read_private_file, replace_file

NAME = "vault-attempts.json"
_WAITS = (0.0, 0.0, 0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds to wait after that many wrong passphrases; as the last one, after more."""
_MAX_BYTES = 4096


@dataclass(frozen=True, slots=True)
class FailedAttempts:
    """Wrong passphrases since the vault was last unlocked."""

    count: int = 0
    since: float = 0.0
    """When the first of them was given, epoch seconds."""
    last: float = 0.0


class AttemptCounter:
    """Counts each attempt before it is made, so that ending the process makes none free."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self._path = folder / NAME
        self._clock = clock

    def failed(self) -> FailedAttempts:
        """Return those on file; none where it is missing or damaged.

        No time is later than now: a clock that was set back makes nobody wait longer.
        """
        try:
            data = read_private_file(self._path, _MAX_BYTES)
            content = json.loads(data or b"{}")
            now = self._clock.now()
            return FailedAttempts(
                max(0, int(content.get("count", 0))),
                min(now, float(content.get("since", 0))),
                min(now, float(content.get("last", 0))),
            )
        except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError):
            return FailedAttempts()

    def begin(self) -> FailedAttempts:
        """Count an attempt as failed until `set` says otherwise; return it with those before.

        Raises:
            RateLimited: it is too early for another; this one was not looked at.
            OSError: it cannot be counted.
        """
        now, before = self._clock.now(), self.failed()
        wait = wait_after(before.count)
        left = before.last + wait - now
        if left > 0:
            raise RateLimited(
                f"After {before.count} wrong passphrases the vault waits: try again in {left:.0f} s.",
                details={"attempts": before.count, "wait_seconds": left},
            )
        attempts = FailedAttempts(before.count + 1, before.since if before.count else now, now)
        self.set(attempts)
        return attempts

    def set(self, attempts: FailedAttempts) -> None:
        """Have *attempts* be those on file."""
        if not attempts.count:
            self._path.unlink(missing_ok=True)
            return
        content = {"count": attempts.count, "since": attempts.since, "last": attempts.last}
        replace_file(self._path, json.dumps(content).encode())


def wait_after(count: int) -> float:
    """Return the seconds that are waited after *count* wrong passphrases."""
    return _WAITS[min(count, len(_WAITS) - 1)]
