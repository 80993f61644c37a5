"""The context of a call: who asks, what its session did before, how equal calls ended.

The widest layout shows these sections beside the document, others at its end. They help to judge the
requester; what will happen is in the document alone.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.session_terms import ProcessView
from aileron_core.console_port.view_models import ApprovalView, RecordView
from aileron_tui import words
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Line, Piece, Role, cell_width, justify, line, truncate, wrap
from aileron_tui.draw.times import age, clock_minutes, clock_seconds

LABEL_CELLS = 10
"""Cells of a label's column in the rail, the blank before the value counted; a lone sign has 2."""
MAX_RUNS = 5
"""The most earlier runs of its session that are shown."""

_APPROVED = frozenset({"approved", "executing", "completed", "failed", "unknown"})
_ENDS: dict[str, tuple[str, Role]] = {
    AuditEvent.RUN_COMPLETED: ("✓", "ok"),
    AuditEvent.RUN_FAILED: ("✗", "danger"),
    AuditEvent.RUN_UNKNOWN: ("?", "attn"),
    AuditEvent.RUN_STARTED: ("▶", "ok"),
    AuditEvent.RUN_ASKED_AGAIN: ("●", "muted"),
    AuditEvent.RECHECK_DIFFERED: ("▲", "attn"),
    AuditEvent.APPROVAL_DENIED: ("✗", "danger"),
    AuditEvent.RUN_DENIED_BY_RULE: ("✗", "danger"),
    AuditEvent.APPROVAL_EXPIRED: ("–", "muted"),
    AuditEvent.APPROVAL_WITHDRAWN: ("←", "muted"),
}
"""How far a run came, by the record that says so."""
_OTHERS = {"expired": "–", "withdrawn": "←"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Detail:
    """One fact. `claim`: only the agent says so; nobody checked."""

    label: Line
    pieces: Line
    claim: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A heading with a remark, and the details below it."""

    name: str
    remark: str
    details: tuple[Detail, ...]


def requester_section(view: ApprovalView) -> Section:
    """Return the section on the requester: first what the kernel saw, last what the agent claims of itself."""
    process = view.process
    remark = words.item.ITS_OWN_WORDS if view.self_opened else words.item.BY_LAUNCHER
    return Section(
        name=words.item.WHO_ASKS,
        remark=remark if process is None else words.item.BY_KERNEL,
        details=tuple(_who(view, process)),
    )


def _who(view: ApprovalView, process: ProcessView | None) -> Iterator[Detail]:
    # Where no process is known the heading says so of all of it.
    is_own = view.self_opened and process is not None
    own = (Piece(f"  {words.item.NOT_CHECKED}", "muted"),) if is_own else ()
    yield _own("agent", (*foreign_text(view.agent), *own))
    if process is not None:
        yield _own("process", process_chain(process))
        if process.executable:
            yield _own("program", foreign_text(process.executable))
    if view.session_label and not view.self_opened:  # the name that a launcher gave it
        yield _own("session", foreign_text(view.session_label))
    folder = process.cwd if process is not None and process.cwd else view.cwd
    if folder:
        yield _own("folder", foreign_text(folder))
    if process is not None and process.started_at is not None:
        yield _own("started", (Piece(clock_minutes(process.started_at)),))
    yield _own("contained", (Piece(words.item.CONTAINED[view.containment]),))
    if reaches := _reaches(view):
        yield _own("reaches", reaches)
    yield from _asking(view)
    for claim in view.claims:
        yield _claim(claim)


def _reaches(view: ApprovalView) -> Line:
    """Return what its sandbox lets it reach; nothing where that is not known, or nothing contains it."""
    if view.containment in ("none", "other_user"):
        return ()
    if view.reach.network == "hosts":
        first, *others = view.reach.hosts or ("",)
        more = words.item.more_hosts(len(others))
        return line(*foreign_text(first), Piece(more, "muted")) if first else line(more)
    known = words.item.REACHES.get(view.reach.network)
    return () if known is None else (Piece(known),)


def _asking(view: ApprovalView) -> Iterator[Detail]:
    if view.times_asked > 1:
        yield _own("asked", (Piece(words.item.times_asked(view.times_asked)),))
    if view.requester_gone:
        yield _own("waits", (Piece(words.item.REQUESTER_GONE, "attn"),))
    elif view.stopped_waiting_at is not None:
        since = words.item.stopped_waiting(clock_minutes(view.stopped_waiting_at))
        yield _own("waits", (Piece(since, "attn"),))


def process_chain(process: ProcessView) -> Line:
    """Return the process and its parents, the nearest first."""
    name = process.executable.rpartition("/")[2]
    parts: list[Piece] = [Piece(str(process.pid))]
    if name:
        parts += [Piece(" "), *foreign_text(name)]
    for _, parent in process.parents:
        parts += [Piece(" ← ", "muted"), *foreign_text(parent, "muted")]
    return tuple(parts)


def recent_runs_section(records: Iterable[RecordView], view: ApprovalView) -> Section:
    """Return the last other runs of the call's session, from *records* (oldest first)."""
    last: dict[str, RecordView] = {}
    for each in records:
        run = each.run_id
        if run is None or run == view.run_id or each.session_id != view.session_id:
            continue
        says_more = run not in last or each.event in _ENDS
        if says_more:
            last.pop(run, None)
            last[run] = each
    newest = sorted(last.values(), key=lambda each: each.seq, reverse=True)[:MAX_RUNS]
    remark = words.item.SESSION_NEWEST_FIRST if newest else words.item.NOTHING_BEFORE
    return Section(name=words.item.RECENT_RUNS, remark=remark, details=tuple(map(_ran, newest)))


def _ran(record: RecordView) -> Detail:
    glyph, role = _ENDS.get(record.event, ("●", "muted"))
    at = Piece(f"{clock_seconds(record.at)}  ", "muted")
    return Detail(
        label=(Piece(glyph, role),), pieces=(at, *foreign_text(record.action or record.event))
    )


def equal_calls_section(decided: Iterable[ApprovalView], view: ApprovalView) -> Section:
    """Return how calls of the same action were answered, from *decided* (newest first)."""
    equal = [
        e
        for e in decided
        if e.action == view.action
        and e.call_id != view.call_id
        and e.decided_by in ("", "person")  # a rule or a grant is no answer of theirs to this call
    ]
    yes = [e for e in equal if e.state in _APPROVED and e.decided_at is not None]
    no = [e for e in equal if e.state == "denied"]
    rows: list[tuple[str, Role, Line]] = []
    if yes:
        took = median((e.decided_at or e.requested_at) - e.requested_at for e in yes)
        rows.append(("✓", "ok", (Piece(words.item.approved(len(yes), age(took))),)))
    if no:
        reason = next((e.reason for e in no if e.reason), "")
        quoted = line(": ", '"', *foreign_text(reason), '"') if reason else ()
        rows.append(("✗", "danger", (Piece(words.item.denied(len(no))), *quoted)))
    others = Counter(e.state for e in equal if e.state in _OTHERS)
    for state, count in others.items():
        rows.append((_OTHERS[state], "muted", (Piece(words.item.ended(count, state)),)))
    remark = words.item.LAST_DECISIONS if rows else words.item.NO_EQUAL_CALLS
    details = tuple(
        Detail(label=(Piece(glyph, role),), pieces=pieces) for glyph, role, pieces in rows
    )
    return Section(name=words.item.EQUAL_CALLS, remark=remark, details=details)


def rail_lines(sections: Sequence[Section], width: int, height: int) -> tuple[Line, ...]:
    """Return *sections* for a rail of *width* by *height* cells; what has no room is counted."""
    rows: list[Line] = []
    for section in sections:
        rows += [(), *_heading(section, width)]
        for detail in section.details:
            rows.extend(_detail(detail, width))
    if len(rows) > height > 0:
        hidden = Piece(words.item.more_lines(len(rows) - height + 1), "muted")
        rows = [*rows[: height - 1], justify((), (hidden, Piece(" ")), width)]
    return tuple(rows)


def _heading(section: Section, width: int) -> list[Line]:
    first = line(" ", Piece(section.name, "muted"), "  ")
    indent = cell_width(first)
    remark = wrap((Piece(section.remark, "muted"),), width - indent - 1)
    return [
        (*(first if row == 0 else (Piece(" " * indent),)), *each.pieces)
        for row, each in enumerate(remark)
    ]


def _detail(detail: Detail, width: int) -> Iterator[Line]:
    """Yield the lines of one detail. A claim's name is foreign as well, so it is drawn after the bar."""
    if detail.claim:
        wrapped = wrap((*detail.label, Piece("  "), *detail.pieces), width - 4)
        yield from (line(" ", Piece("┊ ", "claim-bar"), *each.pieces) for each in wrapped)
        return
    label, column = detail.label, LABEL_CELLS
    if cell_width(label) == 1:
        column = 2
    elif cell_width(label) > LABEL_CELLS - 1:
        if cell_width(label) > width // 2 - 2:
            yield (Piece(" "), *truncate(label, width - 2))
            label = ()
        else:
            column = cell_width(label) + 2
    for row, each in enumerate(wrap(detail.pieces, width - column - 2)):
        named = label if row == 0 else ()
        yield (Piece(" "), *named, Piece(" " * (column - cell_width(named))), *each.pieces)


def _own(label: str, pieces: Line) -> Detail:
    return Detail(label=(Piece(label, "muted"),), pieces=pieces)


def _claim(field: FieldView) -> Detail:
    return Detail(
        label=foreign_text(field.label, "claim"),
        pieces=foreign_text(field.value, "claim"),
        claim=True,
    )
