"""Views 2 and 3: what agents did, and every record of it, to the first."""

from dataclasses import replace

from aileron_core.console_port import (
    AuditVerified,
    IntentRefused,
    ReadRecord,
    ReadRecords,
    Recorded,
    RecordRead,
    RecordsRead,
    RecordView,
    VerifyAudit,
)
from aileron_tui.widgets.rows import RowList
from tests.screen.driving import NOW, console, short, start
from tests.support.screens.home import records

TOTAL = 2_000


def record(seq: int, event: str = "run.started", run: str | None = None) -> RecordView:
    return RecordView(
        seq=seq,
        at=NOW - 5_000 + seq,
        event=event,
        run_id=run or f"run-{seq:026d}",
        session_id=None,
        action="send-draft",
        actor="aileron",
        agent="codex",
        summary=f"this is record {seq}",
    )


def recorded(seq: int, event: str = "run.started", run: str | None = None) -> Recorded:
    return Recorded(record=record(seq, event, run), head_words=("olive", "pixel"))


LONG = start(short(), records=tuple(record(seq) for seq in range(1, TOTAL + 1)))
"""What the core has; a console begins with the newest 500 of it."""


async def test_one_row_for_each_call_with_what_became_of_it() -> None:
    """Not a row for each record: state in glyph and word, why it ran, who answered."""
    async with console(start(short(), records=records(NOW))) as shown:
        await shown.go("2", "8 calls in the last hour · 2 not gated · 4 approved by you · 2 denied")
        assert "median wait 20 s" in shown.text
        lines = "\n".join(shown.lines)
        assert "✓ done" in lines
        assert "? unknown" in lines
        assert "✗ denied" in lines
        assert "not gated · 10.0 s" in lines
        assert "you, 20 s" in lines
        assert sum("send-draft" in line for line in shown.lines) == 6


async def test_a_row_keeps_its_place_while_its_call_goes_on() -> None:
    """New rows come in above; a state that changes moves nothing."""
    async with console(start(short(), records=records(NOW))) as shown:
        await shown.go("2", "Newest first.")
        await shown.go("j", "follow")
        below = shown.row
        shown.port.tell(
            recorded(101, "run.requested", "run-a"), recorded(102, "run.requested", "run-b")
        )
        await shown.shows("2 new above; f jumps to the newest.")
        assert shown.row == below
        shown.port.tell(recorded(103, "run.completed", "run-a"))
        calls = [line for line in shown.lines if "send-draft" in line]
        await shown.until(lambda: "✓ done" in [x for x in shown.lines if "send-draft" in x][1])
        assert "● waiting" in calls[0]
        assert shown.row == below


async def test_f_follows_the_newest_again() -> None:
    """On at the start, off once the cursor moves; offered only while it is off."""
    async with console(start(short(), records=records(NOW))) as shown:
        await shown.go("2", "Newest first.")
        assert "f follow" not in shown.keys
        shown.port.tell(recorded(101, "run.requested", "run-a"))
        await shown.until(lambda: "● waiting" in shown.row)
        await shown.go("j", "f follow")
        shown.port.tell(recorded(102, "run.requested", "run-b"))
        await shown.shows("1 new above; f jumps to the newest.")
        await shown.go("f", "Newest first.")
        assert shown.app.screen.query_one("#list", RowList)._selected == 0
        assert "f follow" not in shown.keys


async def test_an_opened_call_tells_its_whole_story_and_esc_goes_back_to_its_row() -> None:
    """Every record of it with time, who and number; the page stays on it while others come in."""
    async with console(start(short(), records=records(NOW))) as shown:
        await shown.go("2", "Newest first.")
        await shown.go("j", "f follow")
        row = shown.row
        await shown.go("enter", "HISTORY")
        for words in ("waits for a person", "approved send-draft", "outcome unknown"):
            assert words in shown.text
        shown.port.tell(recorded(101, "run.requested", "run-a"))
        await shown.settled()
        assert "outcome unknown" in shown.text
        await shown.go("escape", "new above")
        assert shown.row == row


async def test_the_audit_has_its_whole_length_and_reads_what_comes_into_view() -> None:
    """2,000 records of which 500 were told: `end` jumps to the first and asks for its page alone."""
    async with console(LONG) as shown:
        shown.port.tell(recorded(TOTAL + 1))
        await shown.go("3", "2,001 records")
        assert shown.port.reads == []
        await shown.go("end", "this is record 1 ")
        assert [type(read) for read in shown.port.reads] == [ReadRecords] * len(shown.port.reads)
        assert 1 <= len(shown.port.reads) <= 2
        assert "1 " in shown.row
        await shown.go("k", "this is record 3 ")


async def test_records_that_come_in_do_not_move_the_one_that_is_read() -> None:
    """The cursor belongs to a number; the list below it stands still."""
    async with console(LONG) as shown:
        await shown.go("3", "2,000 records")
        await shown.go("pagedown", "f follow")
        row = shown.row
        place = shown.lines.index(row)
        shown.port.tell(*(recorded(TOTAL + number) for number in range(1, 6)))
        await shown.shows("2,005 records")
        assert shown.row == row
        assert shown.lines.index(row) == place


