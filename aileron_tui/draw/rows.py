"""Rows of the waiting list, each with its sign and tag, and of the last decisions; the last hours by outcome, on one line."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rich.cells import cell_len

from aileron_core.actions.model import is_builtin
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.view_models import ApprovalView, HourOfCalls
from aileron_core.errors import Problem
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.acceptance import widest_change
from aileron_tui.draw.changes import changed_fields
from aileron_tui.draw.columns import edge
from aileron_tui.draw.file_page import suite_name, suite_remark
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.read_back import read_back_tag
from aileron_tui.draw.text import Line, Piece, Role, cell_width, justify, line, truncate
from aileron_tui.draw.times import (
    age,
    clock_minutes,
    time_left,
    time_left_role,
    time_running,
)
from aileron_tui.items import Batch, Item

EFFECT_WIDTH = 7
STATE_ROLES: dict[str, Role] = {
    "approved": "ok",
    "executing": "ok",
    "completed": "ok",
    "failed": "danger",
    "unknown": "attn",
    "settled": "ok",
    "denied": "danger",
    "expired": "muted",
    "withdrawn": "muted",
    "checking": "fact",
}
EFFECTS = frozenset({"READ", "CREATE", "CHANGE", "DELETE", "SEND", "PAY", "RUN", "ASK", "CALL"})

MAX_LIST_ROWS = 5
MIN_DOCUMENT_ROWS = 5
"""What is left for the document in the compact layout, however small the pane is."""


def join_fitting(parts: Sequence[str], width: int) -> str:
    """Return as many of *parts* as fit in *width* cells with dots between them, at least the first."""
    joined = parts[0]
    for each in parts[1:]:
        if cell_len(f"{joined} · {each}") > width:
            break
        joined = f"{joined} · {each}"
    return joined


def detail_part(name: str, text: str) -> Line:
    """Return a named part of the details; nothing where *text* is empty."""
    return (Piece(f"  · {name} ", "muted"), *foreign_text(text, "muted")) if text else ()


def compact_list_rows(items: int, height: int, around: int, head: int) -> int:
    """Return how many rows the list takes above the item, in a pane of *height* rows.

    At most a third of what bars, the rows *around* it and the two lines at the foot leave, and never what the
    document needs below *head* lines and the row that counts what is out of sight.
    """
    free = height - 1 - around - 2
    return max(1, min(MAX_LIST_ROWS, items, free // 3, free - 1 - head - MIN_DOCUMENT_ROWS))


def effect_word(effect: str) -> str:
    """Return the effect if it is one of ours, else ASK."""
    return effect if effect in EFFECTS else "ASK"


_HUNK = re.compile(r"@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@")
_COUNTED = 20_000
"""Characters of a text whose lines a row counts."""
_ROW_JSON = 1000
"""Characters of JSON that a row looks at; it has room for fewer."""
_VALUE_WIDTH = 14
"""Cells of a value in a row, so that the new one has room beside the old one."""
_INDENT = 9
"""Of a row's second line: below the summary, clear of the columns of our own signs and words."""
_LEAST_NAME = 6
"""Cells of an agent's name that a row keeps, however little room there is."""


