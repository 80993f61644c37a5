"""Taking back what a call of a built-in tool, or of a rehearsed one, wrote, while the files still have what it wrote.

What was there before is in the memory of the session's workers, or of the MCP server's, and which call can
be taken back in this process's: neither outlives them.
"""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from aileron_core.actions.model import shown_name
from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.clock import Clock, rfc3339
from aileron_core.connectors.builtin.channel import ToolChannels, WorkerLost, WorkerRefused
from aileron_core.errors import Conflict, NotFound, OutcomeUnknown, StorageUnavailable, Unavailable
from aileron_core.runs.emergency_stop import StoppableConnector
from aileron_core.runs.live_run import LiveRun
from aileron_core.storage.database import Database

_SECONDS: Final = 20.0
_MAX_CALLS: Final = 500


@dataclass(frozen=True, slots=True)
class _Change:
    session_id: str
    action: str
    undo: str
    workers: str
    """Who keeps what was there before: the session's, by its id, or others."""


class UndoService:
    """Which calls can be taken back, and taking one back. Subscribed to every change of a run.

    Args:
        forgotten: told of each run that could be taken back until now.
    """

    def __init__(
        self,
        channels: ToolChannels,
        database: Database,
        clock: Clock,
        *,
        forgotten: Callable[[str], object],
    ) -> None:
        self._channels = channels
        self._database = database
        self._clock = clock
        self._forgotten = forgotten
        self._changes: OrderedDict[str, _Change] = OrderedDict()

    def run_changed(self, run: LiveRun) -> None:
        if run.is_final and run.resolved is not None:
            for each in run.resolved.connectors.values():
                if isinstance(each, StoppableConnector):
                    each.call_ended()
        if run.is_final and run.undo:
            row = run.row
            undo, _, workers = run.undo.partition("@")
            run.undo = ""
            workers = workers or row.session_id
            self._changes[row.run_id] = _Change(row.session_id, row.action, undo, workers)
            if len(self._changes) > _MAX_CALLS:
                self._forgotten(self._changes.popitem(last=False)[0])

    def can_undo(self, run_id: str) -> bool:
        """Return whether the call may be taken back; its worker looks at the files first."""
        return run_id in self._changes

    async def undo(self, run_id: str) -> None:
        """Bring back what was there before the call of *run_id*, on record.

        Raises:
            NotFound: there is nothing to take back, or what was there is no longer kept.
            Conflict: a file has changed since.
            OutcomeUnknown: the worker was lost meanwhile.
            Unavailable: the worker cannot be reached.
            StorageUnavailable: it was taken back; that could not be put on record.
        """
        change = self._changes.pop(run_id, None)
        if change is None:
            raise NotFound("This call has nothing that could be undone. Nothing changed.")
        try:
            await self._take_back(change)
        except (Conflict, Unavailable) as error:
            if isinstance(error, Unavailable) or change.undo.startswith("files:"):
                self._changes[run_id] = change  # what a command did can be tried once
            raise
        finally:
            if run_id not in self._changes:
                self._forgotten(run_id)
        record = AuditRecord(
            at=rfc3339(self._clock.now()),
            event=AuditEvent.RUN_UNDONE,
            summary=f"A person undid {shown_name(change.action)}",
            run=run_id,
            session=change.session_id,
            action=change.action,
        )
        try:
            await self._database.write(lambda tx: tx.record(record))
        except StorageUnavailable as error:
            raise StorageUnavailable(
                f"{shown_name(change.action)} was undone, but that could not be recorded: {error.message}"
            ) from error

    async def _take_back(self, change: _Change) -> None:
        worker, _, name = change.undo.partition(":")
        channel = self._channels.get(change.workers)
        try:
            await channel.call(
                "commands" if worker == "commands" else "files",
                "undo",
                {"undo": name},
                seconds=_SECONDS,
            )
        except WorkerRefused as error:
            kind = NotFound if error.class_ == "not_found" else Conflict
            raise kind(error.message) from error
        except WorkerLost as error:
            kind = OutcomeUnknown if error.sent else Unavailable
            raise kind(error.message) from error

    def forget(self, workers: str) -> None:
        """Forget what *workers* kept: those of the session with this id, or others, have ended."""
        for run_id, change in list(self._changes.items()):
            if change.workers == workers:
                del self._changes[run_id]
                self._forgotten(run_id)
