"""A call whose outcome nobody knows: the first that waits, until a person acknowledges it."""

from dataclasses import replace

import pytest

from aileron_core.console_port import (
    Acknowledge,
    ApprovalUpdated,
    ApprovalView,
    PreviewView,
    Recorded,
    RefetchPreview,
)
from aileron_tui.input.situation import availability
from aileron_tui.state.situation import situation_of
from tests.screen.driving import NOW, Console, console, mail, short, start

LOST = (
    "The step send failed after it had sent a request (the time limit of 60 s was over). Whether the "
    "request took effect is unknown. It is not repeated; check the service before you try again."
)


def lost(number: int, **changes: object) -> ApprovalView:
    known = {
        "state": "unknown",
        "outcome": LOST,
        "decided_at": NOW - 40,
        "ended_at": NOW - 10,
        "can_fetch_again": True,
        "awaits_acknowledgement": True,
        "hosts_asked": ("mail.example.com:443",),
    }
    view = mail(number)
    before = replace(view.preview, updated_at=NOW - 50)
    return replace(view, **{**known, "preview": before, **changes})


def rows(shown: Console) -> list[str]:
    model = shown.app._model
    assert model is not None
    return [item.key for item in model.queue.items]


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_it_stands_first_and_its_answer_is_in_view(size: tuple[int, int]) -> None:
    """After a start, whatever came before it; in the top bar it is counted by name."""
    async with console(start(short(1), short(2), lost(3)), size=size) as shown:
        await shown.rest()
        assert rows(shown) == [lost(3).approval_id, short(1).approval_id, short(2).approval_id]
        assert shown.selected == lost(3).approval_id
        assert " 3 " in shown.lines[0]
        assert "? 1 unknown" in shown.lines[0]
        for text in ("OUTCOME  unknown", "after it had sent a request", "Contacted", "Check"):
            assert text in shown.text
        assert shown.text.count("after it had sent a request") == 1
        assert "l looks again, m acknowledges." in shown.status_line
        assert "l look again" in shown.keys
        assert "m  acknowledge" in shown.keys
        await shown.press_alone("l")
        await shown.until(lambda: bool(shown.port.intents))
        read = replace(lost(3).preview, updated_at=NOW + 30)
        shown.port.tell(ApprovalUpdated(view=lost(3, preview=read, version=9)))
        await shown.shows("HOW IT IS NOW")
        assert "Compare the current state" in shown.text
        gone = PreviewView(status="unavailable", reason="timed out", updated_at=NOW + 60)
        shown.port.tell(ApprovalUpdated(view=lost(3, preview=gone, version=10)))
        await shown.shows("timed out")
        assert "l fetches the current state from the service." in shown.text


async def test_one_key_acknowledges_what_stands_there() -> None:
    """Then the next call is selected; the report says that it stays on record."""
    async with console(start(short(1), lost(3)), answers=True) as shown:
        await shown.rest()
        await shown.press_alone("m")
        await shown.until(lambda: bool(shown.port.intents))
        seen = lost(3)
        assert shown.port.intents == [
            Acknowledge(call_id=seen.call_id, preview_at=seen.preview.updated_at)
        ]
        await shown.shows("✓ Acknowledged: Send a mail draft.")
        assert shown.selected == short(1).approval_id
        assert "unknown" not in shown.lines[0]
        await shown.passes(3)
        assert seen.approval_id in rows(shown)
        await shown.press_alone("1")
        await shown.until(lambda: rows(shown) == [short(1).approval_id])


async def test_what_was_read_meanwhile_is_seen_before_it_is_acknowledged() -> None:
    """A press under a look that comes back is not taken for what it shows."""
    async with console(start(lost(3))) as shown:
        await shown.rest()
        read = replace(lost(3).preview, updated_at=NOW + 30)
        await shown.press("m")
        shown.port.tell(ApprovalUpdated(view=lost(3, preview=read, version=9)))
        await shown.shows("HOW IT IS NOW")
        shown.clock.advance(0.03)
        await shown.settled()
        assert not shown.port.intents
        await shown.rest()
        await shown.press_alone("m")
        await shown.until(lambda: bool(shown.port.intents))
        assert shown.port.intents == [Acknowledge(call_id=lost(3).call_id, preview_at=NOW + 30)]