def row_lines(
    item: Item,
    width: int,
    now: float,
    *,
    hidden: bool,
    selected: bool,
    compact: bool,
) -> tuple[Line, ...]:
    """Return the lines of one row: two, or one where *compact*.

    `hidden`: the renderer marked something in what was fetched or sent.
    """
    first = _first(item, selected=selected)
    if item.problem is not None and compact and not item.outcome:
        return (truncate(line(*first, "  ", *_remark(item)), width - 1),)
    view = item.calls[0] if item.calls else None
    if view is None:
        if compact:
            return (justify(first, line(*_remark(item), " "), width),)
        second = line(edge(selected), " " * _INDENT, *_remark(item))
        return (truncate(first, width - 1), justify(truncate(second, width - 1), (), width))
    edited = line(Piece(f"{words.item.EDITED_ROW} ", "attn")) if view.edits else ()
    if compact:
        has_ended = view.state in words.item.ROW_STATES
        right = row_tag(item, now, hidden=False) if has_ended else _left(view, now, item)
        taken = cell_width(line(*first, *right))
        left = width - taken - 4 - cell_width(edited)
        agent = line(*edited, *truncate(requester(view), max(9, left)))
        gap = Piece(" " * max(1, 16 - cell_width(agent) - cell_width(right)))
        return (justify(first, line(*agent, gap, *right, " "), width),)
    since = Piece(f" · {age(now - view.requested_at)}", "muted")
    tag = row_tag(item, now, hidden=hidden)
    tag = line("  ", *tag) if tag else ()
    room = width - 1 - cell_width(line(since, *tag, *_left(view, now, item))) - 2
    left = room - _INDENT - cell_width(edited)
    agent = line(*edited, *truncate(requester(view), max(_LEAST_NAME, left)))
    second = line(edge(selected), " " * _INDENT, *agent, since, *tag)
    first = truncate(first, width - 1)
    return (first, justify(second, line(*_left(view, now, item), " "), width))


def _remark(item: Item) -> Line:
    """Return what the row of a file, some files or a problem says besides its name."""
    if item.outcome:
        return (Piece(words.files.OUTCOMES[item.outcome], "muted"),)
    if item.changed_now:
        return (Piece(words.files.CHANGED_NOW, "attn"),)
    if item.suite is not None:
        return suite_remark(item.suite)
    if item.problem is not None:
        return brief(item.problem.message, "muted")
    file = item.file
    if file is None:
        return ()
    if file.kind == "preview":
        read = file.name.partition(" ")[2]
        return line(Piece(words.files.READ_ROW, "muted"), *brief(read, "muted"))
    return widest_change(file.content) or (Piece(f"{file.noun}, {file.change}", "muted"),)


def undrawable_row(width: int, *, selected: bool) -> tuple[Line, ...]:
    """Return the lines shown instead of a row that cannot be drawn."""
    message = line(edge(selected), Piece(words.status.UNDRAWABLE, "danger"))
    return (truncate(message, width - 1), line(edge(selected)))


def requester(view: ApprovalView) -> Line:
    """Return the agent's name, as a claim where only the agent gave it."""
    if view.self_opened:
        return line(Piece("┊ ", "claim-bar"), *brief(view.agent, "claim"))
    return brief(view.agent, "muted")


def _first(item: Item, *, selected: bool) -> Line:
    view = item.calls[0] if item.calls else None
    if item.problem is not None:
        location = brief(_location(item.problem), "summary" if selected else "text")
        effect = Piece(f"{words.files.FILE_EFFECT:<{EFFECT_WIDTH}}", "strong")
        return line(edge(selected), Piece("!", "attn"), " ", effect, *location)
    if view is None:
        role: Role = "muted" if item.is_over else "summary" if selected else "text"
        name = brief(item.file.name, role) if item.file else ()
        name = suite_name(item.suite, role) if item.suite else name
        effect = Piece(f"{words.files.FILE_EFFECT:<{EFFECT_WIDTH}}", "strong")
        glyph = Piece("▲", "attn")
        if item.is_over:
            glyph, effect = replace(glyph, role="muted"), replace(effect, role="muted")
        return line(edge(selected), glyph, " ", effect, *name)
    role = "summary" if selected else "text"
    effect = Piece(f"{effect_word(view.effect):<{EFFECT_WIDTH}}", "strong")
    if not item.is_waiting:
        # It was answered: it stays for a moment, dimmed, so that rows do not move while one reads.
        role, effect = "muted", replace(effect, role="muted")
    summary = _summary(view, role) if item.batch is None else _batch_summary(item.batch, role)
    says_what = effect_word(view.effect) != "ASK" or view.preview.gist or not view.arguments
    if item.batch is None and not says_what:
        summary = line(*brief(view.title, role), "  ", *summary)
    return line(edge(selected), _glyph(view), " ", effect, *summary)


