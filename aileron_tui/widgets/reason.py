"""The line in which a person writes why not."""

from textual import events
from textual.widgets import Input

__all__ = ["REASON_LIMIT", "Reason"]

REASON_LIMIT = 2_000
"""Characters of a reason, as WIRE.md has it."""


class Reason(Input):
    """One line of text. What is pasted loses control and invisible characters: it goes to an agent."""

    def __init__(self, *, id: str, placeholder: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(
            id=id, placeholder=placeholder, max_length=REASON_LIMIT, select_on_focus=False
        )
        self.cursor_blink = False

    def _on_paste(self, event: events.Paste) -> None:
        first = event.text.splitlines()[0] if event.text else ""
        kept = "".join(char for char in first if char.isprintable())
        if kept:
            self.insert_text_at_cursor(kept)
        event.stop()
        event.prevent_default()
