"""Keys that decide, through the whole application."""

from dataclasses import replace

import pytest
from textual import events

from aileron_core.console_port.events import (
    ApprovalUpdated,
    CoreLost,
    IntentRefused,
    LibraryUpdated,
    StorageHealth,
)
from aileron_core.console_port.field_views import PreviewView
from aileron_core.console_port.intents import Accept, Approve, Deny
from aileron_tui.draw.bars import footer_line
from aileron_tui.input.situation import Situation
from aileron_tui.widgets.line_input import LineInput
from tests.screen.driving import NOW, Console, console, mail, resting, short, start
from tests.support.screens.home import not_accepted

HELD = not_accepted()


async def test_approve_names_the_digest_that_stood_on_screen(shown: Console) -> None:
    """A read item at rest is approved by one press, for exactly its digest."""
    assert "  a  approve" in shown.keys
    await shown.press_alone("a")
    await shown.asks()
    view = shown.port.snapshot.approvals[0]
    assert shown.port.intents == [
        Approve(approval_id=view.approval_id, digest=view.digest, unseen_lines=0)
    ]


@pytest.mark.parametrize("key", ["a", "A"])
async def test_an_item_that_was_not_drawn_for_400_ms_is_not_approved(key: str) -> None:
    """A key that was on its way when the item appeared hits nothing."""
    async with console(start(short(can_be_remembered=True))) as shown:
        await shown.shows("WILL HAPPEN")
        await shown.passes(0.3)
        await shown.press_alone(key)
        await shown.asks_nothing()


async def test_moving_and_approving_in_one_breath_does_nothing() -> None:
    """`j a` leaves both items waiting."""
    async with resting(start(short(1), short(2))) as shown:
        await shown.press("j", "a")
        await shown.asks_nothing()


async def test_a_paste_decides_nothing_with_or_without_brackets(shown: Console) -> None:
    """Keys that come at once are a paste, and it is said how many were dropped; with brackets it counts as a key."""
    shown.paste(*(events.Key("space" if c == " " else c, c) for c in "approve it now"))
    await shown.settled()
    shown.clock.advance(0.05)
    await shown.shows("keys arrived at once. Nothing was decided.")
    assert shown.port.intents == []
    await shown.rest()
    shown.paste(events.Paste("a"))
    await shown.settled()
    await shown.press_alone("a")
    assert shown.port.intents == []


async def test_a_pane_without_focus_decides_nothing(shown: Console) -> None:
    """It says so; keys that come while the pane is not in focus were not typed into it."""
    shown.app.post_message(events.AppBlur())
    await shown.shows(
        "Your terminal reports that another pane has the focus, so no key decides here."
    )
    assert "All seen." not in shown.status_line
    shown.clock.advance(1)
    await shown.press_alone("a")
    assert shown.port.intents == []
    shown.app.post_message(events.AppFocus())
    await shown.until(lambda: "All seen." in shown.status_line)


async def test_a_press_without_focus_or_before_another_key_is_not_the_first_of_two() -> None:
    """The one was not typed into this pane; after a look elsewhere the question is asked anew."""
    async with resting(start(mail()), size=(80, 24)) as shown:
        shown.app.post_message(events.AppBlur())
        await shown.settled()
        await shown.press_alone("a")
        shown.app.post_message(events.AppFocus())
        await shown.rest()
        assert shown.model.pressed_once == ""
        await shown.press_alone("a", "Press a again")
        await shown.press("b")
        await shown.until(lambda: "Press a again" not in shown.text)
        await shown.press_rested("a", "Press a again")
        assert shown.port.intents == []


async def test_unread_lines_want_a_second_press_and_are_counted() -> None:
    """The first `a` says how many lines are unread; the second approves and reports them."""
    async with console(start(mail()), size=(80, 24)) as shown:
        await shown.press_rested("a", "lines not seen. Press a again to send a mail draft anyway.")
        assert shown.port.intents == []
        await shown.rest()
        assert "lines unread" in shown.keys
        await shown.press_alone("a")
        intent = await shown.asks_for(Approve)
        assert intent.unseen_lines > 0


