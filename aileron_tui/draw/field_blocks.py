"""Labelled values as lines: what was fetched, what the agent sent, what a run returned."""

from collections.abc import Iterator, Sequence

from aileron_core.console_port.field_views import FieldView
from aileron_tui import words
from aileron_tui.draw.blocks import Block, Gutter, blank, value
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.formats import field_lines
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import Piece, Role

IDENTITY_LABELS = frozenset(
    {"to", "cc", "bcc", "from", "amount", "file", "path", "channel", "host", "command", "recipient"}
)
"""Labels whose values say whom or what it hits; they are drawn bold."""


def field_blocks(
    fields: Sequence[FieldView],
    gutter: Gutter,
    *,
    unfold: bool,
    same: frozenset[str] = frozenset(),
) -> Iterator[Block]:
    """Yield the lines of *fields*, then the hidden characters in them.

    *same*: labels of those to which the agent sends the value that they have.
    """
    hidden = HiddenCharacters()
    for field in fields:
        label = foreign_text(field.label, "muted")
        foreign = gutter == "claim"
        if field.missing:
            yield value(label, (Piece(words.item.MISSING, "muted"),), gutter, label_outside=foreign)
            continue
        role = _value_role(field, gutter)
        for row, pieces in enumerate(field_lines(field, hidden, role, unfold=unfold)):
            named = label if row == 0 else ()
            yield value(named, pieces, gutter, label_outside=foreign)
        if field.label in same:
            yield value("", (Piece(words.item.SAME_VALUE, "muted"),), gutter)
    rows = tuple(hidden.blocks())
    if rows:
        yield blank()
        yield from rows


def _value_role(field: FieldView, gutter: Gutter) -> Role:
    if gutter == "claim":
        return "claim"
    return "strong" if field.label.casefold() in IDENTITY_LABELS else "text"
