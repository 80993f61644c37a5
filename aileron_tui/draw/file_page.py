"""The document of a file: one that is not accepted, with all that there is to accept, one with a problem, or action files added together."""

from collections.abc import Iterator, Sequence

from aileron_core.connectors.read_names import AWS_PREFIX, unchecked_op
from aileron_core.console_port.file_views import FileContentView, ServerView
from aileron_core.console_port.standing import TriedShape
from aileron_core.console_port.view_models import NotAcceptedView, PublisherView, RunTimeView
from aileron_core.errors import Problem
from aileron_tui import words
from aileron_tui.draw.acceptance import (
    allowed_blocks,
    content_blocks,
    difference_blocks,
    publisher_warnings,
    suite_content_blocks,
    suite_difference_blocks,
)
from aileron_tui.draw.blocks import Block, blank, heading, value
from aileron_tui.draw.document import host_blocks
from aileron_tui.draw.foreign_text import brief, foreign_text, render_foreign, rendered_lines
from aileron_tui.draw.steps import op_blocks
from aileron_tui.draw.text import Line, Piece, Role, line, truncate, truncate_start
from aileron_tui.draw.times import clock_seconds, day
from aileron_tui.items import SuiteFiles

MAX_PAST = 20
"""Answers of the past that are shown, of which the denied ones come first."""
SOURCE_CELLS = 16
"""Cells of a path in a row, whose start is cut: its end is more informative."""


def file_blocks(file: NotAcceptedView, *, unfold: bool = False) -> tuple[Block, ...]:
    """Return the document of a file that is not accepted: what differs, what it allows, all of it."""
    if file.kind == "preview":
        return tuple(_read_offer(file))
    if file.kind == "publisher":
        return tuple(_key_offer(file))
    why = words.files.why_not_accepted(file.noun, file.change, is_update=file.is_update)
    server = file.content.server if file.content is not None else None
    then = consequence_line(file.kind, file.name, file.gated)
    if server is not None:
        then = (Piece(words.files.THEN_SERVER),)
    # What it allows comes first, so that it is on the screen when the key is pressed.
    blocks = [
        heading(words.files.FILE_SECTION, _remark(why)),
        value("Then", foreign_text(file.cannot_run, "attn") if file.cannot_run else then),
        *op_blocks(file.steps, "strong"),
        *host_blocks(file.hosts, "strong", "fact"),
    ]
    if server is not None:
        blocks += server_blocks(server, file.hosts)
    if not file.hosts and file.kind not in ("settings", "policy"):
        blocks.append(value("Hosts", line(Piece("none", "muted"))))
    if file.run_time is not None:
        blocks.append(value("Time", run_time_line(file.run_time)))
    blocks += [
        value("Name", foreign_text(file.name, "strong")),
        value("Kind", line(file.noun)),
        value("File", foreign_text(file.file)),
    ]
    if file.tried is not None:
        blocks += _tried(file.tried)
    if file.source:
        blocks.append(value("From", foreign_text(file.source)))
    if file.connector:
        blocks.append(value("Connector", foreign_text(file.connector)))
    blocks += _account(file)
    blocks.append(value("Digest", foreign_text(file.digest)))
    blocks += publisher_blocks(file.publisher)
    return with_content(blocks, file.content, unfold=unfold)


def server_blocks(server: ServerView, hosts: Sequence[str]) -> Iterator[Block]:
    """Yield what an MCP server is started as, what it may touch, and what agents may do with its tools."""
    label = "URL" if server.is_remote else "Program"
    yield value(label, foreign_text(server.program, "strong"))
    yield from _listed("Writes", [foreign_text(each, "attn") for each in server.files_write])
    yield from _listed("Reads", [foreign_text(each, "strong") for each in server.files_read])
    yield from _listed("Secrets", [foreign_text(each, "strong") for each in server.secrets])
    for word, names in server.tools.items():
        label, role = words.files.TOOL_WORDS[word]
        yield value(label, foreign_text(", ".join(names), role))
    for warning in words.files.server_remarks(server, has_hosts=bool(hosts)):
        yield value("", _remark(warning))


def _tried(tried: TriedShape) -> Iterator[Block]:
    """Yield which of a person's answers the rules of a file would have given, denied ones first."""
    yield value(words.files.PAST, line(words.rules.past(tried)))
    for call in tried.matching[:MAX_PAST]:
        said = (Piece(f"{clock_seconds(call.at)}  "), *foreign_text(call.what))
        if not call.approved:
            said = (Piece("✗ ", "danger"), *said, *foreign_text(words.files.denied(call.reason)))
        yield value("", said)


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
    made += [*allowed_blocks(content), *facts]
    if content.module:
        made.append(value("Module", line(content.module)))
    made.append(blank())
    remark = words.files.WHOLE_KEPT if content.is_kept else words.files.WHOLE_FILE
    if content.module:
        remark = words.files.WHOLE_MANIFEST
    if content.server is not None:
        remark = words.files.WHOLE_SERVER
    compared = before is not None and before.text is not None
    made += content_blocks(content.text, remark, unfold=unfold, must_be_seen=not compared)
    return tuple(made)


