"""Views 2 and 3: what agents did, and every record of it, to the first."""

from dataclasses import replace

from aileron_core.console_port.events import IntentRefused
from aileron_core.console_port.intents import ReadRecord, ReadRecords, VerifyAudit
from tests.screen.driving import short, start
from tests.support.screens.play import Play
from tests.support.screens.states import record, recorded

TOTAL = 2_000


LONG = start(short(), records=tuple(record(seq) for seq in range(1, TOTAL + 1)))
"""What the core has; a console begins with the newest 500 of it."""


def test_the_audit_has_its_whole_length_and_reads_what_comes_into_view() -> None:
    """2,000 records of which 500 were told: `end` jumps to the first and asks for its page alone."""
    play = Play(LONG)
    play.port.tell(recorded(TOTAL + 1))
    play.go("3", "2,001 records")
    assert play.port.reads == []
    play.go("end", "this is record 1\n")
    assert [type(read) for read in play.port.reads] == [ReadRecords] * len(play.port.reads)
    assert 1 <= len(play.port.reads) <= 2
    assert "1 " in play.row
    play.go("k", "this is record 3\n")


def test_records_that_come_in_do_not_move_the_one_that_is_read() -> None:
    """The cursor belongs to a number; the list below it stands still."""
    play = Play(LONG)
    play.go("3", "2,000 records")
    play.go("pagedown", "f follow")
    row = play.row
    place = play.lines.index(row)
    play.port.tell(*(recorded(TOTAL + number) for number in range(1, 6)))
    play.shows("2,005 records")
    assert play.row == row
    assert play.lines.index(row) == place


def test_keys_show_records_as_they_are_stored_verify_all_and_copy_all() -> None:
    """Each is read when it is asked for; what was found is said, and where the copy is."""
    play = Play(LONG)
    play.go("3", "not verified since the console started")
    play.go("s", "AS STORED")
    assert play.port.reads == [ReadRecord(seq=TOTAL)]
    play.go("j", "Record 1,999")
    play.until(lambda: play.port.reads[-1] == ReadRecord(seq=TOTAL - 1))
    play.press_alone("escape")
    play.go("V", "✓ 2,000 records, no gaps, chain verified")
    assert VerifyAudit() in play.port.reads
    play.go("x", "2,000 records in /home/ana/.aileron/exports/audit-20261008T120231Z.jsonl")
    assert play.port.intents == []
    assert "export" in play.keys


def test_a_refused_reading_is_said_and_may_be_tried_again() -> None:
    """An audit that cannot be read just now does not leave rows that say `reading` for ever."""
    play = Play(LONG)
    play.port.deaf = True
    play.go("3", "2,000 records")
    play.go("V", "verifying …")
    assert "V verify" not in play.keys
    play.port.tell(IntentRefused(call_id="", message="The database is busy."))
    play.shows("The database is busy.")
    play.until(lambda: "V verify" in play.keys)


def test_a_filter_reads_on_to_the_first_record_and_says_how_far_it_looked() -> None:
    """One match at the start of 2,000 records; without the filter the cursor stays on it."""
    first = replace(LONG.records[0], agent="goose")
    state = replace(LONG, records=(first, *LONG.records[1:]))

    play = Play(state)
    play.go("3", "2,000 records")
    play.go("slash", "Show rows that match:")
    play.type("agent:goose")
    play.shows("this is record 1\n")
    play.go("enter", "1 of 2,000 match agent:goose")
    assert play.row.endswith("this is record 1")
    play.go("escape", "Newest first.")
    assert play.row.endswith("this is record 1")
