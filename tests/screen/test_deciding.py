"""Keys that decide, with a second press where something was found, up to the last step."""

import os
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from textual import events

from aileron_core.console_port.events import ApprovalUpdated, CoreLost, IntentRefused, StorageHealth
from aileron_core.console_port.field_views import FieldView, PreviewView
from aileron_core.console_port.intents import Approve, Deny
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from aileron_tui.pages.status_line import footer_line
from aileron_tui.state.apply_event import apply_event
from aileron_tui.terminal.driver import ConsoleDriver, InputReceived
from aileron_tui.widgets.line_input import LineInput
from tests.screen.driving import Console, drive_console, resting
from tests.support.screens.calls import drifted
from tests.support.screens.drawn import situation
from tests.support.screens.play import Play, rested
from tests.support.screens.states import NOW, mail, short, snapshot_of

NO_DISK = StorageHealth(writable=False, message="The disk is full.")
UNFETCHED = PreviewView(status="unavailable", reason="timed out", host="h", updated_at=NOW)


def test_approve_names_the_digest_that_stood_on_screen() -> None:
    play = Play(snapshot_of(mail()), size=(80, 24))
    play.read_all()
    assert "✓ All seen." in play.status_line
    assert "  a  approve" in play.keys
    play.press_alone("a")
    play.asks(Approve(approval_id=mail().approval_id, digest=mail().digest, unseen_lines=0))


def test_an_item_that_was_not_drawn_for_400_ms_is_not_approved() -> None:
    """A key that was on its way when the item appeared hits nothing."""
    play = Play(snapshot_of(short()))
    play.shows("WILL HAPPEN")
    play.passes(0.3)
    play.press_alone("a")
    play.asks_nothing()


def test_a_pane_without_focus_decides_nothing() -> None:
    """A key that comes then was not typed into it, and is not the first of two; nor is one before another key."""
    play = rested(snapshot_of(mail()), size=(80, 24))
    assert "not seen yet" in play.status_line
    play.focus(False)
    play.shows("Your terminal reports that another pane has the focus, so no key decides here.")
    assert "not seen yet" not in play.status_line
    play.go("a")
    play.focus(True)
    play.rest()
    assert "not seen yet" in play.status_line
    assert play.model.pressed_once == ""
    play.press_alone("a", "Press a again")
    play.press("b")
    assert "Press a again" not in play.text
    play.press_rested("a", "Press a again")
    assert play.port.intents == []


def test_unread_lines_want_a_second_press_and_are_counted() -> None:
    play = Play(snapshot_of(mail()), size=(80, 24))
    play.press_rested("a", "lines not seen. Press a again to send a mail draft anyway.")
    assert play.port.intents == []
    play.rest()
    assert "lines unread" in play.keys
    play.press_alone("a")
    assert play.asks_for(Approve).unseen_lines > 0
    for unseen, expected in ((1, "1 line unread"), (2, "2 lines unread")):
        now = situation(snapshot_of(short()), unseen=unseen, total=9, pressed_once="approve")
        assert f"approve, {expected} " in plain_text(footer_line("waiting", now, 120))


def test_deny_tells_the_agent_the_reason_that_was_typed(play: Play) -> None:
    play.press_alone("d", 'Deny "Send a mail draft". Reason (codex will read it):')
    play.clock.advance(0.1)
    play.press(*"wrong", "space", *"list", "enter")
    play.shows("wrong list")
    play.asks_nothing()
    play.press_rested("enter")
    play.asks(Deny(approval_id=mail().approval_id, reason="wrong list"))


async def test_what_comes_with_the_key_that_asks_is_no_reason(shown: Console) -> None:
    """What is typed after a moment is one; leaving the panel decides nothing, and the keys are back."""
    shown.paste(*(events.Key(char, char) for char in "deny"))
    await shown.shows("Reason (codex will read it):", "optional")
    field = shown.app.screen.query_one("#reason", LineInput)
    assert field.value == ""
    await shown.type("no")
    assert field.value == "no"
    await shown.press_alone("escape")
    await shown.until(lambda: "Reason (codex will read it):" not in shown.text)
    assert shown.port.intents == []
    await shown.press_rested("a")
    await shown.asks()


