"""Putting refused calls on record: the first of a kind at once, equal ones in one record with their number.

Of one session and one error class: an agent in a loop would otherwise fill the audit, which all sessions
share, with thousands of records a second.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json
from aileron_core.clock import Clock, rfc3339
from aileron_core.errors import AileronError
from aileron_core.storage.database import Database

_log = logging.getLogger(__name__)
RECORD_SECONDS = 5.0
"""How long equal events of a session are counted before they are one more record."""
_MAX_NAMES = 16
"""Actions that one record counts apart; the refused calls of all others are counted together."""
_MAX_NAME = 128


@dataclass(slots=True)
class _Equal:
    """The refused calls of one class that are not on record yet, after one that is."""

    since: float
    """Monotonic time of the last record."""
    by_action: Counter[str] = field(default_factory=Counter[str])
    others: int = 0


class RefusedCalls:
    """Counts refused calls by session and error class.

    Args:
        is_session_open: whether the session with this id has not ended.
    """

    def __init__(
        self, is_session_open: Callable[[str], bool], database: Database, clock: Clock
    ) -> None:
        self._is_session_open = is_session_open
        self._database = database
        self._clock = clock
        self._by_session: dict[str, dict[str, _Equal]] = {}
        self._writing = asyncio.Lock()

    async def add(self, session_id: str, action: str, error: AileronError) -> None:
        """Count a refused call; its arguments stay out, its action's name is a claim.

        Raises:
            StorageUnavailable: it is the first of its kind, and could not be put on record.
        """
        name = action[:_MAX_NAME].encode("utf-8", "replace").decode()
        classes = self._by_session.setdefault(session_id, {})
        equal = classes.get(error.class_)
        if equal is None:
            equal = classes[error.class_] = _Equal(self._clock.monotonic())
            try:
                await self._write(session_id, error.class_, Counter({name: 1}), 0)
            except AileronError:
                if equal.by_action:  # it is written with those that came meanwhile
                    equal.by_action[name] += 1
                elif classes.get(error.class_) is equal:
                    del classes[error.class_]
                raise
        elif name in equal.by_action or len(equal.by_action) < _MAX_NAMES:
            equal.by_action[name] += 1
        else:
            equal.others += 1

    async def sweep(self, *, everything: bool = False) -> None:
        """Put on record what is due; every half second, and with *everything* at the end.

        Raises:
            StorageUnavailable: it could not be written, and stays due.
        """
        async with self._writing:
            for session_id, classes in tuple(self._by_session.items()):
                at_once = everything or not self._is_session_open(session_id)
                for class_, equal in tuple(classes.items()):
                    if at_once or self._clock.monotonic() - equal.since >= RECORD_SECONDS:
                        await self._settle(session_id, class_, equal)
                if not classes:
                    del self._by_session[session_id]

    async def _settle(self, session_id: str, class_: str, equal: _Equal) -> None:
        if not equal.by_action:
            self._by_session[session_id].pop(class_, None)  # the next one goes on record at once
            return
        by_action, others = equal.by_action, equal.others
        equal.by_action, equal.others = Counter(), 0  # for what comes while this is written
        try:
            await self._write(session_id, class_, by_action, others)
        except AileronError:
            equal.by_action += by_action
            equal.others += others
            raise
        equal.since = self._clock.monotonic()

    async def _write(
        self, session_id: str, class_: str, by_action: Counter[str], others: int
    ) -> None:
        count = by_action.total() + others
        what = "A call was" if count == 1 else f"{count} equal calls were"
        extra: dict[str, Json] = {"class": class_}
        if count > 1:
            extra |= {"count": count, "actions": dict(by_action), "other_actions": others}
        record = AuditRecord(
            at=rfc3339(self._clock.now()),
            event=AuditEvent.CALL_REFUSED,
            summary=f"{what} refused: {class_}",
            session=session_id,
            action=next(iter(by_action)) if len(by_action) == 1 and not others else None,
            extra=extra,
        )
        await self._database.write(lambda tx: tx.record(record))
        extra = {"session": record.session, "action": record.action, "state": "refused"}
        _log.info("call refused", extra={"event": "call", **extra})
