"""Reading one call whole for a front end, from memory or from the database: also long after its end."""

import json
import sqlite3
from dataclasses import dataclass, replace
from typing import Any

from aileron_core.audit.events import AuditEvent
from aileron_core.console.publisher import EventPublisher
from aileron_core.console.view_mapping import records_of_run, result_fields
from aileron_core.console_port.account_views import AccountView
from aileron_core.console_port.events import CallRead
from aileron_core.console_port.view_models import FINAL_STATES, CallView
from aileron_core.errors import AileronError, Unavailable
from aileron_core.history.sealed_screens import SealedScreens
from aileron_core.runs import Library, LiveRun, PreviewResult, ResolvedAction, run_table
from aileron_core.runs.model import RunRecord
from aileron_core.runs.outcomes import RecordedOutcome, recorded_outcome
from aileron_core.runs.recovery import recorded_hand, recorded_rule
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.row_records import matches_record
from aileron_core.runs.sealed_contents import SealedContents
from aileron_core.runs.transitions import RunState
from aileron_core.sessions import session_table
from aileron_core.sessions.model import Session
from aileron_core.sessions.service import unknown_session
from aileron_core.storage.database import Database

_YEAR_10000 = 253_402_300_800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCall:
    """A call as its row and its records have it."""

    row: RunRecord
    session: Session
    recorded: bool
    outcome: RecordedOutcome
    accounts: tuple[AccountView, ...]
    """By their names alone: the person's own words for them are not on record."""
    rule: str
    hand: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReader:
    """What a person opens of a call. It changes nothing of it."""

    database: Database
    registry: RunRegistry
    library: Library
    publisher: EventPublisher
    screens: SealedScreens
    contents: SealedContents

    async def read(self, run_id: str) -> CallRead:
        """Return the call of *run_id* with its records.

        A run in memory is shown as it is there: its row may have been changed by another program.

        Raises:
            Unavailable: the database cannot be read.
        """
        try:
            stored = await self.database.read(lambda connection: _stored(connection, run_id))
            run, problem = self.registry.get(run_id), ""
            if run is None and stored is not None:
                stored, problem = await self.unsealed(stored)
                run = self.past(stored)
            elif run is not None:
                _, problem = await self.contents.opened(run.row)
            if run is None:
                return CallRead(run_id=run_id, call=None)
            agent = run.session.agent
            records = await self.database.read(lambda c: records_of_run(c, run_id, agent))
            screens = await self.screens.read(run_id)
        except sqlite3.Error as error:
            raise Unavailable(
                f"The call {run_id} cannot be read: {error}. Check the home's disk, then try again."
            ) from error
        row, in_memory = run.row, self.registry.get(run_id) is run
        edited = bool(run.tampered_columns) if in_memory else not (stored and stored.recorded)
        view = self.publisher.view(run)
        if view.state in FINAL_STATES and not view.accounts and stored is not None:
            view = replace(view, accounts=stored.accounts)
        if problem:
            view = replace(view, sealed=problem)
        call = CallView(
            approval=view,
            gated=row.gated,
            result=result_fields(run),
            edited=edited,
            records=records,
            screens=screens,
        )
        return CallRead(run_id=run_id, call=call)

    async def unsealed(self, stored: StoredCall) -> tuple[StoredCall, str]:
        """Return *stored* with what the call contained, compared with its records, or why it has not."""
        row, problem = await self.contents.opened(stored.row)
        if row is stored.row:
            return stored, problem
        recorded = await self.database.read(lambda c: matches_record(c, row))
        return replace(stored, row=row, recorded=stored.recorded and recorded), problem

    def past(self, stored: StoredCall) -> LiveRun:
        """Return a run that is no longer in memory, as its row has it; nothing decides or runs it.

        Without times that another program wrote and that no calendar has.
        """
        moments = ("requested_at", "expires_at", "decided_at", "ended_at")
        wrong = [n for n in moments if not 0 <= (getattr(stored.row, n) or 0.0) < _YEAR_10000]
        without: dict[str, Any] = {n: 0.0 if n == "requested_at" else None for n in wrong}
        return LiveRun(
            row=replace(stored.row, **without),
            session=stored.session,
            resolved=self._resolved(stored.row),
            preview=PreviewResult(status="none"),
            acknowledged=stored.row.state is RunState.UNKNOWN,
            read_back=stored.outcome.read_back,
            look=stored.outcome.look,
            recorded_rule=stored.rule,
            hand=stored.hand,
        )

    def _resolved(self, row: RunRecord) -> ResolvedAction | None:
        """Return the action, if exactly the bytes of then are still accepted: they name its fields."""
        try:
            resolved = self.library.find(row.action)
        except AileronError:
            return None
        return resolved if resolved.action.sha256 == row.action_sha256 else None


def _stored(connection: sqlite3.Connection, run_id: str) -> StoredCall | None:
    row = run_table.by_run(connection, run_id)
    return None if row is None else stored_call(connection, row)


def stored_call(
    connection: sqlite3.Connection, row: RunRecord, *, deletion: bool = True
) -> StoredCall:
    """Return *row* with what its records say of it; *deletion* as in `matches_record`."""
    session = session_table.by_id(connection, row.session_id) or unknown_session(row.session_id)
    return StoredCall(
        row=row,
        session=session,
        recorded=matches_record(connection, row, deletion=deletion),
        outcome=recorded_outcome(connection, row.run_id),
        accounts=_recorded_accounts(connection, row.run_id),
        rule=recorded_rule(connection, row.run_id),
        hand=recorded_hand(connection, row.run_id) if row.decided_by == "person" else "",
    )


def _recorded_accounts(connection: sqlite3.Connection, run_id: str) -> tuple[AccountView, ...]:
    """Return the accounts that the run used, as its last record of them names them."""
    rows = connection.execute(
        "SELECT body FROM audit WHERE run = ? AND event IN (?, ?, ?) ORDER BY seq",
        (
            run_id,
            AuditEvent.RUN_REQUESTED,
            AuditEvent.RUN_HAS_ACCOUNT,
            AuditEvent.RUN_STARTED,
        ),
    )
    found: tuple[AccountView, ...] = ()
    for (text,) in rows:
        try:
            body: Any = json.loads(str(text))
            names = body.get("accounts")
        except (ValueError, AttributeError, RecursionError):  # another program spoilt it
            continue
        if isinstance(names, list):
            found = tuple(AccountView(name=str(name), account="") for name in names)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return found
