"""What there is to accept: what a changed file allows more, how it differs, and its whole content."""

import re
from collections.abc import Iterable, Iterator, Sequence

from aileron_core.console_port.file_views import (
    ONE_SIDED,
    AcceptanceChangeView,
    AcceptedBeforeView,
    FileContentView,
)
from aileron_core.console_port.view_models import NotAcceptedView, PublisherView
from aileron_tui import words
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.foreign_text import brief, foreign_text, render_foreign, rendered_lines
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.text import Line, Piece, Role, line
from aileron_tui.draw.text_diff import BoundedDiff, line_opcodes, signed_block, signed_lines
from aileron_tui.draw.times import clock_seconds, day

_CONTEXT_LINES = 3
_RENUMBERED = {"version", "connector_bytes", "text"}
_NUMBERED = re.compile(r"(version|source|hash)\s*=")
"""A line of a file that a new version changes of itself."""


def difference_blocks(before: AcceptedBeforeView, text: str, *, unfold: bool) -> Iterator[Block]:
    """Yield how a file with *text* differs from what was accepted: what allows more, the rest, the lines."""
    yield from _changes(before)
    remark = words.files.SIGNS if before.text is not None else ""
    yield heading(words.files.DIFFERENCE, (Piece(remark, "muted"),) if remark else ())
    if before.text is None:
        yield value("", (Piece(words.files.NOT_KEPT, "attn"),))
    else:
        yield from _lines_compared(before.text, text, unfold=unfold)


def content_blocks(
    text: str, remark: str, *, unfold: bool, must_be_seen: bool = True
) -> Iterator[Block]:
    """Yield the whole *text* of a file, then the hidden characters in it."""
    yield heading(words.files.CONTENT, (Piece(remark, "muted"),))
    yield from _text_lines(text, unfold=unfold, must_be_seen=must_be_seen)


def allowed_blocks(content: FileContentView) -> Iterator[Block]:
    """Yield what rules allow that nobody accepted before."""
    if content.allows:
        yield heading(words.files.ALLOWS, role="attn")
        yield from _change_lines(content.allows, "attn")
        yield blank()


def suite_difference_blocks(files: Sequence[NotAcceptedView]) -> Iterator[Block]:
    """Yield what changed files of a suite allow more, each with its name, then which files differ, and how."""
    wider = [(each, each.before.wider) for each in files if each.before and each.before.wider]
    if wider:
        remark = Piece(words.files.more_in_suite(len(wider)), "muted")
        yield heading(words.files.WIDER, (remark,), "attn")
    for file, changes in wider:
        for number, each in enumerate(changes):
            name = foreign_text(file.name, "strong") if number == 0 else ()
            yield value("", line(*name, "  " if name else "    ", *change_line(each, "attn")))
    if wider:
        yield blank()
    changed = [each for each in files if each.before is not None]
    if not changed:
        return
    yield heading(words.files.CHANGED)
    if not wider:
        yield value("", (Piece(words.files.NOTHING_WIDER),))
    alone = [each for each in changed if _is_only_renumbered(each)]
    for label, said in (
        ("Version", words.files.renumbered(_versions(changed), len(alone)) if alone else ""),
        ("Changed", ", ".join(each.name for each in changed if each not in alone)),
        ("New", ", ".join(each.name for each in files if each.before is None)),
    ):
        if said:
            yield value(label, foreign_text(said))
    for each in changed:
        if each.kind == "connector" and each.before is not None:
            yield value("Code", foreign_text(f"{_code(each.before)}  ({each.name})"))
    yield blank()


def _versions(files: Iterable[NotAcceptedView]) -> str:
    """Return each change of a version among *files*, once."""
    changes = (change for each in files if each.before for change in each.before.changes)
    found = {f"{each.before} → {each.after}": None for each in changes if each.kind == "version"}
    return ", ".join(found)


def _code(before: AcceptedBeforeView) -> str:
    """Return size and hash of a connector's code before and now, or that it is the same."""
    if before.text is None:
        return words.files.NOT_KEPT
    changes = [each for each in before.changes if each.kind == "module"]
    return f"{changes[0].before} → {changes[0].after}" if changes else words.files.SAME_CODE


