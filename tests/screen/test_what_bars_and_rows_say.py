"""Where there is little room, or little to say: what stays named, and what nobody may take for more."""

from dataclasses import replace

import pytest

from aileron_core.console_port import FieldView, NotAcceptedView
from aileron_tui.draw.bars import empty_lines, top_bar
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.header import warnings
from aileron_tui.draw.hidden_characters import HiddenCharacters
from aileron_tui.draw.rows import decided_header, row_lines
from aileron_tui.draw.text import cell_width, plain_text
from aileron_tui.input.commands import DEFAULT_REGISTRY
from aileron_tui.input.situation import Situation
from aileron_tui.screens.palette import commands
from aileron_tui.state.queue import Queue
from aileron_tui.state.tables.activity import ActivityTable
from aileron_tui.state.tables.sessions import SessionsTable
from tests.screen.driving import NOW, Console, console, mail, short, start
from tests.support.screens.home import records, sessions


def bar(width: int, *, held: int = 1, problems: int = 0) -> str:
    return plain_text(
        top_bar(
            view="waiting", waiting=7, not_accepted=held, problems=problems, sessions=sessions(NOW),
            now=NOW, width=width,
        )
    )  # fmt: skip


@pytest.mark.parametrize("width", [80, 90, 100, 110, 120, 160, 200])
@pytest.mark.parametrize(("held", "problems"), [(0, 0), (1, 0), (12, 3)])
def test_the_top_bar_keeps_the_views_named_and_what_is_wrong_counted(
    width: int, held: int, problems: int
) -> None:
    """Names of agents and long words go first; what is not accepted and invalid never goes."""
    drawn = bar(width, held=held, problems=problems)
    assert len(drawn) == width
    for name in ("1 Waiting", "2 Activity", "3 Audit"):
        assert name in drawn
    assert (f"▲ {held}" in drawn) == bool(held)
    assert (f"! {problems}" in drawn) == bool(problems)
    assert drawn.endswith("14:02 ")
    assert "…" not in drawn


def test_the_top_bar_says_all_of_it_where_there_is_room() -> None:
    """Agents by name, and what a sign counts."""
    assert "▲ 1 not accepted  ! 2 file problems: press end  ● codex  ● claude  14:02" in bar(
        160, problems=2
    )


@pytest.mark.parametrize("compact", [True, False])
def test_an_agent_that_gave_itself_its_name_is_marked_in_its_row(compact: bool) -> None:
    """In every row: the dotted bar before it, as before all that is a claim."""
    queue = Queue()
    queue.load((short(1, agent="claude", self_opened=True), short(2, agent="claude")), ())
    own, given = (
        " ".join(
            plain_text(each)
            for each in row_lines(item, 60, NOW, hidden=False, selected=False, compact=compact)
        )
        for item in queue.items
    )
    assert "┊ claude" in own
    assert "claude" in given
    assert "┊ claude" not in given


def test_a_call_that_is_looked_at_once_more_says_so_in_its_row() -> None:
    """In the compact layout as well, in place of its time."""
    queue = Queue()
    queue.load((short(1, state="checking"),), ())
    (row,) = row_lines(queue.items[0], 80, NOW, hidden=False, selected=False, compact=True)
    assert plain_text(row).rstrip().endswith("… checking")


def test_a_summary_of_the_hour_ends_with_a_whole_part() -> None:
    """What does not fit is left out, not cut."""
    table = ActivityTable(records(NOW), NOW)
    whole = plain_text(table.header(200, NOW)[0]).strip()
    assert whole.count(" · ") == 4
    for width in range(30, 110):
        drawn = plain_text(table.header(width, NOW)[0]).strip()
        parts = drawn.split(" · ")
        assert parts == whole.split(" · ")[: len(parts)]
        assert cell_width(table.header(width, NOW)[0]) < width


def test_two_folders_are_told_apart_by_their_ends() -> None:
    """A path that does not fit loses its beginning, visibly."""
    first, second = sessions(NOW)[:2]
    long = "/home/ana/work/with/a/long/way/to/it/"
    views = [
        replace(each, process=None, cwd=f"{long}{name}")
        for each, name in ((first, "one"), (second, "two"))
    ]
    table = SessionsTable(views, NOW)
    rows = [plain_text(table.row(n, 80, NOW, selected=False)) for n in range(2)]
    assert {row[-4:] for row in rows} == {"/one", "/two"}
    assert all("…" in row for row in rows)
    assert all(len(row) < 80 for row in rows)


