"""The lines around an item: top bar, standing warnings, questions, empty screen."""

from collections.abc import Sequence
from typing import Literal

from aileron_core.console_port.events import Snapshot, VaultStatus
from aileron_core.console_port.view_models import ApprovalView, SessionView
from aileron_tui import words
from aileron_tui.draw.document import words_remark
from aileron_tui.draw.foreign_text import brief, foreign_text
from aileron_tui.draw.read_back import read_back_outcome
from aileron_tui.draw.text import Line, Piece, Role, cell_width, justify, line, truncate, wrap
from aileron_tui.draw.times import age, clock_minutes
from aileron_tui.input.commands import CommandRegistry, View

_LAST_ROLES: dict[str, Role] = {
    "approved": "ok",
    "executing": "ok",
    "completed": "ok",
    "failed": "danger",
    "unknown": "attn",
}

BANNER_ROWS = 3
"""Rows of the banner, unless faults or a pause need more."""
NAMED_AGENTS = 4
"""More agents than these are counted in the top bar."""
_Agents = Literal["named", "counted", "left out"]
_SHORTER: tuple[tuple[int, int, int, _Agents], ...] = (
    (2, 2, 2, "named"),
    (2, 2, 2, "counted"),
    (2, 1, 2, "counted"),
    (2, 0, 2, "counted"),
    (1, 0, 1, "counted"),
    (1, 0, 1, "left out"),
    (0, 0, 1, "left out"),
    (0, 0, 0, "left out"),
)
"""Ever shorter forms of the top bar: words for files not accepted, for problems, for the vault, form of the agents."""


def top_bar(
    *,
    view: View,
    waiting: int,
    unknown: int = 0,
    not_accepted: int,
    problems: int,
    sessions: Sequence[SessionView],
    now: float,
    width: int,
    vault_locked: bool = False,
    vault_waited_for: bool = False,
    registry: CommandRegistry,
) -> Line:
    """Return name, views, count, exceptions, agents at work, clock.

    *vault_locked*: there is a vault, and it is locked; *vault_waited_for*: a call or a session waits for that.
    Where there is no room for all of it, names of agents go first, then words for which a sign
    stands, then the agents, then names of views from the last on, then the word for a locked vault.
    """
    clock = line(Piece(clock_minutes(now), "muted"), " ")
    sides: list[Line] = []
    for of_files, of_problems, of_vault, agents in _SHORTER:
        exceptions = _exceptions(
            view, not_accepted, problems, registry, of_files=of_files, of_problems=of_problems
        )
        if unknown:
            text = words.bars.unknown_outcomes(unknown, of_files)
            exceptions = (Piece(text, "attn"), Piece("  "), *exceptions)
        if vault_locked:
            role: Role = "attn" if vault_waited_for else "muted"
            exceptions = (*exceptions, Piece(words.vault.TOP_BAR[of_vault], role), Piece("  "))
        sides.append((*exceptions, *_agents(sessions, agents), *clock))
    # A view keeps its name while a shorter form of the rest makes room for it; the vault's sign, which counts
    # nothing, keeps its word before that.
    for forms in (sides[:-1], sides[-1:]):
        for named in range(len(words.views.VIEWS), 0, -1):
            left = _views(view, waiting, registry, named)
            for right in forms:
                if cell_width(left) + cell_width(right) < width:
                    return justify(left, right, width)
    return justify(_views(view, waiting, registry, 1), sides[-1], width)


def _exceptions(
    view: View,
    not_accepted: int,
    problems: int,
    registry: CommandRegistry,
    *,
    of_files: int,
    of_problems: int,
) -> Line:
    """Return how many files are not accepted, and how many problems files have with the keys to them."""
    parts: list[Piece] = []
    if not_accepted:
        parts += [Piece(words.bars.not_accepted(not_accepted, of_files), "attn"), Piece("  ")]
    if problems:
        # They are the last rows of the waiting list.
        last_key = registry.key_label("last")
        last_key = (
            last_key if view == "waiting" else f"{registry.key_label('view_waiting')} {last_key}"
        )
        text = words.bars.load_problems(problems, last_key, of_problems)
        parts += [Piece(text, "attn"), Piece("  ")]
    return tuple(parts)


