"""Reading the history of calls, page by page and beside the core's loop: from rows and records, also after a restart."""

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import takewhile
from math import isfinite
from statistics import median
from typing import Any, Final

from aileron_core.actions.model import shown_name
from aileron_core.audit.events import AuditEvent
from aileron_core.clock import Clock
from aileron_core.console.call_reader import CallReader, stored_call
from aileron_core.console.view_mapping import records_of_no_call, result_fields
from aileron_core.console_port.events import CallsCounted, HistoryRead
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.view_models import (
    ApprovalView,
    HistoryCall,
    HistoryCursor,
    HistoryQuery,
    HourOfCalls,
    RecordView,
    has_any,
)
from aileron_core.errors import Unavailable
from aileron_core.ids import first_run_id
from aileron_core.runs import run_table
from aileron_core.runs.model import RunRecord
from aileron_core.runs.transitions import RunState

MOST_ROWS: Final = 200
"""Of one reading."""
_MOST_BYTES: Final = 1024 * 1024
"""Of what the calls of one reading contained: the one that passes it is the last."""
_MOST_CHARACTERS: Final = 20_001
_MOST_HOURS: Final = 48
_MOST_RECORDS: Final = 5_000
"""Of no call, looked at in one reading."""
_HOUR: Final = 3600.0
_REFUSED: Final = "refused"
_NEWEST = HistoryCursor(run_id="run-~", seq=2**63 - 1)
"""Before it stands every call and every record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """What one reading found in the database."""

    rows: list[RunRecord]
    records: tuple[RecordView, ...]
    then: HistoryCursor | None
    searched: int
    searched_to: float | None
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryReader:
    """What a person reads of all calls. It changes nothing of them."""

    calls: CallReader
    clock: Clock

    async def read(
        self, query: HistoryQuery, start: HistoryCursor | None, limit: int
    ) -> HistoryRead:
        """Return the next rows that match *query*.

        Raises:
            Unavailable: the database cannot be read.
        """
        most, after = max(1, min(limit, MOST_ROWS)), start or _NEWEST
        found: list[HistoryCall] = []
        sealed = not_kept = 0
        try:
            part = await self.calls.database.read(lambda c: _part(c, query, after, most))
            for row in part.rows:
                call, result = await self._call(row)
                text = _text(call.approval, result) if query.words else ""
                if all(word.casefold() in text for word in query.words):
                    found.append(replace(call, approval=_cut(call.approval)))
                else:
                    sealed += bool(call.approval.sealed)
                    not_kept += call.approval.forgotten
        except sqlite3.Error as error:
            raise Unavailable(
                f"The history cannot be read: {error}. Check the home's disk, then try again."
            ) from error
        return HistoryRead(
            query=query,
            start=start,
            calls=tuple(found),
            records=part.records,
            then=part.then,
            searched=part.searched,
            searched_to=part.searched_to,
            total=part.total,
            sealed=sealed,
            not_kept=not_kept,
        )

    async def _call(self, row: RunRecord) -> tuple[HistoryCall, tuple[FieldView, ...]]:
        """Return the call, and what it returned: as it is in memory, else as its row has it."""
        calls, problem = self.calls, ""
        run = calls.registry.get(row.run_id)
        edited = run is not None and bool(run.tampered_columns)
        if run is None:
            # Only where something is left: that it was deleted takes long to find out.
            left = row.output or row.failure or row.reason or row.note
            stored = await calls.database.read(lambda c: stored_call(c, row, deletion=bool(left)))
            stored, problem = await calls.unsealed(stored)
            run, edited = calls.past(stored), not stored.recorded
        await asyncio.sleep(0)  # so that agents are answered in between
        view = calls.publisher.view(run)
        view = replace(view, sealed=problem) if problem else view
        if (
            view.decided_by
            and view.preview.status == "none"
            and not (view.sealed or view.forgotten)
        ):
            view = await self._as_decided(view)
        return HistoryCall(approval=view, edited=edited), result_fields(run)

    async def _as_decided(self, view: ApprovalView) -> ApprovalView:
        """Return *view* with what was fetched for its last decision, if that can be read."""
        for screen in reversed(await self.calls.screens.read(view.run_id)):
            if (shown := screen.approval) is not None:
                return replace(
                    view,
                    title=shown.title,
                    effect=shown.effect,
                    preview=shown.preview,
                    new_values=shown.new_values,
                    other_arguments=shown.other_arguments,
                )
        return view

    async def count(self, hours: int) -> CallsCounted:
        """Return the calls of the last *hours* (48 at most).

        Raises:
            Unavailable: the database cannot be read.
        """
        until = self.clock.now() + 0.001  # with those of this millisecond
        starts = [
            until - _HOUR * number for number in range(min(max(hours, 1), _MOST_HOURS), 0, -1)
        ]
        read = self.calls.database.read
        try:
            refused = await read(lambda c: _refused(c, starts[0]))
            # One at a time: what agents ask of the database goes in between.
            counted = [await read(partial(_hour, at=at, refused=refused)) for at in starts]
        except sqlite3.Error as error:
            raise Unavailable(f"The calls cannot be counted: {error}.") from error
        return CallsCounted(until=until, hours=tuple(counted))


def _part(
    connection: sqlite3.Connection, query: HistoryQuery, start: HistoryCursor, most: int
) -> _Part:
    """Read the calls that come next, and the records of no call down to the same moment."""
    before, first = start.run_id, "" if query.since is None else first_run_id(query.since)
    if query.until is not None:
        before = min(before, first_run_id(query.until))
    read = partial(
        run_table.calls_before,
        connection,
        before,
        wanted=_wanted(connection, query),
        most=most,
        most_bytes=_MOST_BYTES,
    )
    (total,) = connection.execute("SELECT COUNT(*) FROM runs").fetchone()
    rows, looked = read(first)
    down_to = looked.at or 0.0 if looked.more else 0.0  # older records come with the calls beside
    records, seq, reached = _records(connection, query, start.seq, most, down_to)
    if reached is not None:  # there are so many that older calls come with those beside them
        rows, looked = read(max(first, first_run_id(reached)))
    then = HistoryCursor(run_id=min(before, looked.down_to), seq=seq)
    return _Part(
        rows=rows,
        records=tuple(records),
        then=then if looked.more or reached is not None else None,
        searched=looked.count,
        searched_to=looked.at,
        total=total,
    )


def _wanted(
    connection: sqlite3.Connection, query: HistoryQuery
) -> Callable[[Mapping[str, Any]], bool]:
    agents: dict[str, str] = {}

    def agent(session_id: str) -> str:
        if session_id not in agents:
            named = "SELECT agent FROM sessions WHERE session_id = CAST(? AS TEXT)"
            key = session_id.encode("utf-8", "surrogateescape")
            agents[session_id] = str((connection.execute(named, (key,)).fetchone() or ("",))[0])
        return agents[session_id]

    def wanted(columns: Mapping[str, Any]) -> bool:
        if query.outcomes and (
            run_table.shown_state(connection, columns["run_id"], columns["state"])
            not in query.outcomes
        ):
            return False
        if query.agents and not has_any(agent(columns["session_id"]), query.agents):
            return False
        return not query.actions or has_any(_action_names(columns["action"]), query.actions)

    return wanted


def _action_names(action: str) -> str:
    return f"{action} {shown_name(action)}"


def _records(
    connection: sqlite3.Connection, query: HistoryQuery, before: int, most: int, down_to: float
) -> tuple[list[RecordView], int, float | None]:
    """Return the records of no call that match, newest first, up to the first one of before *down_to*.

    Then the number of the last one looked at, and its time if that are as many as one reading has.
    """
    found: list[RecordView] = []
    if query.outcomes and _REFUSED not in query.outcomes:
        return found, before, None
    event = None if query.lifecycle and not query.outcomes else AuditEvent.CALL_REFUSED
    oldest = max(down_to, query.since or 0.0)
    # All after the first older one are read later: the clock may have stepped back. A damaged one has no time.
    all_ = records_of_no_call(connection, before, event)
    records = takewhile(lambda each: not each.at or each.at >= oldest, all_)
    for number, record in enumerate(records, 1):
        before = record.seq
        if _record_matches(record, query):
            found.append(record)
        if len(found) >= most or number >= _MOST_RECORDS:
            return found, before, record.at
    return found, before, None


def _record_matches(record: RecordView, query: HistoryQuery) -> bool:
    actions = " ".join((record.action or "", *record.actions))
    text = f"{record.agent} {actions} {record.event} {record.summary}".casefold()
    return (
        (query.until is None or record.at < query.until)
        and (not query.agents or has_any(record.agent, query.agents))
        and (not query.actions or has_any(actions, query.actions))
        and all(word.casefold() in text for word in query.words)
    )


def _text(view: ApprovalView, result: tuple[FieldView, ...]) -> str:
    """Return what words are looked for in: what the call's page shows of it."""
    fields = (*view.arguments, *view.new_values, *view.preview.fields, *result)
    return "\n".join(
        (
            view.title, _action_names(view.action), view.agent, view.session_label, view.shown_state,
            view.preview.gist, view.reason, view.note, view.outcome,
            *(f"{each.label} {each.value}" for each in fields),
        )
    ).casefold()  # fmt: skip


