"""The other views of a console without a screen, on a real pseudo-terminal: listed, opened, looked into."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.screen.plain_reading import Reader
from tests.support.variants import variants

ROW = re.compile(r"^ +(\d+)\.  (.*)$", re.MULTILINE)
RECORD = re.compile(r"^  (\d+) +\d\d:\d\d:\d\d  ", re.MULTILINE)


@pytest.fixture
def person(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    reader.asked()
    yield reader
    reader.close()


def rows(page: str) -> dict[int, str]:
    """The rows of a list by their numbers."""
    return {int(number): text for number, text in ROW.findall(page)}


def number_of(page: str, text: str) -> int:
    return next(number for number, row in rows(page).items() if text in row)


def test_each_view_is_listed_row_by_row_and_one_row_is_opened_whole(person: Reader) -> None:
    """`1` to `5` list, and a number behind the key opens that row."""
    assert "   7. CREATE, codex, " in person.answers("1")
    listed = person.answers("2")
    assert "7 calls in the last hour" in listed
    assert rows(person.answers("2")) == rows(listed)  # listed again, as often as it is asked for
    opened = person.answers(f"2 {number_of(listed, 'not gated')}")
    assert "HISTORY" in opened
    assert "list-drafts completed" in opened
    files = person.answers("4")
    assert "● 3 ready · ▲ 1 not accepted · ! 1 invalid" in files
    assert "THE FILE" in person.answers(f"4 {number_of(files, 'invalid')}")
    people = person.answers("5")
    assert "3 sessions open, 2 connected" in people
    assert "SEEN  by the kernel" in person.answers("5 1")
    back = person.answers("esc")
    assert rows(back).keys() == {1, 2, 3}
    for typed in ("5 9", "5 x", "2 0", "3 0", "3 99999", "4 ²"):
        assert f"There is no row {typed[2:]} here." in person.answers(typed)


def test_a_number_stands_for_the_row_that_it_was_listed_with(person: Reader) -> None:
    """What came in above meanwhile does not move a row under the number that was read."""
    listed = person.answers("2")
    number = number_of(listed, "not gated")
    person.answers("1")
    person.answers("d not today")
    assert "list-drafts completed" in person.answers(f"2 {number}")
    assert number_of(person.answers("2"), "not gated") == number + 1


def test_what_is_not_listed_is_counted_and_the_key_of_the_screen_lists_on(person: Reader) -> None:
    """Never cut silently; older records are read before they are listed."""
    page = person.answers("3")
    numbers = [int(number) for number in RECORD.findall(page)]
    assert numbers == list(range(1_137, 1_117, -1))
    assert "and 1,117 more; pgdn shows more." in page
    assert "ReadRecords" not in person.intents
    for last in (1_097, 1_077):
        page = person.answers("pgdn")
        numbers = [int(number) for number in RECORD.findall(page)]
        assert numbers == list(range(last + 20, last, -1))
        assert "reading …" not in page
    assert "ReadRecords" in person.intents
    assert "Old record 1078" in page
    assert RECORD.findall(person.answers("pgup"))[0] == "1117"


def test_a_record_is_opened_by_its_number_and_read_from_the_core(person: Reader) -> None:
    """However old it is; it is printed when the core has answered."""
    page = person.answers("3 42")
    assert "Record 42 " in page
    assert "summary     │ Old record 42" in page
    assert "AS STORED" in page
    assert "ReadRecord(seq=42)" in person.intents


def test_a_record_that_cannot_be_read_is_said_to_be_so_and_asked_for_once(person: Reader) -> None:
    """What was refused would be refused again; the person may ask anew."""
    output = person.answers("3 13")
    assert "Record 13 lies under a cup." in output
    assert "Record 13 could not be read." in output
    assert "Record 14 " in person.answers("3 14")
    assert person.intents.count("ReadRecord(seq=13)") == 1
    assert "could not be read" in person.answers("3 13")
    assert person.intents.count("ReadRecord(seq=13)") == 2


def test_where_a_row_or_a_list_stands_the_call_before_it_is_not_decided(person: Reader) -> None:
    """An answer is about what stands there last; the call is printed anew before it is asked about."""
    for typed in ("2", "2 1", "3 7", "4", "5 2"):
        person.answers(typed)
        for key in ("a", "d no", "r", "t"):
            assert f"{key} does nothing here now." in person.answers(key)
    assert "WILL HAPPEN  fetched" in person.answers("1")
    assert "Approve(" not in person.intents
    assert "Deny(" not in person.intents
    assert "✓ Approved: Send a mail draft" in person.answers("a")


def test_a_call_of_unknown_outcome_is_looked_at_again_from_its_row(person: Reader) -> None:
    """`l` at the opened row asks the core, and what it reads is printed when it comes."""
    listed = person.answers("2")
    assert "l does nothing here now." in person.answers("l")  # of rows none is meant
    opened = person.answers(f"2 {number_of(listed, '? unknown')}")
    assert "l look again" in opened
    assert "HOW IT IS NOW" not in opened
    assert "RefetchPreview" not in person.intents
    output = person.answers("l")
    assert "Looking again …" in output
    assert "HOW IT IS NOW" in (output if "HOW IT IS NOW" in output else person.asked())
    assert person.intents.count("RefetchPreview") == 1


def test_a_call_that_was_approved_here_and_ended_unknown_is_looked_at_with_l(
    person: Reader,
) -> None:
    """What is told of its end names the key, and that key finds the call."""
    assert "Post a message" in person.answers("n")
    output = person.answers("a")
    assert "? unknown: A request had been sent, and no answer came." in output
    assert "l looks again at: Post a message" in output
    page = person.answers("l")
    assert "Post a message: outcome unknown" in page
    assert "HOW IT IS NOW" in (page if "HOW IT IS NOW" in page else person.asked())
    assert "RefetchPreview" in person.intents


def test_an_unknown_outcome_waits_first_until_it_is_acknowledged(person: Reader) -> None:
    """It is printed like any item that waits, and what was acknowledged is listed no more."""
    person.answers("n")
    person.answers("a")
    listed = next(row for row in person.answers("1").splitlines() if " 1. " in row)
    assert "? unknown, " in listed
    assert "#incidents · 348 people" in listed
    page = next(page for _ in range(10) if "OUTCOME  unknown" in (page := person.answers("n")))
    assert "A request had been sent, and no answer came." in page
    assert "l looks again, m acknowledges." in page
    assert "m acknowledge" in page
    assert "a does nothing here now." in person.answers("a")
    assert "✓ Acknowledged: Post a message" in person.answers("m")
    assert person.intents.count("Acknowledge(") == 1
    assert "? unknown" not in person.answers("1")


def test_a_file_is_accepted_and_withdrawn_where_its_facts_stand(person: Reader) -> None:
    """In the list the keys do nothing: which row they would mean, nobody sees."""
    files = person.answers("4")
    number = number_of(files, "not accepted")
    assert "t does nothing here now." in person.answers("t")
    person.answers(f"4 {number}")
    assert "Accepted: post-invoice" in person.answers("t")
    assert "Accept(kind='action', name='post-invoice'" in person.intents
    assert "Acceptance withdrawn: post-invoice" in person.answers("x")
    assert "WithdrawAcceptance(kind='action', name='post-invoice'" in person.intents


def test_the_chain_is_verified_and_written_out_from_the_list_of_records(person: Reader) -> None:
    """`V` and `x` of the audit, and what came of them."""
    person.answers("3")
    output = person.answers("V")
    output = output if "chain verified" in output else output + person.asked()
    assert "1,137 records, no gaps, chain verified" in output
    assert "✓ 1,137 records in /home/ana" in person.answers("x")


@pytest.mark.parametrize("key", variants(["1", "2", "3", "4", "5"]))
def test_a_view_is_announced_to_nobody_who_typed_more_behind_its_key(
    person: Reader, key: str
) -> None:
    """More than one line at once turns to nothing either."""
    person.pty.type(f"{key}\na\n".encode())
    assert "More than one line arrived at once. Nothing was decided." in person.asked()
    assert person.intents == ""
