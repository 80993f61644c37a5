"""What cannot be put on record does not happen, and what has happened is put on record later."""

import asyncio
import json
import resource
from collections.abc import Callable
from pathlib import Path
from typing import Never

import pytest

from aileron_core import app
from aileron_core.console.records import StorageMonitor
from aileron_core.console_port.events import StorageHealth
from aileron_core.errors import StorageUnavailable
from aileron_core.server.sockets import bind_tcp, bind_unix
from aileron_core.sessions.service import SessionService
from aileron_core.settings import Settings
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


def writable(core: Core, *, yes: bool) -> None:
    """Let the writer's connection write, or refuse every write as a full disk does."""
    core.app.database._connection.execute(f"PRAGMA query_only={'OFF' if yes else 'ON'}")


async def test_no_run_begins_while_no_audit_can_be_written(core: Core, mailbox: Mailbox) -> None:
    """An audit record that cannot be written stops the run; the console is told."""
    writable(core, yes=False)
    for action, args in (("get-draft", {"id": DRAFT}), ("send-draft", {"draft_id": DRAFT})):
        with pytest.raises(StorageUnavailable) as caught:
            await core.call(action, args)
        assert caught.value.to_failure().class_ == "unavailable"
        assert caught.value.to_failure().retriable
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
async def test_a_disk_that_fills_up_while_the_server_starts_does_not_end_the_core(
    core: Core, full: str
) -> None:
    """Within seconds of the start it did, for good; later it recovered. Other programs find the console afterwards."""
    from aileron_tui.cli.serving import served

    home = core.app.home
    blocking = home.daemon_file.with_suffix(".new")
    if full == "the database":
        writable(core, yes=False)
    else:
        blocking.mkdir()  # so that it cannot be written
    listeners = [bind_tcp("127.0.0.1", 0), bind_unix(home.socket)]
    async with served(core.app, Settings(), listeners):
        assert not home.daemon_file.exists()
        assert core.app.address.url
        if full == "the database":
            writable(core, yes=True)
        else:
            blocking.rmdir()
        await core.until(home.daemon_file.exists)
        assert json.loads(home.daemon_file.read_text())["url"] == core.app.address.url
        assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"


async def test_a_sessions_socket_that_has_no_room_at_the_start_is_made_later(core: Core) -> None:
    """The agent in its sandbox knows no other way to the console."""
    from aileron_tui.cli.serving import served

    opened = await open_session(core.app, opened_by="contained")
    home = core.app.home
    home.sockets.mkdir(exist_ok=True)
    blocking = home.sockets / opened.session.session_id
    blocking.write_text("in the way of its folder")
    async with served(core.app, Settings(), [bind_tcp("127.0.0.1", 0), bind_unix(home.socket)]):
        blocking.unlink()
        await core.until((blocking / "s.sock").is_socket)


async def test_a_yes_that_cannot_be_written_decides_nothing(core: Core, mailbox: Mailbox) -> None:
    """A person's yes is durable as `checking`, or it was none."""
    view = await core.ask()
    writable(core, yes=False)
    with pytest.raises(StorageUnavailable):
        await core.approve(view)
    with pytest.raises(StorageUnavailable):
        await core.app.approvals.deny(view.approval_id, "")
    writable(core, yes=True)
    assert core.views(view.approval_id)[-1].state == "pending"
    assert (await core.run(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.parametrize("step", ["before recheck.held", "before run.started"])
async def test_an_effect_whose_beginning_cannot_be_written_does_not_begin(
    start: Start, mailbox: Mailbox, step: str
) -> None:
    """Each transition and its record are durable before the effect that they permit."""
    cores: list[Core] = []
    failing = True

    def fail(name: str) -> None:
        if name == step and failing and cores:
            writable(cores[0], yes=False)
        if name == "before recheck.undone":
            writable(cores[0], yes=True)

    async with start(failpoint=fail) as core:
        cores.append(core)
        view = await core.ask()
        await core.approve(view)
        back = await core.back(view)
        assert "could not be written" in back.note
        assert mailbox.state()["sent"] == []
        failing = False
        assert (await core.run(back)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


async def test_what_has_happened_is_written_once_it_can_be(start: Start, mailbox: Mailbox) -> None:
    """The end of a run is insisted on; the agent hears of it only then."""
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
async def test_the_screen_never_shows_other_content_than_its_digest_covers(
    start: Start, mailbox: Mailbox, how: str
) -> None:
    """Regression: a difference that could not be written left new content over the old yes."""
    cores: list[Core] = []
    step = {"recheck": "before recheck.differed", "refresh": "before preview.fetched"}[how]

    def fail(name: str) -> None:
        if cores and name == step:
            writable(cores[0], yes=False)
        if name == "before recheck.undone":
            writable(cores[0], yes=True)

    async with start(failpoint=fail) as core:
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
        assert shown.state == "pending"
        assert shown.digest == view.digest
        assert shown.preview.fields == view.preview.fields
        assert shown.drift is None
        cores.clear()
        await core.approve(shown)
        back = await core.view(view.approval_id, lambda v: v.drift is not None)
        assert back.digest != view.digest
        assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("step", ["after run.started", "before recheck.differed"])
@pytest.mark.actions(send_draft=REPEATABLE)
async def test_a_retry_that_cannot_be_checked_or_written_does_not_leave_the_run_executing(
    start: Start, mailbox: Mailbox, step: str
) -> None:
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
        over = await core.view(
            view.approval_id, lambda v: v.state in ("failed", "pending"), after=view.version + 3
        )
        expected = {"after run.started": "failed", "before recheck.differed": "pending"}
        assert over.state == expected[step]
    assert writes(mailbox).count("POST send") == 1
    assert mailbox.state()["sent"] == []


async def test_a_disk_that_takes_no_more_stops_runs_as_unavailable(
    core: Core, mailbox: Mailbox, home: Path
) -> None:
    """No file may grow any more; once there is room again, runs go on."""
    await core.call("get-draft", {"id": DRAFT})
    before = len(writes(mailbox))
    room = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = (home / "aileron.db-wal").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, room[1]))
    try:
        for action, args in (("get-draft", {"id": DRAFT}), ("send-draft", {"draft_id": DRAFT})):
            with pytest.raises(StorageUnavailable):
                await core.call(action, args)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, room)
    assert len(writes(mailbox)) == before
    assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"


async def test_a_job_of_the_housekeeping_that_fails_ends_no_other(
    start: Start, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is tried again, and the log says where it failed, but not what the error says."""

    def fails(error: Exception) -> Callable[[object], Never]:
        def raises(_: object) -> Never:
            raise error

        return raises

    monkeypatch.setattr(app, "_SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(SessionService, "sweep", fails(RuntimeError(DRAFT)))
    monkeypatch.setattr(StorageMonitor, "probe", fails(KeyError(DRAFT)))
    async with start(), asyncio.timeout(PATIENCE):
        for name in ("RuntimeError", "KeyError"):
            while caplog.text.count(f"housekeeping failed: {name} at app.py:") < 2:
                await asyncio.sleep(0.005)
    assert DRAFT not in caplog.text
