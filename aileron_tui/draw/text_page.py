"""Readable text as it is put together: lines with their quotes and lists, blanks joined as HTML joins them."""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby

from aileron_core.text.rendering import MAX_BLANK_LINES
from aileron_tui import words
from aileron_tui.draw.styled_text import StyledLine, StyledText
from aileron_tui.draw.text import Role

MAX_PREFIXES = 12
"""Quotes and lists within each other that are told apart."""

_BLANKS = re.compile(r"[ \t\n\r\f\u00a0]+")


@dataclass(slots=True)
class TextPage:
    """The lines so far; blanks are joined as HTML joins them."""

    lines: list[list[StyledText]] = field(default_factory=list[list[StyledText]])
    line: list[StyledText] = field(default_factory=list[StyledText])
    prefix: list[str] = field(default_factory=list[str])
    """What every line begins with, of at most `MAX_PREFIXES`: quotes and lists."""
    bullet: str = ""
    """What the next line begins with, in place of the last prefix."""
    unseen: int = 0
    misleading: int = 0
    blank_lines: int = 0
    not_drawn: Counter[str] = field(default_factory=Counter[str])
    _blank_due: bool = False
    _gap_due: bool = False
    _why: str = ""

    @property
    def is_at_start(self) -> bool:
        return not self.line

    def add(self, segment: StyledText) -> None:
        if not segment.text:
            return
        if not self.line:
            self._begin()
        elif self._blank_due:
            self.line.append(StyledText(" ", segment.role if segment.href else None, segment.href))
        self._blank_due = False
        self.line.append(segment)

    def add_text(self, text: str, role: Role | None, link: str) -> None:
        """Add *text*, its blanks joined."""
        for index, word in enumerate(_BLANKS.split(text)):
            if index and self.line:
                self._blank_due = True
            self.add(StyledText(word, role, link))

    def add_kept(self, text: str, role: Role | None, link: str) -> None:
        """Add *text* with its blanks and line breaks."""
        for index, each in enumerate(text.split("\n")):
            if index:
                self.break_line()
            self.add(StyledText(each, role, link))

    def sign(self, text: str, role: Role = "attn", link: str = "") -> None:
        """Add a sign of Aileron's."""
        self.add(StyledText(text, role, link, ours=True))

    def show_unseen(self, why: str) -> None:
        """What follows is not seen by the text's reader, for the reason *why*; empty: it is seen."""
        if why == self._why:
            return
        if self._why:
            last = self.line or (self.lines[-1] if self.lines else self.line)
            last.append(StyledText(words.item.SEEN_AGAIN, "attn", ours=True))
        self._why = why
        if why:
            self.unseen += 1
            self.sign(words.item.unseen(why))

    def break_line(self) -> None:
        """End the line, which may be empty."""
        if not self.line:
            self._begin()
        self.lines.append(self.line)
        self.line, self._blank_due = [], False

    def end_line(self, *, apart: bool = False) -> None:
        """End the line if there is one; *apart*: a blank line comes before the next."""
        if self.line:
            self.break_line()
        self._blank_due = False
        self._gap_due = self._gap_due or (apart and bool(self.lines))

    def _begin(self) -> None:
        if self._gap_due and self.lines:
            self.lines.append([])
        self._gap_due = False
        heads = self.prefix[:MAX_PREFIXES]
        if self.bullet:
            heads[-1:] = [self.bullet]
            self.bullet = ""
        self.line = [StyledText(head, "muted", ours=True) for head in heads if head]

    def finished(self) -> tuple[StyledLine, ...]:
        self.show_unseen("")
        self.end_line()
        return tuple(self._folded())

    def _folded(self) -> Iterator[StyledLine]:
        """Yield the lines, with a sign in place of many blank ones: text must not be pushed out of sight."""
        for is_blank, each in groupby(self.lines, lambda line: all(s.ours for s in line)):
            lines = list(map(tuple, each))
            if is_blank and len(lines) > MAX_BLANK_LINES and not any(map(_says, lines)):
                self.blank_lines += len(lines)
                yield (StyledText(words.item.blank_lines_sign(len(lines)), "attn", ours=True),)
            else:
                yield from lines


def _says(line: StyledLine) -> bool:
    """Tell whether a line of signs says more than that it is quoted."""
    return any(each.role != "muted" for each in line)
