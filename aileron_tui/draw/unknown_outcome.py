"""A call whose outcome nobody knows: what to check, what a look at the service showed, how it was settled.

What was read then stands beside what was approved, never in its place.
"""

from collections.abc import Iterator
from typing import NamedTuple

from aileron_core.console_port.field_views import LookView
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui import words
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.formats import field_blocks
from aileron_tui.draw.read_back import read_back_blocks, read_back_outcome
from aileron_tui.draw.text import Line, Piece, line
from aileron_tui.draw.times import clock_seconds


class OutcomeKeys(NamedTuple):
    """The keys about an unknown outcome, as a person writes them."""

    look: str = "l"
    acknowledge: str = "m"


DEFAULT_KEYS = OutcomeKeys()


def open_question_blocks(view: ApprovalView, keys: OutcomeKeys) -> Iterator[Block]:
    """Yield what is known of a call whose outcome nobody knows, and what a person can check."""
    yield from _known_blocks(view)
    look = view.look
    if look is None:
        text = words.item.check_by(keys.look) if view.can_fetch_again else words.item.CHECK_YOURSELF
    elif look.comparison is None:
        text = words.item.cannot_tell(keys.acknowledge)
    else:
        text = words.item.check_looked(keys.acknowledge)
    yield value("Check", (Piece(text),))


def settled_blocks(view: ApprovalView) -> Iterator[Block]:
    """Yield how a call was settled by looking again, and what was said when its answer was lost."""
    look = view.look
    if look is None or look.comparison is None:
        return
    yield value("", read_back_outcome(look.comparison, words.item.wanted(view.approval_id)))
    yield value("", (Piece(words.item.settled_at(clock_seconds(look.at))),))
    if view.preview.status != "ready" and view.approval_id:
        yield value("", (Piece(words.item.SETTLED_BY_CHANGES, "muted"),))
    if view.outcome:
        yield value("Earlier", foreign_text(view.outcome, "muted"))
    yield from _known_blocks(view)


def _known_blocks(view: ApprovalView) -> Iterator[Block]:
    if not view.approval_id:
        yield value("Ran", (Piece(words.item.NOT_GATED),))
    for row, host in enumerate(view.hosts_asked):
        yield value("" if row else "Contacted", foreign_text(host), "fact")


def look_blocks(view: ApprovalView, *, unfold: bool = False) -> Iterator[Block]:
    """Yield what was read of the service after the end of *view*, or why it could not be."""
    look = view.look
    if look is None or look.preview.status == "none":
        return
    yield blank()
    at = words.views.read_after(clock_seconds(look.at))
    yield heading(words.views.IS_NOW, (Piece(at, "muted"),))
    preview, read = look.preview, look.comparison
    if preview.status == "unavailable":
        yield value("", look_failure(look))
        return
    fields = preview.fields
    if read is not None and read.status == "differs":
        wanted = words.item.wanted(view.approval_id)
        if look.is_unchanged:
            yield value("", (Piece(words.item.NOTHING_CHANGED_YET, "attn"),))
        yield from read_back_blocks(read, unfold=unfold, wanted=wanted)
        fields = tuple(field for field in fields if field.label not in read.labels)
        if fields:
            yield blank()
    yield from field_blocks(fields, "fact", unfold=unfold)


def look_failure(look: LookView) -> Line:
    """Return why nothing could be read."""
    why = words.item.NOT_FOUND if look.preview.not_found else words.item.NOT_READ
    return line(Piece(why, "attn"), *foreign_text(look.preview.reason))
