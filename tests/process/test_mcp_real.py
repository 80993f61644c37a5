"""The official MCP client, at the real console and through the real relay, in both protocol eras.

The same promises are proven in detail against a small server in tests/core/mcp; here nothing is
small: gate, WASM, mail service, SQLite, and a person in the console.
"""

import contextlib
import os
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from examples.mailbox.server import Mailbox
from tests.support.server_harness import Attend, Attended, aileron
from tests.support.variants import variants

OLD, NEW = "legacy", "2026-07-28"
ERAS = pytest.mark.parametrize("era", [OLD, NEW])
ONE_ERA = pytest.mark.parametrize("era", variants([NEW, OLD]))
"""For what the relay does alike in both; `make test-all` takes both."""
DRAFT = "r-8842190447"
RELAY = str(Path(sys.executable).with_name("aileron-mcp"))


@pytest.fixture
def quick_hold(home: Path) -> None:
    """A console that holds a gated call for two seconds only."""
    (home / "config.toml").write_text("[mcp]\nhold_seconds = 2\n")


@contextlib.asynccontextmanager
async def agent(console: Attended, era: str, **options: Any) -> AsyncIterator[Client]:
    """An agent on stdio: the relay opens a session for itself."""
    relay = StdioServerParameters(
        command=RELAY,
        env={
            "PATH": os.environ["PATH"],
            "AILERON_HOME": str(console.home),
            "AILERON_AGENT": "test",
        },
    )
    async with Client(relay, mode=era, read_timeout_seconds=60, **options) as client:
        yield client


async def in_thread(work: Callable[[], Any]) -> Any:
    return await anyio.to_thread.run_sync(work)


async def waiting(console: Attended) -> str:
    """Return the id of the one approval that waits, once a person could answer it."""
    await in_thread(lambda: console.until(lambda: bool(console.views)))
    (approval_id,) = console.views
    assert await in_thread(lambda: console.ready(approval_id))
    return approval_id


@ERAS
async def test_a_held_call_shows_progress_and_ends_with_what_the_service_said(
    attended: Attended, mailbox: Mailbox, era: str
) -> None:
    """Progress while a person thinks; after the key, the mail has gone out once and the words are told."""
    progress: list[float] = []
    results: list[Any] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        progress.append(done)

    async with agent(attended, era) as client:

        async def ask() -> None:
            arguments = {"draft_id": DRAFT}
            results.append(
                await client.call_tool("send_draft", arguments, progress_callback=on_progress)
            )

        async with anyio.create_task_group() as group:
            group.start_soon(ask)
            approval_id = await waiting(attended)
            with anyio.fail_after(60):
                while not progress:
                    await anyio.sleep(0.05)
            assert mailbox.state()["sent"] == []
            await in_thread(lambda: attended.approve(approval_id))
    (result,) = results
    assert not result.is_error
    assert result.structured_content["status"] == "completed"
    assert len(result.structured_content["digest_words"]) == 3
    assert len(mailbox.state()["sent"]) == 1


@ONE_ERA
async def test_a_decision_after_the_hold_is_found_by_check_action_status(
    quick_hold: None, attend: Attend, era: str
) -> None:
    """The hold ends with a pending message; a reason given later reaches the agent by its id."""
    console = await in_thread(attend)
    async with agent(console, era) as client:
        pending = await client.call_tool("send_draft", {"draft_id": DRAFT})
        assert not pending.is_error
        facts = pending.structured_content
        assert facts["status"] == "pending_approval"
        assert facts["approval_id"] in facts["review_url"]
        await in_thread(lambda: console.ready(facts["approval_id"]))
        console.tell(deny=facts["approval_id"], reason="not before Thursday")
        arguments = {"approval_id": facts["approval_id"], "wait_seconds": 20}
        denied = await client.call_tool("check_action_status", arguments)
    assert denied.is_error
    assert denied.structured_content["status"] == "denied"
    assert "not before Thursday" in denied.content[0].text


