"""What the service held after an approved run: beside what was approved, and first among the decisions."""

from dataclasses import replace

import pytest

from aileron_core.audit.events import AuditEvent
from aileron_core.console_port import (
    ApprovalUpdated,
    ApprovalView,
    CallView,
    MarkReadBackSeen,
    ReadBackFieldView,
    ReadBackView,
    RecordView,
)
from aileron_tui.draw.call_page import outcome_blocks
from aileron_tui.draw.text import plain_text
from aileron_tui.draw.unknown_outcome import DEFAULT_KEYS
from tests.screen.driving import NOW, Console, console, short, start
from tests.screen.test_effects import SIZES, TO, change
from tests.screen.test_reserved_columns import ATTACKS, allowed

HELD = ReadBackView(status="held", at=NOW - 3, compared=3)


def differing(found: str, *, from_agent: bool = True) -> ReadBackView:
    field = ReadBackFieldView(approved=TO, found=replace(TO, value=found), from_agent=from_agent)
    return ReadBackView(
        status="differs", at=NOW - 3, compared=3, differing=(field,), labels=("To",)
    )


def done(number: int, read_back: ReadBackView | None, **changes: object) -> ApprovalView:
    """Return a change that ran, the higher its *number* the later."""
    view = change(TO)
    ended = NOW - 60 + number
    known = {
        "approval_id": short(number).approval_id,
        "run_id": short(number).run_id,
        "title": f"Readdress draft {number}",
        "state": "completed",
        "decided_at": ended - 1,
        "decided_by": "person",
        "ended_at": ended,
        "read_back": read_back,
    }
    return replace(view, **{**known, **changes})


def rows(shown: Console) -> list[str]:
    """Return the drawn lines of the document."""
    region = shown.app.screen.query_one("#document").region
    return [row[region.x : region.right - 2] for row in shown.lines[region.y : region.bottom]]


def document(shown: Console) -> str:
    """Return the text of the document, wherever its lines are wrapped."""
    return " ".join(" ".join(rows(shown)).replace("┃", " ").split())


def decided(shown: Console) -> list[str]:
    """Return the rows of the list of decisions."""
    at = next(number for number, row in enumerate(shown.lines) if "DECIDED" in row)
    return shown.lines[at + 1 : at + 6]


@SIZES
@pytest.mark.parametrize(
    ("read_back", "said"),
    [
        (HELD, "✓ The service now holds what you approved (3 fields compared)."),
        (
            ReadBackView(status="unavailable", at=NOW - 3, reason="timed out"),
            "What the service holds now could not be fetched: timed out",
        ),
        (
            differing("eve@evil.example"),
            "▲ The service does not hold what you approved: 1 of 3 fields differs.",
        ),
        (ReadBackView(status="reading", at=NOW - 3), "fetching what the service holds now"),
    ],
    ids=["held", "unavailable", "differs", "reading"],
)
async def test_the_item_says_what_the_service_holds_when_its_run_is_done(
    read_back: ReadBackView, said: str, size: tuple[int, int]
) -> None:
    """First in the document of the call that was just approved, with the time of the reading."""
    running = done(1, None, state="executing", ended_at=None)
    async with console(start(running), size=size) as shown:
        await shown.rest()
        shown.port.tell(ApprovalUpdated(view=done(1, read_back, version=9)))
        await shown.shows("AFTER THE RUN")
        assert said in document(shown)


async def test_both_values_stand_behind_the_bars_of_those_who_said_them() -> None:
    running = done(1, None, state="executing", ended_at=None)
    async with console(start(running)) as shown:
        await shown.rest()
        shown.port.tell(ApprovalUpdated(view=done(1, differing("eve@evil.example"), version=9)))
        await shown.shows("eve@evil.example")
        assert "┊ − ana@example.com" in shown.text
        assert "┃ + eve@evil.example" in shown.text
        assert "the service does not hold what you approved" in shown.status_line


@pytest.mark.parametrize("attack", range(len(ATTACKS)))
async def test_what_the_service_holds_reaches_no_column_of_ours(attack: int) -> None:
    """It is hostile text, and so is the reason for none."""
    hostile = differing(ATTACKS[attack])
    running = done(1, None, state="executing", ended_at=None)
    async with console(start(running)) as shown:
        await shown.rest()
        shown.port.tell(ApprovalUpdated(view=done(1, hostile, version=9)))
        await shown.shows("AFTER THE RUN")
        assert all("Ж" not in allowed(row, 13) for row in rows(shown))
        gone = ReadBackView(status="unavailable", at=NOW - 3, reason=ATTACKS[attack])
        shown.port.tell(ApprovalUpdated(view=done(1, gone, version=10)))
        await shown.shows("could not be fetched")
        assert all("Ж" not in allowed(row, 13) for row in rows(shown))
        assert "Ж" not in shown.status_line


