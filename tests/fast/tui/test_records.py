"""Reading the audit: only what is near, all of it in the end; gaps; filters; each decision has its own screen."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import pytest

from aileron_core.console_port.events import RecordsRead
from aileron_core.console_port.intents import ReadRecords
from aileron_core.console_port.view_models import RecordView
from aileron_tui.items import Item
from aileron_tui.state import decision_screens
from aileron_tui.state.filter import parse
from aileron_tui.state.tables.audit import PAGE_SIZE, RecordPages
from tests.support.screens.states import record, short

NOW = 1_000_000.0
TOTAL = 10_482
HEIGHT = 30
FIELDS = ("agent", "action", "state", "by")
MOMENT = 1_790_000_000.2567


def numbered_view(seq: int) -> RecordView:
    event = "approval.denied" if seq % 1000 == 0 else "run.started"
    agent = "goose" if seq == 3 else "codex"
    return record(seq, event, at=NOW - (TOTAL - seq), actor="person", agent=agent)


def answer_of_core(asked: ReadRecords, missing: frozenset[int] = frozenset()) -> RecordsRead:
    """Answer as the core does: at most `limit` records before `before_seq`, oldest first."""
    before = asked.before_seq if asked.before_seq is not None else TOTAL + 1
    numbers = (seq for seq in range(before - 1, 0, -1) if seq not in missing)
    found = [numbered_view(seq) for seq in islice(numbers, asked.limit)]
    told, total = tuple(reversed(found)), TOTAL - len(missing)
    return RecordsRead(records=told, before_seq=asked.before_seq, total=total)


@pytest.fixture
def book() -> RecordPages:
    return RecordPages([numbered_view(seq) for seq in range(TOTAL - 499, TOTAL + 1)])


def read_pages(
    book: RecordPages, top: int, index: int = 0, **core_is: frozenset[int]
) -> Iterator[int]:
    """Carry out what is wanted around *top* until nothing is; yield each `before_seq`."""
    while (asked := book.next_read(top, HEIGHT, index)) is not None:
        assert asked.before_seq is not None
        yield asked.before_seq
        book.add_page(answer_of_core(asked, **core_is), NOW)


def test_older_records_are_read_before_the_cursor_reaches_them(book: RecordPages) -> None:
    assert list(read_pages(book, 0)) == []
    for top in range(0, TOTAL - HEIGHT, HEIGHT):
        assert all(book.get(TOTAL - row) for row in range(top, top + HEIGHT)), top
        list(read_pages(book, top))


def test_one_reading_is_under_way_at_a_time_and_repeated_if_refused(book: RecordPages) -> None:
    first = book.next_read(TOTAL - HEIGHT, HEIGHT, 0)
    assert first is not None
    assert book.next_read(0, HEIGHT, 0) is None
    book.on_refused()
    assert book.next_read(TOTAL - HEIGHT, HEIGHT, 0) == first


def test_a_number_without_a_record_is_a_gap_once_its_page_was_read(book: RecordPages) -> None:
    assert not book.is_missing(40)
    assert len(list(read_pages(book, TOTAL - HEIGHT, missing=frozenset({40, 41})))) <= 2
    assert book.is_missing(40)
    assert book.is_missing(41)
    assert not book.is_missing(42)


def test_pages_that_were_left_long_ago_are_dropped_and_read_again() -> None:
    book = RecordPages([numbered_view(TOTAL)])
    book.newest = 200 * PAGE_SIZE
    for page in range(200):
        numbers = range(page * PAGE_SIZE + 1, (page + 1) * PAGE_SIZE + 1)
        answer = tuple(map(numbered_view, numbers))
        told = RecordsRead(records=answer, before_seq=numbers.stop, total=200 * PAGE_SIZE)
        book.add_page(told, NOW)
    kept = sum(book.get(seq) is not None for seq in range(1, 200 * PAGE_SIZE + 1))
    assert kept <= 61 * PAGE_SIZE
    assert book.next_read(200 * PAGE_SIZE - HEIGHT, HEIGHT, 0) is not None


def test_a_filter_reads_on_from_what_is_at_hand_to_the_first_record(book: RecordPages) -> None:
    book.search(parse("agent:goose", FIELDS).query, NOW)
    assert book.matches == []
    assert book.searched_down_to == TOTAL - 499
    pages = list(read_pages(book, 0))
    assert book.matches == [3]
    assert book.searched_down_to == 1
    assert pages == sorted(pages, reverse=True)
    assert len(pages) == -(-(TOTAL - 500) // PAGE_SIZE)
    assert book.get(3) is not None


def test_a_filter_that_finds_enough_reads_on_only_with_the_cursor(book: RecordPages) -> None:
    book.search(parse("run.started", FIELDS).query, NOW)
    assert list(read_pages(book, 0, index=0)) == []
    assert list(read_pages(book, 0, index=len(book.matches) - 1))


def test_matches_are_newest_first_also_with_records_that_come_in(book: RecordPages) -> None:
    book.search(parse("state:denied", FIELDS).query, NOW)
    list(read_pages(book, 0))
    assert book.matches == list(range(10_000, 0, -1000))
    book.add(numbered_view(11_000), NOW)
    book.add(numbered_view(11_001), NOW)
    assert book.matches[:2] == [11_000, 10_000]


def test_a_page_read_for_another_question_does_not_confuse_the_filter(book: RecordPages) -> None:
    book.search(parse("agent:goose", FIELDS).query, NOW)
    asked = book.next_read(0, HEIGHT, 0)
    assert asked is not None
    book.add_page(answer_of_core(ReadRecords(before_seq=6, limit=1)), NOW)
    assert book.next_read(0, HEIGHT, 0) is None, "its own answer is still on its way"
    book.add_page(answer_of_core(asked), NOW)
    list(read_pages(book, 0))
    assert book.matches == [3]


def test_each_decision_about_a_call_has_its_own_screen() -> None:
    """Approved, changed, approved again: each record shows what stood there at its own time.

    A record's time holds no parts of a millisecond, so it may lie before the screen's.
    """
    screens = decision_screens.DecisionScreens()
    first, second = short(), replace(short(), version=9)
    for at, view in ((MOMENT, first), (MOMENT + 10, second)):
        screens.add(
            decision_screens.DecisionScreen(at=at, item=Item(key=view.approval_id, approval=view))
        )
    run = first.run_id
    assert screens.find(run, 1_790_000_000.255) is None
    assert screens.find(run, 1_790_000_000.256).item.approval is first
    assert screens.find(run, MOMENT + 5).item.approval is first
    assert screens.find(run, MOMENT + 10).item.approval is second
    assert screens.find("run-of-another", MOMENT + 20) is None
    assert screens.find(None, MOMENT + 20) is None


def test_few_screens_are_kept_and_not_more_text_than_memory_allows() -> None:
    screens = decision_screens.DecisionScreens()
    views = [short(number + 1) for number in range(decision_screens.SCREENS_KEPT + 1)]
    for at, view in enumerate(views):
        screens.add(
            decision_screens.DecisionScreen(at=at, item=Item(key=view.approval_id, approval=view))
        )
    assert screens.find(views[0].run_id, 1e9) is None
    assert screens.find(views[1].run_id, 1e9) is not None
    field = replace(views[0].preview.fields[0], value="x" * (decision_screens.CHARACTERS_KEPT + 1))
    huge = replace(views[0], preview=replace(views[0].preview, fields=(field,)))
    screens.add(
        decision_screens.DecisionScreen(at=1e6, item=Item(key=huge.approval_id, approval=huge))
    )
    assert screens.find(huge.run_id, 1e9) is not None
    assert screens.find(views[-1].run_id, 1e9) is None