async def test_a_call_that_ends_so_goes_to_the_top_and_takes_no_cursor() -> None:
    """It does not leave by itself; a filter and another order keep it first."""
    async with console(start(short(1), short(2), short(3))) as shown:
        await shown.rest()
        running = replace(short(3), state="executing", decided_at=NOW, decided_by="person")
        shown.port.tell(ApprovalUpdated(view=running), ApprovalUpdated(view=lost(3)))
        await shown.shows("? 1 unknown")
        assert shown.selected == short(1).approval_id
        first = [lost(3).approval_id, short(1).approval_id, short(2).approval_id]
        assert rows(shown) == [*first[1:], first[0]]  # no row moves until a key
        await shown.press_alone("o")
        assert rows(shown)[0] == first[0]
        await shown.passes(600)
        assert rows(shown)[0] == first[0]
        await shown.press_alone("home")
        assert shown.selected == first[0]
        assert "approve" not in shown.keys
        assert "deny" not in shown.keys


async def test_a_call_that_asked_nobody_waits_in_the_same_way() -> None:
    """Named by its run; it says that nobody was asked, and is no decision."""
    alone = lost(3, approval_id="", decided_at=None, digest="", words=None)
    async with console(start(short(1), alone), answers=True) as shown:
        await shown.rest()
        assert rows(shown) == [alone.run_id, short(1).approval_id]
        assert shown.selected == alone.run_id
        assert "? 1 unknown" in shown.lines[0]
        assert "without asking you" in shown.text
        model = shown.app._model
        assert model is not None
        for absent in ("approve", "deny", "open_review"):
            assert not availability(absent, situation_of(model, NOW, 10.0)).shown
        await shown.press_alone("l")
        await shown.until(lambda: RefetchPreview(call_id=alone.run_id) in shown.port.intents)
        await shown.shows("HOW IT IS NOW")
        await shown.rest()
        await shown.press_alone("m")
        await shown.until(lambda: isinstance(shown.port.intents[-1], Acknowledge))
        await shown.shows("✓ Acknowledged: Send a mail draft.")
        assert shown.selected == short(1).approval_id
        assert model.queue.decided == ()


async def test_without_a_preview_op_the_check_names_what_is_left_to_do() -> None:
    async with console(start(lost(3, can_fetch_again=False))) as shown:
        await shown.rest()
        await shown.shows("Check the service yourself")
        assert "Check the service itself, m acknowledges." in shown.status_line
        await shown.press_alone("l")
        assert RefetchPreview not in map(type, shown.port.intents)


async def test_it_is_not_counted_as_something_that_can_be_denied_or_expires() -> None:
    """Stopping everything leaves it, and quitting asks for nothing on its account."""
    async with console(start(short(1), lost(3))) as shown:
        await shown.rest()
        await shown.press_alone("ctrl+k")
        await shown.shows("1 call")
        await shown.press_alone("escape")
        model = shown.app._model
        assert model is not None
        assert (model.queue.waiting, model.queue.undecided) == (2, 1)


async def test_its_page_in_the_activity_says_what_to_check_too() -> None:
    """Until a person acknowledged it; then there is no open question."""
    view = lost(3)
    async with console(start(view), size=(120, 40)) as shown:
        last = shown.port.snapshot.records[-1]
        ended = replace(
            last, seq=4000, event="run.unknown", run_id=view.run_id, session_id=view.session_id
        )
        shown.port.tell(Recorded(record=ended, head_words=("olive", "pixel")))
        await shown.go("2", "calls in the last hour")
        await shown.press("home")
        await shown.go("enter", "Contacted")
        for text in (
            "OUTCOME",
            "mail.example.com:443",
            "l fetches the current state from the service.",
        ):
            assert text in shown.text, text
        assert shown.text.count("The step send failed") == 1
        known = replace(view, awaits_acknowledgement=False, version=9)
        shown.port.tell(ApprovalUpdated(view=known))
        noted = replace(ended, seq=4001, event="run.acknowledged", actor="person")
        shown.port.tell(Recorded(record=noted, head_words=("olive", "pixel")))
        await shown.until(lambda: "l fetches the current state" not in shown.text)
