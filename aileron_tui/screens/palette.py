"""Every command by name, from the one registry, but for those that decide: they need their key."""

import re
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from aileron_tui import words
from aileron_tui.draw.text import Line, Piece, cell_width, justify, line, truncate
from aileron_tui.input.commands import AnyCommand, CommandRegistry, KeyContext
from aileron_tui.pages.command import availability
from aileron_tui.pages.panes import RowsPane
from aileron_tui.pages.status_line import footer_line
from aileron_tui.state.situation import Situation
from aileron_tui.widgets.document import RowList
from aileron_tui.widgets.line_input import LineInput
from aileron_tui.widgets.line_view import ROLE_CLASSES, Lines

NAME_LIMIT = 60
"""The most characters of a command's name to search for."""


def commands(registry: CommandRegistry, now: Situation, text: str) -> tuple[AnyCommand, ...]:
    """Return the commands that are available in *now*, decide nothing, and have every word of *text* in their names.

    What begins with the text comes first, then what has words that do, then what only contains it.
    """
    context: KeyContext = now.view
    words = text.casefold().split()
    matching = [
        each
        for each in registry.in_context(context)
        if each.help
        and not each.decides
        and not each.moves
        and each.id != "palette"
        and all(word in _name(each).casefold() for word in words)
        and availability(each, now).shown
    ]
    return tuple(sorted(matching, key=lambda each: _farness(each, words)))


def _farness(each: AnyCommand, words: list[str]) -> int:
    """Return the rank of *each* as a match of *words*: 0 is the best."""
    label = each.label.casefold()
    if label.startswith(" ".join(words)):
        return 0
    own = re.split(r"[\s_]+", f"{label} {each.id}".casefold())
    if all(any(part.startswith(word) for part in own) for word in words):
        return 1
    words_of_help = each.help.casefold().split()
    return 2 if all(any(part.startswith(word) for part in words_of_help) for word in words) else 3


def _name(each: AnyCommand) -> str:
    return f"{each.label} {each.help} {each.id}"


class PaletteScreen(ModalScreen[str]):
    """A line to type in, and the commands that match; the view stays visible above."""

    AUTO_FOCUS = "#command"
    COMPONENT_CLASSES = ROLE_CLASSES
    CONTEXT: ClassVar[KeyContext] = "palette"

    def __init__(self, registry: CommandRegistry, now: Situation) -> None:
        super().__init__()
        self._bindings = registry.bindings_for(self.CONTEXT)
        self._keys = registry
        self._now = now
        self._found = commands(registry, now, "")
        self._chosen = 0
        self._rows = RowsPane(self._row)

    def compose(self) -> ComposeResult:
        """Lay out the commands above the line."""
        with Vertical(id="palette"):
            yield RowList(self._rows, id="commands")
            yield LineInput(id="command", placeholder=words.bars.PALETTE, max_length=NAME_LIMIT)
            yield Lines(id="commandkeys")

    def on_resize(self, event: events.Resize) -> None:
        self._draw()

    def _draw(self) -> None:
        self._rows.show(len(self._found), 1, self._chosen)
        now = self._now
        footer = footer_line(self.CONTEXT, now, self.size.width)
        if not self._found:
            leave = self._keys.command("palette_leave")
            message = Piece(f" {words.bars.PALETTE_NONE}   ", "attn")
            key = Piece(self._keys.key_labels(leave), "strong")
            footer = line(message, key, Piece(f" {leave.label}", "muted"))
        self.query_one("#commandkeys", Lines).show(footer)

    def _row(self, row: int, width: int, selected: bool) -> tuple[Line, ...]:
        if row >= len(self._found):
            return ()
        each = self._found[row]
        edge = Piece("▌", "fact-bar") if selected else Piece(" ")
        name = Piece(f"{each.label:<22}", "summary" if selected else "text")
        key = line(Piece(self._keys.key_labels(each), "strong"), " ")
        text = truncate(
            line(edge, " ", name, Piece(each.help, "muted")), width - cell_width(key) - 2
        )
        return (justify(text, key, width),)

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        self._found, self._chosen = commands(self._keys, self._now, message.value), 0
        self._draw()

    def _move(self, rows: int) -> None:
        self._chosen = min(max(self._chosen + rows, 0), max(len(self._found) - 1, 0))
        self._draw()

    def action_do(self, command: str) -> None:
        """Choose, do what is chosen, or go back with nothing done."""
        match command:
            case "palette_down":
                self._move(1)
            case "palette_up":
                self._move(-1)
            case "palette_enter":
                self.dismiss(self._found[self._chosen].id if self._found else "")
            case _:
                self.dismiss("")
