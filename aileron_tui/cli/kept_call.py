"""What a home keeps of one call, read from its row: for `aileron audit show`, with or without a console."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any, cast

from aileron_core.actions.model import shown_name
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import rfc3339
from aileron_core.console_port.view_models import HistoryQuery, has_any
from aileron_core.history.sealing import CannotUnseal, HistoryKeys
from aileron_core.runs import run_table
from aileron_core.runs.model import RunRecord
from aileron_core.runs.recovery import recorded_hand
from aileron_core.runs.row_records import contents_deleted_at, matches_record
from aileron_core.runs.sealed_contents import unsealed
from aileron_core.runs.transitions import FINAL
from aileron_core.sessions import session_table
from aileron_core.sessions.containment_line import containment_line
from aileron_core.sessions.model import Session
from aileron_core.text import render
from aileron_tui.cli.output import local_time

_BAR = "  ┃ "
"""What stands right of it is an agent's, a person's or a service's text."""
_WIDTH = 18


def read_call(
    connection: sqlite3.Connection, id_: str, keys: HistoryKeys | None = None
) -> JsonObject | None:
    """Return what is kept of the call with this run's or approval's id; None where no row is readable.

    Args:
        keys: open what is sealed of it.

    Raises:
        CannotUnseal: *keys* do not open it.
    """
    try:
        row = run_table.by_approval(connection, id_) or run_table.by_run(connection, id_)
        if row is None:
            return None
        if row.content_is_sealed and keys is not None:
            row = unsealed(row, run_table.sealed_parts(connection, row.run_id), keys)
    except sqlite3.OperationalError:
        return None  # a home of an earlier version, which has other tables
    session = session_table.by_id(connection, row.session_id)
    recorded = matches_record(connection, row)
    deleted = contents_deleted_at(connection, row) if recorded else None
    hand = recorded_hand(connection, row.run_id) if row.decided_by == "person" else ""
    call = {**_call(row, recorded=recorded, deleted=deleted), "hand": hand or None}
    if session is None:
        return call
    return {**call, "agent": session.agent, "containment": _contained(connection, session)}


class Choice:
    """Which records `aileron audit list` prints: those that *query* lets through, and of calls that it does.

    Its words stand in a record's summary, or in what is kept of its call: *keys* open what is sealed of that.
    """

    def __init__(
        self, connection: sqlite3.Connection, query: HistoryQuery, keys: HistoryKeys | None
    ) -> None:
        self._connection, self._query, self._keys = connection, query, keys
        self.sealed: set[str] = set()
        """Calls whose contents could not be opened."""
        self.deleted: set[str] = set()
        """Calls whose contents are not kept any more."""
        self.edited: set[str] = set()
        """Calls that another program changed: what they contained is not known."""
        self._agent = cache(self._read_agent)
        self._outcome = cache(self._read_outcome)
        self._contains = cache(self._read_contains)

    def takes(self, record: Mapping[str, Any]) -> bool:
        """Return whether *record* is printed; another program may have written it."""
        names = ("session", "run", "action", "summary")
        session, run, action, summary = (str(record.get(name) or "") for name in names)
        query, refused = self._query, record.get("event") == AuditEvent.CALL_REFUSED
        if query.agents and not has_any(self._agent(session), query.agents):
            return False
        equal: Any = record.get("actions")  # of several refused calls
        others = cast("dict[str, Json]", equal) if isinstance(equal, dict) else ()
        actions = " ".join((action, shown_name(action), *others))
        if query.actions and not has_any(actions, query.actions):
            return False
        if query.outcomes and ("refused" if refused else self._outcome(run)) not in query.outcomes:
            return False
        left = tuple(word for word in query.words if not has_any(summary, (word,)))
        return not left or bool(run and self._contains(run, left))

    def _read_agent(self, session: str) -> str:
        return self._column("agent FROM sessions WHERE session_id", session)

    def _read_outcome(self, run: str) -> str:
        state = self._column("state FROM runs WHERE run_id", run)
        return run_table.shown_state(self._connection, run, state)

    def _column(self, query: str, id_: str) -> str:
        found = None
        if id_.isascii():
            found = self._connection.execute(f"SELECT {query} = ?", (id_,)).fetchone()
        return "" if found is None else str(found[0])

    def _read_contains(self, run: str, words: tuple[str, ...]) -> bool:
        try:
            row = run_table.by_run(self._connection, run) if run.isascii() else None
            if row is not None and row.content_is_sealed:
                parts = run_table.sealed_parts(self._connection, run)
                if self._keys is None:
                    raise CannotUnseal("its key was not asked for")
                row = unsealed(row, parts, self._keys)
        except CannotUnseal:
            self.sealed.add(run)
            return False
        except sqlite3.OperationalError:
            return False  # a home of an earlier version, as in `read_call`
        if row is None:
            return False
        left = bool(row.output or row.failure or row.reason or row.note)
        if not matches_record(self._connection, row, deletion=left):
            self.edited.add(run)
            return False
        contents = (row.args, (row.output or {}).get("output"), row.reason)
        texts = [_laid_out(each) for each in contents if each is not None]
        texts += [row.failure.message] if row.failure else []
        if not texts:
            self.deleted.add(run)
        return all(has_any("\n".join(texts), (word,)) for word in words)


