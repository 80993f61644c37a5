"""A person takes back what a call of a built-in tool wrote; here the worker of its files is a real one."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from aileron_core.console_port.intents import UndoRun
from aileron_core.errors import Conflict, NotFound
from aileron_core.policy.model import Policy, Rule
from tests.support.builtin_worker import Worker, WorkerError
from tests.support.core_harness import Core

WRITES = Policy(rules=(Rule(tools=("Write", "Edit"), decision="allow", reason="for the test"),))


@pytest.fixture
def project(project: Path) -> Path:
    (project / "a.txt").write_text("before\n")
    return project


async def carry(core: Core, worker: Worker, kept_by: str = "") -> None:
    """Carry frames between the session's channel and *worker*, as its launcher does.

    Args:
        kept_by: others who keep what was there before, and take it back.
    """
    channel = core.app.tool_channels.get(core.session.session_id)
    channel.attach({})
    keeper = core.app.tool_channels.get(kept_by) if kept_by else channel
    if keeper is not channel:
        keeper.attach({})
        keeper.frames = channel.frames
    while True:
        frame = (await channel.frames.get())["frame"]
        try:
            result = await asyncio.to_thread(worker.call, frame["op"], **frame["args"])
            if kept_by and "undo" in result:
                result["undo"] += f"@{kept_by}"
            answer: dict[str, Any] = {"result": result}
        except WorkerError as error:
            answer = {"error": {"class": error.class_, "message": error.message}}
        asked = keeper if frame["op"] == "undo" else channel
        asked.receive("files", {"id": frame["id"], **answer})


@pytest.fixture
async def core(
    home: Path, project: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> AsyncIterator[Core]:
    kept_by = getattr(request, "param", "")
    monkeypatch.setattr("aileron_core.app._Base.has_tools", lambda _, __: True)
    async with Core.open(home) as core:
        monkeypatch.setattr(core.app.accepted_policy, "count", True)
        monkeypatch.setattr(core.app.policy, "_policy", WRITES)
        with Worker("files", project) as worker:
            carrying = asyncio.get_running_loop().create_task(carry(core, worker, kept_by))
            yield core
            carrying.cancel()


async def wrote(core: Core, content: str = "after\n") -> str:
    answer = await core.call("builtin.write", {"file_path": "a.txt", "content": content})
    assert answer.row.state == "completed"
    return answer.row.run_id


async def test_what_was_there_before_is_back_once_on_record(core: Core, project: Path) -> None:
    run_id = await wrote(core)
    assert (project / "a.txt").read_text() == "after\n"
    assert (await core.opened(run_id)).approval.can_undo
    await core.do(UndoRun(run_id=run_id))
    assert (project / "a.txt").read_text() == "before\n"
    call = await core.opened(run_id)
    assert not call.approval.can_undo
    assert not call.edited
    assert [(each.event, each.actor) for each in call.records][-1] == ("run.undone", "person")
    with pytest.raises(NotFound, match="nothing that could be undone"):
        await core.do(UndoRun(run_id=run_id))


async def test_a_file_that_has_changed_since_is_left_alone(core: Core, project: Path) -> None:
    run_id = await wrote(core)
    (project / "a.txt").write_text("mine\n")
    with pytest.raises(Conflict, match="has changed since"):
        await core.do(UndoRun(run_id=run_id))
    assert (project / "a.txt").read_text() == "mine\n"
    (project / "a.txt").write_text("after\n")
    await core.do(UndoRun(run_id=run_id))
    assert (project / "a.txt").read_text() == "before\n"


async def test_only_what_wrote_something_in_an_open_session_can_be_undone(core: Core) -> None:
    read = await core.call("builtin.read", {"file_path": "a.txt"})
    assert not (await core.opened(read.row.run_id)).approval.can_undo
    run_id = await wrote(core)
    await core.app.session_service.end(core.session.session_id, "it is over", by="person")
    assert not (await core.opened(run_id)).approval.can_undo


async def test_a_row_offers_only_what_can_be(core: Core, monkeypatch: pytest.MonkeyPatch) -> None:
    """A row kept the offer after the session's end, and when newer changes had taken its place."""
    monkeypatch.setattr(core.app.policy, "_policy", Policy())
    monkeypatch.setattr("aileron_core.runs.undo._MAX_CALLS", 1)
    rows: list[str] = []
    for content in ("one\n", "two\n"):
        asked = await core.ask_for("builtin.write", {"file_path": "a.txt", "content": content})
        await core.run(asked)
        rows.append(asked.approval_id)
        assert await core.until(lambda: core.views(rows[-1])[-1].can_undo)
    assert not core.views(rows[0])[-1].can_undo
    await core.app.session_service.end(core.session.session_id, "it is over", by="person")
    await core.until(lambda: not core.views(rows[1])[-1].can_undo)


@pytest.mark.parametrize("core", ["notes-1"], indirect=True)
async def test_what_a_servers_worker_kept_outlives_the_session(core: Core, project: Path) -> None:
    run_ids = [await wrote(core, content) for content in ("one\n", "two\n")]
    await core.app.session_service.end(core.session.session_id, "it is over", by="person")
    await core.do(UndoRun(run_id=run_ids[1]))
    assert (project / "a.txt").read_text() == "one\n"
    core.app.console.undo.forget("notes-1")
    with pytest.raises(NotFound, match="nothing that could be undone"):
        await core.do(UndoRun(run_id=run_ids[0]))
