"""How action files that were added together are drawn: the row, the head, the document."""

from collections.abc import Iterator, Sequence

from aileron_core.control_plane.port import HeldBackView
from aileron_tui.presenters import wording
from aileron_tui.presenters.blocks import Block, blank, heading, value
from aileron_tui.presenters.document import host_rows
from aileron_tui.presenters.filtering import Facts
from aileron_tui.presenters.lines import Line, Piece, Role, cut, cut_start, line
from aileron_tui.presenters.outside import brief, outside
from aileron_tui.presenters.suite import SuiteFiles
from aileron_tui.presenters.times import clock_seconds, day
from aileron_tui.presenters.wording import suites as words

__all__ = ["suite_blocks", "suite_facts", "suite_head", "suite_name", "suite_remark"]

SOURCE = 16
"""Cells of a path in a row: its end tells more than its start."""


def suite_facts(suite: SuiteFiles) -> Facts:
    """Return what a suite offers to a filter: whatever one of its files does."""
    names = " ".join(each.name for each in suite.files)
    hosts = " ".join(suite.hosts)
    text = f"action {suite.suite.source} {names} {' '.join(suite.connectors)} {hosts} held back"
    return Facts(text=text, fields={"action": names, "state": "held back", "host": hosts}, at=None)


def suite_name(suite: SuiteFiles, role: Role) -> Line:
    """Return what a row calls the suite."""
    source = cut_start(brief(suite.suite.source, "muted"), SOURCE)
    return line(Piece(words.actions(len(suite.files)), role), Piece(" from ", "muted"), *source)


def suite_remark(suite: SuiteFiles) -> Line:
    """Return what a row says of the suite."""
    if suite.first:
        return (Piece(words.first_in_row(len(suite.first)), "attn"),)
    return (Piece(words.ADDED_TOGETHER, "muted"),)


def suite_head(suite: SuiteFiles, width: int) -> tuple[Line, ...]:
    """Return the head: the question, where the files came from, and what to beware of."""
    chip = Piece(f" {wording.FILE_EFFECT} ", "chip")
    title = Piece(words.title(len(suite.files)), "strong")
    source = cut_start(brief(suite.suite.source), width - 8)
    rows = [line(" ", chip, "  ", title), line(" ", Piece("from ", "muted"), *source)]
    if suite.first:
        rows.append(line(" ", Piece(f"▲ {words.warned(len(suite.first))}", "attn")))
    return tuple(cut(each, width - 1) for each in rows)


def suite_blocks(suite: SuiteFiles) -> tuple[Block, ...]:
    """Return the document: what to look at first, what holds for all, then every other file."""
    made: list[Block] = []
    if suite.first:
        made += [*_section(suite, words.FIRST, suite.first, "attn"), blank()]
    made += _of_all(suite)
    for name, files in ((words.GATED, suite.gated), (words.READS, suite.reads)):
        if files:
            made += [blank(), *_section(suite, name, files)]
    return tuple(made)


def _of_all(suite: SuiteFiles) -> Iterator[Block]:
    at = suite.suite.added_at
    added = line(f"{day(at)} {clock_seconds(at)}", Piece(words.BY_ONE_ADD, "muted"))
    yield heading(words.SUITE)
    yield value("From", outside(suite.suite.source))
    yield value("Added", added)
    yield from _listed("Connector", [outside(each) for each in suite.connectors])
    yield from host_rows(suite.hosts, "strong", "fact")
    if not suite.hosts:
        yield value("Hosts", (Piece(words.NO_HOSTS, "attn"),))
    if stuck := suite.cannot_run:
        count = Piece(f"{words.of_all(len(stuck), len(suite.files))}. ", "attn")
        told = line(count, *outside(f"{stuck[0].name}: {stuck[0].cannot_run}", "attn"))
        yield value("Refused", told)
    yield value("Hash", line(suite.digest, "  ", Piece(words.HASH_REMARK, "muted")))


def _listed(label: str, rows: Sequence[Line]) -> Iterator[Block]:
    for number, pieces in enumerate(rows):
        yield value(label if number == 0 else "", pieces)


def _section(
    suite: SuiteFiles, name: str, files: Sequence[HeldBackView], role: Role = "fact"
) -> Iterator[Block]:
    """Yield one line for each of *files*; its connector stands there where there are several."""
    yield heading(name, (Piece(words.of_all(len(files), len(suite.files)), "muted"),), role)
    several = len(suite.connectors) > 1
    for each in files:
        runs = ", ".join(step if several else step.rpartition(".")[2] for step in each.steps)
        told = line(*outside(each.name, "strong"), Piece("  runs ", "muted"), *outside(runs))
        if each.why == "changed":
            told = line(*told, Piece(f"  {words.CHANGED}", "attn"))
        if each.cannot_run:
            told = line(*told, Piece(f"  {words.CANNOT_RUN}", "attn"))
        yield value("", told)
