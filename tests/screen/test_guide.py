"""The line by which a demo leads through the console: it decides nothing, and covers nothing."""

from collections.abc import Callable

from aileron_tui.draw.guide import GuideLine
from aileron_tui.input.commands import CommandRegistry
from aileron_tui.pages.commands.everywhere import NEXT_SCENE
from aileron_tui.pages.keymap import COMMANDS
from tests.screen.driving import resting
from tests.support.screens.play import Play
from tests.support.screens.states import short, start

REGISTRY = CommandRegistry((*COMMANDS, NEXT_SCENE))


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
    async with resting(start(short()), guide=leader, registry=REGISTRY) as shown:
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
    play = Play(start(short()), registry=REGISTRY)
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
