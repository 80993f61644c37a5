"""Hands the text in view to the clipboard or the pager, and opens its page in the browser."""

from collections.abc import Callable

from textual.message import Message

from aileron_tui import words
from aileron_tui.draw.fields import Field
from aileron_tui.input.commands import CommandHandlers
from aileron_tui.messages import CopyRequested, OpenRequested, PagerRequested
from aileron_tui.screens.reading import DocumentReader
from aileron_tui.state.model import Model


class TextHandoff:
    """Hands over texts as they are drawn, marks included; never the raw text."""

    def __init__(
        self,
        model: Model,
        reader: DocumentReader,
        *,
        post: Callable[[Message], object],
        say: Callable[[str], None],
    ) -> None:
        """*post* sends a message to the application, *say* shows a sentence in the status line."""
        self._model = model
        self._reader = reader
        self._post = post
        self._say = say
        self._copied: tuple[object, int] = ((), -1)
        """The content of which a field was copied last, and that field's first block."""

    @property
    def commands(self) -> CommandHandlers:
        return {"copy": self._copy, "pager": self._page, "open_review": self._open_review}

    def _copy(self) -> None:
        """Copy the first field in view; pressed again, the one below it."""
        fields, subject = self._reader.fields, self._model.subject
        if not fields or subject is None:
            self._say(words.terminal.NOTHING_IN_VIEW)
            return
        content, last = self._copied
        below = [each for each in fields if content == subject.version and each.first_block > last]
        chosen = (below or fields)[0]
        self._copied = (subject.version, chosen.first_block)
        self._post(CopyRequested(chosen.text))
        self._say(self._report(chosen, following=len(below or fields) > 1))

    def _report(self, field: Field, *, following: bool) -> str:
        size = len(field.text.encode("utf-8", "replace"))
        key = self._model.registry.key_label("copy")
        then = words.terminal.copies_next(key) if following else ""
        if size > words.terminal.COPY_BYTES:
            then = words.terminal.too_long(size)
        return words.terminal.copied(field.name, field.lines, len(field.text), field.marks, then)

    def _page(self) -> None:
        """Read the longest field in view in the person's own pager."""
        fields = self._reader.fields
        if not fields:
            self._say(words.terminal.NOTHING_IN_VIEW)
            return
        longest = max(fields, key=lambda each: len(each.text))
        self._post(PagerRequested(longest.text, longest.name))

    def _open_review(self) -> None:
        item = self._model.queue.current
        if item is not None and item.approval is not None:
            self._post(OpenRequested(item.key))
