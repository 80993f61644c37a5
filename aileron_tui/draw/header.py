"""The head of an item: effect, title, deadline; who asks; through what, at which host; every warning about a call."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf

from aileron_core.actions.model import is_builtin
from aileron_core.connectors.read_names import unchecked_op
from aileron_core.console_port.view_models import (
    WAITING_STATES,
    ApprovalView,
    NotAcceptedView,
    RunAheadView,
)
from aileron_core.errors import Problem
from aileron_tui import words
from aileron_tui.draw.acceptance import content_warnings, publisher_warnings
from aileron_tui.draw.accounts import as_whom
from aileron_tui.draw.document import agent_name
from aileron_tui.draw.file_page import suite_head
from aileron_tui.draw.foreign_text import brief, foreign_text, host_names
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.rows import effect_word, requester, running_time
from aileron_tui.draw.steps import steps_to_run
from aileron_tui.draw.text import Line, Piece, cell_width, justify, line, truncate, wrap
from aileron_tui.draw.times import age, clock_seconds, deadline_bar
from aileron_tui.items import Item

WARNING_LINES_COMPACT = 2
_READER_NAME = 24
"""Cells of an agent's name above the reader, at most."""
_GOES_ON: Line = (Piece(" "), Piece("↳ ", "muted"))
"""Begins the lines in which one goes on that may hold text from outside."""


def approval_head(
    view: ApprovalView, warning_lines: Sequence[Line], now: float, width: int, *, compact: bool
) -> tuple[Line, ...]:
    """Return the head's lines: 2 to 5 where *compact*, else 3 and more."""
    lines = [_title(view, now, width)]
    who = line(" ", Piece(agent_name(view), "strong"), Piece(" asks, ", "muted"))
    where, whom = _hosts(view), truncate(as_whom(view.accounts), 2 * (width - 6) - 5)
    containment = words.item.CONTAINMENT[view.containment]
    if compact:
        how = () if view.containment == "verified" else (Piece(f"{containment}, ", "muted"),)
        # Two lines at most: after its end a call may have asked any number of hosts.
        asks = truncate(line(*who, *how, Piece("on ", "muted"), *where), 2 * (width - 6) - 5)
        lines.extend(_wrapped(line(*asks, *whom), width))
    else:
        about = [Piece(f"{age(now - view.requested_at)} ago", "muted")]
        if view.containment != "verified":
            # Before the session's label, which may be cut at the end of the line.
            about.append(Piece(f" · {containment}", "muted"))
        if view.session_label and not view.self_opened:  # such a session has no name
            about += [Piece(" · session ", "muted"), *brief(view.session_label, "muted")]
        if view.cwd:
            about += [Piece(" · in ", "muted"), *brief(view.cwd, "muted")]
        lines.extend(_wrapped(line(*who, *about), width))
        via = line(" ", Piece("via ", "muted"), *_via(view))
        lines.extend(_wrapped(line(*via, Piece(" on ", "muted"), *where, *whom), width))
    lines.extend(draw_warnings(warning_lines, width, compact=compact))
    return tuple(lines)


def reader_head(view: ApprovalView, now: float, width: int) -> Line:
    """Return the one line that stands above the document of a call on the whole screen."""
    return _title(view, now, width, truncate(requester(view), _READER_NAME))


def _title(view: ApprovalView, now: float, width: int, agent: Line = ()) -> Line:
    """Return effect and title of the call, then *agent* and the deadline or how it ended."""
    bar = 10 if width >= 90 else 8
    waiting = view.state in WAITING_STATES
    right = (
        deadline_bar(view.requested_at, view.expires_at, now, bar) if waiting else _ended(view, now)
    )
    first = line(
        " ", Piece(f" {effect_word(view.effect)} ", "chip"), "  ", *brief(view.title, "strong")
    )
    return justify(first, line(*agent, "  " if agent else "", *right, " "), width)


