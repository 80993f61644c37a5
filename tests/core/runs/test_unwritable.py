"""What cannot be put on record does not happen, and what has happened is put on record later."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from aileron_core.console_port import StorageHealth
from aileron_core.errors import StorageUnavailable
from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
    install_examples,
    run_on_request,
    writes,
)


def writable(core: Core, *, yes: bool) -> None:
    """Let the writer's connection write, or refuse every write as a full disk does."""
    core.app.database._connection.execute(f"PRAGMA query_only={'OFF' if yes else 'ON'}")


async def test_no_run_begins_while_the_audit_cannot_be_written(
    core: Core, mailbox: Mailbox
) -> None:
    """An audit record that cannot be written stops the run; the console is told."""
    writable(core, yes=False)
    for action, args in (("get-draft", {"id": DRAFT}), ("send-draft", {"draft_id": DRAFT})):
        with pytest.raises(StorageUnavailable) as caught:
            await core.call(action, args)
        assert caught.value.to_failure().class_ == "unavailable"
        assert caught.value.to_failure().retriable
    assert writes(mailbox) == []
    health = await core.until(
        lambda: next((event for event in core.events if isinstance(event, StorageHealth)), None)
    )
    assert not health.writable
    writable(core, yes=True)
    # The console finds out by itself that it can be written again.
    await core.until(
        lambda: [
            event for event in core.events if isinstance(event, StorageHealth) and event.writable
        ]
    )
    assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"
    assert not (await core.call()).attached


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
    await core.approve(view)
    assert (await core.ended(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.parametrize("step", ["before recheck.held", "before run.started"])
async def test_an_effect_whose_beginning_cannot_be_written_does_not_begin(
    home: Path, mailbox: Mailbox, step: str
) -> None:
    """Each transition and its record are durable before the effect that they permit."""
    install_examples(home)
    cores: list[Core] = []
    failing = True

    def fail(name: str) -> None:
        if name == step and failing and cores:
            writable(cores[0], yes=False)
        if name == "before recheck.undone":
            writable(cores[0], yes=True)

    async with Core.open(home, mailbox, failpoint=fail) as core:
        cores.append(core)
        view = await core.ask()
        await core.approve(view)
        back = await core.back(view)
        assert "could not be written" in back.note
        assert mailbox.state()["sent"] == []
        failing = False
        await core.approve(back)
        assert (await core.ended(back)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


async def test_an_effect_that_has_happened_is_written_once_it_can_be(home: Path) -> None:
    """The end of a run is insisted on; the agent hears of it only then."""
    install_examples(home)
    cores: list[Core] = []
    tries = 0

    def fail(name: str) -> None:
        nonlocal tries
        if name == "before run.completed" and cores:
            tries += 1
            writable(cores[0], yes=tries > 1)

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, failpoint=fail) as core:
            view = await core.ask()
            cores.append(core)
            await core.approve(view)
            assert (await core.ended(view)).state == "completed"
            assert tries == 2
        assert len(mailbox.state()["sent"]) == 1


@pytest.mark.parametrize("how", ["recheck", "refresh"])
async def test_the_screen_never_shows_other_content_than_its_digest_covers(
    home: Path, mailbox: Mailbox, how: str
) -> None:
    """Regression: a difference that could not be written left new content over the old yes."""
    install_examples(home)
    cores: list[Core] = []
    step = {"recheck": "before recheck.differed", "refresh": "before preview.fetched"}[how]

    def fail(name: str) -> None:
        if cores and name == step:
            writable(cores[0], yes=False)
        if name == "before recheck.undone":
            writable(cores[0], yes=True)

    async with Core.open(home, mailbox, failpoint=fail) as core:
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
async def test_a_retry_that_cannot_be_checked_or_written_does_not_leave_the_run_executing(
    home: Path, mailbox: Mailbox, step: str
) -> None:
    """Regression: the run stayed `executing` for good, neither on record nor decidable."""
    install_examples(home)
    path = home / "actions" / "send-draft.md"
    text = path.read_text(encoding="utf-8").replace("idempotent = false", "idempotent = true")
    path.write_text(text, encoding="utf-8")
    cores: list[Core] = []
    reached: list[str] = []

    def fail(name: str) -> None:
        if cores:
            reached.append(name)
            stopped = name == step and reached.count(step) == 1
            cores[0].app.database._stopped = StorageUnavailable("full") if stopped else None

    async with Core.open(home, mailbox, failpoint=fail) as core:
        view = await core.ask()
        cores.append(core)
        mailbox.control(fail={"op": "send", "status": 503, "times": 1})
        change = {"change": {"id": DRAFT, "to": "mallory@evil.example"}}
        run_on_request(mailbox, "POST send", lambda: mailbox._state.apply(change))
        await core.approve(view)
        over = await core.view(
            view.approval_id,
            lambda v: v.state in ("failed", "pending"),
            after=view.version + 3,
        )
        expected = {"after run.started": "failed", "before recheck.differed": "pending"}
        assert over.state == expected[step]
    assert writes(mailbox).count("POST send") == 1
    assert mailbox.state()["sent"] == []


CHILD = """
import asyncio, json, resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[3])
from tests.support.core_harness import Core, DRAFT, Mailbox, install_examples, writes
from aileron_core.errors import AileronError

async def story(home, mailbox):
    async with Core.open(home, mailbox) as core:
        await core.call("get-draft", {"id": DRAFT})
        before = len(writes(mailbox))
        size = (home / "aileron.db-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        classes = []
        for action, args in (("get-draft", {"id": DRAFT}), ("send-draft", {"draft_id": DRAFT})):
            try:
                await core.call(action, args)
                classes.append("ran")
            except AileronError as error:
                classes.append(error.class_)
        during = len(writes(mailbox)) - before
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        after = (await core.call("get-draft", {"id": DRAFT})).row.state
        print(json.dumps({"classes": classes, "during": during, "after": str(after)}))

home = Path(sys.argv[1])
install_examples(home)
with Mailbox() as mailbox:
    asyncio.run(story(home, mailbox))
"""


def test_a_disk_that_takes_no_more_stops_runs_as_unavailable(home: Path, tmp_path: Path) -> None:
    """RLIMIT_FSIZE in a process of its own; once there is room again, runs go on."""
    script = tmp_path / "child.py"
    script.write_text(CHILD, encoding="utf-8")
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        [sys.executable, str(script), str(home), "", root],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    said = json.loads(done.stdout)
    assert said == {"classes": ["unavailable"] * 2, "during": 0, "after": "completed"}
