"""The document of the selected row: how it is scrolled, and when a line of it counts as seen."""

import logging
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aileron_core.clock import Clock
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.tasks import type_and_places
from aileron_tui import words
from aileron_tui.draw.blocks import COMPACT_GUTTER, Block, Layout, lay_out
from aileron_tui.draw.document import undrawable_blocks
from aileron_tui.draw.header import reader_head
from aileron_tui.draw.searching import Match, find_matches, marked_rows
from aileron_tui.draw.text import Line, Piece, line, plain_text
from aileron_tui.pages.panes import DocumentPane
from aileron_tui.pages.surface import Surface
from aileron_tui.state.document_cache import DocumentCache
from aileron_tui.state.model import Model, Version

_PLAIN_LABEL = re.compile(r"[A-Za-z][A-Za-z0-9 _.-]{0,23}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One labelled text, marks included: what hides in it is visible, and is copied as a mark."""

    name: str
    """Its label where that may stand in a line of ours, else empty."""
    text: str
    first_block: int
    """Its first block."""
    marks: int
    """How many marks are in it."""

    @property
    def lines(self) -> int:
        return self.text.count("\n") + 1


def fields_in_view(
    blocks: Sequence[Block], layout: Layout, first: int, last: int
) -> tuple[Field, ...]:
    """Return the fields of which a line stands in the rows `[first, last)`, from above."""
    shown = set(layout.blocks[first:last])
    return tuple(
        _field(blocks, start, end)
        for start, end in _spans(blocks)
        if not shown.isdisjoint(range(start, end))
    )


def shows_words(blocks: Sequence[Block], layout: Layout, first: int, last: int) -> bool:
    """Return whether the record's line of the three words stands in the rows `[first, last)`."""
    shown = (blocks[index] for index in set(layout.blocks[first:last]) if index < len(blocks))
    return any(
        each.gutter == "record" and plain_text(each.label).strip() == words.item.WORDS
        for each in shown
    )


def _spans(blocks: Sequence[Block]) -> list[tuple[int, int]]:
    """Return the blocks `[start, end)` of every field: a labelled line and those that go on with it."""
    spans: list[tuple[int, int]] = []
    start: int | None = None
    for index, block in enumerate(blocks):
        goes_on = block.kind == "value" and not block.label and start is not None
        if goes_on and start is not None and block.gutter == blocks[start].gutter:
            continue
        if start is not None:
            spans.append((start, index))
        start = index if block.kind == "value" else None
    if start is not None:
        spans.append((start, len(blocks)))
    return spans


def _field(blocks: Sequence[Block], start: int, end: int) -> Field:
    label, own = plain_text(blocks[start].label).strip(), blocks[start].gutter != "claim"
    marks = sum(p.role == "mark" for block in blocks[start:end] for p in block.pieces)
    return Field(
        name=label if own and _PLAIN_LABEL.fullmatch(label) else "",
        text="\n".join(plain_text(block.pieces) for block in blocks[start:end]),
        first_block=start,
        marks=marks,
    )


_log = logging.getLogger(__name__)

SEEN_SECONDS = 0.1
"""A line counts as seen when it stood on screen this long."""
MIN_WAKE_SECONDS = 0.005
"""The shortest wait until the next look at what is due."""


class DocumentReader:
    """Shows a document, and knows since when its lines have been on screen."""

    def __init__(
        self, surface: Surface, model: Model, clock: Clock, *, on_rest: Callable[[], None]
    ) -> None:
        """*on_rest* is called whenever the lines on screen have rested or been seen for longer."""
        self._surface = surface
        self._model = model
        self._clock = clock
        self._on_rest = on_rest
        self.document = DocumentPane()
        self.cache = DocumentCache(model.registry, ready=surface.redraw_soon)
        self._in_view: tuple[Version, int, int] = ((), 0, 0)
        self._in_view_since = 0.0
        self._content: Version = ()
        self._matches: tuple[Match, ...] = ()
        self._present_match = 0
        self._linked: Layout | None = None
        """The layout whose links were counted last."""
        self._searched: tuple[object, str] = ((), "")
        """The layout and the text that were searched last."""

    def scroll_to_end(self, *, last: bool) -> None:
        """Go to the first line, or to the last one."""
        if last:
            self.document.scroll_rows(len(self.cache.current.lines))
        else:
            self.document.scroll_to_start()

    # Searching, and links

    def search(self, text: str) -> None:
        """Search for *text*, from the first line in view on."""
        self._model.search(text)
        self._search_again()
        top = self.document.top
        below = (number for number, each in enumerate(self._matches) if each.row >= top)
        self._go_to_match(next(below, 0))

    def _search_again(self) -> None:
        """Find the text of the search in what is shown now."""
        layout, text = self.cache.current, self._model.search_text
        if layout is self._searched[0] and text == self._searched[1]:
            return
        self._searched = (layout, text)
        self._matches = find_matches(self.cache.blocks, layout, text)
        self._present_match = min(self._present_match, max(0, len(self._matches) - 1))
        self._model.matches = len(self._matches)

    def next_match(self, step: int = 1) -> None:
        """Go so many matches on; behind the last comes the first."""
        self._go_to_match(self._present_match + step)

    def _go_to_match(self, number: int) -> None:
        """Scroll to the match *number*; behind the last comes the first."""
        if not self._matches:
            return
        self._present_match = number % len(self._matches)
        row = self._matches[self._present_match].row
        first, last = self.document.rows_in_view
        if not first <= row < last:
            self.document.scroll_rows(row - first - (last - first) // 3)
        self._model.say(words.bars.matches(*self.match_counts), self._clock.monotonic())

    @property
    def match_counts(self) -> tuple[int, int]:
        """The number of the present match, from 1, and how many there are."""
        return (self._present_match + 1 if self._matches else 0), len(self._matches)

    @property
    def links(self) -> tuple[str, ...]:
        """The addresses of the document's links, those in view first, each once."""
        lines = self.cache.current.lines
        top = self.document.top
        found = (
            piece.href for each in (*lines[top:], *lines[:top]) for piece in each if piece.href
        )
        return tuple(dict.fromkeys(found))

    def mark_wraps(self) -> None:
        """Mark or stop marking the lines that are wrapped; no line moves."""
        self._model.show_wrap_marks = not self._model.show_wrap_marks

    @property
    def fields(self) -> tuple[Field, ...]:
        """The fields in view, from the top."""
        return fields_in_view(self.cache.blocks, self.cache.current, *self.document.rows_in_view)

    @property
    def shows_words(self) -> bool:
        """Whether the three words of a call are in view, with what they are for."""
        return shows_words(self.cache.blocks, self.cache.current, *self.document.rows_in_view)

    # Drawing

    def show(self, layout: Layout, version: Version) -> None:
        """Show *layout*, which is what *version* names; other content begins at its first line."""
        document, model = self.document, self._model
        model.scrollable = len(layout.lines) > document.height
        model.has_marks = self.cache.has_marks
        model.is_converted = self.cache.is_converted
        model.has_wraps = bool(layout.wraps)
        if layout is not self._linked:
            self._linked = layout
            model.links = len(self.links)
        self._search_again()
        model.reading.set_lines(layout.ranges)
        model.laid_out_version = version if self.cache.is_complete else None
        self._draw_document(layout)
        content = (version, model.unfolded)
        if content != self._content:
            self._content = content
            document.scroll_to_start()

    def show_head(self, head: Sequence[Line], call: ApprovalView | None) -> None:
        """Show *head* above the document; the reader names *call*, or what else it shows, in a line or two."""
        if self._model.reader:
            width = self.document.width
            head = (reader_head(call, self._clock.now(), width),) if call is not None else head[:2]
        self._surface.show("head", *head)

    def _draw_document(self, layout: Layout) -> None:
        self.document.show(
            layout,
            self._model.reading.unseen_rows(),
            wrap_marks=self._model.show_wrap_marks,
            found=marked_rows(layout, self._matches, self._present_match),
        )

    def draw_guarded(self, draw: Callable[[], None]) -> None:
        """Draw; if that fails, show that instead, and let nothing decide the row."""
        try:
            draw()
        except Exception as error:  # noqa: BLE001 - nothing that anybody wrote may end the console
            subject = self._model.subject
            self.report_undrawable(subject.version if subject is not None else (), error)
            width = max(40, self.document.width)
            layout = lay_out(undrawable_blocks(), width, COMPACT_GUTTER)
            self.document.show(layout, frozenset())
            self._model.reading.set_lines(())
            self._surface.show("head", line(" ", Piece(words.status.UNDRAWABLE, "danger")))

    def report_undrawable(self, version: Version, error: Exception) -> None:
        """Note that the content *version* cannot be drawn, and why."""
        if self._model.mark_undrawable(version):
            _log.error("an item could not be drawn: %s", type_and_places(error))

    # What is on screen, and since when

    def wait_for_paint(self) -> None:
        """Have the reader called once the terminal has drawn the present screen."""
        version = self._model.screen_version
        self._surface.after_paint(lambda: self._on_screen(version))

    def _on_screen(self, version: Version) -> None:
        """What was drawn for *version* is on screen: reading and rest count from now."""
        at, model = self._clock.monotonic(), self._model
        subject = model.subject if model.document_shown else None
        if subject is not None and model.laid_out_version != subject.version:
            return  # just mounted, without a size: its lines come with the next drawing
        if (
            not self._surface.is_ready
            or not self._surface.is_uncovered
            or version != model.screen_version
        ):
            return
        model.arming.on_drawn(version, at)
        view = (version, *self.document.rows_in_view)
        if view != self._in_view:
            self._in_view, self._in_view_since = view, at
        self._on_rest()
        self._wake()

    def _wake(self) -> None:
        """Set the timer for the next change: lines that count as seen, a key that may decide."""
        at = self._clock.monotonic()
        waits: list[float] = []
        if arms_in := self._model.arming.seconds_until_armed(self._model.screen_version, at):
            waits.append(arms_in)
        reading = self._model.reading
        if not reading.frozen and reading.unseen_rows() & frozenset(range(*self._in_view[1:])):
            waits.append(self._in_view_since + SEEN_SECONDS - at)
        if rests_in := self._model.opened_call.rest_left(at):
            waits.append(rests_in)
        if waits:
            self._surface.wake_in(max(min(waits), MIN_WAKE_SECONDS), self.look)

    def look(self) -> None:
        """Mark what has been in view for long enough."""
        if not self._surface.is_ready or not self._surface.is_uncovered:
            return
        at, model = self._clock.monotonic(), self._model
        version, first, last = self._in_view
        rested = at - self._in_view_since >= SEEN_SECONDS
        present = version == model.screen_version and rested and not model.too_small
        if present and model.reading.mark_seen(range(first, last)):
            self._draw_document(self.cache.current)
        self._on_rest()
        self._wake()


class TextHandoff:
    """Hands over texts as they are drawn, marks included; never the raw text."""

    def __init__(
        self, model: Model, reader: DocumentReader, surface: Surface, *, say: Callable[[str], None]
    ) -> None:
        """*say* shows a sentence in the status line."""
        self._model = model
        self._reader = reader
        self._surface = surface
        self._say = say
        self._copied: tuple[object, int] = ((), -1)
        """The content of which a field was copied last, and that field's first block."""

    def copy(self) -> None:
        """Copy the first field in view; pressed again, the one below it."""
        fields, subject = self._reader.fields, self._model.subject
        if not fields or subject is None:
            self._say(words.terminal.NOTHING_IN_VIEW)
            return
        content, last = self._copied
        below = [each for each in fields if content == subject.version and each.first_block > last]
        chosen = (below or fields)[0]
        self._copied = (subject.version, chosen.first_block)
        self._surface.copy(chosen.text)
        self._say(self._report(chosen, following=len(below or fields) > 1))

    def _report(self, field: Field, *, following: bool) -> str:
        size = len(field.text.encode("utf-8", "replace"))
        key = self._model.registry.key_label("copy")
        then = words.terminal.copies_next(key) if following else ""
        if size > words.terminal.COPY_BYTES:
            then = words.terminal.too_long(size)
        return words.terminal.copied(field.name, field.lines, len(field.text), field.marks, then)

    def read_in_pager(self) -> None:
        """Read the longest field in view in the person's own pager."""
        fields = self._reader.fields
        if not fields:
            self._say(words.terminal.NOTHING_IN_VIEW)
            return
        longest = max(fields, key=lambda each: len(each.text))
        self._surface.read_in_pager(longest.text, longest.name)