def _location(problem: Problem) -> str:
    """Return `file:line key`, as far as they are known."""
    location = f"{problem.file}:{problem.line}" if problem.line else problem.file
    return f"{location} {problem.key}" if problem.key else location


def _summary(view: ApprovalView, role: Role) -> Line:
    """Return Aileron's reading in one line, and what changes; or the arguments, marked as the agent's words."""
    gist = [brief(view.preview.gist, role)] if view.preview.gist else []
    if found := [*_new_values(view, role), *gist, *_changed_lines(view)]:
        return line(*found[0], *(piece for each in found[1:] for piece in ("  ", *each)))
    words: list[Piece] = [Piece("┊ ", "claim-bar")]
    for index, field in enumerate(view.arguments[:4]):
        words += [Piece(", " if index else "", "claim"), *brief(field.label, "claim")]
        # JSON is drawn over many lines; in a row, its line breaks would be all that is seen.
        text = " ".join(field.value[:_ROW_JSON].split()) if field.shape == "json" else field.value
        words += [Piece(" ", "claim"), *brief(text, "claim")]
    return line(*words) if view.arguments else brief(view.title, role)


def _batch_summary(batch: Batch, role: Role) -> Line:
    """Return how many calls there are, of what, and what the agent sent in all of them."""
    first = batch.calls[0]
    pieces = [Piece(f"{len(batch.calls)} calls  ", "strong"), *brief(first.title, role)]
    new = {each.label for each in first.new_values}
    for (whose, label), field in batch.same.items():
        if whose == "claim":
            arrow = Piece(" → " if label in new else " ", "muted")
            pieces += [Piece(" · ", "muted"), *brief(label, "muted"), arrow]
            pieces += _short_value(field, "claim")
    return tuple(pieces)


def call_summary(view: ApprovalView) -> Line:
    """Return the same of any call, or why it cannot be read."""
    if view.sealed.endswith(words.views.UNLOCK_TO_READ):
        return (Piece(words.views.SEALED_ROW, "attn"),)
    if view.sealed:
        return brief(view.sealed, "attn")
    known = view.preview.gist or view.preview.fields or view.arguments
    if not known:
        return (Piece(words.views.NOT_KEPT_ROW, "muted"),) if view.forgotten else ()
    return _summary(view, "text")


def _new_values(view: ApprovalView, role: Role) -> Iterator[Line]:
    """Yield what each field of one line becomes."""
    for old, new in changed_fields(view):
        if not (old.multiline or new.multiline):
            label, arrow = foreign_text(old.label, "muted"), Piece(" → ", "muted")
            yield line(*label, " ", *_short_value(old, role), arrow, *_short_value(new, "claim"))


def _changed_lines(view: ApprovalView) -> Iterator[Line]:
    """Yield how many lines of each longer text come and go, and of a file."""
    for old, new in changed_fields(view):
        if old.multiline or new.multiline:
            was, becomes = (Counter(_lines(each.value)) for each in (old, new))
            added, removed = (becomes - was).total(), (was - becomes).total()
            # Of a long text, and of one whose lines only change places, the row says no more than that it changes.
            counted = max(len(old.value), len(new.value)) <= _COUNTED and (added or removed)
            counts = _line_counts(added, removed) if counted else (Piece("…", "muted"),)
            yield line(*foreign_text(old.label, "muted"), " ", *counts)
    for each in view.preview.fields if is_builtin(view.action) else ():
        if each.format == "diff" and (lines := _lines(each.value)):
            yield _line_counts(*_hunk_lines(lines))


def _hunk_lines(lines: Iterable[str]) -> tuple[int, int]:
    """Return how many lines the hunks of a difference add and remove; what is outside of them names files."""
    added = removed = old = new = 0
    for text in lines:
        if old > 0 or new > 0:
            added, removed = added + (text[:1] == "+"), removed + (text[:1] == "-")
            old, new = old - (text[:1] in (" ", "-", "")), new - (text[:1] in (" ", "+", ""))
        elif found := _HUNK.match(text):
            old, new = (int(each or 1) for each in found.groups())
    return added, removed


