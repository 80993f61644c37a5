"""The document of an item: what will happen, what the agent sent, the record, always in this order; and that of a batch."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from aileron_core.actions.model import ActionLimits, is_builtin, shown_name
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.view_models import FINAL_STATES, ApprovalView, SessionView
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.accounts import account_rows, need_blocks, need_heading
from aileron_tui.draw.blocks import Block, Cell, Gutter, blank, heading, value
from aileron_tui.draw.changes import (
    change_blocks,
    changed_fields,
    drift_blocks,
    edit_blocks,
    others_below,
)
from aileron_tui.draw.columns import edge
from aileron_tui.draw.context import Section
from aileron_tui.draw.foreign_text import foreign_text, render_foreign, rendered_lines
from aileron_tui.draw.formats import field_blocks, field_lines
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.read_back import (
    DEFAULT_KEYS,
    OutcomeKeys,
    look_blocks,
    open_question_blocks,
    read_back_blocks,
    read_back_heading,
    settled_blocks,
)
from aileron_tui.draw.steps import op_blocks, step_blocks
from aileron_tui.draw.text import Line, Piece, Role, line, plain_text
from aileron_tui.draw.times import age, clock_seconds
from aileron_tui.items import Batch

_TO_WHAT_IS_THERE = frozenset({"READ", "SEND", "DELETE", "PAY", "RUN"})
"""Effects of which what was fetched is the object."""

_USUAL_SECONDS = ActionLimits().wall_seconds
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,23}")


def agent_name(view: ApprovalView) -> str:
    """Return the agent's name if it may be drawn in a reserved column, else `the agent`.

    Only a name that the launcher gave, and a plain one: what a session says of itself is a claim.
    """
    plain = not view.self_opened and _PLAIN_NAME.fullmatch(view.agent)
    return view.agent if plain else "the agent"


def session_name(session: SessionView) -> str:
    """Return the session's agent if it may be drawn in a reserved column, else `the agent`."""
    plain = not session.self_opened and _PLAIN_NAME.fullmatch(session.agent)
    return session.agent if plain else "the agent"


def approval_blocks(
    view: ApprovalView,
    now: float,
    warnings: Sequence[Line] = (),
    *,
    unfold: bool = False,
    refresh_key: str = "r",
    keys: OutcomeKeys = DEFAULT_KEYS,
    unlock_key: str = "U",
    choose_key: str = "C",
    accounts_key: str = "6",
) -> tuple[Block, ...]:
    """Return the whole document of *view*; only its first heading depends on *now*.

    *unfold*: every mark with its code point, and nothing folded. The keys: as a person writes them, *refresh_key* before the end.
    """
    return (
        first_heading(view, now),
        *_need_section(view, unlock_key, choose_key, accounts_key),
        *_fact_section(view, refresh_key, keys, unfold=unfold),
        *step_blocks(view, unfold=unfold),
        blank(),
        *_sent_section(view, unfold=unfold),
        blank(),
        *_record_section(view, warnings),
    )


def _found(view: ApprovalView, now: float) -> str:
    since = age(now - view.preview.updated_at)
    if is_builtin(view.action):
        return words.item.found_in_project(since)
    return words.item.fetched(
        escape(view.preview.host), since, by_server=view.is_of_reaching_server
    )


def first_heading(view: ApprovalView, now: float) -> Block:
    """Return the first line of the document, with the age of the preview below it."""
    preview = view.preview
    if view.account_need is not None:
        return need_heading(view.account_need)
    if _has_outcome(view):
        role: Role = "danger" if view.state == "failed" else "attn"
        if view.is_settled:
            role = "ok"
        return heading(words.item.OUTCOME, _remark(words.item.OUTCOMES[view.shown_state]), role)
    if view.read_back is not None:
        return read_back_heading(view.read_back, view.ended_at)
    if view.state in FINAL_STATES:
        return _was_shown(view)
    if view.drift is not None:
        gone = bool(view.drift.unavailable)
        remark = words.item.GONE_REMARK if gone else words.item.CHANGED_REMARK
        return heading(words.item.CHANGED, _remark(remark), "attn")
    if preview.status == "fetching":
        text = words.item.asking(
            escape(preview.host), now - preview.updated_at, preview.limit_seconds
        )
        if preview.preparing:
            text = words.item.preparing(now - preview.updated_at)
    elif preview.status == "ready":
        text = _found(view, now)
        if view.is_compared:
            text = words.item.compared(text, agent_name(view))
    elif preview.status == "unavailable":
        text = words.item.NOT_KNOWN
    else:
        text = words.item.no_preview(of_server=view.is_of_server)
    return heading(_fact_heading(view), _remark(text))


