"""What the service held after an approved run, compared with what was approved, field by field.

What was approved has the bar of what it was: the agent's words, or what was fetched before the run.
What the service holds has the bar of what was fetched.
"""

from collections.abc import Iterator

from aileron_core.console_port.field_views import ReadBack
from aileron_tui import words
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.changes import field_change_blocks
from aileron_tui.draw.foreign_text import foreign_text
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