@ONE_ERA
async def test_a_cancelled_call_leaves_the_approval_to_the_person(
    attended: Attended, mailbox: Mailbox, era: str
) -> None:
    """Cancelling ends the hold, never the approval: the person's yes still sends."""
    async with agent(attended, era) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "send_draft", {"draft_id": DRAFT})
            approval_id = await waiting(attended)
            group.cancel_scope.cancel()
        assert {tool.name for tool in (await client.list_tools()).tools} >= {"send_draft"}
        assert attended.views[approval_id]["state"] == "pending"
        await in_thread(lambda: attended.approve(approval_id))
        await in_thread(lambda: attended.state(approval_id, "completed"))
    assert len(mailbox.state()["sent"]) == 1


@ERAS
async def test_the_tool_list_changes_when_an_accepted_file_does(
    attended: Attended, era: str
) -> None:
    """A changed file counts no more within a second: its tool goes, and the client is told."""
    list_changed = anyio.Event()

    async def on_message(message: Any) -> None:
        if "list_changed" in str(getattr(message, "method", "")):
            list_changed.set()

    async with agent(attended, era, message_handler=on_message) as client:
        before = {tool.name for tool in (await client.list_tools()).tools}
        assert "list_drafts" in before
        async with contextlib.AsyncExitStack() as stack:
            if era == NEW:
                listening = await stack.enter_async_context(client.listen(tools_list_changed=True))
            path = attended.home / "actions" / "list-drafts.md"
            path.write_bytes(path.read_bytes() + b"\nchanged\n")
            with anyio.fail_after(60):
                if era == NEW:
                    async for _ in listening:
                        break
                else:
                    await list_changed.wait()
        after = {tool.name for tool in (await client.list_tools()).tools}
        late = await client.call_tool("list_drafts", {})  # by an agent that has not looked again
    assert before - after == {"list_drafts"}
    assert late.is_error
    assert late.structured_content["error"]["class"] == "conflict"


@ONE_ERA
async def test_a_console_restarted_in_the_middle_is_no_error_to_the_agent(
    attended: Attended, mailbox: Mailbox, era: str
) -> None:
    """The agent's connection outlives the console; the approval waits on, with a new preview."""
    async with agent(attended, era) as client:
        async with anyio.create_task_group() as group:
            group.start_soon(client.call_tool, "send_draft", {"draft_id": DRAFT})
            approval_id = await waiting(attended)
            group.cancel_scope.cancel()
        await in_thread(attended.end)
        await in_thread(attended.start)
        drafts = await client.call_tool("list_drafts", {})
        assert not drafts.is_error
        assert await in_thread(lambda: attended.approve(approval_id))
        arguments = {"approval_id": approval_id, "wait_seconds": 30}
        done = await client.call_tool("check_action_status", arguments)
    assert done.structured_content["status"] == "completed"
    assert len(mailbox.state()["sent"]) == 1


@ONE_ERA
async def test_agents_that_speak_http_use_mcp_directly(attended: Attended, era: str) -> None:
    """`/mcp` with the session's token as bearer; without one it is 401."""
    opened = await in_thread(lambda: attended.session())
    bearer = {"Authorization": f"Bearer {opened['token']}"}
    async with httpx2.AsyncClient(headers=bearer, timeout=httpx2.Timeout(30)) as http:
        server = streamable_http_client(f"{attended.url}/mcp", http_client=http)
        async with Client(server, mode=era) as client:
            result = await client.call_tool("get_draft", {"id": DRAFT})
    assert "Q3 numbers" in result.content[0].text
    async with httpx2.AsyncClient() as http:
        refused = await http.post(f"{attended.url}/mcp", json={})
    assert refused.status_code == 401


async def test_the_session_of_an_agent_ends_with_its_relay(attended: Attended) -> None:
    """The relay ends when its stdin does, and its session with it."""
    async with agent(attended, OLD) as client:
        await client.list_tools()
        assert '"sessions": 1' in aileron("status", "--json", home=attended.home).stdout
    with anyio.fail_after(60):  # five seconds where its farewell was lost, and each look takes one
        while '"sessions": 0' not in aileron("status", "--json", home=attended.home).stdout:
            await anyio.sleep(0.1)
