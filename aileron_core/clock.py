"""The only module that reads the system clock; tests pass in a frozen one."""

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """Wall time for records and deadlines (they hold over restarts), monotonic time for waiting."""

    def now(self) -> float:
        """Return seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Return seconds that never step back."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> float:
        return time.time()  # noqa: TID251 - this is the clock

    def monotonic(self) -> float:
        return time.monotonic()


def rfc3339(seconds: float) -> str:
    """Return RFC 3339 UTC with milliseconds."""
    moment = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    return moment.isoformat(timespec="milliseconds") + "Z"


def parse_rfc3339(text: str) -> float:
    """Return the seconds since the epoch that `rfc3339` wrote as *text*."""
    return datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%fZ").replace(tzinfo=UTC).timestamp()
