"""The keys of a view, beside it: from the registry, with what the signs mean."""

from collections.abc import Iterator, Sequence

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from aileron_tui import words
from aileron_tui.draw.blocks import Layout
from aileron_tui.draw.text import Line, Piece, line, spread, wrap
from aileron_tui.input.commands import CommandRegistry, KeyContext
from aileron_tui.messages import SizeChanged
from aileron_tui.widgets.document import Document
from aileron_tui.widgets.line_view import ROLE_CLASSES, Lines

FACE = 12
"""Cells of the column of keys."""
BESIDE_FROM = 100
"""From this width on the view stays in sight beside it; below, words of it would be cut."""
EDGES = 4
"""Blank cells at both sides, and the track that says how much is in sight."""


def help_lines(
    registry: CommandRegistry,
    context: KeyContext,
    width: int,
    rest: float = 0.4,
    standing: Sequence[Line] = (),
) -> tuple[Line, ...]:
    """Return *standing* warnings whole, every key of *context* that has a text, then the signs.

    *width*: in cells. *rest*: the seconds that item and hand rest before a key decides.
    """
    rows: list[Line] = [(Piece(words.keys.HELP_STANDING, "attn"),)] if standing else []
    for warning in standing:
        for number, each in enumerate(wrap(warning, width - EDGES - 2)):
            # What goes on further in is not a warning of its own: a route's words are from outside.
            rows.append(line(Piece("  " if number else ""), *each.pieces))
    rows += [()] if standing else []
    rows.append((Piece(words.keys.HELP, "fact"),))
    for face, told in _keys(registry, context):
        rows += _row(face, told, width)
    rows.append(())
    for text in words.keys.help_rest(rest):
        rows += _row("", (Piece(text, "muted"),), width, indent=0)
    rows += [(), (Piece(words.keys.HELP_SIGNS, "fact"),)]
    for glyph, text in words.keys.HELP_GLYPHS:
        rows += _row(glyph, (Piece(text),), width)
    return tuple((Piece(" "), *row) for row in rows)


def _keys(registry: CommandRegistry, context: KeyContext) -> Iterator[tuple[str, Line]]:
    views = [each for each in registry.here(context) if each.id.startswith("view_")]
    for each in registry.here(context):
        if each.id.startswith("view_"):
            if each is views[0]:
                yield " ".join(registry.face(e.id) for e in views), (Piece(words.keys.HELP_VIEWS),)
        elif each.help:
            decides: Line = (Piece("  decides", "attn"),) if each.decides else ()
            yield registry.faces(each), line(each.help, *decides)


def _row(face: str, told: Line, width: int, indent: int = FACE) -> Iterator[Line]:
    for number, each in enumerate(wrap(told, width - indent - EDGES)):
        named = f"{face:<{indent}}" if number == 0 else " " * indent
        yield line(Piece(named, "strong"), *each.pieces)


class HelpScreen(ModalScreen[None]):
    """Stands at the right; the view stays in sight beside it where there is room."""

    AUTO_FOCUS = "#helptext"
    COMPONENT_CLASSES = ROLE_CLASSES

    def __init__(
        self,
        registry: CommandRegistry,
        context: KeyContext,
        rest: float,
        standing: Sequence[Line] = (),
    ) -> None:
        super().__init__()
        self._bindings = registry.bindings_for("help")
        self._keys = registry
        self._page: KeyContext = context
        self._rest = rest
        self._standing = standing
        self._lines: tuple[Line, ...] = ()

    def compose(self) -> ComposeResult:
        """Show the page."""
        yield Document(id="helptext")
        yield Lines(id="helpkeys")

    def on_resize(self, event: events.Resize) -> None:
        """Cover the view where there is no room beside it."""
        self.set_class(event.size.width < BESIDE_FROM, "-alone")

    def on_size_changed(self, message: SizeChanged) -> None:
        """Fill in the lines for the width that there is now."""
        message.stop()
        self._fill()

    def _fill(self) -> None:
        text = self.query_one("#helptext", Document)
        if not text.size.width:
            return  # its size comes with the next event
        self._lines = help_lines(
            self._keys, self._page, text.size.width, self._rest, self._standing
        )
        text.show(Layout(self._lines, (None,) * len(self._lines)), frozenset())
        parts: list[Piece] = [Piece(" ")]
        if len(self._lines) > text.size.height:
            parts += [Piece(self._keys.faces(self._keys.action("next")), "strong")]
            parts += [Piece(" read on   ", "muted")]
        parts += [Piece(self._keys.face("close"), "strong"), Piece(" close", "muted")]
        width = self.query_one("#helpkeys", Lines).size.width
        self.query_one("#helpkeys", Lines).show(spread(line(*parts), (), width))

    def action_do(self, command: str) -> None:
        """Scroll, or go back to what was below."""
        text = self.query_one("#helptext", Document)
        match command:
            case "next":
                text.read(1)
            case "previous":
                text.read(-1)
            case "read_on" | "page_down":
                text.read_panes(1)
            case "read_back" | "page_up":
                text.read_panes(-1)
            case "first":
                text.start_over()
            case "last":
                text.read(len(self._lines))
            case _:
                self.dismiss(None)