@pytest.mark.parametrize(("unseen", "expected"), [(1, "1 line unread"), (2, "2 lines unread")])
def test_what_is_left_unread_is_counted_as_a_person_says_it(unseen: int, expected: str) -> None:
    """The filled key names what it leaves unread."""
    situation = Situation(
        approval=short(),
        blocked_by="none",
        armed=True,
        unseen=unseen,
        total=9,
        pressed_once="approve",
    )
    assert f"approve, {expected} " in "".join(
        piece.text for piece in footer_line("waiting", situation, 120)
    )


async def test_reading_to_the_end_makes_one_press_enough() -> None:
    """`space` reads on; once all was on screen the key is filled."""
    async with console(start(mail()), size=(80, 24)) as shown:
        await shown.read_all()
        assert "✓ All seen." in shown.status_line
        await shown.press_alone("a")
        await shown.asks()
        assert shown.port.intents[0] == Approve(
            approval_id=mail().approval_id, digest=mail().digest, unseen_lines=0
        )


async def test_approve_without_a_preview_wants_the_key_twice() -> None:
    """What Aileron could not look at is not approved by one press."""
    gone = PreviewView(status="unavailable", reason="timed out", host="h", updated_at=NOW)

    async with console(start(short(preview=gone))) as shown:
        await shown.shows("Preview unavailable: timed out")
        await shown.press_rested("a", "Press a again to send a mail draft anyway.")
        assert shown.port.intents == []
        await shown.press_rested("a")
        await shown.asks()


async def test_deny_tells_the_agent_the_reason_that_was_typed(shown: Console) -> None:
    """`d`, a reason, `enter` after a rest of its own: an unbracketed paste ends in one too."""
    await shown.press_alone("d", 'Deny "Send a mail draft". Reason (codex will read it):')
    shown.clock.advance(0.1)
    await shown.press(*"wrong", "space", *"list", "enter")
    await shown.shows("wrong list")
    await shown.asks_nothing()
    await shown.press_rested("enter")
    await shown.asks(Deny(approval_id=mail().approval_id, reason="wrong list"))


async def test_what_comes_at_once_with_the_key_that_asks_is_no_reason_and_escape_leaves_it_waiting(
    shown: Console,
) -> None:
    """What is typed after a moment is one; leaving the panel decides nothing, and the keys are back."""
    shown.paste(*(events.Key(char, char) for char in "deny"))
    await shown.shows("Reason (codex will read it):")
    await shown.shows("optional")
    field = shown.app.screen.query_one("#reason", LineInput)
    assert field.value == ""
    await shown.type("no")
    assert field.value == "no"
    await shown.press_alone("escape")
    await shown.until(lambda: "Reason (codex will read it):" not in shown.text)
    assert shown.port.intents == []
    await shown.press_rested("a")
    await shown.asks()


async def test_drift_disarms_and_shows_both_readings() -> None:
    """What changed after the person looked is shown, and must be looked at anew."""
    from tests.support.screens.calls import drifted

    async with resting(start(short())) as shown:
        assert shown.armed
        changed = replace(short(), version=2, drift=drifted(NOW), digest="f" * 64)
        shown.port.tell(ApprovalUpdated(view=changed))
        await shown.shows("CHANGED  nothing has run")
        assert not shown.armed
        assert "+ k.varga@mailbox.example" in shown.text
        await shown.press_alone("a")
        assert shown.port.intents == []


async def test_after_a_decision_the_next_item_is_selected_and_unarmed() -> None:
    """The cursor goes to the next waiting item, which rests anew; the status line reports the decision."""
    async with console(start(short(1), short(2), short(3))) as shown:
        await shown.press_rested("a")
        await shown.asks()
        done = replace(short(1), state="approved", decided_at=NOW, decided_by="person")
        shown.port.tell(ApprovalUpdated(view=replace(short(1), state="checking")))
        shown.port.tell(ApprovalUpdated(view=done))
        await shown.shows("✓ Approved: Send a mail draft")
        assert shown.selected == short(2).approval_id
        assert not shown.armed
        assert "✓ approved" in shown.text