async def test_a_call_whose_action_file_changed_is_not_said_to_run() -> None:
    """The status line says what the yes would do: nothing."""
    held = NotAcceptedView(
        kind="action", name="send-draft", file="actions/send-draft.md", digest="ab" * 32,
        change="changed", gated=True, connector="gmail", hosts=(),
    )  # fmt: skip

    async with console(start(short(1), held=(held,))) as shown:
        await shown.rest()
        assert "Its action file has changed: a would run nothing." in shown.status_line
        assert "Press a to send" not in shown.text


def test_the_outcome_of_a_failed_call_is_said_once_in_its_document() -> None:
    """Above all; the record does not say it again."""
    drawn = "Nothing ran: the action file changed after you looked."
    view = mail(1, state="failed", outcome=drawn, decided_at=NOW, decided_by="person")
    warned = warnings(view, HiddenCharacters(), file_changed=False)
    assert drawn in [plain_text(each) for each in warned]
    rows = [plain_text(each.pieces) for each in approval_blocks(view, NOW, warned)]
    assert rows.count(drawn) == 1
    assert any(row.endswith("  you") for row in rows)


def test_a_list_of_decisions_without_one_says_so() -> None:
    """A heading over nothing would look broken."""
    assert plain_text(decided_header(0)).split() == ["DECIDED", "nothing", "yet"]
    assert "newest first" in plain_text(decided_header(1))


def test_the_calm_screen_of_an_empty_home_is_read_whole_in_a_narrow_pane() -> None:
    """Its commands are wrapped, not cut."""
    rows = empty_lines(last=None, connected=0, actions_ready=0, now=NOW, width=60, height=12)
    assert all(cell_width(row) <= 60 for row in rows)
    drawn = " ".join(" ".join(plain_text(row) for row in rows).split())
    assert "`aileron init --example` or `aileron action add PATH`." in drawn


def test_the_palette_puts_what_is_called_so_before_what_only_contains_it() -> None:
    """`view` means the views, not the preview; `re` means refetch, not every help that holds it."""
    now = Situation(
        view="waiting",
        blocked_by="none",
        deny_blocked_by="none",
        armed=True,
        rows=2,
        approval=mail(),
    )
    found = [each.id for each in commands(DEFAULT_REGISTRY, now, "view")]
    assert found[0].startswith("view_")
    assert found.index("refresh") > found.index("view_sessions")
    assert commands(DEFAULT_REGISTRY, now, "re")[0].id == "refresh"
    assert [each.id for each in commands(DEFAULT_REGISTRY, now, "")] == [
        each.id for each in DEFAULT_REGISTRY.commands if each in commands(DEFAULT_REGISTRY, now, "")
    ]


async def test_the_key_of_code_points_says_what_its_next_press_does() -> None:
    """Code points first, then folded again; where nothing is marked it is not there."""

    field = FieldView(label="Body", value="x\u202ey", multiline=True)
    marked = short(1, preview=replace(short().preview, fields=(field,)))
    async with console(start(marked, short(2))) as shown:
        await shown.rest()
        assert "u code points" in shown.keys
        await shown.go("u", "u fold again")
        assert "code points" not in shown.keys
        await shown.go("u", "u code points")
        await shown.press_alone("j")
        await shown.until(lambda: " u " not in shown.keys, "nothing marked")


async def test_no_key_of_the_page_is_named_while_help_covers_it(shown: Console) -> None:
    """Neither the footer's keys nor the status line's: only those of the help work."""
    assert "approve" in shown.keys
    await shown.go("question_mark", "KEYS")
    assert shown.keys.split() == ["j", "k", "read", "on", "esc", "close"]
    assert "Press a to" not in shown.text
    await shown.go("escape", "Press a to")


@pytest.mark.parametrize(
    ("key", "drawn"),
    [
        ("2", "No records yet."),
        ("3", "No records yet."),
        ("4", "No actions are installed."),
        ("5", "No agent is connected."),
    ],
)
async def test_a_view_without_a_row_says_so_in_its_middle(key: str, drawn: str) -> None:
    """No titles of columns over nothing, and no key that needs a row."""
    async with console(start(sessions=(), records=(), library=(), head_words=None)) as shown:
        await shown.go(key, drawn)
        row = next(at for at, line in enumerate(shown.lines) if drawn in line)
        assert 8 < row < 24
        assert "enter open" not in shown.keys
        assert not any(line.startswith("  time") or "  agent  " in line for line in shown.lines)
