"""The page of one call that is opened: how it ended, what was shown, what the agent sent, its records."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from aileron_core.actions.model import is_builtin
from aileron_core.audit.events import AuditEvent
from aileron_core.console_port.view_models import FINAL_STATES, ApprovalView, CallView, RecordView
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.context import Section
from aileron_tui.draw.document import (
    approval_blocks,
    context_blocks,
    decision_rows,
)
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.formats import field_blocks
from aileron_tui.draw.read_back import (
    DEFAULT_KEYS,
    OutcomeKeys,
    look_blocks,
    open_question_blocks,
    read_back_blocks,
    read_back_heading,
    settled_blocks,
)
from aileron_tui.draw.rows import STATE_ROLES
from aileron_tui.draw.text import Line, Piece, Role, line
from aileron_tui.draw.times import clock_seconds, seconds_taken, time_running

Parts = tuple[tuple[Block, ...], tuple[Block, ...], tuple[Block, ...]]
"""What stands before the document, the document, and what stands after it."""


_WITH_RESULT = ("completed", "failed", "unknown")


def call_parts(
    call: CallView,
    now: float,
    *,
    shown: ApprovalView | None,
    shown_at: float,
    not_shown: str,
    context: Iterable[Section],
    record: Sequence[Block],
    warnings: Sequence[Line],
    unfold: bool,
    keys: OutcomeKeys = DEFAULT_KEYS,
) -> Parts:
    """Return the page of *call*; only the document between its other parts says what must be seen.

    Args:
        call: as it is now.
        shown: the call as it was shown when it was decided, at *shown_at*; None where that is not kept.
        not_shown: why what is kept of that on disk cannot be read; empty where nothing is.
        context: what stood beside it then.
        record: the opened record as it is stored, for the end of the page.
        warnings: those that the head has no room for.
        keys: those about an outcome that nobody knows.
    """
    lead = [*outcome_blocks(call, now, unfold=unfold, keys=keys)]
    lead += look_blocks(call.approval, unfold=unfold)
    if shown is not None:
        document = approval_blocks(shown, shown_at, warnings, unfold=unfold)
    else:
        document = tuple(map(_unread, _kept_blocks(call, now, warnings, not_shown, unfold=unfold)))
    after = (*context_blocks(context), blank(), *record_blocks(call.records), *record)
    return (*map(_unread, lead), blank()), document, after


def _unread(block: Block) -> Block:
    """Return *block* as one that need not be seen: nothing is decided by it."""
    return replace(block, must_be_seen=False)


def outcome_blocks(
    call: CallView, now: float, *, unfold: bool, keys: OutcomeKeys
) -> Iterator[Block]:
    """Yield how *call* ended or how far it is, then what it returned: the service's own words."""
    view = call.approval
    role: Role = "fact" if call.result else STATE_ROLES.get(view.shown_state, "fact")
    remark = words.item.how_it_ended(
        view.shown_state, _ended_at(view), _took(call, now), builtin=is_builtin(view.action)
    )
    read_first = view.read_back is not None and view.read_back.status != "unavailable"
    if read_first:  # before a result of any length
        yield from _read_back(view, unfold=unfold)
        yield blank()
    yield heading(words.item.OUTCOME, (Piece(remark, "muted"),), role)
    if call.edited:
        yield value("", (Piece(words.views.EDITED, "danger"),))
    if view.is_settled:
        yield from settled_blocks(view)
    elif view.outcome:
        yield value("", foreign_text(view.outcome, role))
    if view.awaits_acknowledgement:
        yield from open_question_blocks(view, keys)
    if view.sealed:
        yield value("", (Piece(view.sealed, "attn"),), "record")
    elif view.forgotten and not view.outcome and view.state in _WITH_RESULT:
        yield value("Result", (Piece(words.views.FORGOTTEN, "muted"),), "record")
    yield from field_blocks(call.result, "fact", unfold=unfold)
    yield from decision_rows(view)
    if not read_first and view.read_back is not None:
        yield blank()
        yield from _read_back(view, unfold=unfold)


def _read_back(view: ApprovalView, *, unfold: bool) -> Iterator[Block]:
    """Yield what the service held after the run, where it was asked."""
    if view.read_back is not None:
        yield read_back_heading(view.read_back, view.ended_at)
        yield from read_back_blocks(view.read_back, unfold=unfold)


def _ended_at(view: ApprovalView) -> str:
    return "" if view.ended_at is None else clock_seconds(view.ended_at)


def _took(call: CallView, now: float) -> str:
    """Return how long its steps ran, or have been running; empty where they did not."""
    began = [each.at for each in call.records if each.event == AuditEvent.RUN_STARTED]
    if call.approval.state == "executing":
        began = [call.approval.started_at or (began[-1] if began else now)]
        return time_running(now - began[0], call.approval.seconds_allowed)
    if not began or call.approval.ended_at is None:
        return ""
    return seconds_taken(call.approval.ended_at - began[-1])


def _kept_blocks(
    call: CallView, now: float, warnings: Sequence[Line], not_shown: str, *, unfold: bool
) -> tuple[Block, ...]:
    """Return what is kept of a call whose screen is not: its arguments, who decided, when, the words."""
    # How it ended and who decided is above it already.
    view = replace(call.approval, outcome="", decided_at=None, read_back=None, look=None)
    first, *rest = approval_blocks(view, now, warnings, unfold=unfold)
    if view.state not in FINAL_STATES or view.preview.status != "none":
        return (first, *rest)
    not_kept = words.views.SHOWN_NOT_KEPT if call.gated else words.views.NOTHING_SHOWN
    why = not_shown or not_kept
    return (first, value("", (Piece(why, "muted"),), "record"), *rest)


def record_blocks(records: Sequence[RecordView]) -> Iterator[Block]:
    """Yield all that is on record of a call, oldest first."""
    yield heading(words.views.HISTORY, (Piece(words.views.HISTORY_REMARK, "muted"),), "muted")
    for each in records:
        yield value(clock_seconds(each.at), foreign_text(each.summary), "record")
        by = words.views.by(each.actor, escape(each.hand))
        event = line(Piece(f"{by} · ", "muted"), *foreign_text(each.event, "muted"))
        yield value("", line(*event, Piece(f" · no. {each.seq}", "muted")), "record")
