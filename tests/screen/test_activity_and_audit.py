"""Views 2 and 3: what agents did, and every record of it, to the first."""

from aileron_core.console_port.intents import ReadRecord, VerifyAudit
from tests.screen.driving import short, start
from tests.support.screens.play import Play
from tests.support.screens.states import record, recorded

TOTAL = 2_000


LONG = start(short(), records=tuple(record(seq) for seq in range(1, TOTAL + 1)))
"""What the core has; a console begins with the newest 500 of it."""


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
