"""How action files that were added together are drawn: the row, the head, the document."""

from collections.abc import Iterator, Sequence

from aileron_core.console_port.view_models import NotAcceptedView
from aileron_tui import words
from aileron_tui.draw.acceptance import suite_content_blocks, suite_difference_blocks
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.document import host_blocks
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.text import Line, Piece, Role, line, truncate, truncate_start
from aileron_tui.draw.times import clock_seconds, day
from aileron_tui.items import SuiteFiles

SOURCE_CELLS = 16
"""Cells of a path in a row, whose start is cut: its end is more informative."""


def suite_name(suite: SuiteFiles, role: Role) -> Line:
    """Return the suite's name in a row: its size and its source."""
    source = truncate_start(brief(suite.suite.source, "muted"), SOURCE_CELLS)
    return line(
        Piece(words.files.actions(len(suite.files)), role), Piece(" from ", "muted"), *source
    )


def suite_remark(suite: SuiteFiles) -> Line:
    """Return a row's remark on the suite: what to look at first."""
    if suite.ungated_effects:
        return (Piece(words.files.first_in_row(len(suite.ungated_effects)), "attn"),)
    return (Piece(words.files.ADDED_TOGETHER, "muted"),)


def suite_head(suite: SuiteFiles, width: int) -> tuple[Line, ...]:
    """Return the head: the question, where the files came from, and what to beware of."""
    chip = Piece(f" {words.files.FILE_EFFECT} ", "chip")
    title = Piece(words.files.suite_question(len(suite.files)), "strong")
    source = truncate_start(brief(suite.suite.source), width - 8)
    rows = [line(" ", chip, "  ", title), line(" ", Piece("from ", "muted"), *source)]
    if suite.ungated_effects:
        rows.append(
            line(" ", Piece(f"▲ {words.files.suite_warning(len(suite.ungated_effects))}", "attn"))
        )
    return tuple(truncate(each, width - 1) for each in rows)


def suite_blocks(suite: SuiteFiles, *, unfold: bool = False) -> tuple[Block, ...]:
    """Return the document: what to look at first, what holds for all, every other file, all contents."""
    made: list[Block] = [*suite_difference_blocks(suite.files)]
    if suite.ungated_effects:
        made += [*_section(suite, words.files.LOOK_FIRST, suite.ungated_effects, "attn"), blank()]
    made += _common_facts(suite)
    for name, files in (
        (words.files.SUITE_GATED, suite.gated),
        (words.files.SUITE_READS, suite.ungated_reads),
    ):
        if files:
            made += [blank(), *_section(suite, name, files)]
    made += suite_content_blocks([*suite.ungated_effects, *suite.other_files], unfold=unfold)
    return tuple(made)


def _common_facts(suite: SuiteFiles) -> Iterator[Block]:
    at = suite.suite.added_at
    added = line(f"{day(at)} {clock_seconds(at)}", Piece(words.files.BY_ONE_ADD, "muted"))
    yield heading(words.files.SUITE_FILES)
    yield from host_blocks(suite.hosts, "strong", "fact")
    if not suite.hosts:
        yield value("Hosts", (Piece(words.files.NO_HOSTS, "attn"),))
    if blocked := suite.cannot_run:
        count = Piece(f"{words.files.of_all(len(blocked), len(suite.files))}. ", "attn")
        refused = line(count, *foreign_text(f"{blocked[0].name}: {blocked[0].cannot_run}", "attn"))
        yield value("Refused", refused)
    yield from _listed("Connector", [foreign_text(each) for each in suite.connectors])
    yield value("From", foreign_text(suite.suite.source))
    yield value("Added", added)
    yield value("Digest", line(suite.digest, "  ", Piece(words.files.DIGEST_REMARK, "muted")))


def _listed(label: str, rows: Sequence[Line]) -> Iterator[Block]:
    for number, pieces in enumerate(rows):
        yield value(label if number == 0 else "", pieces)


def _section(
    suite: SuiteFiles, name: str, files: Sequence[NotAcceptedView], role: Role = "fact"
) -> Iterator[Block]:
    """Yield one line for each of *files*, with its connector if the suite has several."""
    yield heading(name, (Piece(words.files.of_all(len(files), len(suite.files)), "muted"),), role)
    several = len(suite.connectors) > 1
    for each in files:
        runs = ", ".join(step if several else step.rpartition(".")[2] for step in each.steps)
        row = line(
            *foreign_text(each.name, "strong"), Piece("  runs ", "muted"), *foreign_text(runs)
        )
        if each.run_time is not None:
            row = line(
                *row, Piece(f"  {words.files.suite_run_time(each.run_time.seconds)}", "attn")
            )
        if each.change == "changed":
            row = line(*row, Piece(f"  {words.files.CHANGED_SINCE}", "attn"))
        if each.cannot_run:
            row = line(*row, Piece(f"  {words.files.CANNOT_RUN}", "attn"))
        yield value("", row)
