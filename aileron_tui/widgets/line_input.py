"""The lines to type in: a reason, a filter, a command's name, an argument, and a passphrase."""

import unicodedata

from textual import events
from textual.widgets import Input, TextArea

from aileron_core.text import escape
from aileron_tui.draw.text import Piece
from aileron_tui.pages.asking import SECRET_EDITS, SecretText
from aileron_tui.widgets.line_view import Lines


class LineInput(Input):
    """One line of text. What is pasted loses control and invisible characters: a reason goes to an agent."""

    def __init__(
        self,
        *,
        id: str,  # noqa: A002 - Textual's name
        placeholder: str = "",
        max_length: int = 0,
    ) -> None:
        super().__init__(
            id=id, placeholder=placeholder, max_length=max_length, select_on_focus=False
        )
        self.cursor_blink = False

    def edits_by(self, key: str, *, printable: bool) -> bool:
        """Return whether *key* types something, or edits what was typed."""
        return printable or key in self._bindings.key_to_bindings

    def ask(self, text: str, placeholder: str, limit: int) -> None:
        """Begin with *text*; at most *limit* characters can be typed."""
        self.max_length, self.placeholder = limit, placeholder
        self.put(text)

    def put(self, text: str) -> None:
        """Put *text* there, the cursor behind it."""
        self.value = text
        self.cursor_position = len(text)

    def _on_paste(self, event: events.Paste) -> None:
        if visible := _visible(event.text):
            self.insert_text_at_cursor(visible)
        event.stop()
        event.prevent_default()


class TextBox(TextArea):
    """Several lines of text, of which each is pasted as into a `LineInput`."""

    @property
    def value(self) -> str:
        return self.text

    def edits_by(self, key: str, *, printable: bool) -> bool:
        return printable or key == "enter" or key in self._bindings.key_to_bindings

    def ask(self, text: str, placeholder: str = "", limit: int = 0) -> None:
        """Begin with *text*, the cursor behind it."""
        self.load_text(text)
        self.move_cursor(self.document.end)

    put = ask

    async def _on_paste(self, event: events.Paste) -> None:
        self.insert("\n".join(map(_visible, event.text.splitlines())))
        event.stop()
        event.prevent_default()


def _visible(pasted: str) -> str:
    """Return the first line of *pasted* without what would be drawn as a mark, which a person would send unseen."""
    first = unicodedata.normalize("NFC", pasted.splitlines()[0]) if pasted else ""
    spaced = "".join(" " if unicodedata.category(char) == "Zs" else char for char in first)
    return "".join(char for char in spaced if char in "‹›" or escape(char) == char)


class PassphraseField(Lines, can_focus=True):
    """Takes typed and pasted characters, and shows a dot for each. Nothing can be copied out of it."""

    def __init__(self, secret: SecretText, *, id: str) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._secret = secret
        secret.changed = self._draw

    def _draw(self) -> None:
        self.show((Piece(" "), Piece("•" * self._secret.characters), Piece("▏", "strong")))

    def on_key(self, event: events.Key) -> None:
        if event.is_printable or event.key in SECRET_EDITS:
            event.stop()
            event.prevent_default()
            self._secret.press(event.key, event.character)

    def _on_paste(self, event: events.Paste) -> None:
        event.stop()
        event.prevent_default()
        lines = event.text.splitlines()
        if lines:
            self._secret.append(lines[0])
