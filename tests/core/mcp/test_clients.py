"""The official client in both protocol eras, straight at `/mcp` and through the relay."""

from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from tests.support.mcp_harness import TOKEN, ThreadConsole, official_client
from tests.support.traced import TRACEPARENT, Traced, is_child_of_the_agent

pytestmark = pytest.mark.anyio
OLD, NEW = "legacy", "2026-07-28"
ERAS = [("http", OLD), ("http", NEW), ("relay", OLD), ("relay", NEW), ("relay", "auto")]
WAYS = pytest.mark.parametrize(("how", "era"), ERAS)
EACH_WAY = pytest.mark.parametrize(("how", "era"), [("http", NEW), ("relay", OLD)])
"""For what says the same in every era: each way and each era once."""


@WAYS
async def test_a_client_lists_actions_and_runs(console: ThreadConsole, how: str, era: str) -> None:
    """It is promised list changes, and the call runs as the session of its own token."""
    async with official_client(console, how, era) as client:
        tools = (await client.list_tools()).tools
        if era == NEW:  # a pinned version asks nothing at connect; ask here what it would be told
            capability = (await client.session.send_discover(NEW))["capabilities"]["tools"]
        else:
            capability = client.server_capabilities.model_dump(by_alias=True)["tools"]
        result = await client.call_tool("read_inbox", {"text": "hello"})
    names = {"read_inbox", "send_draft", "check_action_status", "withdraw_action"}
    assert names <= {tool.name for tool in tools}
    assert all(tool.input_schema["additionalProperties"] is False for tool in tools)
    assert capability["listChanged"] is True
    assert not result.is_error
    assert result.structured_content["output"]["args"] == {"text": "hello"}
    session = console.served.app.sessions.authenticate(TOKEN)
    assert console.control.state()["runs"][-1]["session"] == session.session_id


@WAYS
async def test_a_decision_in_the_hold_is_told(patient: ThreadConsole, how: str, era: str) -> None:
    seen: list[float] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append(progress)
        if len(seen) == 1:
            await anyio.to_thread.run_sync(patient.control.approve)

    async with official_client(patient, how, era) as client:
        arguments = {"text": f"x {how} {era}"}
        result = await client.call_tool("send_draft", arguments, progress_callback=on_progress)
    assert seen
    assert not result.is_error
    assert result.structured_content["status"] == "completed"
    assert result.structured_content["output"]["args"] == arguments
    assert len(result.structured_content["digest_words"]) == 3


@EACH_WAY
async def test_what_waits_is_found_by_its_id(console: ThreadConsole, how: str, era: str) -> None:
    """Decided after the hold, or withdrawn: while it waits, and not twice.

    The protocol wants each progress greater than the one before; the last one says that the wait is done.
    """
    seen: list[tuple[float, float | None]] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total))

    async with official_client(console, how, era) as client:
        later = {"text": f"later {how} {era}"}
        pending = await client.call_tool("send_draft", later, progress_callback=on_progress)
        assert len(seen) > 1
        assert all(before < after for (before, _), (after, _) in pairwise(seen))
        assert seen[-1] == (2.0, 2.0)
        assert not pending.is_error
        assert pending.structured_content["status"] == "pending_approval"
        console.control.approve()
        arguments = {"approval_id": pending.structured_content["approval_id"], "wait_seconds": 5}
        done = await client.call_tool("check_action_status", arguments)
        assert done.structured_content["output"]["args"] == later
        pending = await client.call_tool("send_draft", {"text": f"oops {how} {era}"})
        named = {"approval_id": pending.structured_content["approval_id"]}
        gone = await client.call_tool("withdraw_action", named)
        twice = await client.call_tool("withdraw_action", named)
        state = await client.call_tool("check_action_status", named)
    assert not gone.is_error
    assert twice.structured_content["error"]["class"] == "conflict"
    assert state.structured_content["status"] == "withdrawn"


@WAYS
async def test_a_call_given_up_stays(patient: ThreadConsole, how: str, era: str) -> None:
    """Cancelled, or its client gone: the hold ends at once; what waits for a person still does."""

    async def until_held(number: int) -> None:
        with anyio.fail_after(60):
            while patient.control.state()["polls"] != number:
                await anyio.sleep(0.02)

    async def leaves() -> None:
        async with official_client(patient, how, era) as another:
            await another.call_tool("send_draft", {"text": f"gone {how} {era}"})

    async with official_client(patient, how, era) as client:
        cancelled = {"text": f"cancelled {how} {era}"}
        for calling in (partial(client.call_tool, "send_draft", cancelled), leaves):
            before = len(patient.control.state()["approvals"])
            async with anyio.create_task_group() as group:
                group.start_soon(calling)
                await until_held(1)
                group.cancel_scope.cancel()
            await until_held(0)
            (left,) = patient.control.state()["approvals"][before:]
            assert left["status"] == "pending_approval"
            assert not (await client.call_tool("read_inbox", {"text": "still here"})).is_error


@pytest.mark.parametrize("how", ["http", "relay"])
async def test_an_old_client_hears_of_a_changed_tool_list(console: ThreadConsole, how: str) -> None:
    heard = anyio.Event()

    async def on_message(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            heard.set()

    async with official_client(console, how, OLD, message_handler=on_message) as client:
        await client.list_tools()
        with anyio.fail_after(60):
            number = 0
            # The stream is opened beside the first requests; until it is there, nothing is heard.
            while not heard.is_set():
                number += 1
                console.control.add_action(f"late-{how}-{number}")
                with anyio.move_on_after(0.3):
                    await heard.wait()
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert f"late_{how}_{number}" in names


@pytest.mark.parametrize("how", ["http", "relay"])
async def test_a_new_client_hears_of_a_changed_tool_list(console: ThreadConsole, how: str) -> None:
    async with official_client(console, how, NEW) as client:
        async with client.listen(tools_list_changed=True) as events:
            console.control.add_action(f"newer-{how}")
            with anyio.fail_after(60):
                await anext(aiter(events))
        names = {tool.name for tool in (await client.list_tools()).tools}
    assert f"newer_{how}" in names


@pytest.mark.parametrize("era", [OLD, NEW])
async def test_a_call_is_in_its_clients_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, era: str
) -> None:
    """By `_meta`, or else by the request's header; the `mcp` package, whose spans quote, has no part in it."""
    monkeypatch.setattr("mcp.server._otel.otel_span", None)
    traced = Traced()
    console = ThreadConsole(tmp_path / "home", tracer=traced.tracer)
    try:
        for meta in ({"traceparent": TRACEPARENT}, {"traceparent": "canary"}):
            async with official_client(console, "relay", era) as client:
                await client.call_tool("read_inbox", {"text": "canary"}, meta=meta)
        bearer = {"Authorization": f"Bearer {TOKEN}", "traceparent": TRACEPARENT}
        base = f"http://127.0.0.1:{console.port}"
        async with httpx.AsyncClient(base_url=base, headers=bearer) as agent:
            ran = await agent.post("/v1/actions/read-inbox/run", json={"args": {"text": "canary"}})
            assert ran.status_code == 200
    finally:
        console.stop()
    runs = [span for span in traced.spans if span.name == "aileron.run"]
    assert [is_child_of_the_agent(span) for span in runs] == [True, False, True]
    assert runs[1].parent is None
    assert {*traced.names} == {"aileron.run", "aileron.op"}
    assert "canary" not in traced.text
