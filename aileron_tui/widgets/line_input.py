"""The line to type in: a reason, a filter, a command's name. What is pasted loses its invisible characters."""

import unicodedata

from textual import events
from textual.widgets import Input

from aileron_core.text import escape


class LineInput(Input):
    """One line of text. What is pasted loses control and invisible characters: a reason goes to an agent."""

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - Textual's name
        placeholder: str,
        max_length: int,
    ) -> None:
        super().__init__(
            id=id, placeholder=placeholder, max_length=max_length, select_on_focus=False
        )
        self.cursor_blink = False

    def edits_by(self, event: events.Key) -> bool:
        """Return whether *event* types something, or edits what was typed."""
        return event.is_printable or event.key in self._bindings.key_to_bindings

    def _on_paste(self, event: events.Paste) -> None:
        if visible := _visible(event.text):
            self.insert_text_at_cursor(visible)
        event.stop()
        event.prevent_default()


def _visible(pasted: str) -> str:
    """Return the first line of *pasted* without what would be drawn as a mark, which a person would send unseen."""
    first = unicodedata.normalize("NFC", pasted.splitlines()[0]) if pasted else ""
    spaced = "".join(" " if unicodedata.category(char) == "Zs" else char for char in first)
    return "".join(char for char in spaced if char in "‹›" or escape(char) == char)
