"""The question in which a person makes a grant beside a yes, and the line in which they write a test's values."""

from collections.abc import Iterator
from functools import partial

from aileron_core.actions.model import shown_name
from aileron_core.console_port.intents import Approve, ReadOffers
from aileron_core.console_port.standing import FieldTest, OfferedField
from aileron_core.policy.values import FETCHED
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.accounts import as_whom
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.text import (
    Line,
    Piece,
    WrappedLine,
    cell_width,
    justify,
    line,
    truncate,
    wrap,
)
from aileron_tui.draw.times import clock_minutes, day
from aileron_tui.pages.asking import Answer, Asking, Question
from aileron_tui.pages.command import not_approved, unless
from aileron_tui.pages.status_line import confirmed
from aileron_tui.state.grant_panel import GrantPanel
from aileron_tui.state.situation import Situation

_LABEL_CELLS = 16
_CELLS_BESIDE = 52
"""The most cells of a row that are not its value."""
_NAMED_CALLS = 2
"""So many denied calls that a shape matches are named."""
_WHOLE_ROWS = 4
"""Rows for a value that does not fit in its own; the document has what is longer."""
_ROWS_AROUND = 8
"""Rows of the screen that the panel leaves: bars, the call's row and head."""
_LEAST_ROWS = 3
"""Fields in view, however much else the panel says."""
_LOOKING = "Looking at what can be granted …"
_WRITTEN = {
    "plain": "A number of characters.",
    "at_most": "A number.",
    "at_least": "A number.",
    "within": "Domains, addresses or folders, separated by commas; *.a.example: below a.example.",
}
_STAYS = "this field stays as it is"


def ask_grant(asking: Asking) -> None:
    """Ask what later calls run without asking, beside a yes to the selected one."""
    item = asking.model.queue.current
    if item is not None and item.approval is not None:
        asking.model.grant_panel = GrantPanel(item)
        asking.ask("grant", item.key)
        read_offers(asking)


def read_offers(asking: Asking) -> None:
    asking.submit(ReadOffers(approval_id=asking.model.panel_key or ""))


def _rows(asking: Asking, now: Situation, width: int) -> tuple[Line, ...]:
    panel, view = asking.model.grant_panel, now.approval
    if view is None:
        return ()
    what = line(*foreign_text(shown_name(view.action), "muted"), *as_whom(view.accounts))
    title = justify((Piece(" ANSWER LATER CALLS LIKE THIS", "strong"),), what, width - 1)
    if panel.offers is None:
        return (title, (Piece(f" {_LOOKING}", "muted"),))
    below = [*_below(panel, now, width)]
    room = asking.model.size[1] - asking.rows_around - _ROWS_AROUND - len(below)
    shapes: list[Piece] = []
    for each in panel.offers.offers:
        chosen, name = (
            each.number == panel.terms.number,
            f"{each.number} {words.rules.SHAPES[each.number]}",
        )
        shapes += [Piece("  ● " if chosen else "  ○ ", "fact-bar" if chosen else "muted")]
        shapes += [Piece(name, "strong" if chosen else "muted")]
    return (title, tuple(shapes), *_fields(panel, width, max(_LEAST_ROWS, room)), *below)


