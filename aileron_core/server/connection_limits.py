"""How many connections may be open for whom, and which one goes where there are more.

Whoever reaches the port may open connections. Those that have shown no token share places of their
own, so that they can use up neither the files that the process needs nor the places of others.
"""

import resource
from typing import Protocol

ANONYMOUS = "nobody"
"""Holds the connections over TCP that have not shown a token that opens something."""
PERSON = "person"
"""Holds the connections over the home's own socket, without a session's token."""
_MOST_OF_NOBODY = 512
"""Twice what one turn of the loop accepts, so that what is sent at once is read in time."""
_MOST_OF_PERSON = 256
_MOST_OF_SESSION = 416
"""What a session may ask and pass at once (128 and 256), and some to spare."""


class ClientConnection(Protocol):
    """One client's connection."""

    @property
    def is_idle(self) -> bool:
        """Whether no request of it is being heard or answered."""
        ...

    def drop(self) -> None:
        """End it at once."""
        ...


class ConnectionLimits:
    """The open connections, by whom they are for: `NOBODY`, `PERSON`, or a session's id."""

    def __init__(self) -> None:
        self._held: dict[str, dict[ClientConnection, None]] = {}

    def add(self, connection: ClientConnection, holder: str) -> None:
        """Give *connection* a place of *holder*'s; another one may have to go, or this one itself."""
        self._held.setdefault(holder, {})[connection] = None
        if len(self._held[holder]) > _most_of(holder):
            self._end_one(holder, connection)
        elif holder not in (ANONYMOUS, PERSON):
            sessions = [each for each in self._held if each not in (ANONYMOUS, PERSON)]
            if sum(len(self._held[each]) for each in sessions) > _share(3):
                self._end_one(max(sessions, key=lambda each: len(self._held[each])), connection)

    def remove(self, connection: ClientConnection, holder: str) -> None:
        """Take back the place, if *connection* still has it."""
        held = self._held.get(holder, {})
        held.pop(connection, None)
        if not held:
            self._held.pop(holder, None)

    def _end_one(self, holder: str, newest: ClientConnection) -> None:
        """End the oldest of nobody's, whatever it does; of others the first that is silent, else the newest."""
        held = self._held[holder]
        if holder == ANONYMOUS:
            going = next(iter(held))
        else:
            going = next((each for each in held if each.is_idle), newest)
        self.remove(going, holder)
        going.drop()


def _most_of(holder: str) -> int:
    if holder == ANONYMOUS:
        return min(_MOST_OF_NOBODY, _share(8))
    return _MOST_OF_PERSON if holder == PERSON else _MOST_OF_SESSION


def _share(part: int) -> int:
    """Return one *part*th of the files that the process may open: a connection is one."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (soft if soft > 0 else 2**31) // part
