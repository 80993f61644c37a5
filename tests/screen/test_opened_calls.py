"""A decided call is opened with one key from the decisions, the activity and the audit."""

from dataclasses import replace

from aileron_core.console_port.events import ApprovalUpdated, Recorded
from tests.screen.driving import NOW, Console, console, denied, mail, short, start
from tests.screen.test_screen_as_seen import decide, to_record

RESULT = '"labelIds": ['
"""Of what the fixtures' service returns for a call that is done."""


async def test_one_key_opens_the_newest_decision_and_another_goes_back() -> None:
    """What was shown, the arguments, the result, who, when, the words, the records; then what waits."""
    async with console(start(short(), short(2), denied(3)), answers=True) as shown:
        await decide(shown, "a", "✓ Approved")
        await shown.go("h", RESULT)
        for expected in (
            "OUTCOME  done at 14:02:02",
            "Decided     │ 14:02:02  you",
            "▲ as shown at 14:02:02, not live",
            "priya.nair@northwind.example",
            "CODEX SENT",
            "amber · canoe · violet",
        ):
            assert expected in shown.text, expected
        shown.clock.advance(1)
        await shown.go("space", "run.completed · no.")
        await shown.go("escape", "a approve")
        assert "not live" not in shown.text


async def test_nothing_is_decided_while_the_decisions_have_the_cursor() -> None:
    """Not the call that is shown, nor the one that waits, and after the way back only at rest."""
    async with console(start(short(), short(2)), answers=True) as shown:
        await decide(shown, "a", "✓ Approved")
        await shown.go("h", RESULT)
        asked = list(shown.port.intents)
        for key in ("a", "d", "r", "t", "m", "enter"):
            shown.clock.advance(1)
            await shown.press_alone(key)
        assert shown.port.intents == asked
        assert " a " not in shown.keys
        shown.clock.advance(2)
        await shown.press_alone("escape")
        await shown.press_alone("a")
        assert shown.port.intents == asked, "it had not rested"
        await shown.press_rested("a")
        assert len(shown.port.intents) == len(asked) + 1


async def test_the_cursor_moves_among_the_decisions_and_a_click_opens_one() -> None:
    """By key and by mouse; the rows have the gist, or the agent's words where it is not kept."""
    views = (short(), *(denied(number) for number in (2, 3, 4)))
    async with console(start(*views)) as shown:
        await shown.go("h", "not to the board")
        first = shown.row
        assert "┊ draft_id r-8842190447" in first
        await shown.go("j", "not to the board")
        selected = [line[:45] for line in shown.lines].index(first[:45].replace("▌", " "))
        assert shown.lines[selected + 1].startswith("▌"), "the cursor is on the next row"
        await shown.go("escape", "a approve")
        await shown.click("#decided", offset=(8, 2))
        await shown.shows("not to the board")
        assert shown.lines[selected + 2].startswith("▌")
        assert not shown.port.intents
        await shown.click("#queue", offset=(8, 0))
        await shown.shows("a approve")


async def test_the_same_page_opens_from_activity_and_from_a_record() -> None:
    """One key each; `s` shows the record itself."""
    async with console(start(short(), short(2)), answers=True) as shown:
        await decide(shown, "a", "✓ Approved")
        await shown.go("2", "calls in the last hour")
        await shown.go("enter", RESULT)
        assert "▲ as shown at 14:02:02, not live" in shown.text
        await to_record(shown, "approval.approved")
        await shown.go("enter", RESULT)
        assert "▲ as shown at 14:02:02, not live" in shown.text
        await shown.go("s", "AS STORED")
        assert RESULT not in shown.text
        await shown.go("s", RESULT)


async def test_a_running_call_shows_how_long_and_then_what_it_returned() -> None:
    """In its row, in the list of decisions and on its page; the page stays where it is."""
    runs = replace(short(2), state="executing", decided_at=NOW - 5, started_at=NOW - 4)
    async with console(start(short(), runs), answers=True) as shown:
        await shown.passes(8)
        assert "▶ running 12 s" in shown.text
        shown.port.tell(ApprovalUpdated(view=replace(runs, version=99)))
        await shown.shows("DECIDED  newest first")
        await shown.go("h", "running for 12 s")
        await shown.passes(9)
        assert "running for 2" in shown.text
        done = replace(runs, state="completed", started_at=None, ended_at=NOW + 20, version=100)
        shown.port._core._views[done.approval_id] = done
        shown.port.tell(ApprovalUpdated(view=done))
        record = replace(shown.port.snapshot.records[-1], seq=4000, run_id=done.run_id)
        shown.port.tell(Recorded(record=record, head_words=("olive", "pixel")))
        await shown.shows(RESULT)
        assert "OUTCOME  done at 14:02:20" in shown.text


async def test_the_result_is_in_the_item_while_the_cursor_is_on_it() -> None:
    """Nothing else waits, so the cursor stays on the call that was approved."""
    async with console(start(short()), answers=True) as shown:
        await decide(shown, "a", "✓ Approved")
        await shown.shows(RESULT)
        assert "not live" not in shown.text


async def in_a_small_pane(shown: Console) -> None:
    await shown.go("h", "DECIDED  newest first")
    assert "not to the board" in shown.text
    await shown.go("escape", "? help")
    assert "DECIDED" not in shown.text


async def test_a_small_pane_lists_the_decisions_in_place_of_what_waits() -> None:
    """80x24 has no room for both; with nothing to wait for the calm screen gives way."""
    async with console(start(mail(), denied(2)), (80, 24)) as shown:
        await in_a_small_pane(shown)
    async with console(start(denied(2)), (80, 24)) as shown:
        await shown.shows("Nothing is waiting")
        await in_a_small_pane(shown)
        await shown.shows("Nothing is waiting")


async def test_later_decisions_do_not_move_the_cursor_from_its_call() -> None:
    """They come in above it."""
    async with console(start(short(), denied(2)), answers=True) as shown:
        await shown.go("h", "not to the board")
        end = replace(short(), state="expired", ended_at=NOW)
        shown.port.tell(ApprovalUpdated(view=end))
        await shown.until(lambda: "– 14:0" in shown.text, "the later decision")
        assert "not to the board" in shown.text


async def test_the_three_words_stand_once_in_the_line_that_reports_a_yes() -> None:
    """Not again as those to compare, where the record is out of sight."""
    async with console(start(mail(1)), size=(120, 36), answers=True) as shown:
        await shown.press_rested("a")
        await shown.rest()
        await decide(shown, "a", "✓ Approved")
        assert shown.text.count(" · ".join(mail(1).words or ())) == 1