def _is_only_renumbered(file: NotAcceptedView) -> bool:
    before = file.before
    return (
        before is not None
        and before.text is not None
        and file.content is not None
        and {each.kind for each in before.changes} <= _RENUMBERED
        and _renumbered(before) == file.content.text
    )


def _renumbered(before: AcceptedBeforeView) -> str:
    """Return what was accepted with the version, source and connector's hash of the file that is offered now."""
    swaps: list[tuple[str, str]] = []
    for each in before.changes:
        if each.kind in ("version", "connector_bytes"):
            swaps += zip(each.before.split(), each.after.split(), strict=False)
    lines = (before.text or "").split("\n")
    fenced = lines[0].rstrip() == "+++"
    for number, each in enumerate(lines):
        if fenced and number and each.rstrip() == "+++":
            break  # the text behind is the author's
        if _NUMBERED.match(each):
            for old, new in swaps:
                lines[number] = lines[number].replace(old, new)
    return "\n".join(lines)


def suite_content_blocks(files: Sequence[NotAcceptedView], *, unfold: bool) -> Iterator[Block]:
    """Yield the content of each of *files*; of a changed one what differs comes first."""
    found = [(each, each.content) for each in files if each.content is not None]
    if not found:
        return
    yield blank()
    yield heading(words.files.CONTENT, (Piece(words.files.WHOLE_FILES, "muted"),))
    for number, (file, content) in enumerate(found):
        if number:
            yield blank()
        yield value("File", foreign_text(file.file, "strong"))
        before = content.before
        compared = before is not None and before.text is not None
        if _is_only_renumbered(file):
            yield value("", (Piece(words.files.ONLY_RENUMBERED, "muted"),))
        elif before is not None and before.text is not None:
            yield from _lines_compared(_renumbered(before), content.text, unfold=unfold)
        elif before is not None:
            yield value("", (Piece(words.files.NOT_KEPT, "attn"),))
        yield from _text_lines(content.text, unfold=unfold, must_be_seen=not compared)


def _changes(before: AcceptedBeforeView) -> Iterator[Block]:
    """Yield what allows more, then what is otherwise different."""
    if before.text is None:
        return
    at = (day(before.accepted_at), clock_seconds(before.accepted_at))
    wider = before.wider
    if wider:
        remark = Piece(words.files.than_accepted(*at), "muted")
        yield heading(words.files.WIDER, (remark,), "attn")
        yield from _change_lines(wider, "attn")
    else:
        remark = Piece(words.files.since_accepted(*at), "muted")
        yield heading(words.files.CHANGED, (remark,))
        nothing = Piece(words.files.NOTHING_WIDER)
        unread = Piece(words.files.NOT_COMPARED, "attn")
        yield value("", (nothing if before.changes else unread,))
    rest = before.changes[len(wider) :]
    if rest and wider:
        yield blank()
        yield heading(words.files.OTHERWISE, role="muted")
    yield from _change_lines(rest, "text")
    yield blank()


def _change_lines(changes: Iterable[AcceptanceChangeView], role: Role) -> Iterator[Block]:
    for each in changes:
        yield value("", change_line(each, role), hang=2)


def change_line(change: AcceptanceChangeView, role: Role, name_role: Role = "strong") -> Line:
    """Return the sentence on one difference."""
    sentence = Piece(words.files.change(change.kind, change.direction), role)
    if change.kind in ONE_SIDED:
        return line(sentence, " ", *brief(change.after or change.before, name_role))
    pieces: list[Piece] = [sentence]
    if change.name:
        pieces += [Piece(" "), *brief(change.name, name_role)]
    if change.before or change.after:
        nothing = words.files.ASKED_NOTHING
        if change.kind == "step_inputs" and "." not in change.name:
            nothing = words.files.ALL_ARGUMENTS
        elif change.kind == "setting":
            nothing = words.files.NOT_SET
        old = brief(change.before) if change.before else (Piece(nothing, "muted"),)
        new = brief(change.after) if change.after else (Piece(nothing, "muted"),)
        pieces += [Piece(" "), *old, Piece(" → ", "muted"), *new]
    return tuple(pieces)


