"""The history of all calls: page by page from the newest to the first, with what each was about, also after a restart."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise
from math import isfinite
from pathlib import Path
from typing import Any

import pytest

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.clock import rfc3339
from aileron_core.console import history_reader, view_mapping
from aileron_core.console_port.events import CallsCounted, HistoryRead
from aileron_core.console_port.intents import Approve, CountCalls, Deny, ReadHistory
from aileron_core.console_port.view_models import HistoryCall, HistoryQuery, RecordView
from aileron_core.errors import AileronError
from aileron_core.ids import new_run_id
from aileron_core.runs import run_table
from aileron_core.storage.database import Tx
from tests.core.history.kept import DAY, Kept
from tests.core.history.test_sealed import SHOWN, sealed_later
from tests.support.core_harness import DRAFT, Core, Mailbox, Start, install_examples
from tests.support.frozen_clock import FrozenClock

FORGED = """UPDATE runs SET args = NULL, content_key = NULL, output = '{"output":"FORGED"}'"""


async def refuse_each(core: Core, *actions: str) -> None:
    """Have a call of each refused: the first one has a record of its own, the others one together."""
    for action in actions:
        with pytest.raises(AileronError):
            await core.call(action, {})
    await core.app.gate.refused_calls.sweep(everything=True)


async def pages(core: Core, query: HistoryQuery, limit: int = 200) -> list[HistoryRead]:
    """Read to the first call, each time from where the last reading ended."""
    found: list[HistoryRead] = []
    while not found or found[-1].then is not None:
        start = found[-1].then if found else None
        await core.app.console.carry_out(ReadHistory(query=query, start=start, limit=limit))
        found.append([each for each in core.events if isinstance(each, HistoryRead)][-1])
        assert (found[-1].query, found[-1].start) == (query, start)
    return found


async def calls_found(core: Core, query: HistoryQuery | None = None) -> list[HistoryCall]:
    return [call for page in await pages(core, query or HistoryQuery()) for call in page.calls]


async def records_found(core: Core, query: HistoryQuery) -> list[RecordView]:
    return [each for page in await pages(core, query) for each in page.records]


async def counted(core: Core, hours: int = 2) -> CallsCounted:
    await core.app.console.carry_out(CountCalls(hours=hours))
    return [each for each in core.events if isinstance(each, CallsCounted)][-1]


async def make_calls(core: Core, clock: FrozenClock, count: int) -> None:
    row = (await core.call("get-draft", {"id": DRAFT})).row

    def unit(tx: Tx) -> None:
        for number in range(1, count):
            at = clock.now() + number
            now: dict[str, Any] = {"requested_at": at, "ended_at": at, "last_record": tx.next_seq()}
            copy = replace(row, run_id=new_run_id(at), args={"id": f"draft-{number:04}-"}, **now)
            run_table.insert(tx, copy)
            done, run = AuditEvent.RUN_COMPLETED, copy.run_id
            tx.record(AuditRecord(at=rfc3339(at), event=done, summary="", run=run))

    await core.app.database.write(unit)
    clock.advance(count)


async def test_600_calls_are_read_page_by_page_after_a_restart_and_found_by_their_arguments(
    home: Path, mailbox: Mailbox
) -> None:
    """The list once held the newest 500 records; the others were out of reach, and it was empty after a restart."""
    clock = FrozenClock()
    install_examples(home)
    async with Core.open(home, mailbox, clock=clock) as core:
        await make_calls(core, clock, 600)
    async with Core.open(home, mailbox, clock=clock) as core:
        read = await pages(core, HistoryQuery())
        found = [call.approval for page in read for call in page.calls]
        assert max(len(page.calls) for page in read) == 200
        times = [view.requested_at for view in found]
        assert times == sorted(times, reverse=True)
        assert len({view.run_id for view in found}) == 600
        assert {page.total for page in read} == {600}
        values = [field.value for view in found for field in view.arguments]
        assert values[-2:] == ["draft-0001-", DRAFT]
        read = await pages(core, HistoryQuery(words=("DRAFT-0007",)))
        assert [len(page.calls) for page in read if page.calls] == [1]
        assert sum(page.searched for page in read) == 600
        assert max(page.searched for page in read) == 200, "or agents would wait for it"
        down = [page.searched_to or 0 for page in read if page.searched]
        assert down == sorted({*down}, reverse=True)


async def test_a_filter_that_finds_nothing_says_how_far_it_has_looked(
    home: Path, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FrozenClock()
    monkeypatch.setattr(run_table, "_MOST_LOOKED_AT", 40)
    install_examples(home)
    async with Core.open(home, mailbox, clock=clock) as core:
        await make_calls(core, clock, 100)
        read = await pages(core, HistoryQuery(actions=("no-such",)))
    assert [(len(page.calls), page.searched) for page in read] == [(0, 40), (0, 40), (0, 20)]


async def test_calls_and_refused_ones_are_found_by_agent_action_outcome_and_time(
    start: Start, clock: FrozenClock
) -> None:
    async with start() as core:
        await core.call("get-draft", {"id": DRAFT})
        with pytest.raises(AileronError):
            await core.call("no-such-action", {})
        clock.advance(100)
        at = clock.now()
        view = await core.ask()
        await core.do(Deny(approval_id=view.approval_id, reason="wrong list"))
        clock.advance(100)
        await core.ask("r-8842190312")

    async def outcomes(query: HistoryQuery) -> list[str]:
        return [call.approval.shown_state for call in await calls_found(core, query)]

    async with start() as core:
        everything = ["pending", "denied", "completed"]
        assert await outcomes(HistoryQuery()) == everything
        assert await outcomes(HistoryQuery(actions=("GET-",))) == ["completed"]
        assert await outcomes(HistoryQuery(outcomes=("denied", "pending"))) == ["pending", "denied"]
        assert await outcomes(HistoryQuery(agents=("claude",))) == everything
        assert await outcomes(HistoryQuery(agents=("codex",))) == []
        assert await outcomes(HistoryQuery(since=at)) == ["pending", "denied"]
        assert await outcomes(HistoryQuery(until=at)) == ["completed"]
        assert await outcomes(HistoryQuery(words=("wrong", "list"))) == ["denied"]
        refused = await records_found(core, HistoryQuery())
        assert [(e.event, e.action) for e in refused] == [("call.refused", "no-such-action")]
        assert await records_found(core, HistoryQuery(outcomes=("refused",))) == refused
        assert await records_found(core, HistoryQuery(outcomes=("denied",))) == []
    async with start() as core:
        await refuse_each(core, "no-such", "that-one", "other-one")
        for query in (HistoryQuery(actions=("that-",)), HistoryQuery(words=("OTHER-one",))):
            (found,) = await records_found(core, query)
            assert (found.action, found.count) == (None, 2)


async def test_what_happened_beside_calls_comes_with_them_and_none_is_left_out(
    start: Start, clock: FrozenClock
) -> None:
    async with start() as core:
        for number in range(6):
            clock.advance(10)
            await core.call("get-draft", {"id": DRAFT})
            if number % 3 == 0:
                await core.another_session()
        query = HistoryQuery(lifecycle=True)
        ((whole,),) = [await pages(core, query)]
        for limit in (1, 2, 3):
            read = await pages(core, query, limit)
            assert [each for page in read for each in page.records] == [*whole.records]
            assert [each for page in read for each in page.calls] == [*whole.calls]
            for earlier, later in pairwise(read):
                times = [each.at for each in earlier.records]
                times += [each.approval.requested_at for each in earlier.calls]
                after = [each.at for each in later.records]
                after += [each.approval.requested_at for each in later.calls]
                assert min(times, default=1e12) >= max(after, default=0) - 0.001
    assert len(whole.calls) == 6
    assert "session.opened" in {each.event for each in whole.records}


async def test_no_record_is_left_out_where_the_clock_stepped_back_and_none_is_parsed_for_every_page(
    start: Start, clock: FrozenClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    parsed: list[int] = []

    def counted_records(*given: Any) -> Iterator[RecordView]:
        for each in view_mapping.records_of_no_call(*given):
            parsed.append(each.seq)
            yield each

    monkeypatch.setattr(history_reader, "records_of_no_call", counted_records)
    async with start() as core:
        for number in range(6):
            clock.step(-55 if number == 5 else 10)
            for _ in range(2):
                clock.advance(1)
                await core.call("get-draft", {"id": DRAFT})
            await core.another_session()
        ((whole,),) = [await pages(core, HistoryQuery(lifecycle=True))]
        for limit in (1, 2, 3):
            read = await pages(core, HistoryQuery(lifecycle=True), limit)
            assert [each for page in read for each in page.records] == [*whole.records]
            assert [each for page in read for each in page.calls] == [*whole.calls]
        parsed.clear()
        read = await pages(core, HistoryQuery(words=("no-such",), lifecycle=True), 1)
    assert len(read) > len(whole.calls) == 12
    # those of every page were, again and again
    assert len(parsed) <= len(whole.records) + len(read)


async def test_what_a_decided_call_was_about_is_read_once_the_vault_is_unlocked(kept: Kept) -> None:
    async with kept.open() as core:
        view = await core.ask()
        await core.app.console.carry_out(Approve(approval_id=view.approval_id, digest=view.digest))
        await core.ended(view)
        await core.app.approvals.mark_delivered(view.approval_id)
        await sealed_later(core, kept.clock)
    kept.keys.locked = True
    async with kept.open() as core:
        (call,) = await calls_found(core)
        assert "nlock the vault" in call.approval.sealed
        assert (call.approval.arguments, call.approval.preview.gist, call.edited) == ((), "", False)
        (page,) = await pages(core, HistoryQuery(words=(SHOWN,)))
        assert (page.calls, page.sealed, page.not_kept) == ((), 1, 0)
        kept.keys.locked = False
        await core.app.contents.reveal()
        for _ in ("in memory", "from its row alone"):
            (call,) = await calls_found(core, HistoryQuery(words=(SHOWN,)))
            assert call.approval.preview.gist == view.preview.gist
            assert call.approval.preview.fields == view.preview.fields
            assert [each.value for each in call.approval.arguments] == [DRAFT]
            if run := core.app.registry.get(view.run_id):
                core.app.registry.discard(run)
    assert view.preview.gist


async def test_without_a_vault_what_is_not_kept_is_said(start: Start, clock: FrozenClock) -> None:
    async with start() as core:
        await core.call("get-draft", {"id": DRAFT})
        clock.advance(31 * DAY)
        await core.app.contents.forget_due()
        (call,) = await calls_found(core)
        view = call.approval
        assert (view.forgotten, view.sealed, view.state) == (True, "", "completed")
        (page,) = await pages(core, HistoryQuery(words=(DRAFT,)))
        assert (page.calls, page.sealed, page.not_kept) == ((), 0, 1)


@pytest.mark.parametrize(
    ("edit", "words"),
    [("UPDATE runs SET args = replace(args, 'r-', 'q-')", ()), (FORGED, ("forged",))],
    ids=["arguments", "a result in their place"],
)
async def test_a_row_others_changed_says_so(kept: Kept, edit: str, words: tuple[str, ...]) -> None:
    """The call's page said so; the list and its search did not."""
    async with kept.open() as core:
        await core.call("get-draft", {"id": DRAFT})
        (call,) = await calls_found(core)
        assert not call.edited
    kept.edit(edit)
    async with kept.open() as core:
        (call,) = await calls_found(core, HistoryQuery(words=words))
    assert call.edited


