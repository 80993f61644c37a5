"""The line in which a person writes why not."""

import unicodedata

from textual import events
from textual.widgets import Input

from aileron_core.text import escape

REASON_LIMIT = 2_000
"""Characters of a reason at most, as the core takes them."""


class Reason(Input):
    """One line of text. What is pasted loses control and invisible characters: it goes to an agent."""

    def __init__(self, *, id: str, placeholder: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(
            id=id, placeholder=placeholder, max_length=REASON_LIMIT, select_on_focus=False
        )
        self.cursor_blink = False

    def _on_paste(self, event: events.Paste) -> None:
        if kept := _visible(event.text):
            self.insert_text_at_cursor(kept)
        event.stop()
        event.prevent_default()


def _visible(pasted: str) -> str:
    """Return the first line of *pasted* without what would be a mark: nobody would see it go out."""
    first = unicodedata.normalize("NFC", pasted.splitlines()[0]) if pasted else ""
    spaced = "".join(" " if unicodedata.category(char) == "Zs" else char for char in first)
    return "".join(char for char in spaced if char in "‹›" or escape(char) == char)
