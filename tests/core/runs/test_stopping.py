"""A person stops one run: whatever it waits in ends at once, and who stopped it is on record."""

import asyncio
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aileron_core.connectors.stop_request import StopRequest
from aileron_core.console_port.intents import StopRun
from aileron_core.errors import Conflict, NotFound, StorageUnavailable
from aileron_core.runs import LiveRun
from aileron_core.runs.transitions import RunState
from tests.support.core_harness import Core, Mailbox, hold_answers, run, writes
from tests.support.scripted_guest import install_sleeper, scripted_service, write_action

PROMPT = 10.0
"""Seconds within which a stopped run has ended, also on a busy machine; it would have gone on for a minute."""


async def begun(core: Core, action: str) -> LiveRun:

    def executing() -> list[LiveRun]:
        own = [each for each in core.app.registry if each.row.action == action]
        return [each for each in own if each.row.state is RunState.EXECUTING]

    return (await core.until(executing))[0]


@contextmanager
def promptly() -> Generator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < PROMPT


LIMITS = "[limits]\nwall_seconds = 90\n"


def sleeper(home: Path) -> None:
    """Install an action that runs for a minute and asks nobody."""
    write_action(home, "long-work", install_sleeper(home, seconds=60), LIMITS)


async def test_a_stopped_run_ends_in_the_middle_of_a_sleep(home: Path) -> None:
    """The connector sleeps for a minute; nothing was sent, so the run has failed."""
    sleeper(home)
    async with Core.open(home) as core:
        called = asyncio.create_task(core.call("long-work", {}))
        live = await begun(core, "long-work")
        with promptly():
            await core.app.console.submit(StopRun(run_id=live.row.run_id))
            row = (await called).row
        assert row.state is RunState.FAILED
        assert (row.failure.class_, row.failure.retriable) == ("conflict", False)
        assert row.failure.details["outcome"] == "stopped"
        records = [each for each in await core.records() if each["run"] == row.run_id]
        assert [(each["event"], each["actor"]) for each in records] == [
            ("run.started", "aileron"),
            ("run.stopped", "person"),
            ("run.failed", "aileron"),
        ]
        assert records[-1]["stopped_by"] == "person"


async def test_a_stopped_run_whose_request_waits_for_an_answer_has_an_unknown_outcome(
    core: Core, mailbox: Mailbox
) -> None:
    """The mail may have been sent: the call waits for the person, and is not repeated."""
    view = await core.ask()
    with hold_answers(mailbox, "POST send") as reached:
        await core.approve(view)
        await reached()
        with promptly():
            await core.app.approvals.stop(view.run_id)
            ended = await core.ended(view)
    assert ended.state == "unknown"
    assert ended.awaits_acknowledgement
    events = [each["event"] for each in await core.records() if each["run"] == view.run_id]
    assert events[-2:] == ["run.stopped", "run.unknown"]
    assert writes(mailbox).count("POST send") == 1


async def test_stopping_one_run_leaves_another_of_the_same_connector_alone(home: Path) -> None:
    sleeper(home)
    write_action(home, "other-work", install_sleeper(home, seconds=60), LIMITS)
    async with Core.open(home) as core:
        calls = [asyncio.create_task(core.call(name, {})) for name in ("long-work", "other-work")]
        stopped, other = [await begun(core, name) for name in ("long-work", "other-work")]
        await core.app.approvals.stop(stopped.row.run_id)
        assert (await calls[0]).row.state is RunState.FAILED
        assert other.row.state is RunState.EXECUTING
        assert not calls[1].done()
        await core.app.approvals.stop(other.row.run_id)
        await calls[1]


async def test_what_does_not_run_cannot_be_stopped_and_nothing_is_stopped_twice(
    core: Core, mailbox: Mailbox
) -> None:
    view = await core.ask()
    with pytest.raises(Conflict, match="does not run now"):
        await core.app.approvals.stop(view.run_id)
    with pytest.raises(NotFound):
        await core.app.approvals.stop("run_unknown")
    with hold_answers(mailbox, "POST send") as reached:
        await core.approve(view)
        await reached()
        stops = [core.app.approvals.stop(view.run_id) for _ in range(2)]
        answers = await asyncio.gather(*stops, return_exceptions=True)
        assert [type(each) for each in answers] == [type(None), Conflict]
        await core.ended(view)
    with pytest.raises((Conflict, NotFound)):
        await core.app.approvals.stop(view.run_id)
    assert len(await core.records("run.stopped")) == 1


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


def test_a_run_that_had_sent_something_before_it_slept_is_unknown(home: Path) -> None:
    """Its request was answered, but nobody knows what its connector had still to do."""
    with scripted_service() as service:
        request = {"method": "POST", "url": "https://sleeper.test/jobs", "body": "{}"}
        hash_ = install_sleeper(home, seconds=60, requests=[request])
        write_action(home, "long-work", hash_, LIMITS, idempotent=False)
        routes = service.route("sleeper.test:443")

        async def check() -> None:
            async with Core.open(home, routes=routes) as core:
                called = asyncio.create_task(core.call("long-work", {}))
                live = await begun(core, "long-work")
                await core.until(lambda: service.seen or None)
                await core.app.approvals.stop(live.row.run_id)
                assert (await called).row.state is RunState.UNKNOWN
                assert [each.method for each in service.seen] == ["POST"]

        run(check())


async def test_work_that_is_interrupted_ends_and_a_cancelled_caller_stays_cancelled() -> None:
    """A stop is not a cancel: whoever cancels the caller still gets that."""
    stop = StopRequest()
    waiting = asyncio.create_task(stop.interrupt(asyncio.sleep(60)))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await stop.interrupt(asyncio.sleep(0, "done")) == "done"


async def test_an_approved_call_says_which_run_it_waits_for_and_begins_once_that_was_stopped(
    home: Path,
) -> None:
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
