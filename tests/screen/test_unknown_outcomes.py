"""A call whose outcome nobody knows: the first that waits, until a person acknowledges it."""

from dataclasses import replace

import pytest

from aileron_core.console_port import (
    Acknowledge,
    ApprovalUpdated,
    ApprovalView,
    FieldView,
    LookView,
    PreviewView,
    ReadBackFieldView,
    ReadBackView,
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


def looked_at(number: int, **look: object) -> ApprovalView:
    """Return such a call at which a person has looked again; what was read is the same, or *look* says."""
    read = LookView(preview=replace(mail(number).preview, updated_at=NOW + 30))
    return lost(number, look=replace(read, **look), version=9)


def compared(*differing: str) -> ReadBackView:
    """Return a comparison of two fields in which *differing* are not as approved."""
    fields = tuple(
        ReadBackFieldView(
            approved=FieldView(label=label, value="ana@example.com"),
            found=FieldView(label=label, value="eve@evil.example"),
            from_agent=True,
        )
        for label in differing
    )
    return ReadBackView(
        status="differs" if differing else "held",
        at=NOW + 30,
        compared=2,
        differing=fields,
        labels=differing,
    )


def settled(number: int, **changes: object) -> ApprovalView:
    view = looked_at(number, comparison=compared())
    over = replace(view, awaits_acknowledgement=False, can_fetch_again=False, version=10)
    return replace(over, **changes)


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
        shown.port.tell(ApprovalUpdated(view=looked_at(3)))
        await shown.shows("HOW IT IS NOW")
        told = "Aileron cannot tell from the answer below whether it ran; m acknowledges."
        assert told in shown.status_line
        assert told in " ".join(shown.text.split())
        assert "l fetches the current state" not in shown.text


async def test_one_key_acknowledges_what_stands_there() -> None:
    """Then the next call is selected; the report says that it stays on record."""
    async with console(start(short(1), lost(3)), answers=True) as shown:
        await shown.rest()
        await shown.press_alone("m")
        await shown.until(lambda: bool(shown.port.intents))
        seen = lost(3)
        assert shown.port.intents == [Acknowledge(call_id=seen.call_id, looked_at=None)]
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
        await shown.press("m")
        shown.port.tell(ApprovalUpdated(view=looked_at(3)))
        await shown.shows("HOW IT IS NOW")
        shown.clock.advance(0.03)
        await shown.settled()
        assert not shown.port.intents
        await shown.rest()
        await shown.press_alone("m")
        await shown.until(lambda: bool(shown.port.intents))
        assert shown.port.intents == [Acknowledge(call_id=lost(3).call_id, looked_at=NOW + 30)]


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


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_what_is_gone_keeps_its_row_and_what_was_shown(size: tuple[int, int]) -> None:
    """The gist is that of before; why nothing could be read stands under how it is now."""
    gone = PreviewView(
        status="unavailable",
        reason="mail.example.com answered 404 (Not Found)",
        updated_at=NOW + 30,
        not_found=True,
    )
    async with console(start(lost(3)), size=size) as shown:
        await shown.rest()
        gist = lost(3).preview.gist
        assert gist[:20] in shown.text
        await shown.press_alone("l")
        shown.port.tell(ApprovalUpdated(view=looked_at(3, preview=gone)))
        found = "No longer found: mail.example.com answered 404 (Not Found)"
        await shown.shows("HOW IT IS NOW")
        assert found in shown.status_line
        assert gist[:20] in shown.text
        assert "No preview" not in shown.text
        assert "l fetches the current state" not in shown.text
        await shown.press("v")
        await shown.shows("WHAT WAS SHOWN")
        assert found in shown.text
        assert shown.text.index("HOW IT IS NOW") < shown.text.index("WHAT WAS SHOWN")


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_what_was_settled_waits_no_more_and_says_so_first(size: tuple[int, int]) -> None:
    """The cursor stays for the person to read it; neither key is offered any more."""
    async with console(start(short(1), lost(3)), size=size) as shown:
        await shown.rest()
        assert "? 1 unknown" in shown.lines[0]
        await shown.press_alone("l")
        shown.port.tell(ApprovalUpdated(view=settled(3)))
        await shown.shows("✓ Settled: the service holds what you approved.")
        assert "unknown" not in shown.lines[0]
        assert shown.selected == lost(3).approval_id
        said = " ".join(shown.text.split())
        assert "OUTCOME settled by looking again" in said
        assert "✓ The service now holds what you approved (2 fields" in said
        assert "Settled by looking again at" in said
        assert "answer never" in said
        assert "look again" not in shown.keys
        assert "acknowledge" not in shown.keys
        await shown.rest()
        await shown.press_alone("m")
        await shown.passes(600)
        await shown.press_alone("1")
        await shown.until(lambda: settled(3).approval_id not in rows(shown))
        assert Acknowledge not in map(type, shown.port.intents)
        model = shown.app._model
        assert model is not None
        assert model.queue.decided[0].is_settled
        assert model.queue.unacknowledged == 0


async def test_what_differs_is_said_field_by_field_and_keeps_waiting() -> None:
    """A second look replaces the first; what was approved stays below."""
    async with console(start(short(1), lost(3)), size=(120, 40)) as shown:
        await shown.rest()
        await shown.press_alone("l")
        differs = looked_at(3, comparison=compared("To", "Cc"), is_unchanged=True)
        shown.port.tell(ApprovalUpdated(view=differs))
        await shown.shows("It still differs in To and Cc.")
        assert "▲ The service does not hold what you approved: 2 of 2" in shown.text
        assert "Nothing has changed there so far." in shown.text
        assert "eve@evil.example" in shown.text
        assert "? 1 unknown" in shown.lines[0]
        assert "m  acknowledge" in shown.keys
        second = replace(mail(3).preview, updated_at=NOW + 60)
        again = looked_at(3, comparison=compared("Cc"), preview=second)
        shown.port.tell(ApprovalUpdated(view=replace(again, version=10)))
        await shown.shows("It still differs in Cc.")
        assert "Nothing has changed there so far." not in shown.text


async def test_what_was_settled_before_a_restart_says_so_on_its_page() -> None:
    """What the service held is not kept; that it was settled, and when, is."""
    kept = LookView(preview=PreviewView(status="none", updated_at=NOW), comparison=compared())
    view = settled(3, look=kept, preview=PreviewView(status="none"))
    async with console(start(view), size=(120, 40)) as shown:
        assert "unknown" not in shown.lines[0]
        last = shown.port.snapshot.records[-1]
        known = {"run_id": view.run_id, "session_id": view.session_id}
        ended = replace(last, seq=4000, event="run.unknown", **known)
        over = replace(last, seq=4001, event="outcome.settled", actor="person", **known)
        for record in (ended, over):
            shown.port.tell(Recorded(record=record, head_words=("olive", "pixel")))
        await shown.go("2", "calls in the last hour")
        await shown.press("home")
        await shown.go("enter", "Settled by looking again at")
        assert "✓ The service now holds what you approved (2 fields compared)." in shown.text
        assert "Only the fields that were to change" in shown.text
        assert "HOW IT IS NOW" not in shown.text
        assert "look again" not in shown.keys


async def test_what_asked_nobody_is_settled_by_what_the_agent_asked_for() -> None:
    """No person approved it, so no sentence says that one did."""
    alone = {"approval_id": "", "decided_at": None, "digest": "", "words": None}
    async with console(start(short(1), lost(3, **alone))) as shown:
        await shown.rest()
        await shown.press_alone("l")
        shown.port.tell(ApprovalUpdated(view=settled(3, **alone)))
        await shown.shows("✓ Settled: the service holds what the agent asked for.")
        assert "what you approved" not in shown.text