def _contained(connection: sqlite3.Connection, session: Session) -> str | None:
    """Return the line of the session's last record, or that it was seen outside any sandbox since then."""
    if session_table.seen_uncontained(connection, [session]):
        return containment_line(session, "none")
    return session.containment or None


def _call(row: RunRecord, *, recorded: bool, deleted: str | None) -> JsonObject:
    output = row.output or {}
    return {
        "run_id": row.run_id,
        "approval_id": row.approval_id,
        "action": row.action,
        "agent": None,
        "containment": None,
        "state": str(row.state),
        "requested_at": rfc3339(row.requested_at) if recorded else None,
        "decided_at": _moment(row.decided_at) if recorded else None,
        "decided_by": row.decided_by,
        "reason": row.reason,
        "words": list(row.words) if row.words else None,
        "ended_at": _moment(row.ended_at) if recorded else None,
        "arguments": row.args,
        "output": output.get("output"),
        "failure": row.failure.to_json() if row.failure else None,
        "sealed": row.content_is_sealed,
        "deleted_at": deleted,
        "edited": not recorded,
    }


def _moment(at: float | None) -> str | None:
    return None if at is None else rfc3339(at)


def call_lines(call: Mapping[str, Any]) -> Iterator[str]:
    """Yield *call* as a person reads it; every text that is not Aileron's stands right of a bar."""
    if call["edited"]:
        yield "▲ Another program changed this call in the database. What is shown here may be wrong."
        yield "  Run `aileron audit verify` for details."
    yield from _foreign("Action", shown_name(call["action"]))
    yield from _foreign("Agent", call["agent"])
    yield from _foreign("Containment", call["containment"])
    yield from _own("State", call["state"])
    yield from _own("Requested", call["requested_at"])
    yield from _own("Decided", call["decided_at"])
    yield from _foreign("Decided by", call["decided_by"])
    yield from _foreign("Decided with", call["hand"])
    yield from _foreign("Reason", call["reason"])
    yield from _foreign("Words", " ".join(call["words"] or ()))
    yield from _own("Ended", call["ended_at"])
    if call["arguments"] is not None:
        yield from _foreign("Arguments", _laid_out(call["arguments"]))
    if call["output"] is not None:
        yield from _foreign("Result", _laid_out(call["output"]))
    if call["failure"] is not None:
        yield from _foreign("Failure", call["failure"]["message"])
    yield from _deletion(call)
    yield ""


def _deletion(call: Mapping[str, Any]) -> Iterator[str]:
    if call["sealed"]:
        again = f"`aileron audit show {call['run_id']} --unseal`"
        yield f"{'Sealed':<{_WIDTH}}arguments, result and reasons: open the call in the console, or use"
        yield f"{'':<{_WIDTH}}{again}"
    if call["arguments"] is not None or call["sealed"]:
        return
    others = call["output"] is not None or call["failure"] is not None or call["reason"]
    what = "arguments" if others else "arguments, result and reasons"
    if call["deleted_at"] is not None:
        text = f"{what}, {local_time(call['deleted_at'])}; their hashes stay in the audit"
    elif call["state"] in FINAL:
        text = f"{what}; the audit does not say when"
    else:
        return
    yield from _own("Deleted", text)


def _laid_out(value: Json) -> str:
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False, indent=2)


def _own(label: str, text: str | None) -> Iterator[str]:
    if text:
        yield f"{label:<{_WIDTH}}{local_time(text)}"


def _foreign(label: str, text: str | None) -> Iterator[str]:
    if text:
        for number, line in enumerate(render(str(text)).lines):
            shown = "".join(span.text for span in line)
            yield f"{label if number == 0 else '':<{_WIDTH - len(_BAR)}}{_BAR}{shown}"