def test_after_a_decision_the_next_item_is_selected_and_unarmed() -> None:
    play = Play(snapshot_of(short(1), short(2), short(3)))
    play.press_rested("a")
    play.asks()
    done = replace(short(1), state="approved", decided_at=NOW, decided_by="person")
    play.port.tell(ApprovalUpdated(view=replace(short(1), state="checking")))
    play.port.tell(ApprovalUpdated(view=done))
    play.shows("✓ Approved: Send a mail draft")
    assert play.selected == short(2).approval_id
    assert not play.armed
    assert "✓ approved" in play.text


def test_a_deadline_within_a_second_takes_no_approval() -> None:
    """A yes that could lose the race against the deadline is not taken."""
    play = Play(snapshot_of(short(expires_at=NOW + 3)))
    play.passes(2.5)
    assert "it expires and does not run" in play.status_line
    play.in_vain("a", "a did nothing: its deadline has passed.")


@pytest.mark.parametrize(
    ("rows", "happen", "said"),
    [
        (12, (), "Make this pane at least 60 x 16."),
        (36, (NO_DISK,), "NOTHING CAN RUN: the audit cannot be written. The disk is full."),
    ],
)
def test_what_stops_every_decision_says_so(rows: int, happen: tuple[Any, ...], said: str) -> None:
    play = rested(snapshot_of(short()))
    play.resize(50 if rows == 12 else 120, rows)
    play.tell(*happen)
    play.shows(said)
    play.go("a")
    play.in_vain("d")
    assert "Reason (" not in play.text


async def test_a_lost_core_is_said_and_the_exit_code_is_70() -> None:
    async with resting(snapshot_of(short())) as shown:
        shown.port.tell(CoreLost(message="The core's thread ended."))
        await shown.shows("THE SERVER HAS STOPPED")
        await shown.go("a")
        await shown.press_alone("d")
        assert shown.port.intents == []
        await shown.press("q")
    assert shown.app.return_code == 70


def test_a_yes_on_its_way_cannot_be_given_twice_and_one_that_is_refused_can(play: Play) -> None:
    """Until the core has answered the key is gone; a no can still be given. Its sentence is shown."""
    play.press_alone("a", "Sending your decision …")
    assert len(play.port.intents) == 1
    assert "approve" not in play.keys
    assert "d deny" in play.keys
    play.clock.advance(2)
    play.press_alone("a")
    play.passes(1)
    assert len(play.port.intents) == 1
    play.port.tell(IntentRefused(call_id=short().approval_id, message="Answered elsewhere."))
    play.shows("Answered elsewhere.")
    play.press_rested("a")
    assert len(play.port.intents) == 2


async def test_quit_asks_once_while_something_waits() -> None:
    async with drive_console(snapshot_of(short())) as shown:
        said = "1 call is waiting. It keeps waiting and expires on time. Press q again to quit."
        await shown.press_rested("q", said)
        assert shown.app.is_running
        await shown.press("q")
    assert shown.app.return_code == 0


def test_a_resize_makes_the_key_rest(play: Play) -> None:
    for size in ((100, 30), (120, 36), (130, 36)):
        play.rest()
        play.resize(*size)
        assert not play.armed
        play.press_alone("a")
    play.press_rested("a")
    play.asks()


def with_subject(subject: str, **changes: Any) -> ApprovalView:
    fields = (short().preview.fields[0], FieldView(label="Subject", value=subject))
    return short(preview=replace(short().preview, fields=fields), **changes)


@pytest.mark.parametrize(
    ("view", "finding"),
    [
        (with_subject("Invoice\u202e 881"), "▲ Hidden text in Subject: RLO."),
        (short(drift=drifted(NOW)), "▲ Changed after you looked: To, Body."),
        (short(preview=UNFETCHED), "Press a again to send a mail draft anyway."),
    ],
    ids=["hidden text", "changed", "no preview"],
)
def test_the_first_yes_names_findings_the_second_decides(view: ApprovalView, finding: str) -> None:
    """Although every line was read: one press is for plain items that Aileron could look at."""
    play = Play(snapshot_of(view), size=(80, 24))
    play.read_all()
    assert "approve…" in play.keys
    play.press_alone("a", finding)
    assert "Press a again" in play.status_line
    assert play.port.intents == []
    play.press_rested("a")
    play.asks_for(Approve)


