"""What the service held after an approved run, compared with what was approved; and a call whose outcome nobody knows.

What was approved has the bar of what it was: the agent's words, or what was fetched before the run.
What the service holds has the bar of what was fetched, and stands beside what was approved, never in its place.
"""

from collections.abc import Iterator
from typing import NamedTuple

from aileron_core.console_port.field_views import LookView, ReadBack
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui import words
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.changes import field_change_blocks
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.formats import field_blocks
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import Line, Piece, line
from aileron_tui.draw.text_diff import BoundedDiff
from aileron_tui.draw.times import age, clock_seconds


def read_back_heading(read: ReadBack, ended_at: float | None) -> Block:
    """Return the heading, which says when the service was asked; *ended_at*: of the run."""
    return heading(words.item.READ_BACK, (Piece(_when(read, ended_at), "muted"),))


def read_back_blocks(
    read: ReadBack, *, unfold: bool = False, wanted: str = words.item.WAS_APPROVED
) -> Iterator[Block]:
    """Yield the outcome and each field that differs, without the heading.

    *unfold*: marks with their code points, and the whole of every text. *wanted*: what it is compared with.
    """
    if read.status != "reading":  # otherwise the heading says it
        yield value("", read_back_outcome(read, wanted))
    if read.status == "differs":
        yield from _differences(read, wanted, unfold=unfold)


def read_back_outcome(read: ReadBack, wanted: str = words.item.WAS_APPROVED) -> Line:
    """Return the outcome as a sentence; *wanted*: what it was compared with."""
    match read.status:
        case "reading":
            return (Piece(words.item.READING_BACK, "muted"),)
        case "held":
            return (Piece(words.item.read_back_held(read.compared, wanted), "ok"),)
        case "differs":
            text = words.item.read_back_differs(len(read.labels), read.compared, wanted)
            return (Piece(text, "attn"),)
        case "unavailable":
            why = foreign_text(read.reason) if read.reason else ()
            return line(Piece(words.item.read_back_unavailable(why=bool(why)), "attn"), *why)


def read_back_tag(read: ReadBack) -> Line:
    """Return the outcome in a few words, for a row."""
    if read.status == "differs":
        role = "attn" if read.waits_to_be_seen else "muted"
        return (Piece(words.item.fields_differ(len(read.labels)), role),)
    return (Piece(words.item.READ_BACK_TAGS[read.status], "muted"),)


def _when(read: ReadBack, ended_at: float | None) -> str:
    if read.status == "reading":
        return words.item.READING_BACK
    took = age(read.at - ended_at) if ended_at is not None else ""
    return words.item.read_back_at(clock_seconds(read.at), took)


def _differences(read: ReadBack, wanted: str, *, unfold: bool) -> Iterator[Block]:
    if not read.differing:
        for label in read.labels:
            yield value(foreign_text(label, "muted"), (Piece(words.item.DIFFERED, "muted"),))
        return
    legend = line(Piece("− ", "del"), wanted, "   ")
    yield value("", line(*legend, Piece("+ ", "add"), words.item.IS_HELD))
    found, compare = HiddenCharacters(), BoundedDiff()
    for each in read.differing:
        yield blank()
        yield from field_change_blocks(
            each.approved,
            each.found,
            found,
            compare,
            before="claim" if each.from_agent else "fact",
            after="fact",
            unfold=unfold,
        )
    rows = tuple(found.blocks())
    if rows:
        yield blank()
        yield from rows


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