def _views(view: View, waiting: int, registry: CommandRegistry, named: int) -> Line:
    """Return our name and the views, the first *named* of them and the present one by their names."""
    parts: list[Piece] = [Piece(" "), Piece(words.views.NAME, "strong"), Piece("  ")]
    for number, (name, label) in enumerate(words.views.VIEWS.items(), start=1):
        shown = number <= named or name == view
        if name == "rules" and not shown:
            continue  # it makes room for words on what waits
        action = f"view_{name}"
        parts.append(Piece(f" {registry.key_label(action)} ", "muted", action=action))
        if shown:
            parts.append(Piece(label, "view" if name == view else "muted", action=action))
        if name == "waiting" and waiting:
            parts += [Piece(" "), Piece(f" {waiting} ", "badge")]
        parts.append(Piece(" " if shown else ""))
    return line(*parts)


def _agents(sessions: Sequence[SessionView], how: _Agents) -> list[Piece]:
    connected = [each for each in sessions if each.connected]
    if not connected or how == "left out":
        return []
    if how == "counted" or len(connected) > NAMED_AGENTS:
        noun = "agent" if len(connected) == 1 else "agents"
        return [Piece(f"{len(connected)} {noun}", "muted"), Piece("  ")]
    parts: list[Piece] = []
    for each in connected:
        dot = Piece("?", "attn") if each.self_opened else Piece("●", "ok")
        parts += [dot, Piece(" "), *truncate(brief(each.agent, "muted"), 12), Piece("  ")]
    return parts


def banner_lines(
    *,
    lost: str | None,
    storage: str | None,
    warnings: Sequence[Line],
    width: int,
    help_key: str,
    paused: str = "",
    replayed: str = "",
    attached: bool = False,
) -> tuple[Line, ...]:
    """Return the banner's lines: faults first, then *paused*, then *lasting* warnings.

    *replayed*: the screen below is one of an earlier time. Of the lasting warnings those
    that have no room are counted, with *help_key*, which shows them all.
    """
    rows: list[Line] = []
    if lost is not None:
        said = words.bars.BANNER_CUT_OFF if attached else words.bars.BANNER_LOST
        rows.append(line(" ", Piece(said, "danger"), " ", *foreign_text(lost)))
    if storage is not None:
        rows.append(
            line(" ", Piece(words.bars.BANNER_STORAGE, "danger"), " ", *foreign_text(storage))
        )
    if paused:
        rows.append(line(" ", Piece(f"▲ {paused}", "attn")))
    if replayed:
        rows.append(line(" ", Piece(f"▲ {replayed}", "attn")))
    most = max(BANNER_ROWS - len(rows), 1)
    shown = warnings if len(warnings) <= most else warnings[: most - 1]
    rows += [line(" ", *each) for each in shown]
    if hidden := len(warnings) - len(shown):
        more = words.bars.more_warnings(hidden, of_more=bool(shown), key=help_key)
        rows.append(line(" ", Piece(more, "attn")))
    return tuple(truncate(each, width - 1) for each in rows)


def startup_warnings(
    start: Snapshot,
    *,
    vault: VaultStatus,
    withheld: Sequence[str] = (),
    lacks_letters: bool = False,
) -> tuple[Line, ...]:
    """Return the warnings that stay as long as this console runs, most dangerous first, each on one line of any length."""
    rows: list[Line] = []
    if start.accepted_installed:
        rows.append((Piece(words.bars.accepted_installed(), "attn"),))
    if vault.problem:
        rows.append(line(Piece("▲ ", "attn"), *foreign_text(vault.problem, "attn")))
    if vault.unattended:
        rows.append((Piece(words.vault.UNATTENDED, "attn"),))
    if withheld:
        said = words.vault.settings_withheld(withheld, locked=vault.state == "locked")
        rows.append((Piece(said, "attn"),))
    for route in start.routes:
        source, _, target = route.partition(" -> ")
        goes = (
            Piece(words.bars.ROUTE_TO, "attn"),
            *foreign_text(target, "attn"),
            Piece(".", "attn"),
        )
        begin = Piece(f"▲ {words.bars.ROUTE}", "attn")
        rows.append(line(begin, *foreign_text(source, "attn"), *goes))
    if start.attached:
        said = words.bars.attached(start.attached, is_owners=start.is_owners)
        rows.append((Piece(said, "attn"),))
    if start.inspects_models:
        rows.append((Piece(words.bars.inspects_models(), "attn"),))
    if lacks_letters:
        rows.append((Piece(words.bars.LACKS_LETTERS, "attn"),))
    return tuple(rows)


