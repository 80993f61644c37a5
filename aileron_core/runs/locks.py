"""Locks on connectors: many ungated runs share one, a gated run has it to itself; how many a session runs at once.

From its recheck to the end of its effect a gated run holds the (connector, credential) exclusively,
so that no other run changes what the person saw in between. A gated run that waits goes before
ungated ones that come after it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field


@dataclass(slots=True)
class _Lock:
    shared: int = 0
    exclusive: bool = False
    waiting: deque[tuple[bool, asyncio.Future[None]]] = field(
        default_factory=deque[tuple[bool, "asyncio.Future[None]"]]
    )

    async def acquire(self, *, exclusive: bool) -> None:
        if not self.waiting and not self.exclusive and not (exclusive and self.shared):
            self._take(exclusive)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = (exclusive, turn)
        self.waiting.append(entry)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(exclusive=exclusive)
            elif entry in self.waiting:  # else whoever released first has dropped it already
                self.waiting.remove(entry)
                self._wake()
            raise

    def release(self, *, exclusive: bool) -> None:
        if exclusive:
            self.exclusive = False
        else:
            self.shared -= 1
        self._wake()

    def _take(self, exclusive: bool) -> None:
        if exclusive:
            self.exclusive = True
        else:
            self.shared += 1

    def _wake(self) -> None:
        while self.waiting:
            exclusive, turn = self.waiting[0]
            if self.exclusive or (exclusive and self.shared):
                return
            self.waiting.popleft()
            if not turn.cancelled():
                self._take(exclusive)
                turn.set_result(None)


class ConnectorLocks:
    """One lock for each (connector, credential)."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, str | None], _Lock] = {}

    @asynccontextmanager
    async def acquire(
        self, keys: Iterable[tuple[str, str | None]], *, exclusive: bool
    ) -> AsyncGenerator[None, None]:
        """Hold every key for as long as the context is open; always taken in the same order."""
        async with AsyncExitStack() as stack:
            for key in sorted(set(keys), key=lambda key: (key[0], key[1] or "")):
                lock = self._locks.setdefault(key, _Lock())
                await lock.acquire(exclusive=exclusive)
                stack.callback(lock.release, exclusive=exclusive)
            yield


@dataclass(slots=True)
class _SessionSlots:
    semaphore: asyncio.Semaphore
    users: int = 0


class SessionLimiter:
    """At most *max_runs* ungated runs of a session at once; its others wait, and no other session's.

    Every guest takes a thread of one pool. Without this a session whose calls are slow would take
    all of them, and then neither another agent nor a person's preview is served.
    """

    def __init__(self, max_runs: int = 8) -> None:
        self._max_runs = max_runs
        self._sessions: dict[str, _SessionSlots] = {}

    @asynccontextmanager
    async def slot(self, session_id: str) -> AsyncGenerator[None, None]:
        """Hold one of the session's turns for as long as the context is open."""
        turns = self._sessions.setdefault(
            session_id, _SessionSlots(asyncio.Semaphore(self._max_runs))
        )
        turns.users += 1
        try:
            async with turns.semaphore:
                yield
        finally:
            turns.users -= 1
            if not turns.users:
                del self._sessions[session_id]