def _fields(panel: GrantPanel, width: int, room: int) -> Iterator[Line]:
    """Yield the rows of as many fields as fit in *room*, and how many others there are."""
    count = len(panel.fields)
    shown = count if count <= room else room - 1
    first = min(max(0, panel.index - shown // 2), count - shown)
    panel.seen.update(range(first, first + shown))
    widths = (cell_width(foreign_text(each.field.label)) for each in panel.fields)
    cells = min(max(widths, default=0), _LABEL_CELLS)
    before = ""
    for number in range(first, first + shown):
        field, (_, test) = panel.fields[number], panel.terms.tests[number]
        group = "fetched" if _is_fetched(field) else "agent's"
        edge = Piece("▌", "fact-bar") if number == panel.index else Piece(" ")
        lead = (edge, Piece(f"{group if group != before else '':<9}", "muted"), field_bar(field))
        label = truncate(foreign_text(field.field.label), cells)
        pad = Piece(" " * (cells - cell_width(label) + 2))
        name = words.rules.TESTS.get(test.name, test.name)
        name += f" {test.values[0]}" if test.name == "plain" else ""
        tested = Piece(f"{name:<13}", "attn" if test.name in ("any", "plain") else "strong")
        reach = (Piece("reach ", "muted"),) if field.is_reach else ()
        yield justify((*lead, *label, pad, tested, *_value(field, test)), reach, width - 1)
        before = group
    if count > shown:
        yield (Piece(f" ▴ {first} above  ▾ {count - first - shown} below", "muted"),)


def _is_fetched(field: OfferedField) -> bool:
    return field.key.startswith(FETCHED)


def field_bar(field: OfferedField) -> Piece:
    return Piece("┃ ", "fact-bar") if _is_fetched(field) else Piece("┊ ", "claim-bar")


def _value(field: OfferedField, test: FieldTest) -> Line:
    """Return what a test compares with, else what the field holds now."""
    if test.values and test.name not in ("is", "plain"):
        return brief(", ".join(test.values))
    if field.field.missing:
        return (Piece("(absent now)", "muted"),)
    own = "text" if _is_fetched(field) else "claim"
    return brief(field.field.value, own if test.name == "is" else "muted")


def _below(panel: GrantPanel, now: Situation, width: int) -> Iterator[Line]:
    """Yield the selected value whole, what the shape lets through and matches, when it ends, what enter does."""
    tried, offers = panel.tried, panel.offers
    whole: tuple[WrappedLine, ...] = ()
    if panel.selected is not None:
        value, bar = _value(*panel.selected), field_bar(panel.selected[0])
        whole = wrap(value, width - 13) if cell_width(value) > width - _CELLS_BESIDE else ()
        for row, each in enumerate(whole[:_WHOLE_ROWS]):
            yield (Piece(f" {'' if row else 'in full':<9}", "muted"), bar, *each.pieces)
    if len(whole) > _WHOLE_ROWS:
        yield (Piece(f"{' ' * 10}… the document has all of it", "muted"),)
    for caution in tried.cautions if tried is not None else ():
        yield from _wrapped((Piece("▲ ", "attn"), *foreign_text(caution, "attn")), width)
    spans = offers is not None and offers.can_span_sessions
    ends = words.rules.would_end(panel.terms, can_span_sessions=spans)
    yield from _wrapped((Piece("ends     ", "muted"), Piece(ends)), width)
    if tried is not None:
        denied = [each for each in tried.matching if not each.approved]
        past = Piece(words.rules.past(tried), "attn" if denied else "text")
        yield from _wrapped((Piece("past     ", "muted"), past), width)
        for call in denied[:_NAMED_CALLS]:
            at = Piece(f"{day(call.at)} {clock_minutes(call.at)}  ", "muted")
            why = line(Piece('  you denied: "', "muted"), *brief(call.reason), '"')
            shown = (Piece("✗ ", "danger"), at, *brief(call.what), *(why if call.reason else ()))
            yield truncate((Piece(" " * 10), *shown), width - 1)
        if (more := len(denied) - _NAMED_CALLS) > 0:
            yield (Piece(f"{' ' * 10}and {more} more that you denied", "muted"),)
    yield from _wrapped(_verdict(now, width), width)


def _wrapped(pieces: Line, width: int) -> Iterator[Line]:
    for each in wrap(pieces, width - 2):
        yield (Piece(" "), *each.pieces)


def _verdict(now: Situation, width: int) -> Line:
    """Return what enter does now, or why it does nothing yet."""
    key = now.registry.key_label("grant_enter")
    if why := _not_granted(now):
        return (Piece(f"{why[:1].upper()}{why[1:]}.", "attn"),)
    if now.pressed_once == "grant_enter":
        return confirmed(now, width)
    if now.findings:
        found = words.status.found(now.findings[0], key, "approve it and such calls")
        return (Piece(found, "attn"),)
    if now.unseen:
        return (Piece(words.status.unseen(now.unseen, now.total), "attn"),)
    return (Piece(f"Matches this call. {key} approves it; later matches run without asking."),)


def _not_granted(now: Situation) -> str:
    """Return why enter makes no grant now, as a clause; empty where it does."""
    panel = now.model.grant_panel
    if not panel.is_of(now.item):
        return "the call has changed since this panel opened"
    if (why := not_approved(now)) or panel.tried is None:
        return why or words.rules.TRYING
    labels = {each.key: escape(each.field.label) for each in panel.fields}
    found = ", ".join(labels.get(key, key) for key in panel.tried.misfits)
    return f"this very call does not match: {found}" if found else ""


def _granted(now: Situation) -> tuple[Approve, ...]:
    panel, unseen = now.model.grant_panel, now.model.reading.unseen
    if now.item is None:
        return ()
    about, digest = now.item.key, panel.digest
    return (Approve(approval_id=about, digest=digest, unseen_lines=unseen, grant=panel.terms),)


def _is_over(now: Situation) -> bool:
    offers = now.model.grant_panel.offers
    refused = offers is not None and not offers.offers
    return refused or now.deny_blocked_by in ("over", "empty", "lost", "storage", "undrawable")


def _choose(asking: Asking) -> None:
    key = asking.model.key_name
    if not asking.model.grant_panel.choose(int(key)):
        asking.refuse(words.status.did_nothing(key, "that shape is not offered for this call"))


def _ask_values(asking: Asking) -> None:
    if (test := asking.model.grant_panel.written) is not None:
        asking.ask("grant_value", asking.model.panel_key or "", text=", ".join(test.values))


def _take_values(asking: Asking) -> None:
    if problem := asking.model.grant_panel.set_values(asking.text):
        asking.refuse(words.status.did_nothing("enter", problem))
    else:
        _back(asking)


def _back(asking: Asking) -> None:
    asking.ask("grant", asking.model.panel_key or "")


def _edit_text(now: Situation) -> tuple[str, str]:
    panel = now.model.grant_panel
    if (test := panel.written) is None:
        return "", ""
    label = escape(panel.fields[panel.index].field.label)
    how = _WRITTEN.get(test.name, "Values, separated by commas; * stands for any characters.")
    return f"{label}: {words.rules.TESTS.get(test.name, test.name)}", how


_Key = partial(Answer, why_not=unless(lambda now: now.model.grant_panel.fields, _LOOKING))
GRANT = Question(
    "grant", rows=_rows, leave="no grant", is_over=_is_over,
    answers=(
        Answer(
            "grant_enter", ("enter",), "approve, and such calls", decides=True, after="read",
            help="approve this call, and let later calls that match run without asking", footer_rank=0,
            why_not=_not_granted, intents=_granted,
        ),
        _Key(
            "grant_test", ("space",), "test", help="put the next test to the field", footer_rank=4, moves=True,
            at_end=_STAYS, do=lambda asking: asking.model.grant_panel.walk_test(),
        ),
        Answer(
            "grant_edit", ("e",), "values", help="write the values of the field's test", footer_rank=5,
            why_not=unless(lambda now: now.model.grant_panel.written, _STAYS), do=_ask_values,
        ),
        _Key(
            "grant_next", ("j", "down"), "field", help="the next field", paired_with="grant_previous", moves=True,
            at_end=words.status.LAST_ROW, footer_rank=6, do=lambda asking: asking.model.grant_panel.move(1),
        ),
        _Key(
            "grant_previous", ("k", "up"), "field above", moves=True, at_end=words.status.FIRST_ROW,
            do=lambda asking: asking.model.grant_panel.move(-1),
        ),
        _Key("grant_shape", ("1", "2", "3"), "shape", help="choose a shape", do=_choose),
        _Key(
            "grant_end", ("h", "u", "s"), "end", help="change the time, the calls, or whether it is for this session alone",
            do=lambda asking: asking.model.grant_panel.walk_end(asking.model.key_name),
        ),
    ),
)  # fmt: skip
GRANT_VALUE = Question(
    "grant_value", text=_edit_text, field=lambda _: "field", leave="as it was", on_leave=_back,
    is_over=_is_over,
    answers=(Answer("grant_value_enter", ("enter",), "use these", footer_rank=0, do=_take_values),),
)  # fmt: skip
