"""Counting the model traffic of each session through the gateway, and its records: amounts, never contents.

While no record can be written, 16,384 requests of a session may still pass, then nothing.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from typing import Generic, TypeVar

from aileron_core import tasks
from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json
from aileron_core.clock import Clock, rfc3339
from aileron_core.console_port.view_models import TrafficView
from aileron_core.errors import AileronError
from aileron_core.sessions.registry import SessionRegistry
from aileron_core.storage.database import Database

_T = TypeVar("_T")
_NOTIFY_SECONDS = 0.5


class SessionMeter(Generic[_T]):
    """Counts something by session, on the core's loop.

    Args:
        changed: called when the numbers differ, at most twice a second.
    """

    def __init__(
        self,
        sessions: SessionRegistry,
        database: Database,
        clock: Clock,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self._sessions = sessions
        self._database = database
        self._clock = clock
        self._changed = changed
        self._by_session: dict[str, _T] = {}
        self._notify_scheduled = False
        self._loop = asyncio.get_running_loop()
        self._writing = asyncio.Lock()

    def _notify_soon(self) -> None:
        if not self._notify_scheduled:
            self._notify_scheduled = True
            self._loop.call_later(_NOTIFY_SECONDS, self._notify)

    def _notify(self) -> None:
        self._notify_scheduled = False
        self._changed()

    async def _record(
        self, session_id: str, event: AuditEvent, summary: str, extra: dict[str, Json]
    ) -> None:
        """Put what was counted on record.

        Raises:
            StorageUnavailable: it could not be written.
        """
        record = AuditRecord(
            at=rfc3339(self._clock.now()),
            event=event,
            summary=summary,
            session=session_id,
            extra=extra,
        )
        await self._database.write(lambda tx: tx.record(record))


_RECORD_SECONDS = 5.0
_BATCH = 256
"""Requests in one record."""
_MAX_UNRECORDED = 16_384
"""Of one session. After that nothing of it passes until they are on record."""
_MAX_PATH = 200


@dataclass(slots=True, kw_only=True, eq=False)
class GatewayRequest:
    """One request in progress; its bytes are counted here until `TrafficMeter.end_request`."""

    session_id: str
    provider: str
    method: str
    path: str
    """Hostile text, bounded, without the query."""
    at: float
    status: int | None = None
    """Of the answer that the client was given; None where it was given none."""
    bytes_up: int = 0
    """Bytes of the request's body."""
    bytes_down: int = 0
    """Bytes of the answer's body."""
    is_own_error: bool = False
    """The answer was an error of our own."""
    needs_vault: bool = False
    """That error said that the vault is locked."""
    had_key: bool = False
    """It carried its provider's key from the vault."""
    totals: "_Totals"


@dataclass(slots=True, kw_only=True)
class _Totals:
    """What passed for one session so far."""

    requests: int = 0
    in_flight: int = 0
    bytes_up: int = 0
    bytes_down: int = 0
    faults: int = 0
    status: int | None = None
    route: str = ""
    needs_vault: bool = False
    """Of the request that ended last."""
    unrecorded: deque[GatewayRequest] = field(default_factory=deque[GatewayRequest])
    since: float = 0.0
    """Monotonic time of the oldest one that is not on record."""


class TrafficMeter(SessionMeter[_Totals]):
    """Counts requests and bytes by session; records are written in batches."""

    def is_full(self, session_id: str) -> bool:
        """Whether so much of the session could not be put on record that no more may pass."""
        totals = self._by_session.get(session_id)
        return totals is not None and len(totals.unrecorded) >= _MAX_UNRECORDED

    def start_request(
        self, session_id: str, provider: str, method: str, path: str
    ) -> GatewayRequest:
        totals = self._by_session.get(session_id)
        if totals is None:
            totals = self._by_session[session_id] = _Totals()
        totals.requests += 1
        totals.in_flight += 1
        request = GatewayRequest(
            session_id=session_id,
            provider=provider,
            method=method,
            path=path[:_MAX_PATH],
            at=self._clock.now(),
            totals=totals,
        )
        totals.route = f"{method} {request.path}"
        self._notify_soon()
        return request

    def add_sent(self, request: GatewayRequest, count: int) -> None:
        request.bytes_up += count
        request.totals.bytes_up += count
        self._notify_soon()

    def add_received(self, request: GatewayRequest, count: int) -> None:
        request.bytes_down += count
        request.totals.bytes_down += count
        self._notify_soon()

    def end_request(self, request: GatewayRequest) -> None:
        """Count the request as over, however it ended."""
        totals = request.totals
        totals.in_flight -= 1
        totals.status = request.status
        totals.needs_vault = request.needs_vault
        totals.route = f"{request.method} {request.path}"
        totals.faults += request.is_own_error
        if not totals.unrecorded:
            totals.since = self._clock.monotonic()
        totals.unrecorded.append(request)
        if len(totals.unrecorded) % _BATCH == 0:
            tasks.spawn(self._record_batch(), name="gateway record")
        self._notify_soon()

    def view(self, session_id: str) -> TrafficView | None:
        totals = self._by_session.get(session_id)
        if totals is None:
            return None
        return TrafficView(
            requests=totals.requests,
            in_flight=totals.in_flight,
            bytes_up=totals.bytes_up,
            bytes_down=totals.bytes_down,
            last_status=totals.status,
            last_route=totals.route,
            gateway_errors=totals.faults,
        )

    def was_refused_for_vault(self, session_id: str) -> bool:
        """Whether the session's request that ended last was refused because the vault was locked."""
        totals = self._by_session.get(session_id)
        return totals is not None and totals.needs_vault

    # The record

    async def _record_batch(self) -> None:
        with suppress(AileronError):  # the next tick meets it too, and says so
            await self.sweep()

    async def sweep(self, *, everything: bool = False) -> None:
        """Put on record what is due; every half second, and with *everything* at the end.

        Raises:
            StorageUnavailable: it could not be written, and stays due.
        """
        async with self._writing:
            for session_id, totals in tuple(self._by_session.items()):
                gone = self._sessions.get(session_id) is None
                while totals.unrecorded and (everything or gone or self._is_due(totals)):
                    await self._record_oldest(session_id, totals)
                if gone and not totals.in_flight and not totals.unrecorded:
                    del self._by_session[session_id]

    def _is_due(self, totals: _Totals) -> bool:
        waited = self._clock.monotonic() - totals.since
        return len(totals.unrecorded) >= _BATCH or waited >= _RECORD_SECONDS

    async def _record_oldest(self, session_id: str, totals: _Totals) -> None:
        batch = list(islice(totals.unrecorded, _BATCH))
        count = len(batch)
        summary = f"{count} model request{'' if count == 1 else 's'} passed the gateway"
        extra: dict[str, Json] = {"requests": [_entry(each) for each in batch]}
        await self._record(session_id, AuditEvent.GATEWAY_PASSED, summary, extra)
        for _ in range(count):
            totals.unrecorded.popleft()
        totals.since = self._clock.monotonic()


def _entry(request: GatewayRequest) -> Json:
    return [
        rfc3339(request.at),
        request.provider,
        request.method,
        request.path,
        request.status,
        request.bytes_up,
        request.bytes_down,
        *(("key",) if request.had_key else ()),
    ]
