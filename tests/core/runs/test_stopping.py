"""A person pauses all calls, stops one run, or takes back what a tool wrote: what waits, and what ends at once."""

import asyncio
import time
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.stop_request import StopRequest
from aileron_core.console_port.events import PauseChanged
from aileron_core.console_port.intents import SetPause, StopRun, UndoRun, WithdrawAcceptance
from aileron_core.errors import Conflict, NotFound, Paused, StorageUnavailable, Unauthorized
from aileron_core.policy.model import Policy, Rule
from aileron_core.runs import LiveRun
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.transitions import RunState
from tests.core.builtin.test_calls import Tools
from tests.support.core_harness import (
    DRAFT,
    PATIENCE,
    UPDATE_DRAFT,
    Core,
    Mailbox,
    Start,
    hold_answers,
    writes,
)
from tests.support.scripted_guest import ScriptedService, install_sleeper, write_action


async def begun(core: Core, action: str) -> LiveRun:
    of = (action, RunState.EXECUTING)
    runs = core.app.registry
    return (await core.until(lambda: [r for r in runs if (r.row.action, r.row.state) == of]))[0]


@contextmanager
def promptly() -> Generator[None]:
    """A stopped run has ended within ten seconds, also on a busy machine; it would have gone on for a minute."""
    began = time.monotonic()
    yield
    assert time.monotonic() - began < 10


LIMITS = "[limits]\nwall_seconds = 90\n"


def sleeper(home: Path) -> None:
    write_action(home, "long-work", install_sleeper(home, seconds=60), LIMITS)


async def test_a_stopped_run_ends_in_the_middle_of_a_sleep(home: Path) -> None:
    """Nothing was sent, so it has failed; another run of the same connector goes on."""
    sleeper(home)
    write_action(home, "other-work", install_sleeper(home, seconds=60), LIMITS)
    async with Core.open(home) as core:
        names = ("long-work", "other-work")
        called, goes_on = (asyncio.create_task(core.call(name, {})) for name in names)
        live, other = [await begun(core, name) for name in names]
        with promptly():
            await core.app.console.submit(StopRun(run_id=live.row.run_id))
            row = (await called).row
        assert row.state is RunState.FAILED
        assert (row.failure.class_, row.failure.retriable) == ("conflict", False)
        assert row.failure.details["outcome"] == "stopped"
        records = [each for each in await core.records() if each["run"] == row.run_id]
        ended = [("run.started", "aileron"), ("run.stopped", "person"), ("run.failed", "aileron")]
        assert [(each["event"], each["actor"]) for each in records] == ended
        assert records[-1]["stopped_by"] == "person"
        assert (other.row.state, goes_on.done()) == (RunState.EXECUTING, False)
        await core.app.approvals.stop(other.row.run_id)
        await goes_on


async def test_a_run_stopped_while_a_request_waits_is_unknown(core: Core, mailbox: Mailbox) -> None:
    """Only what runs is stopped, and only once."""
    view = await core.ask()
    with pytest.raises(Conflict, match="does not run now"):
        await core.app.approvals.stop(view.run_id)
    with pytest.raises(NotFound):
        await core.app.approvals.stop("run_unknown")
    with hold_answers(mailbox, "POST send") as reached:
        await core.approve(view)
        await reached()
        with promptly():
            stops = [core.app.approvals.stop(view.run_id) for _ in range(2)]
            answers = await asyncio.gather(*stops, return_exceptions=True)
            assert [type(each) for each in answers] == [type(None), Conflict]
            ended = await core.ended(view)
    assert (ended.state, ended.awaits_acknowledgement) == ("unknown", True)
    with pytest.raises((Conflict, NotFound)):
        await core.app.approvals.stop(view.run_id)
    events = [each["event"] for each in await core.records() if each["run"] == view.run_id]
    assert (events.count("run.stopped"), events[-2:]) == (1, ["run.stopped", "run.unknown"])
    assert writes(mailbox).count("POST send") == 1


