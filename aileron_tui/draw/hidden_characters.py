"""Hidden characters in an item's text: counts for the head, rows below the text."""

from collections import Counter
from collections.abc import Iterator

from aileron_core.console_port.view_models import ApprovalView
from aileron_core.text import Lookalike, Rendered, escape
from aileron_tui import words
from aileron_tui.draw.blocks import Block, value
from aileron_tui.draw.markup import ReadableText
from aileron_tui.draw.text import Line, Piece, line

NAME_CHARACTERS = 24
"""Characters of a field's label or a host's name in a sentence; the document has the whole."""
_KINDS = ("unseen", "misleading", "hidden", "lookalike", "blank")
"""What may be found, most dangerous first."""


class HiddenCharacters:
    """Sums over several texts. True when anything was marked."""

    def __init__(self) -> None:
        self._hidden: Counter[str] = Counter()
        self._lookalikes: dict[Lookalike, None] = {}
        self._blank_lines = 0
        self._unseen = self._misleading = 0
        self._first: dict[str, str] = {}
        """By kind, what was found first, and where: a sentence without its stop."""

    def add(self, rendered: Rendered, label: str = "") -> None:
        """Add what was found in *rendered*, which is of the field *label*."""
        self._hidden.update(rendered.hidden)
        for each in rendered.lookalikes:
            self._lookalikes[each] = None
        if rendered.hidden:
            self._note("hidden", words.item.hidden_in(_cut(label), tuple(rendered.hidden)))
        if rendered.lookalikes:
            first = rendered.lookalikes[0]
            name = _cut(first.punycode or first.written)
            text = words.item.lookalike_in(_cut(label), name, _cut(first.resembles))
            self._note("lookalike", text)
        self._add_blank_lines(rendered.blank_lines, label)

    def add_readable(self, text: ReadableText, label: str = "") -> None:
        """Add what *text* hides from its reader; its characters are added apart."""
        self._unseen += text.unseen
        self._misleading += text.misleading
        if text.unseen:
            self._note("unseen", words.item.unseen_in(_cut(label)))
        if text.misleading:
            self._note("misleading", words.item.misleading_in(_cut(label)))
        self._add_blank_lines(text.blank_lines, label)

    def _add_blank_lines(self, count: int, label: str) -> None:
        self._blank_lines += count
        if count:
            self._note("blank", words.item.blank_in(_cut(label), count))

    def _note(self, kind: str, text: str) -> None:
        self._first.setdefault(kind, text)

    def findings(self) -> tuple[str, ...]:
        """Return the first finding of each kind, most dangerous first, each a sentence without its stop."""
        return tuple(self._first[kind] for kind in _KINDS if kind in self._first)

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


def findings_of(view: ApprovalView | None, found: HiddenCharacters) -> tuple[str, ...]:
    """Return what makes a yes to an item more than a plain one, each a sentence without its stop.

    *view*: its call, if it is one. *found*: what hides in it.
    """
    if view is None or view.drift is None:
        return found.findings()
    labels = [_cut(change.label) for change in view.drift.changed]
    return (words.item.drift_in(labels), *found.findings())


def _cut(text: str) -> str:
    """Return *text* rendered and short enough for a sentence."""
    shown = escape(" ".join(text.split()))
    return shown if len(shown) <= NAME_CHARACTERS else f"{shown[: NAME_CHARACTERS - 1]}…"


def _spellings(each: Lookalike) -> Line:
    """Return both spellings of a lookalike name, as the renderer drew them."""
    parts: list[Piece] = [Piece(each.written, "strong")]
    if each.punycode:
        parts += [Piece(words.item.IS, "muted"), Piece(each.decoded or each.punycode, "attn")]
    if each.resembles:
        parts += [Piece(words.item.IS_NOT, "muted"), Piece(each.resembles)]
    return tuple(parts)
