"""An agent over the real door: its own ids reach the console, and it stops waiting when it hangs up."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from aileron_core.console_port.events import SessionsUpdated
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.sockets import bind_tcp
from aileron_mcp.lazy_mount import LazyMcpApp
from tests.support.core_harness import DRAFT, Core, open_session

CODEX = {"callId": "call_7", "threadId": "thread-1", "sessionId": "x" * 600, "itemId": 5}


@pytest.fixture
async def url(core: Core) -> AsyncIterator[str]:
    """Where the core is served with `/mcp`, on a real port."""
    tcp = bind_tcp("127.0.0.1", 0)
    core.app.address.listen_on(tcp.getsockname()[1])
    agents = AgentApi(core.app)
    mcp = LazyMcpApp(agents)
    asgi_app = create_app(core.app, {"/mcp": mcp.app}, agents=agents)
    async with mcp.run(), EmbeddedServer(asgi_app, [tcp]):
        yield core.app.address.url


@asynccontextmanager
async def agent_client(
    core: Core, url: str, era: str, **options: Any
) -> AsyncGenerator[Client, None]:
    bearer = {"Authorization": f"Bearer {core.token}"}
    async with (
        httpx2.AsyncClient(headers=bearer, timeout=30) as http,
        Client(
            streamable_http_client(f"{url}/mcp", http_client=http), mode=era, **options
        ) as client,
    ):
        yield client


async def first_call(core: Core) -> ApprovalView:
    approval_id = (await core.until(lambda: core.app.publisher.approvals() or None))[0].approval_id
    return await core.looked(approval_id)


def claims(fields: Any) -> dict[str, str]:
    return {field.label: field.value for field in fields}


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_the_ids_of_a_call_and_the_name_of_its_client_reach_the_console(
    core: Core, url: str, era: str
) -> None:
    info = Implementation(name="codex-mcp-client", version="0.169.0")
    async with agent_client(core, url, era, client_info=info) as client:
        call = asyncio.get_running_loop().create_task(
            client.call_tool("send_draft", {"draft_id": DRAFT}, meta=CODEX)  # type: ignore[arg-type]
        )
        view = await first_call(core)
        said = claims(view.claims)
        assert said["client"] == "codex-mcp-client 0.169.0"
        assert (said["call"], said["thread"]) == ("call_7", "thread-1")
        assert said["session"] == "x" * 512 + "… (600 characters)"
        assert list(said) == ["client", "call", "thread", "session"]
        update = core.last(SessionsUpdated)
        assert claims(update.sessions[0].claims) == {"client": said["client"]}
        (record,) = await core.records("run.requested")
        assert dict(record["claims"]) == said
        assert view.stopped_waiting_at is None
        await core.app.approvals.deny(view.approval_id, "no")
        assert (await call).is_error
        assert core.views(view.approval_id)[-1].stopped_waiting_at is None


async def test_a_client_that_lists_nothing_is_known_by_its_first_call(core: Core, url: str) -> None:
    async with agent_client(core, url, "2026-07-28") as first:
        await first.list_tools()
    other = await open_session(core.app)
    headers = {
        "Authorization": f"Bearer {other.token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "list_drafts",
    }
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "second", "version": "2"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    params = {"name": "list_drafts", "arguments": {}, "_meta": meta}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        assert '"isError":false' in (await http.post(f"{url}/mcp", json=body)).text
    assert core.app.sessions.claims(other.session.session_id) == (("client", "second 2"),)


async def test_no_request_over_a_socket_can_claim_anything(core: Core, url: str) -> None:
    """The route has no field and no header for claims; they come from this process alone."""
    said = {"call": {"call": "forged"}, "client": {"client": "forged"}}
    forged = dict.fromkeys(("aileron.claims", "aileron-claims"), json.dumps(said))
    headers = {"Authorization": f"Bearer {core.token}", **forged}
    async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
        run_ = f"{url}/v1/actions/send-draft/run"
        body: dict[str, Any] = {"args": {"draft_id": DRAFT}}
        for more in ({"claims": said}, {"aileron.claims": said}):
            assert (await http.post(run_, json={**body, **more})).status_code == 400
        assert (await http.post(run_, json=body)).status_code == 202
    assert (await first_call(core)).claims == ()
    assert core.app.publisher.sessions()[0].claims == ()
    assert "forged" not in str(await core.records())


async def test_who_hangs_up_has_stopped_waiting_and_heard_nothing(core: Core, url: str) -> None:
    view = await core.ask()
    waiters = core.app.publisher.waiters
    path = f"{url}/v1/action-approvals/{view.approval_id}/result?wait=60"
    headers = {"Authorization": f"Bearer {core.token}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        poll = asyncio.get_running_loop().create_task(http.get(path))
        while not waiters._waits:
            await asyncio.sleep(0)
        began = core.app.clock.now()
        poll.cancel()
    left = await core.view(view.approval_id, lambda v: v.stopped_waiting_at is not None)
    assert 0 <= left.stopped_waiting_at - began < 30  # it would have waited for 60
    await core.app.approvals.deny(view.approval_id, "no")
    assert (await core.call()).attached  # nobody was told, so nobody asks anew


async def test_an_end_that_comes_as_the_client_hangs_up_was_not_delivered(core: Core) -> None:
    view = await core.ask()
    gone = asyncio.Event()
    poll = asyncio.get_running_loop().create_task(
        AgentApi(core.app).result(core.session, view.approval_id, wait=60, gone=gone)
    )
    while not core.app.publisher.waiters._waits:
        await asyncio.sleep(0)
    await core.app.approvals.deny(view.approval_id, "no")
    gone.set()
    await poll
    assert (await core.call()).attached
    assert await core.records("run.delivered") == []


async def test_a_held_call_that_ends_undecided_has_stopped_waiting(core: Core, url: str) -> None:
    async with agent_client(core, url, "legacy") as client:
        loop = asyncio.get_running_loop()
        call = loop.create_task(client.call_tool("send_draft", {"draft_id": DRAFT}))
        id_ = (view := await first_call(core)).approval_id
        call.cancel()
        await core.view(view.approval_id, lambda v: v.stopped_waiting_at is not None)
        seen = len(core.views(view.approval_id))
        arguments = {"approval_id": view.approval_id, "wait_seconds": 20}
        status = loop.create_task(client.call_tool("check_action_status", arguments))
        await core.until(lambda: None in [v.stopped_waiting_at for v in core.views(id_)[seen:]])
        await core.app.approvals.deny(view.approval_id, "no")
        assert (await status).is_error
