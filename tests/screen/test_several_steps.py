"""An action of several steps: one press runs them all, so all of them stand there before it."""

from dataclasses import replace

import pytest

from aileron_core.console_port import FieldView, NotAcceptedView, StepView
from tests.screen.driving import console, short, start
from tests.support.screens.calls import later_steps

CHANGE = StepView(
    step_id="change",
    connector="drafts",
    op="update_draft",
    hosts=("gmail.googleapis.com:443",),
    status="fixed",
    asks_again=False,
    inputs=(FieldView(label="to", value="new@nordlicht.example"),),
)
SEND = replace(
    CHANGE, step_id="send", op="send_draft", inputs=(FieldView(label="id", value="r-1"),)
)
SIZES = pytest.mark.parametrize("size", [(80, 24), (120, 36)])


@SIZES
async def test_every_fixed_step_stands_in_the_item_and_in_the_sentence_of_the_yes(
    size: tuple[int, int],
) -> None:
    """With its own arguments, though none of them needs what another returns."""

    view = short(1, steps=(CHANGE, SEND), connector=CHANGE.connector, op=CHANGE.op)
    async with console(start(view), size=size) as shown:
        seen: list[str] = []
        await shown.rest()
        while "not seen yet" in shown.status_line:
            seen += shown.lines
            await shown.press("space")
            await shown.rest()
        assert "(2 steps: update_draft, send_draft)." in shown.status_line
        text = "\n".join([*seen, *shown.lines])
        for line in (
            "update_draft  on gmail",
            "new@nordlicht.example",
            "send_draft  on gmail",
            "r-1",
        ):
            assert line in text


async def test_a_yes_to_a_step_that_was_asked_again_names_what_runs_after_it() -> None:
    """The third step does not ask again: this yes runs it too."""
    async with console(
        start(short(1, steps=later_steps("asked"), connector="tracker", op="comment"))
    ) as shown:
        await shown.read_all()
        assert "(2 steps: comment, set_label)." in shown.status_line


async def test_a_yes_names_no_step_before_which_the_run_asks_again() -> None:
    """It covers the first alone."""
    async with console(
        start(short(1, steps=later_steps(), connector="tracker", op="create_issue"))
    ) as shown:
        await shown.read_all()
        assert "(1 step: create_issue)." in shown.status_line


@SIZES
async def test_an_action_file_that_waits_to_be_accepted_shows_every_step(
    size: tuple[int, int],
) -> None:
    """What it runs, in order."""
    held = NotAcceptedView(
        kind="action", name="change-and-send", file="change-and-send.md", digest="ab" * 32,
        change="new", gated=True, connector="gmail", hosts=("gmail.googleapis.com:443",),
        steps=("gmail.update_draft", "gmail.send_draft"),
    )  # fmt: skip

    async with console(start(held=(held,)), size=size) as shown:
        await shown.read_all()
        assert "┃ 1  gmail.update_draft" in shown.text
        assert "┃ 2  gmail.send_draft" in shown.text
