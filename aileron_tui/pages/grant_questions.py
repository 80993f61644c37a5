"""The question in which a person makes a grant beside a yes, and the line in which they write a test's values."""

from collections.abc import Iterator

from aileron_core.actions.model import shown_name
from aileron_core.console_port.intents import Approve, ReadOffers
from aileron_core.console_port.standing import FieldTest, OfferedField
from aileron_core.policy.values import FETCHED
from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.draw.accounts import as_whom
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.text import Line, Piece, cell_width, justify, line, truncate, wrap
from aileron_tui.draw.times import clock_minutes, day
from aileron_tui.pages.asking import Answer, Asking, Question
from aileron_tui.pages.command import not_approved, unless
from aileron_tui.pages.status_line import confirmed
from aileron_tui.state.grant_panel import GrantPanel
from aileron_tui.state.situation import Situation

_said = words.grants
_LABEL_CELLS = 16
_TEST_CELLS = 11
_NAMED_CALLS = 2
"""So many denied calls that a shape matches are named."""
_ROWS_AROUND = 8
"""Rows of the screen that the panel leaves: bars, the call's row and head."""
_WHOLE = 4_000
"""Characters of a value that the selected row shows whole."""
_LEAST_ROWS = 3
"""Fields in view, however much else the panel says."""


def ask_grant(asking: Asking) -> None:
    """Ask what later calls run without asking, beside a yes to the selected one."""
    item = asking.model.queue.current
    if item is not None and item.approval is not None:
        asking.model.grant_panel = GrantPanel(item)
        asking.ask("grant", item.key)
        asking.submit(ReadOffers(approval_id=item.key))


def _rows(asking: Asking, now: Situation, width: int) -> tuple[Line, ...]:
    panel, view = asking.model.grant_panel, now.approval
    if view is None:
        return ()
    what = line(*foreign_text(shown_name(view.action), "muted"), *as_whom(view.accounts))
    title = justify((Piece(f" {_said.TITLE}", "strong"),), what, width - 1)
    if panel.offers is None:
        return (title, (Piece(f" {_said.LOOKING}", "muted"),))
    below = [*_below(panel, now, width)]
    room = asking.model.size[1] - asking.rows_around - _ROWS_AROUND - len(below)
    return (title, _shapes(panel), *_fields(panel, width, max(_LEAST_ROWS, room)), *below)


def _shapes(panel: GrantPanel) -> Line:
    pieces: list[Piece] = []
    for number, name in _said.SHAPES.items():
        if panel.offer(number) is not None:
            chosen = number == panel.number
            sign = Piece("  ● " if chosen else "  ○ ", "fact-bar" if chosen else "muted")
            pieces += [sign, Piece(f"{number} {name}", "strong" if chosen else "muted")]
    return tuple(pieces)


