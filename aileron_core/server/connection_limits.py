"""Limits of open connections for each kind of client, and which connection is closed at the limit.

Any program that reaches the port may open connections. Those without a token have a limit of their
own, so that they use up neither the process's file descriptors nor the places of others.
"""

import resource
from typing import Protocol

ANONYMOUS = "anonymous"
"""Holder of the connections over TCP without a valid token."""
PERSON = "person"
"""Holder of the connections over the home's own socket without a session's token."""
_MAX_ANONYMOUS = 512
"""Twice what one turn of the loop accepts, so that a burst is read before it is cut."""
_MAX_PERSON = 256
_MAX_SESSION = 416
"""The requests that a session may have open (128, and 256 through the gateway), and some to spare."""


class ClientConnection(Protocol):
    """One client's connection."""

    @property
    def is_idle(self) -> bool:
        """Whether no request is being read or answered on it."""
        ...

    def drop(self) -> None: ...


class ConnectionLimits:
    """The open connections, by holder: `ANONYMOUS`, `PERSON`, or a session's id."""

    def __init__(self) -> None:
        self._by_holder: dict[str, dict[ClientConnection, None]] = {}

    def add(self, connection: ClientConnection, holder: str) -> None:
        """Count *connection* for *holder*; at the limit another connection is closed, or this one."""
        self._by_holder.setdefault(holder, {})[connection] = None
        if len(self._by_holder[holder]) > _most_of(holder):
            self._end_one(holder)
        elif holder not in (ANONYMOUS, PERSON):
            sessions = [each for each in self._by_holder if each not in (ANONYMOUS, PERSON)]
            if sum(len(self._by_holder[each]) for each in sessions) > _share(3):
                self._end_one(max(sessions, key=lambda each: len(self._by_holder[each])))

    def remove(self, connection: ClientConnection, holder: str) -> None:
        """Count *connection* no longer, if it was counted."""
        connections = self._by_holder.get(holder, {})
        connections.pop(connection, None)
        if not connections:
            self._by_holder.pop(holder, None)

    def _end_one(self, holder: str) -> None:
        """Close the oldest anonymous connection; of another holder its first idle one, else its newest."""
        connections = self._by_holder[holder]
        if holder == ANONYMOUS:
            closing = next(iter(connections))
        else:
            newest = next(reversed(connections))
            closing = next((each for each in connections if each.is_idle), newest)
        self.remove(closing, holder)
        closing.drop()


def _most_of(holder: str) -> int:
    if holder == ANONYMOUS:
        return min(_MAX_ANONYMOUS, _share(8))
    return _MAX_PERSON if holder == PERSON else _MAX_SESSION


def _share(part: int) -> int:
    """Return one *part*th of the files that the process may open: a connection is one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (soft if soft > 0 else 2**31) // part