def _lines(text: str) -> list[str]:
    """Return the lines of *text*; none of one that is too long to be read at every drawing."""
    return text.removesuffix("\n").split("\n") if len(text) <= _COUNTED else []


def _line_counts(added: int, removed: int) -> Line:
    return (Piece(f"+{added} −{removed}", "strong"),)


def _short_value(field: FieldView, role: Role) -> Line:
    if field.missing or not field.value:
        return (Piece(words.item.MISSING if field.missing else words.item.EMPTY, "muted"),)
    return truncate(brief(field.value, role), _VALUE_WIDTH)


def _glyph(view: ApprovalView) -> Piece:
    if view.state not in ("pending", "checking"):
        return Piece(words.item.GLYPHS[view.shown_state], STATE_ROLES.get(view.shown_state, "attn"))
    if view.drift is not None:
        return Piece("▲", "attn")
    if view.preview.status == "fetching":
        return Piece("◌", "muted")
    if view.preview.status in ("unavailable", "none"):
        return Piece("○", "muted")
    return Piece("●", "fact")


def running_time(view: ApprovalView, now: float) -> str:
    """Return how long the steps of *view* have been running, and how long they may."""
    began = view.started_at if view.started_at is not None else now
    return words.item.running(time_running(now - began, view.seconds_allowed))


def _running_tag(view: ApprovalView, now: float) -> str:
    """Return the same for a row, whose second line has little room."""
    if view.started_at is None or view.seconds_allowed is None:
        return running_time(view, now)
    return words.item.running_short(time_running(now - view.started_at, view.seconds_allowed))


def _left(view: ApprovalView, now: float, item: Item) -> Line:
    if item.deadline is None:
        return ()
    rest = item.deadline - now
    return (Piece(time_left(rest), time_left_role(rest, item.deadline - view.requested_at)),)


def row_tag(item: Item, now: float, *, hidden: bool) -> Line:
    """Return the one tag of highest rank."""
    view = item.calls[0] if item.calls else None
    if view is None:
        return ()
    if view.started_at is not None:
        return (Piece(_running_tag(view, now), "ok"),)
    if view.waits_for is not None:
        return (Piece(words.item.WAITS_FOR_RUN, "attn"),)
    if (state := view.shown_state) in words.item.ROW_STATES:
        tag = Piece(words.item.ROW_STATES[state], STATE_ROLES.get(state, "muted"))
        return (tag, Piece(words.item.CAN_BE_UNDONE, "muted")) if view.can_undo else (tag,)
    if view.drift is not None:
        return (Piece(words.item.TAGS["changed"], "attn"),)
    if hidden:
        return (Piece(words.item.TAGS["hidden"], "attn"),)
    if view.preview.status == "unavailable":
        return (Piece(words.item.TAGS["no preview"], "attn"),)
    if view.state == "awaiting_vault" and view.account_need is not None:
        return (Piece(words.vault.TAGS[view.account_need.reason], "attn"),)
    if view.requester_gone:
        return (Piece(words.item.TAGS["gone"], "muted"),)
    return ()


def queue_header(
    count: int, nearest: float | None, now: float, width: int, *, by_deadline: bool = False
) -> Line:
    """Return the line above a waiting list of *count* rows: its order and its *nearest* deadline."""
    if not count:
        return ()
    order = words.item.BY_DEADLINE if by_deadline else words.item.OLDEST_FIRST
    first = line(" ", Piece(words.item.WAITING, "muted"), "  ", Piece(order, "muted"))
    if nearest is None:
        return justify(first, (), width)
    rest = Piece(time_left(nearest - now), "strong")
    return justify(first, line(Piece(f"{words.item.FIRST_ENDS} ", "muted"), rest, " "), width)


def order_line(newer: int, *, by_deadline: bool) -> Line:
    """Return the note that a list is ordered *by_deadline*, and how many calls came since."""
    parts = [words.item.BY_DEADLINE] if by_deadline else []
    parts += [words.item.newer(newer)] if newer else []
    return line(Piece(", ".join(parts), "muted"))


