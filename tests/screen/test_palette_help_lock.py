"""What stands over a page: every command by name, the keys, and nothing at all while it is locked; a demo's line."""

import re
from collections.abc import Callable
from dataclasses import replace

import pytest
from textual import events

from aileron_core.console_port.events import ApprovalUpdated
from aileron_tui.draw.guide import GuideLine
from aileron_tui.draw.text import cell_width, plain_text
from aileron_tui.input.commands import VIEWS, CommandRegistry
from aileron_tui.pages.command import availability
from aileron_tui.pages.commands.everywhere import NEXT_SCENE
from aileron_tui.pages.keymap import COMMANDS, DEFAULT_REGISTRY, remap_keys
from aileron_tui.screens.console import ConsoleScreen, LockScreen
from aileron_tui.screens.help import help_lines
from aileron_tui.screens.palette import commands
from aileron_tui.widgets.line_input import LineInput
from tests.screen.driving import drive_console, resting
from tests.support.screens.drawn import situation
from tests.support.screens.home import library_items, sessions
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, short, snapshot_of

STATE = snapshot_of(short(1), short(2), library=library_items(NOW), sessions=sessions(NOW))
REGISTRY = CommandRegistry((*COMMANDS, NEXT_SCENE))


def test_no_decision_is_in_the_palette() -> None:
    for view in VIEWS:
        now = situation(STATE, view, blocked_by="none", deny_blocked_by="none", armed=True, rows=2)
        found = commands(DEFAULT_REGISTRY, now, "")
        assert found
        assert not any(each.decides for each in found)
        assert all(availability(each, now).shown for each in found)
        assert "approve" not in [each.id for each in found]


async def test_after_the_palette_every_key_rests_anew() -> None:
    """It covered the item. A paste into it, `: quit enter` at once, does nothing; typed words choose what `enter` does."""
    async with resting(STATE) as shown:
        keys = ("colon", *"quit", "enter")
        shown.paste(*(events.Key(key, key if len(key) == 1 else None) for key in keys))
        await shown.shows("every command by name")
        await shown.go("escape", "WILL HAPPEN")
        assert shown.app.is_running
        assert "every command" not in shown.text
        assert not shown.armed
        await shown.press_alone("a")
        await shown.passes(0.1)
        assert shown.port.intents == []
        await shown.rest()
        for words, there in (
            ("audit", "not verified since"),
            ("verify", "no gaps, chain verified"),
        ):
            await shown.go("colon", "every command by name")
            await shown.type(words)
            await shown.shows(f"▌ {words}")
            await shown.go("enter", there)


@pytest.mark.parametrize("width", [56, 68])
@pytest.mark.parametrize("context", VIEWS)
def test_help_names_every_key_of_its_view_whole(context: str, width: int) -> None:
    rows = help_lines(DEFAULT_REGISTRY, context, width)  # pyright: ignore[reportArgumentType]
    text = re.sub(r"\s+", " ", " ".join(plain_text(row) for row in rows))
    assert all(cell_width(row) < width for row in rows)
    for each in DEFAULT_REGISTRY.in_context(context):  # pyright: ignore[reportArgumentType]
        if each.help and not each.id.startswith("view_"):
            assert each.help in text, each.id


def test_remapped_keys_are_the_ones_that_work_and_that_the_screen_names() -> None:
    registry = remap_keys((("approve", "y"), ("copy", "c"), ("read_on", "n"), ("view_audit", "9")))

    play = rested(STATE, registry=registry)
    assert " y  approve" in play.keys
    assert "Press y to send a mail draft." in play.status_line
    assert " 9 Audit" in play.lines[0]
    play.press_alone("a")
    play.passes(0.1)
    assert play.port.intents == []
    play.press_rested("y")
    assert len(play.port.intents) == 1
    play.go("9", "not verified since")