async def test_an_unrecorded_stop_still_stops(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopping permits nothing, so it does not wait for the disk; the person is told."""
    sleeper(home)
    async with Core.open(home) as core:
        called = asyncio.create_task(core.call("long-work", {}))
        live = await begun(core, "long-work")

        async def full(*_: object, **__: object) -> None:
            raise StorageUnavailable("the disk is full")

        monkeypatch.setattr(core.app.approvals.store, "update", full)
        with promptly(), pytest.raises(StorageUnavailable, match="was stopped, but that could"):
            await core.app.approvals.stop(live.row.run_id)
        monkeypatch.undo()
        assert (await called).row.state is RunState.FAILED
        assert (await core.records("run.failed"))[0]["stopped_by"] == "person"


async def test_a_run_that_had_sent_is_unknown(home: Path, service: ScriptedService) -> None:
    """Its request was answered, but nobody knows what its connector had still to do."""
    request = {"method": "POST", "url": "https://sleeper.test/jobs", "body": "{}"}
    hash_ = install_sleeper(home, seconds=60, requests=[request])
    write_action(home, "long-work", hash_, LIMITS, idempotent=False)
    async with Core.open(home, routes=service.route("sleeper.test:443")) as core:
        called = asyncio.create_task(core.call("long-work", {}))
        live = await begun(core, "long-work")
        await core.until(lambda: service.seen or None)
        await core.app.approvals.stop(live.row.run_id)
        assert (await called).row.state is RunState.UNKNOWN
        assert [each.method for each in service.seen] == ["POST"]


async def test_work_that_is_interrupted_ends_and_a_cancelled_caller_stays_cancelled() -> None:
    """A stop is not a cancel: whoever cancels the caller still gets that."""
    stop = StopRequest()
    waiting = asyncio.create_task(stop.interrupt(asyncio.sleep(60)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await stop.interrupt(asyncio.sleep(0, "done")) == "done"


async def test_an_approved_call_names_the_run_that_it_waits_for(home: Path) -> None:
    """Both use one connector. Another person's long query is not waited for without a word."""
    hash_ = install_sleeper(home, seconds=60)
    write_action(home, "long-work", hash_, LIMITS)
    gated = '[approval]\nrequired = true\neffect = "run"\n'
    write_action(home, "gated-work", hash_, gated + LIMITS)
    async with Core.open(home) as core:
        called = asyncio.create_task(core.call("long-work", {}))
        first = await begun(core, "long-work")
        view = await core.ask_for("gated-work", {})
        await core.approve(view)
        waiting = await core.view(view.approval_id, lambda v: v.waits_for is not None)
        assert (waiting.state, waiting.waits_for.action) == ("checking", "long-work")
        assert waiting.waits_for.ends_by == first.started_at + 90
        assert waiting.version == view.version + 1, "a yes, and nothing else to look at anew"
        with promptly():
            await core.app.approvals.stop(first.row.run_id)
            await called
            runs = await core.view(view.approval_id, lambda v: v.state == "executing")
        assert runs.waits_for is None
        await core.app.approvals.stop(view.run_id)
        await core.ended(view)


OTHER = "r-8842190312"


def call_in_background(core: Core, action: str = "get-draft", **more: Any) -> "asyncio.Task[Any]":
    args = {"id": DRAFT, **({"to": "m@x.example"} if action == "update-draft" else {})}
    return asyncio.create_task(core.call(action, args, **more))


async def runs(core: Core) -> list[tuple[str, str]]:
    query = "SELECT action, state FROM runs ORDER BY run_id"
    return await core.app.database.read(lambda c: c.execute(query).fetchall())


async def test_an_ungated_call_is_held_before_its_row(core: Core, mailbox: Mailbox) -> None:
    await core.do(SetPause(paused=True))
    call = call_in_background(core)
    # The gated call goes through the same gate after it: by then the first is held.
    await core.ask(OTHER)
    assert not call.done()
    assert await runs(core) == [("send-draft", "pending")]
    assert writes(mailbox) == [f"GET {OTHER}"]
    await core.do(SetPause(paused=False))
    assert (await call).row.state == "completed"
    events = [record["event"] for record in await core.records()]
    places = [events.index(e) for e in ("console.paused", "console.resumed", "run.started")]
    assert places == sorted(places)
    changes = [event.paused_at for event in core.events if isinstance(event, PauseChanged)]
    assert (len(changes), changes[0] is None, changes[1]) == (2, False, None)


async def test_a_call_that_was_held_too_long_is_refused(start: Start, mailbox: Mailbox) -> None:
    assert PauseSwitch().hold_seconds == 25
    async with start() as core:
        core.app.pause.hold_seconds = 0.1
        await core.do(SetPause(paused=True))
        first, same = call_in_background(core, key="k"), call_in_background(core, key="k")
        for call in (first, same):
            with pytest.raises(Paused, match=r"waited for 0.1 s and did not run") as caught:
                await call
            assert (caught.value.class_, caught.value.retriable) == ("unavailable", True)
        assert await runs(core) == []
        assert [r["class"] for r in await core.records("call.refused")] == ["unavailable"]
        await core.do(SetPause(paused=False))
        assert (await call_in_background(core, key="k")).row.state == "completed"
    assert writes(mailbox) == [f"GET {DRAFT}"]


async def test_what_was_approved_before_the_pause_comes_back(core: Core, mailbox: Mailbox) -> None:
    """While paused a person says no but not yes."""
    view, other = await core.ask(), await core.ask(OTHER)
    with hold_answers(mailbox, f"GET {DRAFT}") as reached:
        await core.approve(view)
        await reached()
        await core.do(SetPause(paused=True))
    back = await core.view(view.approval_id, lambda v: v.state == "pending", after=view.version + 1)
    assert "on hold before the run began. Nothing ran" in back.note
    with pytest.raises(Paused, match="nothing was decided"):
        await core.approve(back)
    await core.app.approvals.deny(other.approval_id, "no")
    await core.do(SetPause(paused=False))
    await core.call("list-drafts", {})  # the connector is free again
    assert (core.views(view.approval_id)[-1].state, mailbox.state()["sent"]) == ("pending", [])
    assert (await core.run(back)).state == "completed"
    assert [sent["draft_id"] for sent in mailbox.state()["sent"]] == [DRAFT]


@pytest.mark.actions(update_draft=UPDATE_DRAFT)
async def test_no_call_that_waits_begins_in_a_pause(core: Core, mailbox: Mailbox) -> None:
    """It had passed the door before; the connector is let go while calls are held."""
    view = await core.ask()
    with hold_answers(mailbox, "POST send") as reached:
        await core.approve(view)
        await reached()
        call = call_in_background(core, "update-draft")
        async with asyncio.timeout(PATIENCE):
            while len(core.app.registry._by_run) < 2:
                await asyncio.sleep(0)
        await core.do(SetPause(paused=True))
    assert (await core.ended(view)).state == "completed"
    await core.ask(OTHER)  # goes by it, and through the same connector
    assert [action for action, _ in await runs(core)] == ["send-draft"] * 2
    assert not any(request.startswith("PUT") for request in writes(mailbox))
    await core.do(SetPause(paused=False))
    assert (await call).row.state == "failed"


async def test_a_held_call_runs_only_as_it_may_run_afterwards(core: Core, mailbox: Mailbox) -> None:
    other = await core.another_session()
    digest = {each.name: each.sha256 for each in core.app.library.ready()}["get-draft"]
    await core.do(SetPause(paused=True))
    gone, refused = call_in_background(core, session=other), call_in_background(core)
    await core.ask(OTHER)
    await core.app.session_service.end(other.session_id, "it was ended")
    with pytest.raises(Unauthorized):  # nor does a gated call become pending
        await core.call(session=other)
    await core.do(WithdrawAcceptance(kind="action", name="get-draft", digest=digest))
    await core.do(SetPause(paused=False))
    with pytest.raises(Unauthorized, match="has ended"):
        await gone
    with pytest.raises(Conflict, match="is not accepted"):
        await refused
    assert writes(mailbox) == [f"GET {OTHER}"]
    assert [action for action, _ in await runs(core)] == ["send-draft"]
    classes = {record["class"] for record in await core.records("call.refused")}
    assert classes == {"unauthorized", "conflict"}


async def test_a_pause_is_at_once_and_ends_with_the_process(start: Start) -> None:
    async with start() as core:
        core.app.database._stopped = StorageUnavailable("full")
        with pytest.raises(StorageUnavailable, match="All calls are on hold, but"):
            await core.do(SetPause(paused=True))
        assert (await core.app.console.snapshot()).paused_at is not None
        with pytest.raises(StorageUnavailable):  # and they go on only on record
            await core.do(SetPause(paused=False))
        assert core.app.pause.is_on
        core.app.database._stopped = None
    async with start() as core:
        assert (await core.app.console.snapshot()).paused_at is None
        assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"


async def test_waiting_for_the_end_of_a_pause_is_bounded_over_several_pauses() -> None:
    switch = PauseSwitch(hold_seconds=5)
    assert await switch.wait_until_off(5) == pytest.approx(5, abs=0.5)
    switch.pause(1.0)
    switch.pause(2.0)
    assert switch.paused_since == 1.0
    waiting = asyncio.create_task(switch.wait_until_off(0.2))
    for _ in range(3):  # ended and begun again before the waiting one has its turn
        await asyncio.sleep(0)
        switch.resume()
        switch.pause(3.0)
    with pytest.raises(Paused):
        await waiting
    switch.resume()
    with switch.block_starts():
        assert (switch.is_on, switch.paused_since) == (True, None)
        with pytest.raises(Paused):
            switch.require_off("on hold")
    switch.require_off("on hold")


WRITES = Policy(rules=(Rule(tools=("Write", "Edit"), decision="allow", reason="for the test"),))


@pytest.fixture
def a_txt(project: Path) -> Path:
    file = project / "a.txt"
    file.write_text("before\n")
    return file


@pytest.fixture
async def tools(home: Path, a_txt: Path) -> AsyncIterator[Tools]:
    async with (
        Core.open(home, policy=WRITES) as core,
        Tools(core, a_txt.parent).attached() as tools,
    ):
        core.session = tools.session
        yield tools


@pytest.fixture
def writing(tools: Tools) -> Core:
    return tools.core


async def wrote(core: Core, content: str = "after\n") -> str:
    answer = await core.call("builtin.write", {"file_path": "a.txt", "content": content})
    assert answer.row.state == "completed"
    return answer.row.run_id


async def test_what_was_there_before_is_back_once_on_record(writing: Core, a_txt: Path) -> None:
    """A file that has changed since is left alone; after the session's end nothing is offered, nor what only read."""
    read = await writing.call("builtin.read", {"file_path": "a.txt"})
    assert not (await writing.opened(read.row.run_id)).approval.can_undo
    run_id = await wrote(writing)
    assert a_txt.read_text() == "after\n"
    assert (await writing.opened(run_id)).approval.can_undo
    a_txt.write_text("mine\n")
    with pytest.raises(Conflict, match="has changed since"):
        await writing.do(UndoRun(run_id=run_id))
    assert a_txt.read_text() == "mine\n"
    a_txt.write_text("after\n")
    await writing.do(UndoRun(run_id=run_id))
    assert a_txt.read_text() == "before\n"
    call = await writing.opened(run_id)
    assert not call.approval.can_undo
    assert not call.edited
    assert [(each.event, each.actor) for each in call.records][-1] == ("run.undone", "person")
    with pytest.raises(NotFound, match="nothing that could be undone"):
        await writing.do(UndoRun(run_id=run_id))
    run_id = await wrote(writing)
    await writing.app.session_service.end(writing.session.session_id, "it is over", by="person")
    assert not (await writing.opened(run_id)).approval.can_undo


async def test_a_row_offers_what_can_be(writing: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row kept the offer after the session's end, and when newer changes had taken its place."""
    monkeypatch.setattr(writing.app.policy, "_policy", Policy())
    monkeypatch.setattr("aileron_core.runs.undo._MAX_CALLS", 1)
    rows: list[str] = []
    for content in ("one\n", "two\n"):
        asked = await writing.ask_for("builtin.write", {"file_path": "a.txt", "content": content})
        await writing.run(asked)
        rows.append(asked.approval_id)
        assert await writing.until(lambda: writing.views(rows[-1])[-1].can_undo)
    assert not writing.views(rows[0])[-1].can_undo
    await writing.app.session_service.end(writing.session.session_id, "it is over", by="person")
    await writing.until(lambda: not writing.views(rows[1])[-1].can_undo)


async def test_what_a_servers_worker_kept_outlives_the_session(
    tools: Tools, writing: Core, a_txt: Path
) -> None:
    tools.kept_by = "notes-1"
    keeper = writing.app.tool_channels.get("notes-1")
    keeper.attach({})
    keeper.frames = tools.channel.frames
    run_ids = [await wrote(writing, content) for content in ("one\n", "two\n")]
    await writing.app.session_service.end(writing.session.session_id, "it is over", by="person")
    await writing.do(UndoRun(run_id=run_ids[1]))
    assert a_txt.read_text() == "one\n"
    writing.app.console.undo.forget("notes-1")
    with pytest.raises(NotFound, match="nothing that could be undone"):
        await writing.do(UndoRun(run_id=run_ids[0]))