def widest_change(content: FileContentView | None) -> Line:
    """Return the most dangerous of what a changed file allows more, and how many more; empty without one."""
    wider = content.before.wider if content is not None and content.before is not None else ()
    if not wider:
        return ()
    others = words.files.and_others(len(wider) - 1)
    return (*change_line(wider[0], "attn", "attn"), Piece(others, "attn"))


def content_warnings(content: FileContentView | None, *, gated: bool | None) -> list[Line]:
    """Return the warnings on what a file allows, most dangerous first; *gated*: None of a connector."""
    widest = widest_change(content)
    lines: list[Line] = []
    if widest:
        lines.append((Piece(words.files.ALLOWS_MORE, "attn"), *widest))
    before = content.before if content is not None else None
    said = before is not None and any(each.kind == "asks_no_more" for each in before.wider)
    if gated is False and not said:
        lines.append((Piece(words.files.WARN_FREE, "attn"),))
    return lines


def publisher_warnings(
    whose: PublisherView | None, kind: str, *, counts: bool = False, of: tuple[int, int] = (1, 0)
) -> list[Line]:
    """Return the warnings on whose a file is, or a key that is offered, most dangerous first.

    Args:
        counts: the file is accepted as it is.
        of: of a suite, how many of its files they are about, and how many it has.
    """
    if whose is None:
        return []
    said: list[str] = []
    other = bool(whose.accepted) and whose.key != whose.accepted
    if kind == "publisher":
        said += [] if whose.is_vouched_for else [words.files.WARN_KEY]
    elif other and counts and whose.key:
        said.append(words.files.warn_earlier_key(whose.name))
    elif other and not counts and (whose.key or kind == "connector"):
        said.append(words.files.warn_refused(whose.name, signed=bool(whose.key)))
    elif not whose.key:
        said.append(words.files.warn_unsigned(whose.name if other else "", *of))
    if whose.resembles:
        said.append(words.files.warn_resembles(whose.name, whose.resembles))
    if whose.other_key_of:
        said.append(words.files.warn_other_key(whose.other_key_of))
    return [foreign_text(each, "attn") for each in said]


def unvouched_key(file: NotAcceptedView | None) -> tuple[str, ...]:
    """Return, if *file* is an offered key that the accepted one did not sign, that finding: a sentence without its stop."""
    whose = file.publisher if file is not None and file.kind == "publisher" else None
    return (words.files.WARN_KEY,) if whose is not None and not whose.is_vouched_for else ()


def _lines_compared(old: str, new: str, *, unfold: bool) -> Iterator[Block]:
    """Yield the lines that differ, with some around them; each group begins with its line's number."""
    before, after = old.split("\n"), new.split("\n")
    compare, found = BoundedDiff(), HiddenCharacters()
    olds, news = (
        [_one_line(each, found, unfold=unfold) for each in side] for side in (before, after)
    )
    ops = line_opcodes(before, after, compare)
    begins = True
    for number, sign, pieces in signed_lines(
        olds, news, ops, compare, unfold=unfold, context=_CONTEXT_LINES
    ):
        label = words.files.line_number(number) if begins and number else ""
        begins = not number
        yield signed_block(label, sign, pieces)
    yield from _findings(found)


def _one_line(text: str, found: HiddenCharacters, *, unfold: bool) -> Line:
    rendered = render_foreign(text, unfold=unfold, end=True)
    found.add(rendered)
    return rendered_lines(rendered)[0]


def _text_lines(text: str, *, unfold: bool, must_be_seen: bool) -> Iterator[Block]:
    found = HiddenCharacters()
    rendered = render_foreign(text.removesuffix("\n"), unfold=unfold)
    found.add(rendered)
    for pieces in rendered_lines(rendered):
        yield value("", pieces, must_be_seen=must_be_seen)
    if must_be_seen:  # where a difference stands above, they are named there
        yield from _findings(found)


def _findings(found: HiddenCharacters) -> Iterator[Block]:
    rows = tuple(found.blocks())
    if rows:
        yield blank()
        yield from rows