def item_head(
    item: Item | None, warning_lines: Sequence[Line], now: float, width: int, *, compact: bool
) -> tuple[Line, ...]:
    """Return the head of the selected item; nothing if none is selected."""
    if item is None:
        return ()
    if item.approval is not None:
        return approval_head(item.approval, warning_lines, now, width, compact=compact)
    if item.batch is not None:
        first = min(item.calls, key=lambda each: each.expires_at or inf)
        first = replace(first, title=f"{len(item.calls)} × {first.title}")
        return approval_head(first, warning_lines, now, width, compact=compact)
    if item.file is not None:
        return file_head(item.file, warning_lines, width, compact=compact)
    if item.suite is not None:
        return suite_head(item.suite, width)
    return problem_head(item.problem, width) if item.problem is not None else ()


def file_head(
    file: NotAcceptedView, warning_lines: Sequence[Line], width: int, *, compact: bool
) -> tuple[Line, ...]:
    first = line(
        " ",
        Piece(f" {words.files.FILE_EFFECT} ", "chip"),
        "  ",
        Piece(_question(file), "strong"),
    )
    second = line(" ", Piece("file ", "muted"), *brief(file.file))
    lines = [justify(first, (), width), truncate(second, width - 1)]
    lines.extend(draw_warnings(warning_lines, width, compact=compact))
    return tuple(lines)


def file_warnings(file: NotAcceptedView, findings: HiddenCharacters) -> list[Line]:
    """Return Aileron's warnings about a file that is not accepted, most dangerous first."""
    gated = bool(file.gated) if file.kind == "action" else None
    lines = publisher_warnings(file.publisher, file.kind)
    lines += content_warnings(file.content, gated=gated)
    lines.extend((Piece(text, "attn"),) for text in findings.warnings())
    return lines


def _question(file: NotAcceptedView) -> str:
    if file.kind == "settings":
        return words.files.ACCEPT_SETTINGS
    if file.kind == "policy":
        return words.files.ACCEPT_POLICY
    if file.kind == "publisher":
        return words.files.KEY_QUESTION
    return words.files.ACCEPT_READ if file.kind == "preview" else f"Accept this {file.noun}?"


def problem_head(problem: Problem, width: int) -> tuple[Line, ...]:
    chip = Piece(f" {words.files.FILE_EFFECT} ", "chip")
    title = Piece(words.files.PROBLEM_TITLE, "strong")
    second = line(" ", Piece("file ", "muted"), *brief(problem.file))
    return (justify(line(" ", chip, "  ", title), (), width), truncate(second, width - 1))


def warnings(view: ApprovalView, findings: HiddenCharacters, *, file_changed: bool) -> list[Line]:
    """Return Aileron's warnings about the call, most dangerous first.

    *file_changed*: the action file, as it was when the call came, is not accepted any more.
    """
    lines: list[Line] = []
    if view.state == "failed" and view.outcome:  # an unknown outcome begins the document
        lines.append(foreign_text(view.outcome, "danger"))
    if view.drift is not None:
        lines.append((Piece(words.item.WARN_CHANGED, "attn"),))
    lines.extend((Piece(text, "attn"),) for text in findings.warnings())
    if view.preview.status == "unavailable":
        lines.append((Piece(words.item.WARN_NO_PREVIEW, "attn"),))
    if view.self_opened:
        lines.append((Piece(words.item.WARN_SELF_OPENED, "attn"),))
    if any(unchecked_op(read) for read, _ in view.preview.accepted_reads):
        lines.append((Piece(words.files.WARN_READS_UNCHECKED, "attn"),))
    if any(by == "--accept-installed" for _, by in view.preview.accepted_reads):
        lines.append((Piece(words.files.WARN_READS_UNSEEN, "attn"),))
    lines.extend(
        line(
            *foreign_text(field.label, "attn"),
            Piece(words.item.several_values(field.count), "attn"),
        )
        for field in view.preview.fields
        if field.count > 1
    )
    if file_changed and view.state in WAITING_STATES:
        lines.append((Piece(words.item.WARN_FILE_CHANGED, "attn"),))
    if view.waits_for is not None:
        lines.append(_run_ahead(view.waits_for))
    if view.requester_gone:
        lines.append((Piece(words.item.WARN_GONE, "attn"),))
    if view.state == "awaiting_vault" and view.account_need is not None:
        lines.append((Piece(words.vault.WARNINGS[view.account_need.reason], "attn"),))
    return lines