async def test_an_idle_console_hides_everything_until_a_key_which_does_nothing_else() -> None:
    async with drive_console(snapshot_of(replace(short(), expires_at=None))) as shown:
        await shown.passes(100_000)
        assert "Locked" not in shown.text, "without a setting"
    async with resting(STATE, lock_seconds=60.0) as shown:
        for _ in range(4):
            shown.clock.advance(40)
            await shown.press_alone("j")
            await shown.tick()
        assert "WILL HAPPEN" in shown.text, "each key counts anew from zero"
        shown.clock.advance(70)
        await shown.shows("Locked. 2 calls are waiting.")
        for word in ("Q3", "codex", "SEND", "WILL", "gmail"):
            assert word not in shown.text
        shown.port.tell(ApprovalUpdated(view=short(3)))
        await shown.shows("Locked. 3 calls are waiting.")
        assert "Q3" not in shown.text
        shown.clock.advance(5)
        await shown.press_alone("a", "WILL HAPPEN")
        assert not shown.armed
        await shown.passes(0.1)
        assert shown.port.intents == []
        await shown.press_rested("a")
        await shown.until(lambda: len(shown.port.intents) == 1)


async def test_nothing_counts_as_seen_behind_the_lock() -> None:
    """What changes meanwhile is unread when the person comes back."""
    view = replace(short(), expires_at=None)
    async with drive_console(snapshot_of(view), lock_seconds=60.0) as shown:
        model = shown.model
        await shown.read_all()
        assert model.reading.unseen == 0
        shown.clock.advance(70)
        await shown.shows("Locked.")
        shown.port.tell(ApprovalUpdated(view=replace(view, version=2, digest="7" * 64)))
        page = shown.app.screen_stack[-2]
        assert isinstance(page, ConsoleScreen)
        for _ in range(3):
            await shown.passes(1.0)
            page.page.reader.look()
        assert model.reading.unseen > 0
        await shown.press_alone("space")
        await shown.read_all()
        assert model.reading.unseen == 0


def test_an_update_while_the_lock_comes_or_goes_does_not_end_the_console() -> None:
    play = rested(STATE)
    LockScreen(play.model).redraw()


async def test_the_lock_covers_what_stood_over_the_page() -> None:
    async with drive_console(STATE, lock_seconds=60.0) as shown:
        await shown.go("d", "Reason (codex will read it):")
        await shown.type("no")
        shown.clock.advance(70)
        await shown.shows("Locked. 2 calls are waiting.")
        await shown.press_alone("x", "Reason (codex will read it):")
        assert shown.app.screen.query_one("#reason", LineInput).value == "no"
        shown.clock.advance(70)
        await shown.shows("Locked. 2 calls are waiting.")
        await shown.press_alone("enter", "Reason (codex will read it):")
        assert shown.port.intents == []
        await shown.press_rested("enter")
        await shown.until(lambda: len(shown.port.intents) == 1)


class Leader:
    def __init__(self) -> None:
        self.went_on = 0
        self.show: Callable[[GuideLine], object] = lambda said: None

    def begin(self, show: Callable[[GuideLine], object]) -> None:
        self.show = show
        show(GuideLine(step="1 of 6", sentence="A plain mail.", has_next=True))

    def go_on(self) -> None:
        self.went_on += 1


async def test_a_demo_says_its_line_above_the_status_line_and_goes_on_with_its_key() -> None:
    leader = Leader()
    async with resting(snapshot_of(short()), guide=leader, registry=REGISTRY) as shown:
        assert shown.lines[-3].startswith("  1 of 6  A plain mail.")
        assert "S next scene" in shown.keys
        await shown.press("S")
        assert leader.went_on == 1
        assert shown.port.intents == []
        leader.show(GuideLine(step="", sentence="That was the demo."))
        await shown.shows("That was the demo.")
        await shown.rest()
        assert "next scene" not in shown.keys
        await shown.press("S")
        assert leader.went_on == 1
    assert "S" not in {key for each in COMMANDS for key in each.keys}, "no other console has it"


def test_what_service_and_agent_say_stands_right_of_a_bar() -> None:
    play = Play(snapshot_of(short()), registry=REGISTRY)
    play.guide(
        GuideLine(
            step="3 of 6", sentence="It ran.", service="sent\n 4 of 6  Forged.",
            agent="mail-agent", agent_words="completed \u202etxt", has_next=True,
        )
    )  # fmt: skip
    play.shows("It ran.")
    play.rest()
    service, agent = play.lines[-4:-2]
    assert service.startswith(" service  ┃ sent‹LF› 4 of 6  Forged.")
    assert agent.startswith(" agent    ┊ mail-agent: completed ‹RLO›txt")