def test_drift_disarms_shows_both_readings_and_takes_back_the_first_of_two_presses() -> None:
    play = Play(snapshot_of(with_subject("Invoice\u202e 881")))
    play.read_all()
    play.press_alone("a", "Press a again")
    changed = with_subject("Invoice\u202e 99", drift=drifted(NOW), version=2, digest="7" * 64)
    play.port.tell(ApprovalUpdated(view=changed))
    play.shows("CHANGED  nothing has run")
    assert not play.armed
    assert "+ k.varga@mailbox.example" in play.text
    play.read_all()
    play.in_vain("a", "▲ Changed after you looked: To, Body (and 1 more).")


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 60)])
def test_the_three_words_stand_once_with_what_they_are_for(size: tuple[int, int]) -> None:
    play = Play(snapshot_of(mail()), size=size)
    play.read_all()
    for _ in range(2):
        words = play.text.count("amber · canoe · violet")
        assert words == play.text.count("compare when the agent answers") <= 1
        assert words == 1 or size[0] == 80
        for _ in range(9):
            play.press("b")
        play.rest()
    remark = "compare when the agent answers: amber"
    assert remark in play.status_line or size != (120, 36)


@pytest.mark.parametrize("state", ["completed", "failed", "denied", "expired", "withdrawn"])
def test_the_words_of_an_ended_call_can_be_compared_now(state: Any) -> None:
    ended = replace(mail(), state=state, ended_at=NOW)
    for view, said in ((ended, True), (mail(), False)):
        text = "\n".join(plain_text(each.pieces) for each in approval_blocks(view, NOW))
        assert ("amber · canoe · violet  compare with the agent's answer" in text) == said
    tool = replace(ended, action="builtin.bash")  # its answer is the tool's output alone
    text = "\n".join(plain_text(each.pieces) for each in approval_blocks(tool, NOW))
    assert "amber · canoe · violet" in text
    assert "compare" not in text


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


async def test_a_key_that_was_read_takes_the_press_back_before_its_event(shown: Console) -> None:
    await shown.press("a")
    shown.app.on_input_received(InputReceived("key"))
    shown.clock.advance(0.03)
    shown.app._screens["waiting"].page.settle(shown.clock.monotonic())
    assert shown.port.intents == []
    await shown.shows("Nothing was decided.")


async def test_input_that_lies_in_the_terminal_is_known_before_anybody_reads_it() -> None:
    """What came right behind a press may still lie there when the press is to count."""
    async with drive_console(snapshot_of(short())) as shown:
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


async def test_what_a_pager_had_covered_rests_anew_before_a_key_counts() -> None:
    """A minute in the pager is no minute before the item: the first key afterwards decides nothing."""
    async with drive_console(snapshot_of(short())) as shown:

        async def lend(text: str, name: str) -> str:
            shown.clock.advance(60)  # this screen has no terminal that could be lent
            return f"{name} was read, {len(text)} characters."

        shown.app._handoff.show_in_pager = lend
        await shown.press_rested("p", " was read, ")
        assert not shown.armed
        await shown.press_alone("a")
        assert shown.port.intents == []
        await shown.press_rested("a")
        assert len(shown.port.intents) == 1


async def test_all_that_the_console_writes_keeps_its_columns() -> None:
    """The way to the terminal leads through what holds glyphs of unsure width in their cells."""
    async with drive_console(snapshot_of(short())) as shown:
        driver, written = ConsoleDriver(shown.app), list[str]()
        driver._writer_thread = SimpleNamespace(write=written.append)  # pyright: ignore[reportAttributeAccessIssue]
        driver.write("\x1b[1;1Ha🏽b")
        assert written == ["\x1b[1;1H \x1b[1Ga🏽\x1b[2Gb"]
