"""The document of a file: one that is not accepted, with all that there is to accept, or one with a problem."""

from collections.abc import Iterator, Sequence

from aileron_core.connectors.posted_reads import AWS_PREFIX, unchecked_op
from aileron_core.console_port.file_views import FileContentView
from aileron_core.console_port.view_models import NotAcceptedView, RunTimeView
from aileron_core.errors import Problem
from aileron_tui import words
from aileron_tui.draw.acceptance import content_blocks, difference_blocks
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.document import host_blocks
from aileron_tui.draw.foreign_text import foreign_text, render_foreign, rendered_lines
from aileron_tui.draw.steps import op_blocks
from aileron_tui.draw.text import Line, Piece, line


def file_blocks(file: NotAcceptedView, *, unfold: bool = False) -> tuple[Block, ...]:
    """Return the document of a file that is not accepted: what differs, what it allows, all of it."""
    if file.kind == "preview":
        return tuple(_read_offer(file))
    why = words.files.why_not_accepted(file.kind, file.change)
    then = consequence_line(file.kind, file.name, file.gated)
    # What it allows comes first, so that it is on the screen when the key is pressed.
    blocks = [
        heading(words.files.FILE_SECTION, _remark(why)),
        value("Then", foreign_text(file.cannot_run, "attn") if file.cannot_run else then),
        *op_blocks(file.steps, "strong"),
        *host_blocks(file.hosts, "strong", "fact"),
    ]
    if not file.hosts and file.kind not in ("settings", "policy"):
        blocks.append(value("Hosts", line(Piece("none", "muted"))))
    if file.run_time is not None:
        blocks.append(value("Time", run_time_line(file.run_time)))
    blocks += [
        value("Name", foreign_text(file.name, "strong")),
        value("Kind", line(file.kind)),
        value("File", foreign_text(file.file)),
    ]
    if file.connector:
        blocks.append(value("Connector", foreign_text(file.connector)))
    blocks.append(value("Digest", foreign_text(file.digest)))
    return with_content(blocks, file.content, unfold=unfold)


def with_content(
    facts: Sequence[Block], content: FileContentView | None, *, unfold: bool
) -> tuple[Block, ...]:
    """Return *facts* on a file between what differs from what was accepted, if any, and all of it.

    What stays as it was accepted need not be seen again.
    """
    if content is None:
        return (*facts,)
    made: list[Block] = []
    before = content.before
    if before is not None:
        made += [*difference_blocks(before, content.text, unfold=unfold), blank()]
    made += facts
    if content.module:
        made.append(value("Module", line(content.module)))
    made.append(blank())
    remark = words.acceptance.WHOLE_MANIFEST if content.module else words.acceptance.WHOLE_FILE
    compared = before is not None and before.text is not None
    made += content_blocks(content.text, remark, unfold=unfold, must_be_seen=not compared)
    return tuple(made)


def settings_blocks(contents: Sequence[tuple[str, FileContentView]]) -> tuple[Block, ...]:
    """Return what there is to accept of a project: each of its files that asks for something, by name."""
    made: list[Block] = []
    for name, content in contents:
        facts = [heading(words.files.FILE_SECTION), value("File", foreign_text(name, "strong"))]
        if not content.text:
            made += [*facts, value("", _remark(words.acceptance.ASKS_NO_MORE)), blank()]
            continue
        made += [*with_content(facts, content, unfold=False), blank()]
    return tuple(made[:-1])


def _read_offer(file: NotAcceptedView) -> Iterator[Block]:
    """Yield the document of a preview's read by POST; what accepting it means comes first."""
    connector, _, read = file.name.partition(" ")
    yield heading(words.files.READ_SECTION, _remark(words.files.READ_WHY))
    yield value("Reads", foreign_text(read, "strong"))
    yield value("Then", consequence_line(file.kind, file.name, file.gated))
    yield value("Connector", foreign_text(connector, "strong"))
    yield value("Digest", foreign_text(file.digest))
    yield value("File", foreign_text(file.file))
    yield from host_blocks(file.hosts, "strong", "fact")


def run_time_line(named: RunTimeView) -> Line:
    """Return how long an action may run, where accepting its file gives or gave it more than the usual time."""
    argument = "" if named.named_by == "connector" else named.named_by
    return (Piece(words.files.run_time(named.seconds, named.usual, argument), "attn"),)


def consequence_line(kind: str, name: str, gated: bool | None) -> Line:
    """Return what follows from accepting a file, or a preview's reads by POST."""
    if kind == "preview":
        # "CONNECTOR READ": a connector's name has no blank.
        read = name.partition(" ")[2]
        if op := unchecked_op(read):
            place = read.rpartition(" ")[2]
            return foreign_text(words.files.then_unchecked(op, place), "attn")
        of_aws = read.startswith(AWS_PREFIX)
        return (Piece(words.files.THEN_AWS if of_aws else words.files.THEN_GRAPHQL, "attn"),)
    if kind == "settings":
        return (Piece(words.files.THEN_SETTINGS, "attn"),)
    if kind == "policy":
        return (Piece(words.files.THEN_POLICY, "attn"),)
    if kind == "connector":
        return (Piece(words.files.THEN_CONNECTOR),)
    return (Piece(words.files.THEN_GATED) if gated else Piece(words.files.THEN_FREE, "attn"),)


def problem_blocks(problem: Problem) -> tuple[Block, ...]:
    """Return the document of a problem in a file of the home."""
    location = f"{problem.file}:{problem.line}" if problem.line else problem.file
    blocks = [
        heading(words.files.FILE_SECTION, _remark(words.files.problem_why(problem.severity))),
        value("File", foreign_text(location, "strong")),
    ]
    if problem.key:
        blocks.append(value("Key", foreign_text(problem.key)))
    for row, pieces in enumerate(rendered_lines(render_foreign(problem.message), "attn")):
        blocks.append(value("Problem" if row == 0 else "", pieces))
    return tuple(blocks)


def _remark(text: str) -> Line:
    return (Piece(text, "muted"),)