def status_row(status: Line, compared: ApprovalView | None, width: int) -> Line:
    """Return the status line, at its right end what the three words of *compared* are for, and the words, if there is room."""
    left, right = line(" ", *status), ()
    if compared is not None:
        right = (Piece(f"{_words_to_compare(compared)} ", "muted"),)
    if cell_width(left) + cell_width(right) + 2 > width:
        right = ()
    return justify(left, right, width)


def _words_to_compare(view: ApprovalView) -> str:
    """Return the three words of *view*, after what they are for; empty where its agent is not told them."""
    remark = words_remark(view)
    return f"{remark}: {' · '.join(view.words)}" if view.words and remark else ""


def panel_question(
    question: str, remark: str, width: int, role: Role = "muted"
) -> tuple[Line, ...]:
    """Return the question of a panel, with its explanation beside or below it."""
    question_line, remark_line = (
        line(" ", Piece(question, "strong")),
        line("  ", Piece(remark, role)),
    )
    if not remark:
        return (truncate(question_line, width - 1),)
    if cell_width(question_line) + cell_width(remark_line) < width:
        return (line(*question_line, *remark_line),)
    rows = wrap((Piece(remark, role),), width - 2)
    return (truncate(question_line, width - 1), *((Piece(" "), *each.pieces) for each in rows))


def empty_lines(
    *,
    last: ApprovalView | None,
    connected: int,
    actions_ready: int,
    now: float,
    width: int,
    height: int,
) -> tuple[Line, ...]:
    """Return the calm screen of an empty list, centred."""
    rows: list[Line] = [(Piece(words.bars.NOTHING_WAITS, "strong"),), ()]
    if last is not None:
        at = last.decided_at or last.ended_at or last.requested_at
        glyph = words.item.GLYPHS[last.shown_state]
        role = _LAST_ROLES.get(last.state, "muted")
        tail = f", {words.item.OUTCOMES.get(last.shown_state, last.state)} {age(now - at)} ago"
        title = truncate(brief(last.title), max(8, width - 40))
        rows.append(line(Piece("Last: ", "muted"), Piece(f"{glyph} ", role), *title, tail))
        if last.shown_state in ("failed", "unknown") and last.outcome:
            wrapped = wrap(foreign_text(last.outcome, _LAST_ROLES[last.state]), max(8, width - 4))
            rows += [each.pieces for each in wrapped]
        if last.read_back is not None:
            outcome = wrap(read_back_outcome(last.read_back), max(8, width - 4))
            rows += [each.pieces for each in outcome]
        if text := _words_to_compare(last):
            rows.append((Piece(text, "muted"),))
        rows.append(())
    if connected:
        rows.append((Piece(words.bars.agents_at_work(connected), "muted"),))
    ready = wrap((Piece(words.bars.ready_actions(actions_ready), "muted"),), max(8, width - 4))
    rows += [each.pieces for each in ready]
    return centred(rows, width, height)


def centred(rows: Sequence[Line], width: int, height: int) -> tuple[Line, ...]:
    above = max(0, (height - len(rows)) // 2)
    blank: list[Line] = [()] * above
    margins = (Piece(" " * max(0, (width - cell_width(row)) // 2)) for row in rows)
    return (
        *blank,
        *(line(margin, *row) if row else () for margin, row in zip(margins, rows, strict=True)),
    )