async def test_a_difference_is_first_in_the_list_of_decisions_until_it_was_seen() -> None:
    """Whatever was decided after it."""
    views = [done(number, HELD) for number in range(2, 9)]
    odd = done(1, differing("eve@evil.example"))
    async with console(start(odd, *views, short(20))) as shown:
        await shown.rest()
        first, second, *_ = decided(shown)
        assert "▲" in first
        assert "1 field differs" in first
        assert "as approved" in second
        seen = replace(differing("eve@evil.example"), seen=True)
        shown.port.tell(ApprovalUpdated(view=done(1, seen, version=10)))
        await shown.until(lambda: "1 field differs" not in shown.text)


async def test_more_decisions_than_are_kept_push_out_none_that_was_not_seen() -> None:
    odd = done(1, differing("eve@evil.example"))
    async with console(start(odd, *(done(number, None) for number in range(2, 250)))) as shown:
        model = shown.app._model
        assert model is not None
        assert model.queue.decided[0] == odd
        assert len(model.queue.decided) == 201


async def test_a_difference_is_seen_once_its_call_is_opened() -> None:
    """Reported to the core once, whatever is drawn meanwhile; a look at the list is not enough."""
    odd = done(1, differing("eve@evil.example"))
    asked = RecordView(
        seq=990,
        at=NOW - 70,
        event=AuditEvent.RUN_REQUESTED,
        run_id=odd.run_id,
        session_id=odd.session_id,
        action=odd.action,
        actor="agent",
        agent=odd.agent,
        summary="readdress-draft waits for a person",
    )
    async with console(start(odd, records=(asked,)), answers=True) as shown:
        await shown.rest()
        await shown.press("2")
        await shown.rest()
        assert shown.port.intents == []
        await shown.press("enter")
        await shown.shows("AFTER THE RUN")
        await shown.until(lambda: bool(shown.port.intents))
        await shown.passes(3)
        assert shown.port.intents == [MarkReadBackSeen(run_id=odd.run_id)]
        assert "eve@evil.example" in shown.text
        await shown.press("1")
        await shown.until(lambda: "Last: ✓ Readdress draft 1" in shown.text)


@pytest.mark.parametrize(("read_back", "said"), [(HELD, "now holds"), (differing("x"), "not hold")])
async def test_where_nothing_waits_the_last_call_says_what_the_service_holds(
    read_back: ReadBackView, said: str
) -> None:
    async with console(start(done(1, read_back))) as shown:
        await shown.shows("Last:")
        assert f"{said} what you approved" in shown.text


async def test_a_row_stays_until_its_reading_was_shown() -> None:
    """Its end may come a second before, and would else take it away just then."""
    running = done(1, None, state="executing", ended_at=None)
    reading = ReadBackView(status="reading", at=NOW - 3)
    async with console(start(running)) as shown:
        await shown.rest()
        shown.port.tell(ApprovalUpdated(view=done(1, reading, version=9)))
        await shown.shows("AFTER THE RUN")
        model = shown.app._model
        assert model is not None
        before = model.queue.items[0].remove_at
        await shown.passes(1.9)
        shown.port.tell(ApprovalUpdated(view=done(1, HELD, version=10)))
        await shown.shows("now holds")
        after = model.queue.items[0].remove_at
        assert before is not None
        assert after is not None
        assert after > before


def marked(shown: Console) -> list[MarkReadBackSeen]:
    return [each for each in shown.port.intents if isinstance(each, MarkReadBackSeen)]


async def test_nobody_sees_a_difference_behind_the_lock_or_in_a_small_window() -> None:
    """That a person saw it is on record, so it is said only of what was in front of one."""
    even, odd = done(1, HELD), done(1, differing("eve@evil.example"), version=9)
    async with console(start(even), answers=True, lock_seconds=60.0) as shown:
        await shown.press("h")
        await shown.rest()
        shown.port.intents.clear()
        shown.clock.advance(70)
        await shown.shows("Locked.")
        shown.port.tell(ApprovalUpdated(view=odd))
        await shown.passes(1.0)
        assert marked(shown) == []
        await shown.pilot.resize_terminal(40, 10)
        await shown.press_alone("space")
        await shown.passes(1.0)
        assert marked(shown) == []
        await shown.pilot.resize_terminal(120, 36)
        await shown.until(lambda: bool(marked(shown)))
        assert marked(shown) == [MarkReadBackSeen(run_id=odd.run_id)]


def test_what_the_service_holds_comes_before_a_result_of_any_length() -> None:
    for read_back in (HELD, differing("eve@evil.example")):
        call = CallView(approval=done(1, read_back), gated=True, records=())
        made = outcome_blocks(call, NOW, keys=DEFAULT_KEYS, unfold=False)
        headings = [plain_text(each.label) for each in made if each.kind == "heading"]
        assert headings == ["AFTER THE RUN", "OUTCOME"]