async def test_times_that_no_calendar_has_break_neither_list_nor_counts(kept: Kept) -> None:
    async with kept.open() as core:
        for _ in range(3):
            view = await core.ask()
            kept.clock.advance(10)
            await core.do(Deny(approval_id=view.approval_id, reason=""))
            await core.app.approvals.mark_delivered(view.approval_id)
    first, second = "(SELECT MIN(run_id) FROM runs)", "(SELECT MAX(run_id) FROM runs)"
    kept.edit(f"UPDATE runs SET decided_at = 9e999 WHERE run_id = {first}")
    kept.edit(f"UPDATE runs SET requested_at = 9e999, decided_at = NULL WHERE run_id = {second}")
    async with kept.open() as core:
        (_, hour) = (await counted(core)).hours
        assert (hour.calls, hour.median_wait) == (3, 10)
        read = await pages(core, HistoryQuery(), 1)
    found = [call for page in read for call in page.calls]
    assert [call.edited for call in found] == [True, False, True]
    assert all(isfinite(call.approval.requested_at) for call in found)
    assert all(isfinite(page.searched_to or 0.0) for page in read)


async def test_sealed_bytes_count_for_a_reading(
    kept: Kept, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_reader, "_MOST_BYTES", 100)
    async with kept.open() as core:
        for _ in range(2):
            await core.call("get-draft", {"id": DRAFT})
        await sealed_later(core, kept.clock)
        assert [len(page.calls) for page in await pages(core, HistoryQuery())] == [1, 1, 0]


async def test_the_last_hours_are_counted_after_a_restart(start: Start, clock: FrozenClock) -> None:
    """The line above the list once counted what of the newest 500 records it had seen."""
    async with start() as core:
        await core.call("get-draft", {"id": DRAFT})
        clock.advance(2 * 3600)
        for seconds in (10, 30):
            view = await core.ask()
            clock.advance(seconds)
            await core.do(Deny(approval_id=view.approval_id, reason=""))
            await core.app.approvals.mark_delivered(view.approval_id)
        approved = await core.ask()
        clock.advance(50)
        await core.approve(approved)
        await core.ended(approved)
        await refuse_each(core, "no-such-action", "no-such-action", "no-such-action")
    async with start() as core:
        earlier, hour = (await counted(core)).hours
        assert (earlier.calls, earlier.median_wait) == (0, None)
        assert dict(hour.outcomes) == {"completed": 1, "denied": 2, "refused": 3}
        assert (hour.calls, hour.not_gated, hour.approved, hour.median_wait) == (6, 0, 1, 30)
        assert [each.not_gated for each in (await counted(core, 4)).hours] == [0, 1, 0, 0]