def _fields(panel: GrantPanel, width: int, room: int) -> Iterator[Line]:
    """Yield the rows of the fields that fit in *room*, the selected one whole, and count the others."""
    count = len(panel.fields)
    labels = [truncate(foreign_text(each.field.label), _LABEL_CELLS) for each in panel.fields]
    cells = max(map(cell_width, labels), default=0)
    rows = [
        _field(field, test, label, cells, width, is_selected=number == panel.index)
        for number, (field, (_, test), label) in enumerate(
            zip(panel.fields, panel.tests, labels, strict=True)
        )
    ]
    lines = count - 1 + len(rows[panel.index])
    fits = room if lines <= room else room - 1
    if (hidden := len(rows[panel.index]) - fits) > 0:  # the document has it whole
        more = Piece(f"{_said.more_lines(hidden + 1)}", "muted")
        rows[panel.index] = [*rows[panel.index][: fits - 1], (Piece(" " * (cells + 4)), more)]
    shown = max(1, fits - len(rows[panel.index]) + 1)
    first = min(max(0, panel.index - shown // 2), max(0, count - shown))
    last = min(count, first + shown)
    panel.seen.update(range(first, last))
    group = ""
    for number in range(first, last):
        name = _said.FETCHED if _is_fetched(panel.fields[number]) else _said.AGENTS
        edge = Piece("▌", "fact-bar") if number == panel.index else Piece(" ")
        for row, pieces in enumerate(rows[number]):
            group_name = name if name != group and not row else ""
            yield (edge, Piece(f"{group_name:<9}", "muted"), *pieces)
        group = name
    if lines > room:
        yield (Piece(f" {_said.more_rows(first, count - last)}", "muted"),)


def field_bar(field: OfferedField) -> Piece:
    return Piece("┃ ", "fact-bar") if _is_fetched(field) else Piece("┊ ", "claim-bar")


def _is_fetched(field: OfferedField) -> bool:
    return field.key.startswith(FETCHED)


def _field(
    field: OfferedField, test: FieldTest, label: Line, cells: int, width: int, *, is_selected: bool
) -> list[Line]:
    bar = field_bar(field)
    is_free = test.name in ("any", "plain")
    name = _said.test(test.name)
    name += f" {test.values[0]}" if test.name == "plain" else ""
    tested = Piece(f"  {name:<{_TEST_CELLS}}", "attn" if is_free else "strong")
    pad = Piece(" " * (cells - cell_width(label)))
    if test.values and test.name not in ("is", "plain"):
        text = ", ".join(test.values)
    else:
        text = field.field.value
    if field.field.missing and not (test.values and test.name != "plain"):
        shown: Line = (Piece(_said.ABSENT_NOW, "muted"),)
    else:
        draw = foreign_text if is_selected and len(text) <= _WHOLE else brief
        shown = draw(text, "muted" if is_free else "text" if _is_fetched(field) else "claim")
    reach = (Piece(_said.REACH, "muted"),) if field.is_reach else ()
    lead = (bar, *label, pad, tested)
    room = width - 10 - cell_width(lead) - (8 if reach else 2)
    values = [each.pieces for each in wrap(shown, room)] if is_selected else [truncate(shown, room)]
    blank = (bar, Piece(" " * (cell_width(lead) - cell_width((bar,)))))
    first = justify((*lead, *values[0]), reach, width - 12)
    return [first, *((*blank, *each) for each in values[1:])]


def _below(panel: GrantPanel, now: Situation, width: int) -> Iterator[Line]:
    """Yield what the shape lets through, when the grant ends, what it matches of the past, and what enter does."""
    tried, registry = panel.tried, now.registry
    for each in tried.cautions if tried is not None else ():
        for row, pieces in enumerate(wrap(foreign_text(each, "attn"), width - 5)):
            yield (Piece("   " if row else " ▲ ", "attn"), *pieces.pieces)
    keys = [registry.key_label(each) for each in ("grant_time", "grant_uses", "grant_scope")]
    if not panel.can_span_sessions:
        keys[2] = ""
    ends = _said.ends(panel.seconds, panel.uses, panel.scope, (keys[0], keys[1], keys[2]))
    yield from _labelled("ends", (Piece(ends),), width)
    if tried is not None:
        denied = [each for each in tried.matching if not each.approved]
        approved = len(tried.matching) - len(denied)
        past = _said.past(tried.looked_at, approved, len(denied), tried.unread)
        yield from _labelled("past", (Piece(past, "attn" if denied else "text"),), width)
        for each in denied[:_NAMED_CALLS]:
            at = Piece(f"{day(each.at)} {clock_minutes(each.at)}  ", "muted")
            why = line(Piece('  you denied: "', "muted"), *brief(each.reason), '"')
            shown = line(
                Piece("✗ ", "danger"), at, *brief(each.what), *(why if each.reason else ())
            )
            yield truncate((Piece(" " * 10), *shown), width - 1)
        if (more := len(denied) - _NAMED_CALLS) > 0:
            yield (Piece(" " * 10), Piece(_said.more_denied(more), "muted"))
    yield from _wrapped(_verdict(panel, now, width), width)


def _labelled(label: str, pieces: Line, width: int) -> Iterator[Line]:
    for row, each in enumerate(wrap(pieces, width - 11)):
        yield (Piece(f" {label if not row else '':<9}", "muted"), *each.pieces)


def _wrapped(pieces: Line, width: int) -> Iterator[Line]:
    for each in wrap(pieces, width - 2):
        yield (Piece(" "), *each.pieces)


def _verdict(panel: GrantPanel, now: Situation, width: int) -> Line:
    """Return what enter does now, or why it does nothing yet."""
    key = now.registry.key_label("grant_enter")
    if why := _not_granted(now):
        sentence = f"{why[:1].upper()}{why[1:]}"
        trying = why == _said.TRYING
        return (Piece(f"{sentence}{' …' if trying else '.'}", "muted" if trying else "attn"),)
    if now.pressed_once == "grant_enter":
        return confirmed(now, width)
    if now.findings:
        return (Piece(words.status.found(now.findings[0], key, _said.APPROVES), "attn"),)
    if now.unseen:
        return (Piece(words.status.unseen(now.unseen, now.total), "attn"),)
    return (Piece(_said.matches(key)),)


def _not_granted(now: Situation) -> str:
    """Return why enter makes no grant now, as a clause; empty where it does."""
    panel = now.model.grant_panel
    if not panel.is_of(now.item):
        return _said.CHANGED
    if why := not_approved(now):
        return why
    if panel.tried is None:
        return _said.TRYING
    if panel.tried.misfits:
        labels = {each.key: each.field.label for each in panel.fields}
        found = ", ".join(escape(labels.get(key, key)) for key in panel.tried.misfits)
        return _said.misfits(found)
    return ""


def _granted(now: Situation) -> tuple[Approve, ...]:
    panel, item = now.model.grant_panel, now.item
    if item is None or now.model.panel_key != item.key:
        return ()
    return (
        Approve(
            approval_id=item.key,
            digest=panel.digest,
            unseen_lines=now.model.reading.unseen,
            grant=panel.terms,
        ),
    )


def _is_over(now: Situation) -> bool:
    offers = now.model.grant_panel.offers
    refused = offers is not None and not offers.offers
    return refused or now.deny_blocked_by in ("over", "empty", "lost", "storage", "undrawable")


def _choose(asking: Asking) -> None:
    offer = asking.model.grant_panel.offer(int(asking.model.key_name))
    if offer is not None:
        asking.model.grant_panel.choose(offer)
    else:
        asking.refuse(words.refusals.did_nothing(asking.model.key_name, _said.NOT_OFFERED))


def _ask_values(asking: Asking) -> None:
    test = asking.model.grant_panel.written
    if test is not None:
        asking.ask("grant_value", asking.model.panel_key or "", text=", ".join(test.values))


def _take_values(asking: Asking) -> None:
    if problem := asking.model.grant_panel.set_values(asking.text):
        key = asking.model.registry.key_label("grant_value_enter")
        asking.refuse(words.refusals.did_nothing(key, problem))
    else:
        _back(asking)


def _back(asking: Asking) -> None:
    asking.ask("grant", asking.model.panel_key or "")


def _edit_text(now: Situation) -> tuple[str, str]:
    panel = now.model.grant_panel
    test = panel.written
    return (
        _said.edits(escape(panel.fields[panel.index].field.label), test.name) if test else ("", "")
    )


_is_offered = unless(lambda now: now.model.grant_panel.fields, _said.LOOKING)
GRANT = Question(
    "grant", rows=_rows, leave="no grant", is_over=_is_over,
    answers=(
        Answer(
            "grant_enter", ("enter",), "approve, and such calls", decides=True, after="read",
            help="approve this call, and answer later calls that match in the same way", footer_rank=0,
            why_not=_not_granted, intents=_granted,
        ),
        Answer(
            "grant_test", ("space",), "test", help="put the next test to the field", footer_rank=4, moves=True,
            at_end=_said.STAYS,
            why_not=_is_offered, do=lambda asking: asking.model.grant_panel.walk_test(),
        ),
        Answer(
            "grant_edit", ("e",), "values", help="write the values of the field's test", footer_rank=5,
            why_not=unless(lambda now: now.model.grant_panel.written, _said.STAYS), do=_ask_values,
        ),
        Answer(
            "grant_next", ("j", "down"), "field", help="the next field", paired_with="grant_previous", moves=True,
            at_end=words.refusals.LAST_ROW, footer_rank=6, why_not=_is_offered, do=lambda asking: asking.model.grant_panel.move(1),
        ),
        Answer(
            "grant_previous", ("k", "up"), "field above", help="the field above", why_not=_is_offered, moves=True,
            at_end=words.refusals.FIRST_ROW,
            do=lambda asking: asking.model.grant_panel.move(-1),
        ),
        Answer("grant_shape", ("1", "2", "3"), "shape", help="choose a shape", why_not=_is_offered, do=_choose),
        Answer(
            "grant_time", ("h",), "time", help="until when it lasts", why_not=_is_offered,
            do=lambda asking: asking.model.grant_panel.walk_seconds(),
        ),
        Answer(
            "grant_uses", ("u",), "calls", help="how many calls it answers", why_not=_is_offered,
            do=lambda asking: asking.model.grant_panel.walk_uses(),
        ),
        Answer(
            "grant_scope", ("s",), "scope", help="this session alone, or all of this project and agent",
            why_not=unless(lambda now: now.model.grant_panel.can_span_sessions, _said.ENDS_WITH_SESSION),
            do=lambda asking: asking.model.grant_panel.walk_scope(),
        ),
    ),
)  # fmt: skip
GRANT_VALUE = Question(
    "grant_value", text=_edit_text, field=lambda _: "field", leave="as it was", on_leave=_back,
    is_over=_is_over,
    answers=(Answer("grant_value_enter", ("enter",), "use these", footer_rank=0, do=_take_values),),
)  # fmt: skip