def settings_blocks(contents: Sequence[tuple[str, FileContentView]]) -> tuple[Block, ...]:
    """Return what there is to accept of a project: each of its files that asks for something, by name."""
    made: list[Block] = []
    for name, content in contents:
        facts = [heading(words.files.FILE_SECTION), value("File", foreign_text(name, "strong"))]
        if not content.text:
            made += [*facts, value("", _remark(words.files.ASKS_NO_MORE)), blank()]
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


def _key_offer(file: NotAcceptedView) -> Iterator[Block]:
    """Yield the document of a key that is offered in place of an accepted one."""
    whose = file.publisher
    if whose is None:
        return
    yield heading(words.files.KEY_SECTION, _remark(words.files.KEY_WHY))
    yield value("Then", consequence_line(file.kind, file.name, file.gated))
    yield value("Publisher", foreign_text(whose.name, "strong"))
    yield value("Key", foreign_text(whose.key, "strong"))
    yield value(words.files.KEY_BEFORE, foreign_text(whose.accepted, "strong"))
    if whose.is_vouched_for:
        yield value("", (Piece(words.files.KEY_VOUCHED, "ok"),))
    else:
        yield value("", (Piece(words.files.WARN_KEY, "attn"),))


def publisher_blocks(whose: PublisherView | None) -> Iterator[Block]:
    """Yield whose a file is, with which key it is signed, and what is known of that."""
    if whose is None:
        return
    yield value("Publisher", foreign_text(whose.name, "strong"))
    yield value("Key", foreign_text(whose.key or words.files.NO_KEY, "strong"))
    if whose.is_new:
        known = ", ".join(whose.known_as)
        said = words.files.known_key(known) if known else words.files.FIRST_KEY
        yield value("", foreign_text(said, "fact" if known else "attn"))
    elif whose.key == whose.accepted and whose.key:
        yield value("", (Piece(words.files.ACCEPTED_KEY, "muted"),))
    elif whose.accepted:
        yield value(words.files.KEY_BEFORE, foreign_text(whose.accepted, "attn"))


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
    if kind == "publisher":
        return (Piece(words.files.THEN_PUBLISHER),)
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
    title = Piece(words.files.suite_question(len(suite.files), len(suite.new_connectors)), "strong")
    source = truncate_start(brief(suite.suite.source), width - 8)
    rows = [line(" ", chip, "  ", title), line(" ", Piece("from ", "muted"), *source)]
    warned = [
        each
        for whose, count in suite.publishers.items()
        for each in publisher_warnings(whose, "action", of=(count, len(suite.all)))
    ]
    rows += [line(" ", Piece("▲ ", "attn"), *each) for each in dict.fromkeys(warned)]
    if suite.ungated_effects:
        rows.append(
            line(" ", Piece(f"▲ {words.files.suite_warning(len(suite.ungated_effects))}", "attn"))
        )
    return tuple(truncate(each, width - 1) for each in rows)


def suite_blocks(suite: SuiteFiles, *, unfold: bool = False) -> tuple[Block, ...]:
    """Return the document: what to look at first, what holds for all, every other file, all contents."""
    made: list[Block] = [*suite_difference_blocks(suite.all)]
    for each in suite.new_connectors:
        made += [*_connector_of_suite(each), blank()]
    if suite.ungated_effects:
        made += [*_section(suite, words.files.LOOK_FIRST, suite.ungated_effects, "attn"), blank()]
    made += _common_facts(suite)
    for name, files in (
        (words.files.SUITE_GATED, suite.gated),
        (words.files.SUITE_READS, suite.ungated_reads),
    ):
        if files:
            made += [blank(), *_section(suite, name, files)]
    contents = [*suite.new_connectors, *suite.ungated_effects, *suite.other_files]
    made += suite_content_blocks(contents, unfold=unfold)
    return tuple(made)


def _connector_of_suite(file: NotAcceptedView) -> Iterator[Block]:
    """Yield what a connector that came with a suite may do."""
    yield heading(words.files.CONNECTOR_SECTION)
    yield value("Then", consequence_line(file.kind, file.name, file.gated))
    yield from host_blocks(file.hosts, "strong", "fact")
    yield value("Name", foreign_text(file.name, "strong"))
    yield from _account(file)
    if file.content is not None:
        yield value("Module", line(file.content.module))
    yield value("Digest", foreign_text(file.digest))


def _account(file: NotAcceptedView) -> Iterator[Block]:
    """Yield what account a connector asks for, and each of its scopes."""
    yield from _listed("Account", [foreign_text(each) for each in file.account])
    if file.accounts_of:
        moves = words.files.accounts_go_along(", ".join(file.accounts_of))
        yield value("Moves", foreign_text(moves, "attn"))


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
    for whose in suite.publishers:
        yield from publisher_blocks(whose)
    yield from _listed("Left out", [foreign_text(each, "attn") for each in suite.suite.refused])
    yield from _listed("Gone", [foreign_text(each) for each in suite.suite.gone])
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
        if each.preview:
            row = line(*row, Piece("  previews ", "muted"), *foreign_text(each.preview))
        if each.run_time is not None:
            row = line(
                *row, Piece(f"  {words.files.suite_run_time(each.run_time.seconds)}", "attn")
            )
        if each.change == "changed":
            row = line(*row, Piece(f"  {words.files.CHANGED_SINCE}", "attn"))
        if each.cannot_run:
            row = line(*row, Piece(f"  {words.files.CANNOT_RUN}", "attn"))
        yield value("", row)
