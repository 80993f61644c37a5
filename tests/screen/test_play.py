"""A play shows what the console shows: every line of every view, in every layout."""

import pytest

from tests.screen.driving import console, mail, short, start
from tests.support.screens.calls import snapshot
from tests.support.screens.play import Play
from tests.support.screens.states import NOW, denied
from tests.support.variants import ALL

SIZES = [(40, 10), (80, 24), (120, 36), *([(60, 16), (200, 50)] if ALL else ())]
KEYS = ["j", "space", "v", "escape", "tab", "d", "x", "escape", "h", "escape", "2", "enter", "4", "j", "enter", "3", "5", "6", "1"]  # fmt: skip
STATES = {
    "fixtures": lambda: snapshot(NOW),
    "mails": lambda: start(mail(1), short(2), denied(3), routes=("a.example:443 -> 127.0.0.1:1",)),
    "empty": start,
}


@pytest.mark.parametrize(
    ("state", "size"),
    [*(("fixtures", size) for size in SIZES), ("mails", (120, 36)), ("empty", (80, 24))],
)
async def test_a_play_has_the_lines_of_the_console(state: str, size: tuple[int, int]) -> None:
    """After each of some keys that go everywhere; what the field shows of itself is Textual's."""
    made = STATES[state]
    async with console(made(), size) as shown:
        play = Play(made(), size)
        for key in ("", *KEYS):
            if key:
                await shown.press_alone(key)
                play.press_alone(key)
            await shown.passes(2)
            await shown.passes(2)
            play.passes(2)
            play.passes(2)
            seen, played = ([each.rstrip() for each in one.lines] for one in (shown, play))
            if play.model.panel == "deny":
                del seen[-2], played[-2]
            assert seen == played, f"after {key!r}"