def _fact_heading(view: ApprovalView) -> str:
    """Return what stands over a reading: what is fetched is there before, and may not be after."""
    to_be_compared = view.is_compared or (view.new_values and view.preview.status != "ready")
    happens = view.effect in _TO_WHAT_IS_THERE or to_be_compared or is_builtin(view.action)
    return words.item.WILL_HAPPEN if happens else words.item.NOW


def _was_shown(view: ApprovalView) -> Block:
    """Return the heading over the preview of a call that has ended: none of it will happen now."""
    preview = view.preview
    read = preview.status in ("ready", "unavailable") and preview.updated_at
    at = words.item.shown_at(clock_seconds(preview.updated_at)) if read else ""
    return heading(words.item.WAS_SHOWN, _remark(at) if at else ())


def _has_outcome(view: ApprovalView) -> bool:
    return view.is_settled or (view.state in ("failed", "unknown") and bool(view.outcome))


def context_blocks(sections: Iterable[Section]) -> Iterator[Block]:
    """Yield *sections* for the end of the document, where there is no rail. None of it must be seen."""
    for section in sections:
        yield blank()
        yield heading(section.name, _remark(section.remark), "muted")
        for detail in section.details:
            if detail.claim:
                yield value(
                    detail.label, detail.pieces, "claim", label_outside=True, must_be_seen=False
                )
            else:
                yield value(detail.label, detail.pieces, "record")


def undrawable_blocks() -> tuple[Block, ...]:
    """Return the document of an item that cannot be drawn; nothing of the item is in it."""
    return (
        heading(words.item.WILL_HAPPEN, _remark(words.item.NOT_KNOWN)),
        value("Fault", (Piece(words.item.UNDRAWABLE_WHY, "danger"),)),
    )


def words_remark(view: ApprovalView) -> str:
    """Return what the three words of *view* are for; empty where its agent is not told them."""
    ended = view.state in FINAL_STATES
    return words.item.words_remark(ended=ended, builtin=is_builtin(view.action))


def _remark(text: str) -> Line:
    return (Piece(text, "muted"),)


def _need_section(
    view: ApprovalView, unlock_key: str, choose_key: str, accounts_key: str
) -> Iterator[Block]:
    need = view.account_need
    if need is not None:
        yield from need_blocks(
            need,
            gated=view.gated,
            unlock_key=unlock_key,
            choose_key=choose_key,
            accounts_key=accounts_key,
        )


def _fact_section(
    view: ApprovalView, refresh_key: str, keys: OutcomeKeys, *, unfold: bool
) -> Iterator[Block]:
    preview = view.preview
    yield from _outcome_section(view, keys, unfold=unfold)
    if preview.status == "unavailable":
        reason = words.item.unavailable("")
        yield value("Preview", (Piece(reason, "attn"), *foreign_text(preview.reason)))
        if view.state not in FINAL_STATES:
            again = words.item.ask_again_at(clock_seconds(preview.updated_at), refresh_key)
            yield value("", _remark(again))
    if view.drift is not None and view.state not in FINAL_STATES:
        if preview.status == "unavailable":
            yield blank()
        reason_shown = preview.status == "unavailable"
        yield from drift_blocks(view.drift, reason_shown=reason_shown, unfold=unfold)
        if preview.status == "ready":
            yield blank()
            remark = words.item.WHOLE_REMARK
            if view.is_compared:
                remark = words.item.compared(remark, agent_name(view))
            yield heading(_fact_heading(view), _remark(remark))
    if preview.status == "fetching":
        for field in preview.fields:
            yield value(foreign_text(field.label, "muted"), _remark(words.item.FETCHING_VALUE))
    elif view.is_compared:
        yield from change_blocks(view, unfold=unfold)
        yield from _staying_section(view, unfold=unfold)
    elif preview.status == "ready":
        yield from field_blocks(preview.fields, "fact", unfold=unfold)
    if view.drift is not None and view.state not in FINAL_STATES:
        yield from others_below(view.drift)


def _outcome_section(view: ApprovalView, keys: OutcomeKeys, *, unfold: bool) -> Iterator[Block]:
    """Yield how a call ended, and the heading over what had been shown of it.

    That is how it failed; of one whose outcome nobody knows also what is known and what to check; of one
    that was read back, what the service holds.
    """
    if view.is_settled:
        yield from settled_blocks(view)
    elif _has_outcome(view):
        yield value("", foreign_text(view.outcome, "danger" if view.state == "failed" else "attn"))
        if view.awaits_acknowledgement:
            yield from open_question_blocks(view, keys)
    elif view.read_back is not None:
        yield from read_back_blocks(view.read_back, unfold=unfold)
    else:
        return
    yield from look_blocks(view, unfold=unfold)
    if view.approval_id:  # otherwise nothing was shown
        yield blank()
        yield _was_shown(view)


