"""What one reads, carried elsewhere: to the clipboard, into the pager, into the browser."""

from aileron_tui.draw.fields import Field, fields_in_view
from aileron_tui.messages import CopyRequested, OpenRequested, PagerRequested
from aileron_tui.screens.prompting import PromptingScreen
from aileron_tui.widgets.document import Document
from aileron_tui.words import sharing

__all__ = ["SharingScreen"]


class SharingScreen(PromptingScreen):
    """Hands over texts as they are drawn, marks included; never as they came."""

    _copied: tuple[object, int] = ((), -1)
    """The content of which a field was copied last, and that field's first block."""

    def _fields(self) -> tuple[Field, ...]:
        document = self.query_one("#document", Document)
        return fields_in_view(self._pages.blocks, self._pages.current, *document.in_view)

    def action_copy(self) -> None:
        """Copy the first field in view; pressed again, the one below it."""
        fields, subject = self._fields(), self.model.subject
        if not fields or subject is None:
            self._say(sharing.NOTHING_IN_VIEW)
            return
        content, last = self._copied
        below = [each for each in fields if content == subject.version and each.first > last]
        chosen = (below or fields)[0]
        self._copied = (subject.version, chosen.first)
        self.post_message(CopyRequested(chosen.text))
        self._say(self._told(chosen, following=len(below or fields) > 1))

    def _told(self, field: Field, *, following: bool) -> str:
        size = len(field.text.encode("utf-8", "replace"))
        key = self.model.registry.face("copy")
        then = sharing.copies_next(key) if following else ""
        if size > sharing.COPY_BYTES:
            then = sharing.too_long(size)
        return sharing.copied(field.name, field.lines, len(field.text), field.marks, then)

    def action_pager(self) -> None:
        """Read the longest field in view in the person's own pager."""
        fields = self._fields()
        if not fields:
            self._say(sharing.NOTHING_IN_VIEW)
            return
        longest = max(fields, key=lambda each: len(each.text))
        self.post_message(PagerRequested(longest.text, longest.name))

    def action_open_review(self) -> None:
        """Open the page of the selected call in the browser."""
        item = self.model.queue.current
        if item is not None and item.approval is not None:
            self.post_message(OpenRequested(item.key))

    def _say(self, told: str) -> None:
        self.model.say(told, self.clock.monotonic())
        self.redraw()
