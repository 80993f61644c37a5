"""Hidden characters in an item's text: counts for the head, rows below the text."""

from collections import Counter
from collections.abc import Iterator

from aileron_core.text import Lookalike, Rendered
from aileron_tui import words
from aileron_tui.draw.blocks import Block, value
from aileron_tui.draw.markup import ReadableText
from aileron_tui.draw.text import Line, Piece, line


class HiddenCharacters:
    """Sums over several texts. True when anything was marked."""

    def __init__(self) -> None:
        self._hidden: Counter[str] = Counter()
        self._lookalikes: dict[Lookalike, None] = {}
        self._blank_lines = 0
        self._unseen = self._misleading = 0

    def add(self, rendered: Rendered) -> None:
        self._hidden.update(rendered.hidden)
        for each in rendered.lookalikes:
            self._lookalikes[each] = None
        self._blank_lines += rendered.blank_lines

    def add_readable(self, text: ReadableText) -> None:
        """Add what *text* hides from its reader; its characters are added apart."""
        self._unseen += text.unseen
        self._misleading += text.misleading
        self._blank_lines += text.blank_lines

    def __bool__(self) -> bool:
        counts = (self._unseen, self._misleading, self._blank_lines)
        return bool(self._hidden or self._lookalikes or any(counts))

    def warnings(self) -> list[str]:
        """Return the warnings for the head, most dangerous first."""
        texts: list[str] = []
        if self._unseen:
            texts.append(words.item.unseen_passages(self._unseen))
        if self._misleading:
            texts.append(words.item.misleading_links(self._misleading))
        if self._hidden:
            texts.append(words.item.hidden(self._hidden.total()))
        if self._lookalikes:
            texts.append(words.item.lookalikes(len(self._lookalikes)))
        if self._blank_lines:
            texts.append(words.item.blank_lines(self._blank_lines))
        return texts

    def blocks(self) -> Iterator[Block]:
        """Yield the rows below the texts: Aileron's findings."""
        if self._hidden:
            parts = ", ".join(f"{count} {name}" for name, count in self._hidden.items())
            text = words.item.drawn_as_marks(self._hidden.total(), parts)
            yield value("Hidden", line(text))
        for row, each in enumerate(self._lookalikes):
            yield value("Look-alike" if row == 0 else "", _spellings(each))
        if self._unseen:
            yield value("Invisible", line(words.item.unseen_remark(self._unseen)))
        if self._misleading:
            yield value("Links", line(words.item.misleading_remark(self._misleading)))
        if self._blank_lines:
            yield value("Blank", line(words.item.blank_lines_folded(self._blank_lines)))


def _spellings(each: Lookalike) -> Line:
    """Return both spellings of a lookalike name, as the renderer drew them."""
    parts: list[Piece] = [Piece(each.written, "strong")]
    if each.punycode:
        parts += [Piece(words.item.IS, "muted"), Piece(each.decoded or each.punycode, "attn")]
    if each.resembles:
        parts += [Piece(words.item.IS_NOT, "muted"), Piece(each.resembles)]
    return tuple(parts)
