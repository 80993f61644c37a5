"""What cannot be put on record does not happen, what has happened is recorded later; refusals are on record, in bounds."""

import asyncio
import json
import resource
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Never

import pytest

from aileron_core import app
from aileron_core.console.records import StorageMonitor
from aileron_core.console_port.events import StorageHealth
from aileron_core.errors import InvalidArguments, NotFound, StorageUnavailable
from aileron_core.server.sockets import bind_tcp, bind_unix
from aileron_core.sessions.model import Session
from aileron_core.sessions.service import SessionService
from aileron_core.settings import Settings
from aileron_tui.cli.serving import served
from tests.support.core_harness import (
    DRAFT,
    PATIENCE,
    REPEATABLE,
    Core,
    Mailbox,
    Start,
    open_session,
    run_on_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock


def writable(core: Core, *, yes: bool) -> None:
    """Let the writer's connection write, or refuse every write as a full disk does."""
    core.app.database._connection.execute(f"PRAGMA query_only={'OFF' if yes else 'ON'}")


async def call_while_full(core: Core) -> None:
    """Have a free and a gated call refused as unavailable."""
    for action, args in (("get-draft", {"id": DRAFT}), ("send-draft", {"draft_id": DRAFT})):
        with pytest.raises(StorageUnavailable) as caught:
            await core.call(action, args)
        failure = caught.value.to_failure()
        assert (failure.class_, failure.retriable) == ("unavailable", True)


async def test_no_run_begins_while_no_audit_can_be_written(core: Core, mailbox: Mailbox) -> None:
    writable(core, yes=False)
    await call_while_full(core)
    assert writes(mailbox) == []

    def told() -> list[bool]:
        return [event.writable for event in core.events if isinstance(event, StorageHealth)]

    assert not (await core.until(told))[0]
    writable(core, yes=True)
    # The console finds out by itself that it can be written again.
    await core.until(lambda: told()[-1])
    assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"
    assert not (await core.call()).attached


@pytest.mark.parametrize("full", ["the database", "the folder"])
async def test_a_disk_that_fills_up_at_the_start_ends_no_core(core: Core, full: str) -> None:
    """Within seconds of the start it did, for good; later it recovered. Other programs find the console afterwards."""
    home = core.app.home
    blocking = home.daemon_file.with_suffix(".new")
    if full == "the database":
        writable(core, yes=False)
    else:
        blocking.mkdir()  # so that it cannot be written
    async with served(core.app, Settings(), [bind_tcp("127.0.0.1", 0), bind_unix(home.socket)]):
        assert not home.daemon_file.exists()
        if full == "the database":
            writable(core, yes=True)
        else:
            blocking.rmdir()
        await core.until(home.daemon_file.exists)
        url = json.loads(home.daemon_file.read_text())["url"]
        assert url == core.app.address.url != ""
        assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"


async def test_a_sessions_socket_that_has_no_room_at_the_start_is_made_later(core: Core) -> None:
    """The agent in its sandbox knows no other way to the console."""
    opened = await open_session(core.app, opened_by="contained")
    home = core.app.home
    home.sockets.mkdir(exist_ok=True)
    blocking = home.sockets / opened.session.session_id
    blocking.write_text("in the way of its folder")
    async with served(core.app, Settings(), [bind_tcp("127.0.0.1", 0), bind_unix(home.socket)]):
        blocking.unlink()
        await core.until((blocking / "s.sock").is_socket)


async def test_a_yes_that_cannot_be_written_decides_nothing(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    writable(core, yes=False)
    for answer in (core.approve(view), core.app.approvals.deny(view.approval_id, "")):
        with pytest.raises(StorageUnavailable):
            await answer
    writable(core, yes=True)
    assert core.views(view.approval_id)[-1].state == "pending"
    assert (await core.run(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


def fail_at(step: str, cores: list[Core], name: str) -> None:
    """As a failpoint of *cores*: *step* cannot be written, and later what undoes it can."""
    for core in cores:
        if name in (step, "before recheck.undone"):
            writable(core, yes=name != step)


@pytest.mark.parametrize("step", ["before recheck.held", "before run.started"])
async def test_no_effect_begins_unwritten(start: Start, mailbox: Mailbox, step: str) -> None:
    cores: list[Core] = []
    async with start(failpoint=partial(fail_at, step, cores)) as core:
        cores.append(core)
        view = await core.ask()
        await core.approve(view)
        back = await core.back(view)
        assert "could not be written" in back.note
        assert mailbox.state()["sent"] == []
        cores.clear()
        assert (await core.run(back)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


async def test_what_has_happened_is_written_once_it_can_be(start: Start, mailbox: Mailbox) -> None:
    cores: list[Core] = []
    tries = 0

    def fail(name: str) -> None:
        nonlocal tries
        if name == "before run.completed" and cores:
            tries += 1
            writable(cores[0], yes=tries > 1)

    async with start(failpoint=fail) as core:
        view = await core.ask()
        cores.append(core)
        assert (await core.run(view)).state == "completed"
        assert tries == 2
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.parametrize("how", ["recheck", "refresh"])
async def test_the_screen_shows_what_is_covered(start: Start, mailbox: Mailbox, how: str) -> None:
    """Regression: a difference that could not be written left new content over the old yes."""
    cores: list[Core] = []
    step = {"recheck": "before recheck.differed", "refresh": "before preview.fetched"}[how]
    async with start(failpoint=partial(fail_at, step, cores)) as core:
        view = await core.ask()
        cores.append(core)
        mailbox.control(change={"id": DRAFT, "to": "mallory@evil.example"})
        if how == "refresh":
            with pytest.raises(StorageUnavailable):
                await core.app.approvals.refresh(view.approval_id)
            writable(core, yes=True)
            shown = core.views(view.approval_id)[-1]
        else:
            await core.approve(view)
            shown = await core.view(view.approval_id, lambda v: bool(v.note))
        assert (shown.state, shown.digest, shown.drift) == ("pending", view.digest, None)
        assert shown.preview.fields == view.preview.fields
        cores.clear()
        await core.approve(shown)
        back = await core.view(view.approval_id, lambda v: v.drift is not None)
        assert back.digest != view.digest
        assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("step", ["after run.started", "before recheck.differed"])
@pytest.mark.actions(send_draft=REPEATABLE)
async def test_an_unwritten_retry_ends_the_run(start: Start, mailbox: Mailbox, step: str) -> None:
    """Regression: the run stayed `executing` for good, neither on record nor decidable."""
    cores: list[Core] = []
    reached: list[str] = []

    def fail(name: str) -> None:
        if cores:
            reached.append(name)
            stopped = name == step and reached.count(step) == 1
            cores[0].app.database._stopped = StorageUnavailable("full") if stopped else None

    async with start(failpoint=fail) as core:
        view = await core.ask()
        cores.append(core)
        mailbox.control(fail={"op": "send", "status": 503, "times": 1})
        change = {"change": {"id": DRAFT, "to": "mallory@evil.example"}}
        run_on_request(mailbox, "POST send", lambda: mailbox._state.apply(change))
        await core.approve(view)
        state = "failed" if step == "after run.started" else "pending"
        await core.view(view.approval_id, lambda v: v.state == state, after=view.version + 3)
    assert (writes(mailbox).count("POST send"), mailbox.state()["sent"]) == (1, [])


async def test_a_full_disk_stops_runs(core: Core, mailbox: Mailbox, home: Path) -> None:
    await core.call("get-draft", {"id": DRAFT})
    before = len(writes(mailbox))
    room = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (home / "aileron.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, room[1]))
    try:
        await call_while_full(core)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, room)
    assert len(writes(mailbox)) == before
    assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"


async def test_a_job_of_the_housekeeping_that_fails_ends_no_other(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried again, and the log says where it failed, but not what the error says."""

    def fail(error: Exception) -> Never:
        raise error

    monkeypatch.setattr(app, "_SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(SessionService, "sweep", partial(fail, RuntimeError(DRAFT)))
    monkeypatch.setattr(StorageMonitor, "probe", partial(fail, KeyError(DRAFT)))
    async with start(), asyncio.timeout(PATIENCE):
        for name in ("RuntimeError", "KeyError"):
            while caplog.text.count(f"housekeeping failed: {name} at app.py:") < 2:
                await asyncio.sleep(0.005)
    assert DRAFT not in caplog.text


async def refuse_calls(core: Core, count: int, session: Session | None = None) -> None:
    for number in range(count):
        with pytest.raises(NotFound):
            await core.call(f"no-such-{number}", {}, session=session)


async def test_equal_refusals_are_one_record(start: Start, clock: FrozenClock) -> None:
    """918 records a second were written of calls of unknown actions; another session's are apart."""
    async with start() as core:
        other = await core.another_session()
        await refuse_calls(core, 500)
        await refuse_calls(core, 2, other)
        with pytest.raises(InvalidArguments):
            await core.call("send-draft", {})
        found = await core.records("call.refused")
        assert [(r["session"], r["class"]) for r in found] == [
            (core.session.session_id, "not_found"),
            (other.session_id, "not_found"),
            (core.session.session_id, "invalid_arguments"),
        ]
        assert (found[0]["action"], "count" in found[0]) == ("no-such-0", False)
        clock.advance(5)
        own, others = (await core.until_record("call.refused", 5))[3:]
        assert (own["count"], others.get("count", 1)) == (499, 1)
        assert sum(own["actions"].values()) + own["other_actions"] == 499
        assert len(own["actions"]) <= 16
        await refuse_calls(core, 3)
        assert len(await core.records("call.refused")) == 5
    async with start() as core:  # those that were not due at its end
        assert (await core.records("call.refused"))[5]["count"] == 3


async def test_a_call_repeated_in_a_loop_is_few_records(core: Core, clock: FrozenClock) -> None:
    """Each repetition was a record, in the audit that all sessions share."""
    view = await core.ask()  # with its preview: whatever is recorded next carries the number
    for _ in range(300):
        assert (await core.call()).attached
    (once,) = await core.records("run.asked_again")
    assert once["repeated"] == 1
    clock.advance(5)
    assert (await core.until_record("run.asked_again", 2))[1]["repeated"] == 299
    for _ in range(7):
        await core.call()
    await core.app.approvals.deny(view.approval_id, "no")
    (denied,) = await core.records("approval.denied")
    assert denied["repeated"] == 7
    assert (await core.call()).row.times_asked == 308


async def test_after_a_while_the_first_is_on_record_again(core: Core, clock: FrozenClock) -> None:
    """So that a single refusal is in no console's memory alone."""
    for count in range(1, 4):
        await refuse_calls(core, 1)
        assert len(await core.records("call.refused")) == count
        clock.advance(5)
        await core.app.gate.refused_calls.sweep()


async def test_what_cannot_be_written_stays_due(core: Core) -> None:
    writable(core, yes=False)
    with pytest.raises(StorageUnavailable):
        await core.call("no-such", {})
    writable(core, yes=True)
    with suppress(StorageUnavailable):  # until the console has found out
        await core.app.gate.refused_calls.sweep()
    await refuse_calls(core, 3)
    writable(core, yes=False)
    with pytest.raises(StorageUnavailable):
        await core.app.gate.refused_calls.sweep(everything=True)
    writable(core, yes=True)
    await core.app.gate.refused_calls.sweep(everything=True)
    assert [r.get("count", 1) for r in await core.records("call.refused")] == [1, 2]