def hidden_rows_line(above: int, below: int) -> Line:
    parts = [f"▴ {above} above"] if above else []
    parts += [f"▾ {below} more"] if below else []
    return (Piece("  ".join(parts) + " ", "muted"),) if parts else ()


def decided_header(count: int) -> Line:
    """Return the line above the list of *count* decisions."""
    order = words.item.NEWEST_FIRST if count else words.item.NOTHING_YET
    return line(" ", Piece(words.item.DECIDED, "muted"), "  ", Piece(order, "muted"))


def decided_row(view: ApprovalView, width: int, now: float, *, selected: bool) -> Line:
    """Return one row of the list of decisions: how and when it ended, what it was about."""
    at = view.decided_at or view.ended_at or view.requested_at
    glyph = Piece(words.item.GLYPHS[view.shown_state], STATE_ROLES.get(view.shown_state, "muted"))
    if view.read_back is not None and view.read_back.waits_to_be_seen:
        glyph = Piece("▲", "attn")
    about = _summary(view, "summary" if selected else "muted")
    start = line(edge(selected), glyph, Piece(f" {clock_minutes(at)}  ", "muted"), *about)
    return justify(start, line(*_how(view, now), " "), width)


def _how(view: ApprovalView, now: float) -> Line:
    if view.started_at is not None:
        return (Piece(_running_tag(view, now), "ok"),)
    loud: dict[str, Role] = {"unknown": "attn", "failed": "danger"}
    if view.is_settled:
        return (Piece(words.item.SETTLED, "muted"),)
    if view.state in loud:
        return (Piece(words.item.OUTCOMES[view.state], loud[view.state]),)
    if view.read_back is not None and view.read_back.status != "unavailable":
        return read_back_tag(view.read_back)
    if view.decided_at is not None and view.state != "expired":
        waited = age(view.decided_at - view.requested_at)
        return (Piece(words.views.waited(view.decided_by, escape(view.hand), waited), "muted"),)
    return (Piece(words.item.OUTCOMES.get(view.state, view.state), "muted"),)


HOURS = 12
"""Hours that are plotted."""
_BARS = "▁▂▃▄▅▆▇█"
_KINDS: tuple[tuple[str, Role, frozenset[str]], ...] = (
    ("done", "ok", frozenset({"completed", "settled"})),
    ("denied", "danger", frozenset({"denied"})),
    ("failed", "danger", frozenset({"failed"})),
    ("unknown", "attn", frozenset({"unknown"})),
    ("refused", "danger", frozenset({"refused"})),
    ("not run", "muted", frozenset({"expired", "withdrawn"})),
)


def outcome_plot(hours: Sequence[HourOfCalls], width: int) -> Line:
    """Return a bar for each of *hours*, the newest last, for each kind of outcome that there is, and how many there are.

    Fewer hours where there is no room, one alone is cut; nothing where no call ended. All bars have one
    scale, and a call that is alone is seen.
    """
    drawn: Line = ()
    for first in range(len(hours)):
        drawn = _plot(hours[first:])
        if cell_width(drawn) < width:
            return drawn
    return truncate(drawn, width - 1)


def _plot(hours: Sequence[HourOfCalls]) -> Line:
    plotted: list[tuple[str, Role, list[int]]] = [
        (name, role, [sum(n for state, n in hour.outcomes if state in states) for hour in hours])
        for name, role, states in _KINDS
    ]
    most = max(max(counts) for _, _, counts in plotted)
    drawn: list[Piece] = [Piece(f" {words.views.last_hours(len(hours))}", "muted")]
    for name, role, counts in plotted if most else ():
        bars = "".join(_BARS[-(-each * len(_BARS) // most) - 1] if each else "·" for each in counts)
        if any(counts):
            drawn += [Piece(f"  {name} ", "muted"), Piece(bars, role), Piece(f" {sum(counts)}")]
    return tuple(drawn) if most else ()
