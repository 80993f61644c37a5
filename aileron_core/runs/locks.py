"""Locks on connectors: many ungated runs share one, a gated run has it to itself; how many a session runs at once.

From its recheck to the end of its effect a gated run holds the (connector, credential) exclusively,
so that no other run changes what the person saw in between. A gated run that waits goes before
ungated ones that come after it.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

from aileron_core.runs.live_run import LiveRun

Ahead: TypeAlias = Callable[[LiveRun], object]
"""Called with the run that is waited for: at the start of the wait, and when another one goes first."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Waiter:
    run: LiveRun
    exclusive: bool
    turn: asyncio.Future[None]
    ahead: Ahead


@dataclass(slots=True)
class _Lock:
    exclusive: bool = False
    holders: list[LiveRun] = field(default_factory=list[LiveRun])
    waiting: deque[_Waiter] = field(default_factory=deque[_Waiter])

    async def acquire(self, run: LiveRun, *, exclusive: bool, ahead: Ahead) -> None:
        if not self.waiting and not self.exclusive and not (exclusive and self.holders):
            self._take(run, exclusive)
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = _Waiter(run=run, exclusive=exclusive, turn=turn, ahead=ahead)
        self.waiting.append(entry)
        if self.holders:
            ahead(self.holders[0])
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.release(run)
            elif entry in self.waiting:  # else whoever released first has dropped it already
                self.waiting.remove(entry)
                self._wake()
            raise

    def release(self, run: LiveRun) -> None:
        self.holders.remove(run)
        self.exclusive = False
        self._wake()

    def _take(self, run: LiveRun, exclusive: bool) -> None:
        self.exclusive = exclusive
        self.holders.append(run)

    def _wake(self) -> None:
        while self.waiting:
            first = self.waiting[0]
            if self.exclusive or (first.exclusive and self.holders):
                break
            self.waiting.popleft()
            if not first.turn.cancelled():
                self._take(first.run, first.exclusive)
                first.turn.set_result(None)
        for waiter in self.waiting:
            if self.holders:
                waiter.ahead(self.holders[0])


class ConnectorLocks:
    """One lock for each (connector, credential)."""

    def __init__(self) -> None:
        self._locks: dict[tuple[str, str | None], _Lock] = {}

    @asynccontextmanager
    async def acquire(
        self, run: LiveRun, *, exclusive: bool, ahead: Ahead = lambda _run: None
    ) -> AsyncGenerator[None, None]:
        """Hold every lock of *run* for as long as the context is open; always taken in the same order."""
        async with AsyncExitStack() as stack:
            for key in sorted(set(run.lock_keys()), key=lambda key: (key[0], key[1] or "")):
                lock = self._locks.setdefault(key, _Lock())
                await lock.acquire(run, exclusive=exclusive, ahead=ahead)
                stack.callback(lock.release, run)
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