async def test_the_name_of_a_field_of_a_record_is_not_broken_at_80_columns() -> None:
    """A longer one has a line of its own; one that no record of ours has is folded in its column."""
    body = '{"action":"send","connectors":["mail"],"Approved by the person":"no"}'
    async with console(LONG, size=(80, 24)) as shown:
        await shown.go("3", "2,000 records")
        await shown.go("s", "AS STORED")
        shown.port.tell(RecordRead(seq=TOTAL, body=body, hash="ab" * 32, prev="cd" * 32))
        await shown.shows("abab")
        lines = [each.rstrip(" █┃│") for each in shown.lines]
        at = lines.index(" connectors")
        assert lines[at - 1].startswith(" action    │ send")
        assert lines[at + 1].startswith('           │ ["mail"]')
        assert lines[at + 2].startswith(" Approve   │ no")


async def test_s_shows_a_record_whole_as_it_is_stored() -> None:
    """Its parts, its place in the chain, and the very text that was hashed, hostile or not."""
    body = '{"event":"run.started","note":"\x1b[2J\u202eevil [b]x[/]","seq":2000}'

    async with console(LONG) as shown:
        await shown.go("3", "2,000 records")
        await shown.go("s", "AS STORED")
        assert shown.port.reads == [ReadRecord(seq=TOTAL)]
        whole = RecordRead(seq=TOTAL, body=body, hash="ab" * 32, prev="cd" * 32)
        shown.port.tell(whole)
        await shown.shows("abab")
        assert "cdcd" in shown.text
        assert "‹ESC›[2J‹RLO›evil [b]x[/]" in shown.text
        assert "\x1b" not in shown.text
        assert "u code points" in shown.keys
        await shown.go("u", "‹U+202E RLO›")
        await shown.go("j", "Record 1,999")
        await shown.until(lambda: shown.port.reads[-1] == ReadRecord(seq=TOTAL - 1))


async def test_verify_runs_in_the_background_and_its_result_stays_on_the_line() -> None:
    """While it runs it is said; what it found names each problem."""
    async with console(LONG) as shown:
        await shown.go("3", "not verified since the console started")
        await shown.go("V", "✓ 2,000 records, no gaps, chain verified")
        assert VerifyAudit() in shown.port.reads
        problems = ("Record 7 was changed after it was written.", "Record 9 is missing.")
        found = AuditVerified(records=TOTAL, problems=problems, at=NOW, seconds=1.25)
        shown.port.tell(found)
        await shown.shows("✗ 2 problems")
        assert "Record 7 was changed after it was written." in shown.text
        assert "Record 9 is missing." in shown.text


async def test_a_refused_reading_is_said_and_may_be_tried_again() -> None:
    """An audit that cannot be read just now does not leave rows that say `reading` for ever."""
    async with console(LONG) as shown:
        shown.port.deaf = True
        await shown.go("3", "2,000 records")
        await shown.go("V", "verifying …")
        assert "V verify" not in shown.keys
        shown.port.tell(IntentRefused(call_id="", message="The database is busy."))
        await shown.shows("The database is busy.")
        await shown.until(lambda: "V verify" in shown.keys)


async def test_a_gap_in_the_numbers_is_shown_where_it_is() -> None:
    """A record that is not there is not skipped over."""
    gap = replace(LONG, records=tuple(r for r in LONG.records if r.seq != 3))

    async with console(gap) as shown:
        await shown.go("3", "2,000 records")
        await shown.go("end", "✗ no such record")
        assert any("this is record 2 " in line for line in shown.lines)


async def test_a_filter_reads_on_to_the_first_record_and_says_how_far_it_looked() -> None:
    """One match at the start of 2,000 records; without the filter the cursor stays on it."""
    first = replace(LONG.records[0], agent="goose")
    state = replace(LONG, records=(first, *LONG.records[1:]))

    async with console(state) as shown:
        await shown.go("3", "2,000 records")
        await shown.go("slash", "Show rows that match:")
        await shown.type("agent:goose")
        await shown.shows("this is record 1 ")
        await shown.go("enter", "1 of 2,000 match agent:goose")
        assert "this is record 1 " in shown.row
        await shown.go("escape", "Newest first.")
        assert "this is record 1 " in shown.row


async def test_a_page_read_for_another_question_does_not_confuse_the_filter() -> None:
    """An answer is taken for what it was asked for."""
    async with console(LONG) as shown:
        await shown.go("3", "2,000 records")
        stray = RecordsRead(records=(record(5),), before_seq=6, total=TOTAL)
        shown.port.tell(stray)
        await shown.go("slash", "Show rows that match:")
        await shown.type("record 1999")
        await shown.shows("this is record 1999")


async def test_a_copy_of_the_whole_audit_is_reported_with_its_place() -> None:
    """How many records, and the file; nothing else in the view changes."""
    async with console(LONG) as shown:
        await shown.go("3", "not verified since")
        await shown.go(
            "x", "2,000 records in /home/ana/.aileron/exports/audit-20261008T120231Z.jsonl"
        )
        assert shown.port.intents == []
        assert "export" in shown.keys


async def test_an_opened_row_says_who_did_what_no_agent_did() -> None:
    accepted = replace(
        record(1, "library.accepted"), run_id=None, actor="person", agent="", action=None
    )
    async with console(start(records=(accepted,))) as shown:
        await shown.go("2", "library.accepted")
        await shown.go("enter", "HISTORY")
        assert "by you" in shown.text
