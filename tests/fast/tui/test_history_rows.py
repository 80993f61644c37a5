"""View 2 over every call that is kept: read on as the cursor goes down, looked for by the core, folded, counted."""

import time
from dataclasses import replace
from typing import Any

import pytest

from aileron_core.console_port import view_models
from aileron_core.console_port.events import CallsCounted, CoreEvent, HistoryRead, VaultStatus
from aileron_core.console_port.intents import CountCalls, EndSession, Intent, ReadCall, ReadHistory
from aileron_tui.draw.columns import Column, Columns
from aileron_tui.draw.foreign_text import foreign_text
from aileron_tui.draw.rows import outcome_plot
from aileron_tui.draw.text import Piece, cell_width, plain_text
from aileron_tui.state.apply_event import apply_event
from aileron_tui.state.tables.audit import AuditTable
from tests.support.screens.drawn import Drawn
from tests.support.screens.home import record_views
from tests.support.screens.play import Play
from tests.support.screens.states import NOW, denied, record, recorded_event, short, snapshot_of

OLDER = view_models.HistoryCursor(run_id="run-0100", seq=7)
SEALED = "It is sealed. Unlock the vault to read it."
BARE: dict[str, Any] = {"arguments": (), "new_values": (), "other_arguments": ()}


def kept_call(number: int, **changes: object) -> view_models.HistoryCall:
    at = NOW - 60 * number
    view = replace(denied(number), run_id=f"run-{number:04}", requested_at=at, **changes)
    return view_models.HistoryCall(approval=view)


class _Table:
    """View 2 of a console that has just started, and what it asks for."""

    def __init__(self) -> None:
        self.drawn = Drawn(snapshot_of(records=()))
        self.model = self.drawn.model
        self.model.switch_to("activity")
        self.table = self.model.activity
        assert isinstance(self.table.next_read(NOW), CountCalls)

    def tell(self, event: CoreEvent) -> None:
        apply_event(self.model, event, NOW, 0.0)

    def asked(self) -> ReadHistory:
        wanted = self.table.next_read(NOW)
        assert isinstance(wanted, ReadHistory)
        return wanted

    def answer(
        self,
        asked: ReadHistory,
        *calls: view_models.HistoryCall,
        then: view_models.HistoryCursor | None = None,
        records: tuple[view_models.RecordView, ...] = (),
        **told: int,
    ) -> None:
        told = {"searched": len(calls), "total": 300, **told}
        at = min((each.approval.requested_at for each in calls), default=None)
        self.tell(
            HistoryRead(query=asked.query, start=asked.start, calls=calls, records=records,
                        then=then, searched_to=at, **told)
        )  # fmt: skip


@pytest.fixture
def shown() -> _Table:
    return _Table()


def test_a_next_page_is_read_as_the_cursor_nears_the_end_while_there_is_one(shown: _Table) -> None:
    """The list once ended with the newest 500 records."""
    first = shown.asked()
    assert first == ReadHistory(query=view_models.HistoryQuery(), start=None, limit=first.limit)
    assert shown.table.next_read(NOW) is None, "one reading at a time"
    shown.answer(first, *(kept_call(number) for number in range(100)), then=OLDER)
    assert len(shown.table) == 100
    assert shown.table.next_read(NOW) is None
    shown.table.select(99)
    assert shown.asked().start == OLDER
    shown.answer(replace(first, start=OLDER), kept_call(100))
    shown.table.select(100)
    assert shown.table.next_read(NOW) is None
    assert (len(shown.table), shown.table.run_id) == (101, "run-0100")


def test_a_row_says_what_its_call_was_about_or_why_that_cannot_be_read(shown: _Table) -> None:
    locked, forgotten = kept_call(2, sealed=SEALED, **BARE), kept_call(3, forgotten=True, **BARE)
    lost = kept_call(5, sealed="It is gone: another program removed it.", **BARE)
    edited = replace(kept_call(4), edited=True)
    shown.answer(shown.asked(), kept_call(1), locked, lost, forgotten, edited)
    whole, sealed, gone, changed, removed = shown.drawn.rows
    assert "┊ draft_id r-8842190447" in whole
    assert "not to the board" in whole
    assert "sealed until the vault is unlocked" in sealed
    assert "no longer kept" in gone
    assert "▲ changed by another program" in changed
    assert "It is gone: another program" in removed


