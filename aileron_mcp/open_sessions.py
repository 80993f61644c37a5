"""The open MCP sessions (only the old era has them), by the agent's session that they belong to.

The `mcp` package does not report that it ended an idle session, and limits only their total number.
So they are counted here: 32 for each agent's session, and idle ones are forgotten.
"""

import time
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mcp.server.session import ServerSession

from aileron_core.tasks import spawn

MAX_SESSIONS_PER_AGENT = 32
"""Of one agent's session. Each costs some 40 kB until it is closed or was idle for too long."""
IDLE_SECONDS = 30 * 60.0
"""Without a request that is being answered, and without a standing stream."""
_SLACK = 60.0
"""Longer than the package keeps one: one that it still has must not be forgotten here."""


class Subscriber:
    """One old-era session; at most one list change is on its way, later ones are folded into one."""

    __slots__ = ("_again", "_busy", "_session")

    def __init__(self, session: ServerSession) -> None:
        self._session = session
        self._busy = False
        self._again = False

    def notify(self) -> None:
        """Announce that the tool list changed; returns at once."""
        self._again = True
        if not self._busy:
            self._busy = True
            spawn(self._send(), name="mcp list_changed")

    async def _send(self) -> None:
        # A client that does not read its stream blocks this task and nothing else.
        try:
            while self._again:
                self._again = False
                await self._session.send_tool_list_changed()
        finally:
            self._busy = False


@dataclass(slots=True)
class McpSession:
    """One open MCP session."""

    reported_changes: int
    """How often the tool list had changed when the client was last informed."""
    subscriber: Subscriber | None = None
    """Set once the handshake is through."""
    requests: int = 0
    """How many are being answered, its standing stream included."""
    idle_since: float = 0.0


class OpenSessions:
    """The open MCP sessions of each agent's session, the one that was used longest ago first.

    Args:
        clock: monotonic seconds.
    """

    def __init__(
        self,
        is_open: Callable[[str], bool],
        most: int = MAX_SESSIONS_PER_AGENT,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._is_open = is_open
        self._most = most
        self._clock = clock
        self._by_owner: dict[str, OrderedDict[str, McpSession]] = {}

    def __iter__(self) -> Iterator[McpSession]:
        for sessions in self._by_owner.values():
            yield from sessions.values()

    def open(self, owner: str, mcp_id: str, changes: int) -> str | None:
        """Add a session; return the id of the one that has to be closed for it, if any.

        *changes* is how often the tool list has changed so far.
        """
        self._forget_idle()
        sessions = self._by_owner.setdefault(owner, OrderedDict())
        sessions[mcp_id] = McpSession(changes, idle_since=self._clock())
        return sessions.popitem(last=False)[0] if len(sessions) > self._most else None

    def get(self, owner: str, mcp_id: str) -> McpSession | None:
        sessions = self._by_owner.get(owner)
        return None if sessions is None else sessions.get(mcp_id)

    @contextmanager
    def in_use(self, owner: str, mcp_id: str) -> Generator[McpSession | None]:
        """Count a request of a session; None for one that is not the owner's."""
        session = self.get(owner, mcp_id)
        if session is None:
            yield None
            return
        self._by_owner[owner].move_to_end(mcp_id)
        session.requests += 1
        try:
            yield session
        finally:
            session.requests -= 1
            session.idle_since = self._clock()

    def close(self, owner: str, mcp_id: str) -> None:
        sessions = self._by_owner.get(owner)
        if sessions is None:
            return
        sessions.pop(mcp_id, None)
        if not sessions:
            del self._by_owner[owner]

    def _forget_idle(self) -> None:
        """Forget what the package ended, and whatever belonged to a session that has ended."""
        before = self._clock() - IDLE_SECONDS - _SLACK
        for owner, sessions in tuple(self._by_owner.items()):
            for mcp_id, session in tuple(sessions.items()):
                if not session.requests and session.idle_since < before:
                    del sessions[mcp_id]
            if not sessions or not self._is_open(owner):
                del self._by_owner[owner]
