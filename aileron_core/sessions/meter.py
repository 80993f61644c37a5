"""What the meters of sessions share: news of changes twice a second at most, and their records."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json
from aileron_core.clock import Clock, rfc3339
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
