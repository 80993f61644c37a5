"""A person's word to stop everything: what waits, what runs, what would run next, who may ask."""

import asyncio

import pytest

from aileron_core.console_port.events import EverythingStopped, SessionsUpdated
from aileron_core.console_port.intents import EndSession, StopEverything
from aileron_core.errors import NotFound, StorageUnavailable
from tests.support.core_harness import (
    DRAFT,
    PATIENCE,
    Core,
    Mailbox,
    hold_answers,
    wait_for_request,
    writes,
)

OTHERS = ("r-8842190312", "r-8842189950", "r-8842189771")


async def stop(core: Core) -> EverythingStopped:
    await core.do(StopEverything())
    return core.last(EverythingStopped)


async def test_what_waits_is_denied_and_every_session_ends(core: Core, mailbox: Mailbox) -> None:
    other = await core.another_session()
    views = [await core.ask(draft) for draft in OTHERS]
    checked = await core.ask(DRAFT, session=other)
    with hold_answers(mailbox, f"GET {DRAFT}") as reached:
        await core.approve(checked)
        await reached()
        done = await stop(core)
    assert (done.denied, done.sessions_ended, done.runs_stopped) == (4, 2, 0)
    for view in (*views, checked):
        ended = await core.ended(view)
        assert (ended.state, ended.decided_by) == ("denied", "person")
        assert ended.reason == "A person stopped everything."
    assert core.app.sessions.authenticate(core.token) is None
    assert [r["actor"] for r in await core.records("session.ended")] == ["person"] * 2
    assert len(await core.records("console.everything_stopped")) == 1
    assert not core.app.pause.is_on
    again = await stop(core)
    assert (again.denied, again.sessions_ended, again.runs_stopped) == (0, 0, 0)
    assert mailbox.state()["sent"] == []


async def test_a_guest_stopped_after_its_request_ends_unknown(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    mailbox.control(delay_seconds={"send": 20})
    await core.approve(view)
    await wait_for_request(mailbox, "POST send", 1)
    async with asyncio.timeout(15):  # the service takes 20
        done = await stop(core)
    assert (done.denied, done.runs_stopped) == (0, 1)
    ended = await core.ended(view)
    assert ended.state == "unknown"
    assert "a person stopped everything while it ran" in ended.outcome
    (record,) = await core.records("run.unknown")
    assert record["run"] == view.run_id


async def test_no_waiting_call_begins_after_the_stop(core: Core, mailbox: Mailbox) -> None:
    mailbox.control(delay_seconds={"get": 20})
    loop = asyncio.get_running_loop()
    calls = [loop.create_task(core.call("get-draft", {"id": DRAFT})) for _ in range(10)]
    await wait_for_request(mailbox, f"GET {DRAFT}", 8)
    assert (await stop(core)).runs_stopped == 8
    ends = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(end, Exception) for end in ends) == 2
    assert writes(mailbox).count(f"GET {DRAFT}") == 8
    # A session that is opened afterwards is not held up by any of that.
    mailbox.control(delay_seconds={"get": 0})
    session = await core.another_session()
    done = await core.call("get-draft", {"id": DRAFT}, session=session)
    assert done.row.state == "completed"


async def test_calls_that_wait_for_a_thread_make_no_request(core: Core, mailbox: Mailbox) -> None:
    """32 guests run at once; the runs of those behind them have begun, and end without one."""
    mailbox.control(delay_seconds={"get": 20})
    sessions = [await core.another_session() for _ in range(5)]
    get, loop = ("get-draft", {"id": DRAFT}), asyncio.get_running_loop()
    calls = [loop.create_task(core.call(*get, session=each)) for each in sessions * 8]
    await wait_for_request(mailbox, f"GET {DRAFT}", 32)
    async with asyncio.timeout(PATIENCE):  # those behind them make no request to wait for
        while sum(held.row.state == "executing" for held in core.app.registry) < 40:
            await asyncio.sleep(0)
    assert (await stop(core)).runs_stopped == 40
    assert {(await call).row.state for call in calls} == {"failed"}
    assert writes(mailbox).count(f"GET {DRAFT}") == 32


async def test_guests_stop_also_where_nothing_can_be_recorded(core: Core, mailbox: Mailbox) -> None:
    """The stop itself does not wait for a disk; the person is told what was not done."""
    waiting = await core.ask(OTHERS[0])
    mailbox.control(delay_seconds={"get": 20})
    call = asyncio.get_running_loop().create_task(core.call("get-draft", {"id": DRAFT}))
    await wait_for_request(mailbox, f"GET {DRAFT}", 1)
    core.app.database._stopped = StorageUnavailable("full")
    said = r"Running calls were stopped\. The rest could not"
    with pytest.raises(StorageUnavailable, match=said):
        await stop(core)
    core.app.database._stopped = None
    async with asyncio.timeout(15):  # the service takes 20
        assert (await call).row.state == "failed"
    assert core.views(waiting.approval_id)[-1].state == "pending"
    assert not core.app.pause.is_on


async def test_ending_one_session_leaves_its_approvals_and_the_other_sessions(core: Core) -> None:
    other = await core.another_session()
    view = await core.ask()
    end = EndSession(session_id=core.session.session_id)
    await core.do(end)
    assert core.app.sessions.authenticate(core.token) is None
    marked = core.views(view.approval_id)[-1]
    assert (marked.state, marked.requester_gone) == ("pending", True)
    update = core.last(SessionsUpdated)
    assert [each.session_id for each in update.sessions] == [other.session_id]
    with pytest.raises(NotFound, match="already ended"):
        await core.do(end)
    (record,) = await core.records("session.ended")
    assert (record["actor"], record["session"]) == ("person", core.session.session_id)
    await core.approve(marked)
    assert (await core.ended(view)).state == "completed"
