"""Help: the keys from the registry, and what the signs mean. The only modal."""

from textual.app import ComposeResult
from textual.screen import ModalScreen

from aileron_tui.actions import Context, Registry
from aileron_tui.presenters import wording
from aileron_tui.presenters.lines import Line, Piece, line
from aileron_tui.widgets.linework import Lines

__all__ = ["HelpScreen", "help_lines"]


SIGNS_FROM = 31
"""From this height on the signs stand below the keys; a key must never be the one left out."""


def help_lines(registry: Registry, context: Context, height: int) -> tuple[Line, ...]:
    """Return the page: every key of *context* that has a text, then the signs where they fit."""
    rows: list[Line] = [(Piece(wording.HELP_TITLE, "fact"),)]
    for each in registry.here(context):
        if each.help:
            decides: Line = (Piece("  decides", "attn"),) if each.decides else ()
            rows.append(line(Piece(f"{registry.faces(each):<11}", "strong"), each.help, *decides))
    if height >= SIGNS_FROM:
        rows += [(), (Piece(wording.HELP_SIGNS, "fact"),)]
        rows += [line(Piece(f"{glyph:<11}", "strong"), text) for glyph, text in wording.HELP_GLYPHS]
    rows += [(), *((Piece(text, "muted"),) for text in wording.HELP_REST)]
    return tuple((Piece(" "), *row) for row in rows)


class HelpScreen(ModalScreen[None]):
    """The keys of the page below it."""

    def __init__(self, registry: Registry, context: Context) -> None:
        super().__init__()
        self._bindings = registry.bindings_for("help")
        self._keys = registry
        self._page: Context = context

    def compose(self) -> ComposeResult:
        """Show the page."""
        yield Lines(id="help", grows=True)

    def on_resize(self) -> None:
        """Fill in the lines."""
        self.query_one("#help", Lines).show(*help_lines(self._keys, self._page, self.size.height))

    def action_close(self) -> None:
        """Go back to what was below."""
        self.dismiss(None)
