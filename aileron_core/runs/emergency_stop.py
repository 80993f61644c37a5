"""The emergency stop (`ctrl+k`): guests that run, runs with steps to go, calls that wait, and open sessions."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import JsonObject
from aileron_core.connectors.builtin.connector import BuiltinConnector
from aileron_core.connectors.protocol import CallOptions, Connector, OpResult, WrappedConnector
from aileron_core.console_port.events import EverythingStopped
from aileron_core.devices import CONSOLE, Hand
from aileron_core.errors import Conflict, NotFound, StorageUnavailable, Unavailable
from aileron_core.events import EventBus
from aileron_core.runs import ApprovalService, LiveRun
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.transitions import RunState
from aileron_core.sessions.service import SessionService

_REASON = "A person stopped everything."
_BATCH = 256
"""Answers given together, so that one commit takes them all."""
_IDLE_SECONDS = 3.0
_ACTIVE = (RunState.APPROVED, RunState.EXECUTING)


class StopSignal:
    """Stops the guests that run, and disables every connector handed out before.

    A run keeps the connectors that it was requested with, for all its steps and retries. They come
    from `make_stoppable`, and after a stop they refuse every call.
    """

    def __init__(self, stop_guests: Callable[[], object]) -> None:
        self._stop_guests = stop_guests
        self._count = 0

    def make_stoppable(self, connector: Connector) -> Connector:
        """Return *connector*, good until the next stop."""
        count = self._count
        return StoppableConnector(connector, lambda: self._count == count)

    def stop(self) -> None:
        """Stop what runs; what was handed out before runs nothing more."""
        self._count += 1
        self._stop_guests()


class StoppableConnector(WrappedConnector):
    """A connector that refuses calls after a stop."""

    def __init__(self, inner: Connector, is_good: Callable[[], bool]) -> None:
        super().__init__(inner)
        self._is_good = is_good

    def call_ended(self) -> None:
        """Drop what only a call that goes on needs."""
        if isinstance(self.inner, BuiltinConnector | WrappedConnector):
            self.inner.call_ended()

    async def call(self, op: str, args: JsonObject, **how: Unpack[CallOptions]) -> OpResult:
        if not self._is_good():
            refusal = Unavailable(f"{_REASON} The op {op} was not run.")
            return OpResult(failure=refusal.to_failure())
        # Nothing may be awaited in between: the engine counts the call as begun from here on.
        return await self.inner.call(op, args, **how)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmergencyStop:
    """Denies all that waits, ends every session, stops every guest; nothing begins meanwhile."""

    stop_signal: StopSignal
    pause: PauseSwitch
    approvals: ApprovalService
    registry: RunRegistry
    run_changed: EventBus[LiveRun]
    sessions: SessionService
    record: Callable[[AuditEvent, str, Hand], Awaitable[None]]
    """Writes an audit record of what a person did: event and summary."""

    async def stop_everything(self, hand: Hand = CONSOLE) -> EverythingStopped:
        """Stop everything, with a record of each part, and return the counts. *hand*: with which a person does.

        Raises:
            StorageUnavailable: what runs was stopped; the rest could not be put on record.
        """
        with self.pause.block_starts():
            running = [run for run in self.registry if run.row.state is RunState.EXECUTING]
            self.stop_signal.stop()
            try:
                said = _REASON.rstrip(".")
                await self.record(AuditEvent.CONSOLE_EVERYTHING_STOPPED, said, hand)
                denied = await self._deny_all(hand)
                ended = await self._end_sessions(hand)
                await self._wait_until_idle()
                # What came while sessions were still open, halted before a later step, or was
                # approved and is back.
                denied += await self._deny_all(hand)
            except StorageUnavailable as error:
                raise StorageUnavailable(
                    f"Running calls were stopped. The rest could not be recorded: {error.message}"
                ) from error
        stopped = sum(run.row.state not in (RunState.COMPLETED, RunState.DENIED) for run in running)
        return EverythingStopped(denied=denied, sessions_ended=ended, runs_stopped=stopped)

    async def _deny_all(self, hand: Hand) -> int:
        """Deny every call that waits; return how many."""
        for run in self.registry:
            # One that runs at once waits for the end of this stop; then its session has ended.
            if run.row.approval_id and run.admission is not None:
                await asyncio.wait([run.admission])
        waiting = [
            run for run in self.registry if run.is_waiting or run.row.state is RunState.CHECKING
        ]
        ids = [run.row.approval_id for run in waiting if run.row.approval_id]
        return await _in_batches(ids, partial(self._deny, hand=hand))

    async def _deny(self, approval_id: str, hand: Hand) -> bool:
        try:
            await self.approvals.deny(approval_id, _REASON, hand=hand)
        except (Conflict, NotFound):  # it ended by itself, or has begun and is stopped
            return False
        return True

    async def _end_sessions(self, hand: Hand) -> int:
        ids = [session.session_id for session in self.sessions.registry.all()]
        why = "a person stopped everything"
        end = partial(self.sessions.end, why=why, by="person", hand=hand)
        return await _in_batches(ids, end)

    async def _wait_until_idle(self) -> None:
        """Wait until nothing runs or is about to, for as long as that may take at most."""
        changed = asyncio.Event()
        unsubscribe = self.run_changed.subscribe(lambda _live_run: changed.set())
        try:
            async with asyncio.timeout(_IDLE_SECONDS):
                while any(run.row.state in _ACTIVE for run in self.registry):
                    changed.clear()
                    await changed.wait()
        except TimeoutError:
            pass  # it ends on record all the same, later
        finally:
            unsubscribe()


async def _in_batches(ids: Sequence[str], work: Callable[[str], Coroutine[Any, Any, bool]]) -> int:
    """Do *work* for each of *ids*, many in one commit; return how often it said yes."""
    done = 0
    for start in range(0, len(ids), _BATCH):
        batch = (work(each) for each in ids[start : start + _BATCH])
        for outcome in await asyncio.gather(*batch, return_exceptions=True):
            if isinstance(outcome, BaseException):
                raise outcome
            done += outcome
    return done