def test_a_filter_asks_the_core_and_says_where_it_looked_and_where_not(shown: _Table) -> None:
    shown.answer(shown.asked(), kept_call(1))
    shown.model.set_filter("invoice agent:codex action:send,move state:denied,waiting age:1h", NOW)
    asked = shown.asked()
    found: dict[str, Any] = {"agents": ("codex",), "actions": ("send", "move"), "since": NOW - 3600}
    found["outcomes"] = ("denied", "new", "awaiting_vault", "pending", "checking")
    assert asked.query == view_models.HistoryQuery(words=("invoice",), **found)
    assert len(shown.table) == 0
    shown.answer(ReadHistory(query=view_models.HistoryQuery()), kept_call(2))
    assert len(shown.table) == 0, "that answers an earlier filter"
    shown.answer(asked, kept_call(3), then=OLDER, searched=90, sealed=2, not_kept=5)
    assert len(shown.table) == 1
    status = plain_text(shown.table.filter_status())
    assert status.startswith("1 found for invoice")
    assert "in the newest 90 of 300 calls" in status
    assert status.endswith("; not searched: 2 sealed, 5 no longer kept")
    shown.model.set_filter("state:nonsense", NOW)
    assert shown.table.next_read(NOW) is None, "no call can match"
    shown.model.set_filter("", NOW)
    assert shown.asked().query == view_models.HistoryQuery()


def test_what_is_no_call_is_shown_after_a_key_and_read_too(shown: _Table) -> None:
    opened = record(9, "session.opened", run_id=None, action=None)
    asked = shown.asked()
    shown.answer(asked, kept_call(1))
    assert len(shown.table) == 1
    shown.table.toggle_lifecycle(NOW)
    asked = shown.asked()
    assert asked.query.lifecycle
    shown.answer(asked, records=(opened,))
    assert "session.opened" in shown.drawn.rows[0]
    shown.table.toggle_lifecycle(NOW)
    assert len(shown.table) == 1


def test_a_call_that_came_meanwhile_is_read_too_and_the_list_goes_on(shown: _Table) -> None:
    """Of one that asks nobody the records alone come by themselves; they do not say what it was about."""
    shown.answer(shown.asked(), *(kept_call(number) for number in range(1, 100)), then=OLDER)
    shown.tell(CallsCounted(until=NOW, hours=()))
    shown.tell(recorded_event(101, "run.completed", run_id="run-0000"))
    assert shown.table.next_read(NOW + 4) is None
    assert "draft_id" not in shown.drawn.rows[0]
    assert isinstance(shown.table.next_read(NOW + 6), CountCalls)
    newest = shown.asked()
    assert newest.start is None
    shown.answer(newest, kept_call(0), then=view_models.HistoryCursor(run_id="run-0000", seq=0))
    assert "draft_id" in shown.drawn.rows[0]
    shown.table.select(99)
    assert shown.asked().start == OLDER


def test_a_refused_reading_is_not_asked_for_again_and_again(shown: _Table) -> None:
    shown.asked()
    shown.table.on_refused()
    assert shown.table.next_read(NOW) is None
    shown.table.filter_again(NOW)
    assert shown.table.next_read(NOW) == CountCalls()
    assert shown.asked().start is None


def test_a_filter_typed_fast_asks_once_more_when_the_answer_before_it_came(shown: _Table) -> None:
    first = shown.asked()
    for end in range(1, 8):
        shown.model.set_filter("invoice"[:end], NOW)
        assert shown.table.next_read(NOW) is None
    assert shown.drawn.status.startswith("Searching …"), "nothing was looked at"
    shown.answer(first, kept_call(1), then=OLDER)
    assert len(shown.table) == 0
    asked = shown.asked()
    assert (asked.query.words, asked.start) == (("invoice",), None)
    shown.answer(asked, kept_call(2))
    assert len(shown.table) == 1