async def test_a_deadline_within_a_second_takes_no_approval() -> None:
    """A yes that could lose the race against the deadline is not taken."""
    async with console(start(short(expires_at=NOW + 3))) as shown:
        await shown.passes(2.5)
        assert "it expires and does not run" in shown.status_line
        await shown.press_alone("a", "a did nothing: its deadline has passed.")
        assert shown.port.intents == []


async def test_an_audit_that_cannot_be_written_stops_every_decision(shown: Console) -> None:
    """The banner and the status line say so; no decide key works."""
    shown.port.tell(StorageHealth(writable=False, message="The disk is full."))
    await shown.shows("NOTHING CAN RUN: the audit cannot be written. The disk is full.")
    shown.clock.advance(1)
    await shown.press_alone("a")
    await shown.press_alone("d")
    assert shown.port.intents == []
    assert "Reason (" not in shown.text


async def test_a_lost_core_is_said_and_the_exit_code_is_70() -> None:
    """Decide keys are off, one sentence says it, and quitting reports it."""
    async with resting(start(short())) as shown:
        shown.port.tell(CoreLost(message="The core's thread ended."))
        await shown.shows("THE SERVER HAS STOPPED")
        shown.clock.advance(1)
        await shown.press_alone("a")
        await shown.press_alone("d")
        assert shown.port.intents == []
        await shown.press("q")
    assert shown.app.return_code == 70


async def test_a_file_is_accepted_by_its_digest() -> None:
    """One key accepts exactly what was shown; a refusal that is about a file gives its key back."""
    accept = Accept(kind="action", name="post-invoice", digest=HELD.digest)
    async with console(start(held=(HELD,))) as shown:
        await shown.shows("Accept this action?")
        await shown.press_rested("t")
        await shown.asks(accept)
        shown.port.tell(IntentRefused(call_id="", message="The file differs by now."))
        await shown.shows("The file differs by now.")
        await shown.press_rested("t")
        await shown.until(lambda: shown.port.intents == [accept, accept])
        shown.port.tell(LibraryUpdated(not_accepted=(), problems=(), actions_ready=8))
        await shown.shows("✓ Accepted: post-invoice.")
        await shown.press_alone("j", "Nothing is waiting.")


async def test_a_refused_decision_is_said_and_can_be_made_again(shown: Console) -> None:
    """The core's sentence stands in the status line; the item still waits."""
    await shown.press_alone("a")
    await shown.asks()
    refused = IntentRefused(call_id=short().approval_id, message="Answered elsewhere.")
    shown.port.tell(refused)
    await shown.shows("Answered elsewhere.")
    await shown.press_rested("a")
    await shown.until(lambda: len(shown.port.intents) == 2)


async def test_quit_asks_once_while_something_waits() -> None:
    """The first `q` says what stays behind."""
    async with console(start(short())) as shown:
        await shown.press_rested("q")
        await shown.shows(
            "1 call is waiting. It keeps waiting and expires on time. Press q again to quit."
        )
        assert shown.app.is_running
        await shown.press("q")
    assert shown.app.return_code == 0


async def test_a_pane_that_is_too_small_decides_nothing(shown: Console) -> None:
    """Below 60 x 16 one sentence stands there and no key decides."""
    await shown.resize(50, 12)
    await shown.shows("Make this pane at least 60 x 16.")
    shown.clock.advance(1)
    await shown.press_alone("a")
    await shown.press_alone("d")
    assert shown.port.intents == []


async def test_a_resize_makes_the_key_rest(shown: Console) -> None:
    """What moved under the eye is not decided by a key on its way."""
    await shown.resize(100, 30)
    await shown.until(lambda: not shown.armed)
    await shown.press_alone("a")
    assert shown.port.intents == []
