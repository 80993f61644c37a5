"""The keys of a view, beside it: from the registry, with what the signs mean."""

from collections.abc import Iterator, Sequence

from textual import events
from textual.app import ComposeResult
from textual.screen import ModalScreen

from aileron_tui import words
from aileron_tui.draw.blocks import Layout
from aileron_tui.draw.text import Line, Piece, justify, line, wrap
from aileron_tui.input.commands import CommandRegistry, KeyContext, key_label
from aileron_tui.messages import SizeChanged
from aileron_tui.pages.panes import DocumentPane
from aileron_tui.widgets.document import Document
from aileron_tui.widgets.line_view import ROLE_CLASSES, Lines

KEY_CELLS = 12
"""Cells of the column of keys."""
BESIDE_FROM = 100
"""From this width on the view stays in sight beside it; below, words of it would be cut."""
MARGIN_CELLS = 4
"""Blank cells at both sides, and the track that says how much is in sight."""


def help_lines(
    registry: CommandRegistry,
    context: KeyContext,
    width: int,
    rest_seconds: float = 0.4,
    warnings: Sequence[Line] = (),
) -> tuple[Line, ...]:
    """Return the *standing* warnings whole, every key of *context* that has a help text, then the signs.

    *width*: in cells. *rest*: the seconds that item and hand rest before a key decides.
    """
    rows: list[Line] = [(Piece(words.bars.HELP_STANDING, "attn"),)] if warnings else []
    for warning in warnings:
        for number, each in enumerate(wrap(warning, width - MARGIN_CELLS - 2)):
            # Continuation lines are indented, so that a route's text from outside cannot pass for another warning.
            rows.append(line(Piece("  " if number else ""), *each.pieces))
    rows += [()] if warnings else []
    rows.append((Piece(words.bars.HELP, "fact"),))
    for key, description in _keys(registry, context):
        rows += _row(key, description, width)
    rows.append(())
    for text in words.bars.help_rest(rest_seconds):
        rows += _row("", (Piece(text, "muted"),), width, indent=0)
    rows += [(), (Piece(words.bars.HELP_SIGNS, "fact"),)]
    for glyph, text in words.bars.HELP_GLYPHS:
        rows += _row(glyph, (Piece(text),), width)
    return tuple((Piece(" "), *row) for row in rows)


def _keys(registry: CommandRegistry, context: KeyContext) -> Iterator[tuple[str, Line]]:
    views = [each for each in registry.in_context(context) if each.id.startswith("view_")]
    for each in registry.in_context(context):
        if each.id.startswith("view_"):
            if each is views[0]:
                yield (
                    " ".join(registry.key_label(e.id) for e in views),
                    (Piece(words.bars.HELP_VIEWS),),
                )
        elif each.help:
            decides: Line = (Piece("  decides", "attn"),) if each.decides else ()
            yield registry.key_labels(each), line(each.help, *decides)


def _row(key: str, text: Line, width: int, indent: int = KEY_CELLS) -> Iterator[Line]:
    for number, each in enumerate(wrap(text, width - indent - MARGIN_CELLS)):
        named = f"{key:<{indent}}" if number == 0 else " " * indent
        yield line(Piece(named, "strong"), *each.pieces)


class HelpScreen(ModalScreen[None]):
    """A page at the right; the view stays visible beside it where there is room."""

    AUTO_FOCUS = "#helptext"
    COMPONENT_CLASSES = ROLE_CLASSES

    def __init__(
        self,
        registry: CommandRegistry,
        context: KeyContext,
        rest_seconds: float,
        warnings: Sequence[Line] = (),
    ) -> None:
        super().__init__()
        self._bindings = registry.bindings_for("help")
        self._keys = registry
        self._page: KeyContext = context
        self._rest = rest_seconds
        self._warnings = warnings
        self._text = DocumentPane()
        self._refused = ""

    def compose(self) -> ComposeResult:
        yield Document(self._text, id="helptext")
        yield Lines(id="helpkeys")

    def on_resize(self, event: events.Resize) -> None:
        """Cover the view where there is no room beside it."""
        self.set_class(event.size.width < BESIDE_FROM, "-alone")

    def on_size_changed(self, message: SizeChanged) -> None:
        """Fill in the lines for the width that there is now."""
        message.stop()
        self._fill()

    def take_key(self, key: str, *, printable: bool) -> bool:
        """Say in the line below that *key* does nothing here, if that is so; return whether it is."""
        del printable
        known = key in self._bindings.key_to_bindings
        self._refused = (
            ""
            if known
            else words.status.did_nothing(key_label(key), "this page only lists the keys")
        )
        self._draw_keys()
        return not known

    def _fill(self) -> None:
        text = self._text
        if not text.width:
            return  # its size is known at the next event
        lines = help_lines(self._keys, self._page, text.width, self._rest, self._warnings)
        text.show(Layout(lines, (None,) * len(lines)), frozenset())
        self._draw_keys()

    def _draw_keys(self) -> None:
        parts: list[Piece] = [Piece(" ")]
        if self._text.total > self._text.height:
            parts += [Piece(self._keys.key_labels(self._keys.command("next")), "strong")]
            parts += [Piece(" read on   ", "muted")]
        parts += [Piece(self._keys.key_label("close"), "strong"), Piece(" close", "muted")]
        if self._refused:
            parts += [Piece("   "), Piece(self._refused, "attn")]
        width = self.query_one("#helpkeys", Lines).size.width
        self.query_one("#helpkeys", Lines).show(justify(line(*parts), (), width))

    def action_do(self, command: str) -> None:
        """Scroll, or go back to what was below."""
        text = self._text
        match command:
            case "next":
                text.scroll_rows(1)
            case "previous":
                text.scroll_rows(-1)
            case "read_on" | "page_down":
                text.scroll_panes(1)
            case "read_back" | "page_up":
                text.scroll_panes(-1)
            case "first":
                text.scroll_to_start()
            case "last":
                text.scroll_to(text.total)
            case _:
                self.dismiss(None)