def test_what_was_sealed_is_read_again_once_the_vault_is_unlocked(shown: _Table) -> None:
    shown.tell(VaultStatus(state="locked"))
    shown.model.set_filter("invoice", NOW)
    locked = kept_call(1, sealed=SEALED, **BARE)
    shown.answer(shown.asked(), locked, sealed=1)
    assert shown.table.next_read(NOW) is None
    shown.tell(VaultStatus(state="unlocked"))
    shown.answer(shown.asked(), kept_call(1))
    assert "draft_id" in shown.drawn.rows[0]
    assert "sealed" not in shown.drawn.status


def test_calls_of_which_more_came_than_one_reading_has_are_read_too(shown: _Table) -> None:
    shown.model.set_filter("invoice", NOW)
    shown.answer(shown.asked(), kept_call(20))
    assert shown.table.next_read(NOW) is None
    shown.tell(CallsCounted(until=NOW, hours=()))
    shown.tell(recorded_event(101, "run.completed", run_id="run-new"))
    later = NOW + 3600
    assert isinstance(shown.table.next_read(later), CountCalls)
    newest = shown.table.next_read(later)
    assert isinstance(newest, ReadHistory)
    shown.answer(newest, kept_call(-50), then=OLDER)
    assert shown.asked().start == OLDER
    shown.answer(replace(newest, start=OLDER), kept_call(-30), kept_call(20))
    assert (len(shown.table), shown.table.history_read) == (3, True)


def test_a_call_that_was_found_leaves_the_filter_once_its_state_is_another(shown: _Table) -> None:
    shown.model.set_filter("invoice state:waiting", NOW)
    shown.answer(shown.asked(), kept_call(0, state="awaiting_vault"))
    assert len(shown.table) == 1, "by words that the row has not"
    shown.tell(recorded_event(101, "run.completed", run_id="run-0000"))
    assert len(shown.table) == 0


def test_beside_the_list_only_the_call_on_which_the_cursor_rests_is_read() -> None:
    play = Play(snapshot_of(short(), records=record_views(NOW)), size=(150, 40))
    play.go("2", "HISTORY")
    play.press("j", "k", "j")

    def read() -> list[str]:
        return [each.run_id for each in play.port.reads if isinstance(each, ReadCall)]

    assert read() == []
    play.port.deaf = True
    play.passes(0.2)
    assert read() == [play.model.activity.run_id]
    play.press("k")
    play.passes(0.2)
    assert len(read()) == 1, "that is not answered yet"
    play.press("enter")
    assert read()[1:] == [play.model.activity.run_id]


def test_the_hours_are_counted_by_the_core_and_plotted_by_outcome() -> None:
    hours = tuple(
        view_models.HourOfCalls(
            began_at=NOW - 3600 * (12 - n),
            outcomes=(("completed", n), ("denied", n % 2), ("pending", 1)),
            not_gated=3, approved=2, median_wait=12.0,
        )
        for n in range(12)
    )  # fmt: skip
    shown = _Table()
    shown.tell(CallsCounted(until=NOW, hours=hours))
    summary, plot, _ = (plain_text(each) for each in shown.table.header(120, NOW))
    said = "13 calls in the last hour · median wait 12 s · 3 not gated · 2 approved · 1 denied"
    assert summary.strip() == said
    assert plot == " last 12 h  done ·▁▂▃▃▄▅▆▆▇██ 66  denied ·▁·▁·▁·▁·▁·▁ 6"
    narrow = plain_text(outcome_plot(hours, 40))
    assert narrow.startswith(" last 4 h  done")
    assert cell_width(outcome_plot(hours, 40)) < 40
    assert outcome_plot((view_models.HourOfCalls(began_at=NOW),), 80) == ()
    every = ("completed", "denied", "failed", "unknown", "refused", "expired")
    hour = view_models.HourOfCalls(began_at=NOW, outcomes=tuple((each, 1) for each in every))
    names = ("done", "denied", "failed", "unknown", "refused", "not run")
    drawn = plain_text(outcome_plot((hour,), 120))
    assert all(f"  {each} █ 1" in drawn for each in names), "what is not known did not fail"
    assert plain_text(outcome_plot((hour,), 70)) == f"{drawn[:67]}…", "a cut is seen"
    assert shown.table.next_read(NOW + 59) != CountCalls()
    assert shown.table.next_read(NOW + 61) == CountCalls()


