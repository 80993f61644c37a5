"""Text from outside as pieces: the one door between hostile text and a line on screen."""

from collections.abc import Sequence
from functools import lru_cache

from aileron_core.connectors.http.host_names import short_host
from aileron_core.text import Rendered, Span, inline, render
from aileron_tui.draw.text import Line, Piece, Role

BRIEF_CHARACTERS = 400
"""Characters that are read for a line that is cut: more than any terminal has columns."""


def foreign_text(text: str, role: Role = "text") -> Line:
    """Return *text* on one line, its marks in the role `mark`; line breaks are marks as well."""
    return (
        _short(text, role)
        if len(text) <= BRIEF_CHARACTERS
        else _pieces(inline(text).lines[0], role)
    )


@lru_cache(maxsize=2048)
def _short(text: str, role: Role) -> Line:
    """Return what `foreign_text` does, cached: names are drawn again with every key and every second."""
    return _pieces(inline(text).lines[0], role)


def brief(text: str, role: Role = "text") -> Line:
    """Return the start of *text* on one line, for rows, which are cut where their width ends anyway.

    A megabyte in a row must not be read at every drawing. What is left out is shown as `…`.
    """
    return (
        foreign_text(text, role)
        if len(text) <= BRIEF_CHARACTERS
        else (*foreign_text(text[:BRIEF_CHARACTERS], role), _CUT)
    )


def host_names(hosts: Sequence[str], role: Role = "strong") -> Line:
    """Return `host:port` entries in a sentence; the port that HTTPS has anyway is left out."""
    pieces: list[Piece] = []
    for index, host in enumerate(hosts):
        pieces += [Piece(" and ", "muted")] if index else []
        pieces += foreign_text(short_host(host), role)
    return tuple(pieces)


def render_foreign(text: str, *, unfold: bool = False, end: bool = False) -> Rendered:
    """Render *text*: its lines, and the hidden characters in it.

    *unfold*: every mark with its code point, and no run folded. *end*: blanks at its end are marked.
    """
    return render(text, unfold=unfold, end=end)


def rendered_lines(rendered: Rendered, role: Role = "text") -> tuple[Line, ...]:
    """Return the lines of *rendered*: at least one, which may be empty."""
    return tuple(_pieces(spans, role) for spans in rendered.lines) or ((),)


def _pieces(spans: tuple[Span, ...], role: Role) -> Line:
    return tuple(
        Piece(span.text, role if span.kind == "plain" else "mark", span.kind != "mark")
        for span in spans
        if span.text
    )


_CUT = Piece("…", "mark")