def _run_ahead(ahead: RunAheadView) -> Line:
    """Return which run an approved one waits for, and until when at most."""
    until = clock_seconds(ahead.ends_by) if ahead.ends_by is not None else ""
    name = foreign_text(ahead.action, "attn")
    return line(
        Piece(words.item.WAITS_FOR, "attn"), *name, Piece(words.item.waits_until(until), "attn")
    )


def _hosts(view: ApprovalView) -> Line:
    """Return the hosts that were called; before that the one that its op may reach, or how many."""
    if view.hosts_asked and view.ended_at is not None:
        return host_names(view.hosts_asked)
    hosts = view.op_hosts or view.hosts
    if not hosts:
        return (Piece("this machine" if is_builtin(view.action) else "no host", "muted"),)
    names = (
        host_names(hosts) if len(hosts) == 1 else (Piece(words.item.one_of(len(hosts)), "attn"),)
    )
    more = len(view.hosts) - len(hosts)
    rest = f", later {more} more" if more else ""
    return line(*names, Piece(f"{rest}, see the record" if rest or len(hosts) > 1 else "", "attn"))


def _via(view: ApprovalView) -> Line:
    """Return the first operation that a yes runs, and how many more steps it has."""
    if is_builtin(view.action):
        return (Piece(words.item.BUILTIN_TOOLS),)
    more = len(steps_to_run(view)) - 1
    rest = Piece(words.item.more_steps(more) if more > 0 else "", "attn")
    return line(*foreign_text(f"{view.connector}.{view.op}"), rest)


def _ended(view: ApprovalView, now: float) -> Line:
    if view.started_at is not None:
        return (Piece(running_time(view, now), "ok"),)
    return (Piece(words.item.ROW_STATES.get(view.shown_state, view.state), "strong"),)


def _wrapped(pieces: Line, width: int) -> Sequence[Line]:
    """Return *pieces* on as many lines as they need; those in which they go on begin with a sign of ours.

    Outside text must not begin a line of the head: it could imitate a heading.
    """
    rows = wrap(pieces, width - 6)
    return [
        each.pieces if at == 0 else (Piece("  "), *_GOES_ON, *each.pieces)
        for at, each in enumerate(rows)
    ]


def warnings_beyond_head(warning_lines: Sequence[Line], width: int, *, compact: bool) -> list[Line]:
    """Return the warnings that a *compact* head has no room for, or may cut: the record has them."""
    rows, last_rows = _warning_rows(warning_lines, width)
    if not compact or len(rows) <= WARNING_LINES_COMPACT:
        return []
    pairs = zip(warning_lines, last_rows, strict=True)
    return [text for text, last in pairs if last >= WARNING_LINES_COMPACT - 1]


def draw_warnings(warning_lines: Sequence[Line], width: int, *, compact: bool) -> list[Line]:
    """Return the warnings, three blanks between them, each whole where it fits a line."""
    rows, _ = _warning_rows(warning_lines, width)
    if compact and len(rows) > WARNING_LINES_COMPACT:
        hidden = Piece(f"+{len(rows) - WARNING_LINES_COMPACT} more in the record ", "attn")
        rows = [rows[0], justify(rows[1], (hidden,), width)]
    return rows


def _warning_rows(warning_lines: Sequence[Line], width: int) -> tuple[list[Line], list[int]]:
    """Return every line of the warnings, and in which of these lines each warning ends, from 0."""
    rows: list[Line] = []
    last_rows: list[int] = []
    current: Line = ()
    for text in warning_lines:
        marked: Line = (Piece("▲ ", "attn"), *text)
        if current and cell_width(current) + 3 + cell_width(marked) > width - 1:
            rows.append(current)
            current = ()
        if current:
            current = (*current, Piece("   "), *marked)
        else:
            *full, last = wrap(marked, width - 4)
            for row, each in enumerate(full):
                rows.append((*(_GOES_ON if row else (Piece(" "),)), *each.pieces))
            current = (*(_GOES_ON if full else (Piece(" "),)), *last.pieces)
        last_rows.append(len(rows))
    if current:
        rows.append(current)
    return rows, last_rows
