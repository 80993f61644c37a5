"""The last steps: between a key and what it asks for, between a line and the terminal."""

import os
from collections.abc import Callable
from dataclasses import replace

import pytest

from aileron_core.console_port.events import ApprovalUpdated
from aileron_tui.state.apply_event import apply_event
from aileron_tui.terminal.driver import ConsoleDriver, InputReceived
from tests.screen.driving import NOW, Console, console, short, start
from tests.support.screens.play import Play


def other_content(play: Play) -> None:
    other = replace(short(), version=2, digest="f" * 64)
    apply_event(play.model, ApprovalUpdated(view=other), NOW, play.clock.monotonic())


def other_size(play: Play) -> None:
    play.page.resize(130, 36)


@pytest.mark.parametrize("happen", [other_content, other_size])
def test_a_press_on_what_changed_before_it_was_drawn_anew_decides_nothing(
    play: Play, happen: Callable[[Play], None]
) -> None:
    """It came within the silence after the press: what was pressed on stands there no more."""
    play.press("a")
    assert play.model.arming.awaits_silence
    happen(play)
    play.clock.advance(0.03)
    play.page.settle(play.clock.monotonic())
    assert play.port.intents == []


async def test_a_key_that_was_read_takes_the_press_back_before_its_event_is_there(
    shown: Console,
) -> None:
    """The press falls due between the reader's word that something came and the key itself."""
    await shown.press("a")
    shown.app.on_input_received(InputReceived("key"))
    shown.clock.advance(0.03)
    shown.app._screens["waiting"].page.settle(shown.clock.monotonic())
    assert shown.port.intents == []
    await shown.shows("Nothing was decided.")


async def test_input_that_lies_in_the_terminal_is_known_before_anybody_reads_it() -> None:
    """What came right behind a press may still lie there when the press is to count."""
    async with console(start(short())) as shown:
        driver = ConsoleDriver(shown.app)
        reader, writer = os.pipe()
        try:
            driver.fileno = reader
            assert not driver.has_unread(0)
            os.write(writer, b"a")
            assert driver.has_unread(0)
            os.read(reader, 1)
            assert not driver.has_unread(0)
            assert driver.has_unread(1), "it was read, and nobody was told yet"
        finally:
            os.close(reader)
            os.close(writer)


def test_a_yes_that_is_on_its_way_cannot_be_given_twice(play: Play) -> None:
    """Until the core has answered the key is gone; a no can still be given."""
    play.press_alone("a")
    play.until(lambda: len(play.port.intents) == 1)
    play.shows("Sending your decision …")
    assert "approve" not in play.keys
    assert "d deny" in play.keys
    play.clock.advance(2)
    play.press_alone("a")
    play.passes(1)
    assert len(play.port.intents) == 1


async def test_what_a_pager_had_covered_rests_anew_before_a_key_counts() -> None:
    """A minute in the pager is no minute before the item: the first key afterwards decides nothing."""
    async with console(start(short())) as shown:

        async def lend(text: str, name: str) -> str:
            shown.clock.advance(60)  # this screen has no terminal that could be lent
            return f"{name} was read, {len(text)} characters."

        shown.app._handoff.show_in_pager = lend
        await shown.press_rested("p", " was read, ")
        assert not shown.armed
        await shown.press_alone("a")
        assert shown.port.intents == []
        await shown.press_rested("a")
        await shown.until(lambda: len(shown.port.intents) == 1)


async def test_all_that_the_console_writes_keeps_its_columns() -> None:
    """The way to the terminal leads through what holds glyphs of unsure width in their cells."""

    class Terminal:
        def __init__(self) -> None:
            self.written: list[str] = []

        def write(self, text: str) -> None:
            self.written.append(text)

    async with console(start(short())) as shown:
        driver, terminal = ConsoleDriver(shown.app), Terminal()
        driver._writer_thread = terminal
        driver.write("\x1b[1;1Ha🏽b")
        assert terminal.written == ["\x1b[1;1H \x1b[1Ga🏽\x1b[2Gb"]
