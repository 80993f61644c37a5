"""The lines to type in: a reason, a filter, a command's name, and a passphrase."""

import unicodedata

from textual import events
from textual.widgets import Input

from aileron_core.text import escape
from aileron_core.vault.secret import Secret
from aileron_tui.draw.text import Piece
from aileron_tui.widgets.line_view import Lines

_MAX_BYTES = 1024
_EDITS = frozenset({"backspace", "ctrl+h", "ctrl+u"})


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


class PassphraseField(Lines, can_focus=True):
    """Takes typed and pasted characters. No text is ever made of them: `Input` would keep strings.

    Nothing can be copied out of it, and it has no history.
    """

    def __init__(self, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._typed = bytearray(_MAX_BYTES)
        self._used = 0

    @property
    def is_empty(self) -> bool:
        return not self._used

    def edits_by(self, event: events.Key) -> bool:
        """Return whether *event* types something, or edits what was typed."""
        return event.is_printable or event.key in _EDITS

    def take(self) -> Secret:
        """Return what was typed, and empty the line."""
        typed = self._typed[: self._used]
        secret = Secret(typed)
        typed[:] = bytes(len(typed))
        self.clear()
        return secret

    def clear(self) -> None:
        """Overwrite what was typed."""
        self._typed[:] = bytes(_MAX_BYTES)
        self._used = 0
        self.draw()

    def draw(self) -> None:
        characters = sum(byte & 0xC0 != 0x80 for byte in self._typed[: self._used])
        self.show((Piece(" "), Piece("•" * characters), Piece("▏", "strong")))

    def on_key(self, event: events.Key) -> None:
        if not self.edits_by(event):
            return
        event.stop()
        event.prevent_default()
        if event.key == "ctrl+u":
            self.clear()
        elif event.key in _EDITS:
            self._delete_last()
        elif event.character is not None:
            self._append(event.character)
        self.draw()

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        lines = event.text.splitlines()
        if lines:
            self._append(lines[0])
        self.draw()

    def _append(self, text: str) -> None:
        added = text.encode("utf-8", "surrogatepass")
        end = self._used + len(added)
        if end <= _MAX_BYTES:
            self._typed[self._used : end] = added
            self._used = end

    def _delete_last(self) -> None:
        while self._used:
            self._used -= 1
            byte, self._typed[self._used] = self._typed[self._used], 0
            if byte & 0xC0 != 0x80:
                return
