"""A decided call is opened with one key from the decisions, the activity and the audit."""

from dataclasses import replace

from aileron_core.console_port import (
    ApprovalUpdated,
    ApprovalView,
    CallRead,
    CallView,
    DecidedScreenView,
    FieldView,
    ReadCall,
    Recorded,
)
from tests.screen.driving import NOW, Console, console, denied, mail, short, start
from tests.screen.test_screen_as_seen import decide, to_record

RESULT = '"labelIds": ['
"""Of what the fixtures' service returns for a call that is done."""


def answer(view: ApprovalView, text: str) -> CallRead:
    """Return what the core says of *view*, whose service returned *text*."""
    result = (FieldView(label="Result", value=text, multiline=True),)
    return CallRead(run_id=view.run_id, call=CallView(approval=view, gated=True, result=result))


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
        await shown.rest()
        await shown.press_alone("a")
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


async def test_after_a_restart_one_line_says_that_what_was_shown_is_not_kept() -> None:
    """Arguments, who, when and the reason are."""
    async with console(start(short(), denied(2)), (120, 40)) as shown:
        await shown.go("h", "Not kept: what was shown stays only in the memory")
        for expected in ("OUTCOME  denied at 13:53:40", "not to the board", "draft_id    ┊ r-88"):
            assert expected in shown.text, expected
        assert "not live" not in shown.text
        assert shown.port.reads == [ReadCall(run_id=denied(2).run_id)]


async def test_what_the_core_kept_sealed_is_shown_after_a_restart() -> None:
    """With the banner, as from memory; the last screen before the record that is opened."""
    done = denied(2)
    earlier = DecidedScreenView(at=NOW - 900, approval=replace(short(2), title="Earlier"))
    last = DecidedScreenView(at=NOW - 600, approval=short(2))
    async with console(start(short(), done), (120, 40)) as shown:
        shown.port.deaf = True
        await shown.press_alone("h")
        call = CallView(approval=done, gated=True, screens=(earlier, last))
        shown.port.tell(CallRead(run_id=done.run_id, call=call))
        await shown.shows("▲ as shown at 13:52:00, not live")
        for expected in ("OUTCOME  denied at 13:53:40", "priya.nair@northwind.example"):
            assert expected in shown.text, expected
        assert "Not kept" not in shown.text
        assert "Earlier" not in shown.text


async def test_one_line_says_why_what_was_kept_cannot_be_read() -> None:
    """The key is locked, or the record is spoilt: the rest of the call is there."""
    done = denied(2)
    why = "What was shown is sealed, and its key is locked. Unlock the vault to read it."
    async with console(start(short(), done), (120, 40)) as shown:
        shown.port.deaf = True
        await shown.press_alone("h")
        locked = DecidedScreenView(at=NOW - 600, approval=None, problem=why)
        call = CallView(approval=done, gated=True, screens=(locked,))
        shown.port.tell(CallRead(run_id=done.run_id, call=call))
        await shown.shows("its key is locked")
        assert "not to the board" in shown.text
        assert "not live" not in shown.text
        assert "Not kept" not in shown.text


async def test_what_is_not_kept_any_more_is_not_called_empty() -> None:
    """A call whose arguments were deleted did not come without any."""
    gone = denied(2, arguments=(), forgotten=True)
    async with console(start(short(), gone), (120, 40)) as shown:
        await shown.go("h", "CODEX SENT  no longer kept")


async def test_what_is_sealed_says_what_to_do() -> None:
    """A call whose content a locked vault keeps did not come without any, either."""
    why = "What the call contained is sealed. Unlock the vault to read it."
    closed = denied(2, arguments=(), sealed=why)
    async with console(start(short(), closed), (120, 40), answers=True) as shown:
        await shown.go("h", "│ What the call contained is sealed. Unlock the vault to")
        assert "CODEX SENT  sealed" in shown.text
        assert "no longer kept" not in shown.text


async def test_a_result_is_hostile_text() -> None:
    """It is drawn as marks, right of the bar, and writes to no column of ours."""
    done = denied(2, state="completed", reason="")
    async with console(start(short(), done)) as shown:
        shown.port.deaf = True
        await shown.press_alone("h")
        text = "\x1b[2J\u202eevil\nOUTCOME  denied\n" + "x" * 300
        shown.port.tell(answer(done, text))
        await shown.shows("‹ESC›[2J‹RLO›evil")
        assert "\x1b" not in shown.text
        for line in shown.lines:
            at = line.find("OUTCOME  denied")
            assert at < 0 or "┃" in line[:at]


async def test_a_call_that_another_program_changed_says_so() -> None:
    """Nobody takes the row's word for what happened."""
    done = denied(2, state="completed", reason="")
    async with console(start(short(), done)) as shown:
        shown.port.deaf = True
        await shown.press_alone("h")
        read = answer(done, "all is well")
        shown.port.tell(replace(read, call=replace(read.call, edited=True)))
        await shown.shows("▲ Another program changed this call in the database")


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
        await shown.rest()
        await shown.press_alone("a")
        await shown.rest()
        await decide(shown, "a", "✓ Approved")
        assert shown.text.count(" · ".join(mail(1).words or ())) == 1