def _staying_section(view: ApprovalView, *, unfold: bool) -> Iterator[Block]:
    """Yield the fields that get no other value, where there are any."""
    changed = {old.label for old, _ in changed_fields(view)}
    rest = [field for field in view.preview.fields if field.label not in changed]
    if not rest:
        return
    yield blank()
    yield heading(words.item.NOW, _remark(words.item.STAYS_REMARK), "muted")
    named = frozenset(field.label for field in view.new_values)
    yield from field_blocks(rest, "fact", unfold=unfold, same=named)


def _sent_section(view: ApprovalView, *, unfold: bool) -> Iterator[Block]:
    shown = view.other_arguments if view.is_compared else view.arguments
    named = (
        words.item.sent_heading if view.effect in _TO_WHAT_IS_THERE else words.item.wants_heading
    )
    remark = words.item.WANTS_REMARK if view.effect == "CREATE" else words.item.SENT_REMARK
    if is_builtin(view.action):
        remark = words.item.SENT_TO_TOOL
    if not shown:
        remark = words.item.WANTS_NOTHING_ELSE if view.is_compared else words.item.SENT_NOTHING
    if view.forgotten or view.sealed:
        remark = words.item.NOT_KEPT if view.forgotten else words.item.SEALED
    if view.edits:
        yield heading(words.item.EDITED, _remark(words.item.EDITED_REMARK), "attn")
        for old, new in view.edits:
            yield from edit_blocks(old, new, unfold=unfold)
        yield blank()
        remark = words.item.SENT_EDITED
    yield heading(named(agent_name(view)), _remark(remark), "claim-heading")
    yield from field_blocks(shown, "claim", unfold=unfold)


def _record_section(view: ApprovalView, warnings: Sequence[Line]) -> Iterator[Block]:
    yield heading(words.item.RECORD, role="muted")
    if view.words is not None:
        shown = Piece(" · ".join(view.words), "strong")
        yield value(
            words.item.WORDS, line(shown, "  ", Piece(words_remark(view), "muted")), "record"
        )
    if view.note:
        yield value("Note", foreign_text(view.note, "attn"), "record")
    # The outcome is in the heading already: it is not repeated here, nor as a warning.
    above = plain_text(foreign_text(view.outcome)) if _has_outcome(view) else None
    if view.outcome and above is None:
        yield value("Outcome", foreign_text(view.outcome, "attn"), "record")
    yield from decision_rows(view)
    yield from _rows("Warnings", (w for w in warnings if plain_text(w) != above), "record")
    yield value("Action", foreign_text(shown_name(view.action)), "record")
    runs = [f"{step.connector}.{step.op}" for step in view.steps] or [f"{view.connector}.{view.op}"]
    if not is_builtin(view.action):
        yield from op_blocks(runs, "text", "record")
    seconds = (
        0.0 if is_builtin(view.action) else view.seconds_allowed or 0.0
    )  # those have their own
    if seconds > _USUAL_SECONDS:
        allowed = words.files.run_time_given(round(seconds))
        yield value("Time", (Piece(allowed, "attn"),), "record")
    yield from account_rows(view)
    yield from host_blocks(view.hosts, "text", "record")
    yield from _rows("Contacted", (foreign_text(host) for host in view.hosts_asked), "record")
    yield from _rows("Previews", map(_read_by_post, view.preview.accepted_reads), "record")
    yield from _rows("Routed", (foreign_text(route, "attn") for route in view.routed), "record")
    again = f"  {words.item.times_asked(view.times_asked)}" if view.times_asked > 1 else ""
    asked = Piece(clock_seconds(view.requested_at))
    yield value("Asked", line(asked, Piece(again, "muted")), "record")
    if view.expires_at is not None:
        yield value("Expires", line(clock_seconds(view.expires_at)), "record")
    if view.approval_id:
        yield value("Approval", foreign_text(view.approval_id), "record")
    yield value("Run", foreign_text(view.run_id), "record")
    if view.digest:
        yield value("Digest", foreign_text(view.digest), "record")
    if view.rule:
        did = words.item.rule_decided(view.gated, view.state, view.decided_by)
        yield blank()
        yield value(words.item.RULES, line(did, *foreign_text(view.rule)), must_be_seen=False)


def _read_by_post(read: tuple[str, str]) -> Line:
    """Return one thing that its preview may read by POST, and who accepted that."""
    what, by = read
    who = foreign_text(
        words.views.ACTORS.get(by, by), "attn" if by not in words.views.ACTORS else "text"
    )
    return line(
        Piece("may read by POST: ", "muted"), *foreign_text(what), Piece(", accepted by "), *who
    )


