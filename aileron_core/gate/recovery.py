"""After a restart: what waits goes on waiting, what was running is unknown, nothing runs by itself."""

import json
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from aileron_core import tasks
from aileron_core.approval import rows
from aileron_core.approval.model import RunRow, args_hash
from aileron_core.approval.transitions import Event, State
from aileron_core.audit.link import link
from aileron_core.canonical import Json
from aileron_core.clock import Clock
from aileron_core.errors import AileronError, OutcomeUnknown
from aileron_core.gate.held import Held, Look, RunBook
from aileron_core.gate.journal import Journal, Naming
from aileron_core.gate.looking import Lookout
from aileron_core.gate.ports import Library, Loaded
from aileron_core.sessions.model import Session
from aileron_core.storage.database import Database

__all__ = ["Recovery"]

_NOTES = {
    State.CHECKING: "The console stopped while it looked once more. Nothing ran; answer again.",
    State.APPROVED: "The console stopped before it began. Nothing ran; answer again.",
}
_UNKNOWN = (
    "The console stopped while it ran, so it may or may not have happened. It is not repeated; "
    "look at the service before you try again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Brings the runs of an earlier life of the console back, as far as records account for them."""

    book: RunBook
    journal: Journal
    lookout: Lookout
    library: Library
    database: Database
    clock: Clock
    session_of: Callable[[str], Session]

    async def recover(self) -> None:
        """Take up what the last life left; called once, before anything is answered.

        Raises:
            StorageUnavailable: it cannot be written.
        """
        for row in await self.database.read(_accounted):
            held = Held(
                row=row,
                session=self.session_of(row.session_id),
                loaded=self._loaded(row),
                look=Look(status="none", at=row.requested_at),
            )
            if held.is_final:
                held.ended.set()
                self.book.add(held)
                self.book.finished(held)
                continue
            self.book.add(held)
            await self._recover(held)
        for row in await self.database.read(_recent):
            if self.book.approval(row.approval_id or "") is None:
                held = Held(
                    row=row,
                    session=self.session_of(row.session_id),
                    loaded=self._loaded(row),
                    look=Look(status="none"),
                )
                held.ended.set()
                self.book.add(held)
                self.book.finished(held)

    async def _recover(self, held: Held) -> None:
        state = held.row.state
        extra: dict[str, Json] = {"was": str(state)}
        if state is State.EXECUTING:
            held.outcome = _UNKNOWN
            done = list(held.row.progress.steps) if held.row.progress else []
            details: dict[str, Json] = {"completed_steps": list[Json](done)} if done else {}
            failure = OutcomeUnknown(_UNKNOWN, details=details).to_failure(held.row.run_id)
            summary = f"{held.row.action}: outcome unknown, the console stopped while it ran"
            await self.journal.move(
                held,
                Event.RECOVER,
                Naming.UNKNOWN,
                summary,
                extra,
                failure=failure,
                ended_at=self.clock.now(),
            )
            self.book.finished(held)
            return
        summary = f"{held.row.action} waits again after a restart of the console"
        note = _NOTES.get(state, held.row.note)
        await self.journal.move(
            held,
            Event.RECOVER,
            Naming.RECOVERED,
            summary,
            extra,
            note=note,
            digest=None,
            words=None,
            decided_at=None,
            decided_by=None,
        )
        if held.loaded is not None:
            await self._look_anew(held)

    async def _look_anew(self, held: Held) -> None:
        assert held.loaded is not None
        if not held.has_preview:
            async with held.turn:
                await self.lookout.adopt(held, Look(status="none", at=self.clock.now()))
            return
        held.look = Look(status="fetching", at=self.clock.now())
        self.journal.tell(held)
        tasks.spawn(self.lookout.first(held), name=f"preview {held.row.run_id}")

    def _loaded(self, row: RunRow) -> Loaded | None:
        """Return the action that was asked for, if exactly those bytes are still accepted."""
        try:
            loaded = self.library.find(row.action)
        except AileronError:
            return None
        return loaded if loaded.action.sha256 == row.action_sha256 else None


def _accounted(connection: sqlite3.Connection) -> list[RunRow]:
    """Return the open runs whose last record is whole and says of them what their rows say.

    A row that another program inserted or changed has none: it stays in the table, permits
    nothing, is not shown for a decision, and `audit verify` names it.
    """
    found = rows.open_rows(connection)
    return [row for row in found if row.args is not None and _has_record(connection, row)]


def _recent(connection: sqlite3.Connection) -> list[RunRow]:
    """Return the last ended gated runs that records account for; old ones lack their arguments."""
    return [row for row in rows.recent(connection, 50) if _has_record(connection, row)]


def _has_record(connection: sqlite3.Connection, row: RunRow) -> bool:
    found = connection.execute(
        "SELECT prev, hash, body FROM audit WHERE seq = ?", (row.last_record,)
    ).fetchone()
    if found is None:
        return False
    try:
        prev, digest, text = bytes(found[0]), bytes(found[1]), str(found[2]).encode()
        body: Any = json.loads(text)
        same = row.args is None or args_hash(row.args) == row.args_sha256
    except (ValueError, TypeError, RecursionError):
        return False
    if not isinstance(body, dict):
        return False
    return same and link(prev, text) == digest and _says(cast("dict[str, Any]", body), row)


def _says(body: dict[str, Any], row: RunRow) -> bool:
    """Return whether a record's body is about *row* as it stands."""
    names = ("run", "approval", "session", "action", "state", "args_sha256", "progress_sha256")
    said = tuple(body.get(name) for name in names)
    return said == (
        row.run_id,
        row.approval_id,
        row.session_id,
        row.action,
        str(row.state),
        row.args_sha256,
        row.progress.fingerprint if row.progress else None,
    )
