"""What a demo says above the status line: which scene this is, and what came of the answer."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.text import Line, Piece, line, truncate, wrap

NAME_CELLS = 9
"""Cells up to the bar."""
SAID_ROWS = 2
"""Rows of what one of them says, at most; a list has the whole."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuideLine:
    """One sentence of the demo, and after an answer what service and agent then have."""

    step: str
    """Where in the demo this is, as `2 of 6`; empty after the last scene."""
    sentence: str
    service: str = ""
    """What the service now holds, from outside; empty where nothing was asked of it."""
    agent: str = ""
    agent_words: str = ""
    """What *agent* was answered and says to that, from outside; empty where it has no answer."""
    has_next: bool = False
    """There is another scene to go on to."""


class Guide(Protocol):
    """A demo that leads through a console: it says what there is to see, and goes on when asked to."""

    def begin(self, show: Callable[[GuideLine], object]) -> None:
        """Call *show*, from any thread, with each line that is to be shown from now on."""
        ...

    def go_on(self) -> None:
        """Go on to the next scene; return at once."""
        ...


def guide_rows(guide: GuideLine, width: int) -> tuple[Line, ...]:
    """Return the rows of *guide*; text from outside stands right of a bar."""
    step = (Piece(f" {guide.step} ", "chip"), Piece(" ")) if guide.step else ()
    rows = [truncate(line(" ", *step, Piece(guide.sentence, "strong")), width - 1)]
    if guide.service:
        bar = Piece("┃ ", "fact-bar")
        rows += _said("service", bar, foreign_text(guide.service, "fact"), width)
    if guide.agent_words:
        bar = Piece("┊ ", "claim-bar")
        text = foreign_text(f"{guide.agent}: {guide.agent_words}", "claim")
        rows += _said("agent", bar, text, width)
    return tuple(rows)


def _said(who: str, bar: Piece, text: Line, width: int) -> list[Line]:
    """Return *text* right of *bar*, in two rows at most."""
    room = max(width - NAME_CELLS - 4, 1)
    wrapped = [each.pieces for each in wrap(text, room)]
    if len(wrapped) > SAID_ROWS:
        wrapped = [*wrapped[: SAID_ROWS - 1], truncate(line(*wrapped[SAID_ROWS - 1], "…"), room)]
    names = (who, *("" for _ in wrapped[1:]))
    return [
        line(" ", Piece(f"{name:<{NAME_CELLS}}", "muted"), bar, *each)
        for name, each in zip(names, wrapped, strict=True)
    ]
