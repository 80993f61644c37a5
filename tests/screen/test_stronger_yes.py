"""What was found in an item wants a second press that names it; equal calls are counted in their rows."""

from dataclasses import replace

import pytest

from aileron_core.console_port import ApprovalUpdated, ApprovalView, Approve, FieldView
from aileron_tui.draw.text import plain_text
from aileron_tui.items import Item
from aileron_tui.plain.lines import item_list
from tests.screen.driving import NOW, console, mail, short, start
from tests.support.screens.calls import drifted


def with_subject(subject: str, **changes: object) -> ApprovalView:
    view = short()
    fields = (view.preview.fields[0], FieldView(label="Subject", value=subject))
    return short(preview=replace(view.preview, fields=fields), **changes)


FOUND = {
    "hidden text": (with_subject("Invoice\u202e 881"), "▲ Hidden text in Subject: RLO."),
    "a look-alike": (
        with_subject("see p\u0430ypal.com"),
        "▲ Look-alike of paypal.com in Subject: xn--pypal-4ve.com.",
    ),
    "of the agent": (
        short(arguments=(FieldView(label="draft_id", value="r-\u200b881"),)),
        "▲ Hidden text in draft_id: ZWSP.",
    ),
    "a drift": (short(drift=drifted(NOW)), "▲ Changed after you looked: To, Body."),
}


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
@pytest.mark.parametrize("name", FOUND)
async def test_the_first_yes_names_what_was_found_and_the_second_decides(
    name: str, size: tuple[int, int]
) -> None:
    """Although every line was read: one press is for plain items."""
    view, finding = FOUND[name]
    async with console(start(view), size=size) as shown:
        await shown.read_all()
        assert "approve…" in shown.keys
        await shown.press_alone("a")
        await shown.shows(finding)
        assert "Press a again" in shown.status_line
        assert shown.port.intents == []
        await shown.rest()
        await shown.press_alone("a")
        await shown.until(lambda: bool(shown.port.intents))
        assert isinstance(shown.port.intents[0], Approve)


async def test_several_findings_and_unread_lines_are_counted_with_the_worst() -> None:
    """All of it fits 80 columns, with the key."""
    view = with_subject("Invoice\u202e 881 for p\u0430ypal.com", drift=drifted(NOW))
    async with console(start(view), size=(80, 24)) as shown:
        await shown.rest()
        await shown.press_alone("a")
        await shown.shows("▲ Changed after you looked: To, Body (and 2 more). Press a again.")
        assert "lines unread" in shown.keys
        assert shown.port.intents == []


async def test_a_drift_between_two_presses_begins_anew() -> None:
    """The second press was for what stood there before."""
    async with console(start(with_subject("Invoice\u202e 881"))) as shown:
        await shown.read_all()
        await shown.press_alone("a")
        await shown.shows("Press a again")
        changed = with_subject("Invoice\u202e 99", drift=drifted(NOW), version=2, digest="7" * 64)
        shown.port.tell(ApprovalUpdated(view=changed))
        await shown.read_all()
        await shown.press_alone("a")
        await shown.shows("▲ Changed after you looked: To, Body (and 1 more).")
        assert shown.port.intents == []


def equal(number: int, **changes: object) -> ApprovalView:
    return short(number, args_sha256="ab" * 32, **changes)


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 60)])
async def test_equal_calls_are_counted_in_their_rows(size: tuple[int, int]) -> None:
    """The count follows what still waits; a call of other arguments is not counted."""
    async with console(start(equal(1), equal(2), equal(3), short(4)), size=size) as shown:
        await shown.rest()
        assert shown.text.count("3 identical") == 3
        shown.port.tell(ApprovalUpdated(view=equal(3, state="withdrawn", ended_at=NOW)))
        await shown.until(lambda: shown.text.count("2 identical") == 2)
        assert "3 identical" not in shown.text
        shown.port.tell(ApprovalUpdated(view=equal(2, state="withdrawn", ended_at=NOW)))
        await shown.until(lambda: " equal" not in shown.text)


def test_the_list_without_a_screen_counts_them_too() -> None:
    """Between what a row says already and its gist."""
    items = [Item(key=str(n), approval=short(n)) for n in (1, 2)]
    rows = [
        plain_text(each)
        for each in item_list(items, "1", NOW, 100, lambda item: 2 * int(item.key) - 2)
    ]
    assert rows == [
        " * 1. SEND, codex, 12 s: Q3 numbers, final → 3 people",
        "   2. SEND, codex, 12 s, 2 identical: Q3 numbers, final → 3 people",
    ]


@pytest.mark.parametrize("size", [(80, 24), (120, 36), (200, 60)])
async def test_the_three_words_stand_once_with_what_they_are_for(size: tuple[int, int]) -> None:
    """In the record once it is in view, till then at the end of the status line where there is room."""
    async with console(start(mail()), size=size) as shown:
        await shown.read_all()
        for _ in range(2):
            words = shown.text.count("amber · canoe · violet")
            assert words == shown.text.count("compare with the agent's answer") <= 1
            assert words == 1 or size[0] == 80
            for _ in range(9):
                await shown.press("b")
            await shown.rest()
        assert "compare with the agent's answer: amber" in shown.status_line or size != (120, 36)