def _cut(view: ApprovalView) -> ApprovalView:
    """Return *view* without the ends of long texts: a page of whole ones would be large."""

    def cut(fields: tuple[FieldView, ...]) -> tuple[FieldView, ...]:
        return tuple(replace(each, value=each.value[:_MOST_CHARACTERS]) for each in fields)

    return replace(
        view,
        arguments=cut(view.arguments),
        new_values=cut(view.new_values),
        other_arguments=cut(view.other_arguments),
        preview=replace(view.preview, fields=cut(view.preview.fields)),
        steps=tuple(replace(each, inputs=cut(each.inputs)) for each in view.steps),
    )


def _hour(
    connection: sqlite3.Connection, at: float, refused: list[tuple[float, int]]
) -> HourOfCalls:
    within = sum(count for moment, count in refused if at <= moment < at + _HOUR)
    outcomes, free, approved = Counter({_REFUSED: within}), 0, 0
    waits: list[float] = []
    names = ("run_id", "gated", "state", "requested_at", "decided_at", "decided_by")
    rows = connection.execute(
        f"SELECT {', '.join(names)} FROM runs WHERE run_id >= ? AND run_id < ?",  # noqa: S608 - our own column names
        (first_run_id(at), first_run_id(at + _HOUR)),
    )
    for values in rows:
        columns: dict[str, Any] = dict(zip(names, values, strict=True))
        outcome = run_table.shown_state(connection, columns["run_id"], columns["state"])
        outcomes[outcome] += 1
        free += not columns["gated"]
        if columns["decided_by"] == "person" and columns["decided_at"] is not None:
            wait = columns["decided_at"] - columns["requested_at"]
            if isfinite(wait) and wait >= 0:  # else another program changed the row
                waits.append(wait)
            approved += outcome != RunState.DENIED
    return HourOfCalls(
        began_at=at,
        outcomes=tuple(sorted((+outcomes).items())),
        not_gated=free,
        approved=approved,
        median_wait=median(waits) if waits else None,
    )


def _refused(connection: sqlite3.Connection, since: float) -> list[tuple[float, int]]:
    """Return when calls were refused since then, and how many each time: equal ones have one record."""
    found: list[tuple[float, int]] = []
    for record in records_of_no_call(connection, _NEWEST.seq, AuditEvent.CALL_REFUSED):
        if record.at < since:
            break
        found.append((record.at, record.count))
    return found
