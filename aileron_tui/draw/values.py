"""The lines of one value: its kind or number as a mark (`‹text›`, `‹list of 2›`), then the value itself.

Outside text can never write `‹` or `›`, so no text can pass for an object, a list or several values.
"""

from collections.abc import Iterator

from aileron_core.console_port.field_views import FieldView
from aileron_core.text import Rendered
from aileron_tui import words
from aileron_tui.draw.foreign_text import foreign_text, render_foreign, rendered_lines
from aileron_tui.draw.text import Line, Piece, Role, line

_OPENINGS = ("{", "[")


def field_text(field: FieldView, *, unfold: bool = False) -> Rendered:
    """Render the value of *field*; blanks at its end are marked as well."""
    return render_foreign(field.value, unfold=unfold, end=True)


def value_lines(field: FieldView, text: Rendered, role: Role = "text") -> Iterator[Line]:
    """Yield the lines of *field*, which is not missing; *text* is its `field_text`."""
    if field.spellings:
        yield several_line(field)
    kind = value_kind(field)
    lines = rendered_lines(text, role)
    if kind and field.shape == "lines":
        yield (Piece(kind, "muted"),)
    elif kind:
        lines = (line(Piece(kind, "attn"), " ", *lines[0]), *lines[1:])
    yield from lines


def several_line(field: FieldView) -> Line:
    """Return the line that names the labels of the values."""
    pieces: list[Piece] = [Piece(words.item.value_start(field.count), "attn")]
    for index, name in enumerate(field.spellings):
        pieces += [Piece(", " if index else "", "attn"), *foreign_text(name, "attn")]
    return line(*pieces, Piece(words.item.VALUE_END, "attn"))


def value_kind(field: FieldView) -> str:
    """Return the mark that names the kind of value; empty where the value itself shows it."""
    if field.shape == "lines":
        return words.item.list_of(field.value.count("\n") + 1)
    if field.shape == "text" and field.value.lstrip().startswith(_OPENINGS):
        return words.item.VALUE_TEXT
    return ""
