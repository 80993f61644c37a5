"""How many MCP sessions of the old era one agent may have open."""

from collections import OrderedDict

__all__ = ["MOST_SESSIONS", "SessionLimit"]

MOST_SESSIONS = 32
"""Of one principal. Each costs some 40 kB until it is closed or was idle for half an hour."""


class SessionLimit:
    """The open MCP sessions of each principal, the one that was used longest ago first.

    The package bounds only their sum, so without this one agent could use up everybody's.
    """

    def __init__(self, most: int = MOST_SESSIONS) -> None:
        self._most = most
        self._by_principal: dict[str, OrderedDict[str, None]] = {}

    def opened(self, principal: str, session_id: str) -> str | None:
        """Note a new session; return the one that has to make way for it, if any."""
        theirs = self._by_principal.setdefault(principal, OrderedDict())
        theirs[session_id] = None
        return theirs.popitem(last=False)[0] if len(theirs) > self._most else None

    def used(self, principal: str, session_id: str) -> None:
        """Note a request of a session; one that is not the principal's is left out of account."""
        theirs = self._by_principal.get(principal)
        if theirs is not None and session_id in theirs:
            theirs.move_to_end(session_id)

    def closed(self, principal: str, session_id: str) -> None:
        """Forget a session."""
        theirs = self._by_principal.get(principal)
        if theirs is None:
            return
        theirs.pop(session_id, None)
        if not theirs:
            self._by_principal.pop(principal, None)