@pytest.mark.parametrize("width", range(40, 130, 7))
def test_no_column_is_cut_beside_blanks_of_another(width: int) -> None:
    rows = [("a", "short", "b" * 30), ("c" * 18, "a name of some length", "d")]
    columns = Columns[tuple[str, str, str]](
        Column("one", lambda e, _: foreign_text(e[0]), 6, 4),
        Column("two", lambda e, _: foreign_text(e[1]), 40, 4),
        Column("three", lambda e, _: foreign_text(e[2]), 0, 8),
    )
    columns.measure(rows)
    drawn = [plain_text(columns.row(each, width, NOW, selected=False)) for each in rows]
    assert all(cell_width(columns.row(each, width, NOW, selected=False)) < width for each in rows)
    if width >= 18 + 21 + 30 + 4 + 3:
        assert not any("…" in each for each in drawn)
    else:
        assert max(len(each.rstrip()) for each in drawn) == width - 1, "every cell is used"
    columns.measure([("e" * 500, "", "")])
    assert "b" * 6 in plain_text(columns.row(rows[0], width, NOW, selected=False))


def test_a_name_from_outside_cannot_pass_for_our_columns_nor_take_their_room() -> None:
    """The gap between ours is blanks: a run of them in a name is a mark."""
    forged = "codex  gmail.list_drafts   To jonas@northwind.example   you, 4 s"
    columns = Columns[str](
        Column("agent", lambda e, _: foreign_text(e), 12, 8, outside=True),
        Column("what", lambda e, _: (Piece("ours"),), 0, 8),
    )
    columns.measure([forged])
    row = columns.row(forged, 120, NOW, selected=False)
    assert plain_text(row).strip() == "codex‹2 blanks›gmail.…  ours"
    assert Piece("‹2 blanks›", "mark") in row
    assert plain_text(columns.titles(120, NOW)).rstrip() == f"  {'agent':<24}what"


def test_a_row_of_a_million_characters_is_laid_out_at_once() -> None:
    """Another program may have written it into the database: no key may wait for it."""
    columns = Columns[str](
        Column("event", lambda e, _: (Piece(e),), 21, 16),
        Column("what", lambda e, _: (Piece(e),), 0, 24),
    )
    columns.measure(["x" * 1_000_000])
    began = time.process_time()
    assert cell_width(columns.titles(80, NOW)) < 80
    assert time.process_time() - began < 1
    huge = record(1, summary="x" * 1_000_000)
    table = AuditTable((huge,))
    assert cell_width(table.columns.row(huge, 10_000, NOW, selected=False)) < 500


@pytest.mark.parametrize(("key", "page"), [("2", "HISTORY"), ("3", "WHAT"), ("5", "SEEN")])
def test_from_150_columns_the_page_of_the_row_stands_beside_the_list(key: str, page: str) -> None:
    play = Play(snapshot_of(short(), records=record_views(NOW)), size=(150, 40), answers=True)
    play.go(key, page)
    assert any(line.startswith("▌") for line in play.lines)
    titles = next(line for line in play.lines if " time " in line or " status " in line)
    assert key == "3" or "agent" in titles.split(), "who did it is in the list"
    asked: list[Intent] = list(play.port.intents)
    if key == "5":
        play.press_rested("x")
        assert not any(isinstance(each, EndSession) for each in play.port.intents[len(asked) :])
    play.press_rested("escape")
    narrow = Play(snapshot_of(short(), records=record_views(NOW)), size=(149, 40))
    narrow.passes(1)
    narrow.press_rested(key)
    assert narrow.row
    assert page not in narrow.text