def decision_rows(view: ApprovalView) -> Iterator[Block]:
    """Yield who decided *view* and when, with the reason; nothing while nobody has."""
    if view.decided_at is None:
        return
    by = foreign_text(words.views.by(view.decided_by, view.hand)) if view.decided_by else ()
    at = Piece(clock_seconds(view.decided_at))
    yield value("Decided", line(at, "  ", *by), "record")
    if view.reason:
        for row, pieces in enumerate(rendered_lines(render_foreign(view.reason))):
            yield value("Reason" if row == 0 else "", pieces, "record")


def host_blocks(hosts: Sequence[str], role: Role, gutter: Gutter) -> Iterator[Block]:
    """Yield the hosts, then both spellings of each lookalike."""
    yield from _rows("Hosts", (foreign_text(host, role) for host in hosts), gutter)
    hidden = HiddenCharacters()
    for host in hosts:
        hidden.add(render_foreign(host))
    yield from hidden.blocks()


def _rows(label: str, rows: Iterable[Line], gutter: Gutter) -> Iterator[Block]:
    """Yield one line for each of *rows*: several values are never joined on one line."""
    for index, pieces in enumerate(rows):
        yield value(label if index == 0 else "", pieces, gutter)


_BARS = re.compile("[┃┊]")


def batch_blocks(batch: Batch, now: float, *, unfold: bool) -> tuple[Block, ...]:
    """Return the whole document of *batch*; only its first heading depends on *now*."""
    found = HiddenCharacters()
    odd = len({call_id for _, call_id in batch.alone})
    remark: Line = (Piece(words.item.alone(odd), "attn"),) if odd else ()
    rows = tuple(_call_rows(batch, found, unfold=unfold))
    hidden = tuple(found.blocks())
    return (
        same_heading(batch, now),
        *field_blocks(_same(batch, "fact"), "fact", unfold=unfold),
        *field_blocks(_same(batch, "claim"), "claim", unfold=unfold),
        blank(),
        heading(words.item.DIFFER, remark),
        *rows,
        *((blank(), *hidden) if hidden else ()),
    )


def same_heading(batch: Batch, now: float) -> Block:
    """Return the first line of the document, with the age of the oldest preview."""
    oldest = min(batch.calls, key=lambda each: each.preview.updated_at).preview
    text = words.item.fetched(
        escape(oldest.host),
        age(now - oldest.updated_at),
        by_server=batch.calls[0].is_of_reaching_server,
    )
    if oldest.status == "none":
        text = words.item.no_preview(of_server=batch.calls[0].is_of_server)
    return heading(words.item.SAME, (Piece(text, "muted"),))


def _same(batch: Batch, gutter: Gutter) -> list[FieldView]:
    return [field for (whose, _), field in batch.same.items() if whose == gutter]


def _call_rows(batch: Batch, found: HiddenCharacters, *, unfold: bool) -> Iterator[Block]:
    differing = {key: each for key, each in batch.fields.items() if key not in batch.same}
    titles = (Cell(key[0], (foreign_text(key[1], "muted"),)) for key in differing)
    yield Block(kind="row", cells=tuple(titles))
    for number, call in enumerate(batch.calls):
        left_out = call.call_id in batch.left_out
        cells: list[Cell] = []
        for key, values in differing.items():
            lines = [_marked(each) for each in _lines(values[number], key[0], found, unfold)]
            if (key, call.call_id) in batch.alone:
                lines[0] = (Piece("▲ ", "attn"), *(replace(p, role="attn") for p in lines[0]))
            cells.append(Cell(key[0], tuple(lines)))
        sign = Piece(words.item.LEFT_OUT if left_out else words.item.PUT_IN, "strong")
        label = (edge(batch.cursor == call.call_id), sign)
        yield Block(kind="row", label=label, cells=tuple(cells), must_be_seen=not left_out)


def _lines(
    field: FieldView, gutter: Gutter, found: HiddenCharacters, unfold: bool
) -> tuple[Line, ...]:
    if field.missing or not field.value:
        return ((Piece(words.item.MISSING if field.missing else words.item.EMPTY, "muted"),),)
    role = "text" if gutter == "fact" else "claim"
    return tuple(field_lines(field, found, role, unfold=unfold))


def _marked(text: Line) -> Line:
    """Return *text* with a mark for each sign that would pass for the bar of another column."""
    return tuple(replace(p, text=_BARS.sub("‹bar›", p.text)) if p.foreign else p for p in text)
