"""What the console says of a requester: claims, whether it still waits, how many of its calls wait."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import Implementation

from aileron_core.console.view_mapping import GRACE_SECONDS
from aileron_core.console_port.events import SessionsUpdated
from aileron_core.console_port.view_models import ApprovalView, SessionView
from aileron_core.runs import Call
from aileron_core.server.agent_api import AgentApi
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.sockets import bind_tcp
from aileron_mcp.lazy_mount import LazyMcpApp
from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
    Start,
    change_rows,
    hold_answers,
    open_session,
)
from tests.support.frozen_clock import FrozenClock

CLAIMS = (("client", "codex 0.169"), ("call", "call_1"))
OTHER = "r-8842190312"
CODEX = {"callId": "call_7", "threadId": "thread-1", "sessionId": "x" * 600, "itemId": 5}


async def ask_with_claims(core: Core, claims: tuple[tuple[str, str], ...] = CLAIMS) -> str:
    call = Call(session=core.session, action="send-draft", args={"draft_id": DRAFT}, claims=claims)
    answer = await core.app.gate.run(call)
    await core.looked(answer.row.approval_id)
    return answer.row.approval_id


def claimed(core: Core, approval_id: str) -> list[tuple[str, str]]:
    (view,) = (v for v in core.app.publisher.approvals() if v.approval_id == approval_id)
    return [(field.label, field.value) for field in view.claims]


async def test_claims_stand_in_the_view_and_the_record_and_outlive_a_restart(start: Start) -> None:
    async with start() as core:
        approval_id = await ask_with_claims(core)
        assert claimed(core, approval_id) == list(CLAIMS)
        (record,) = await core.records("run.requested")
        assert record["claims"] == [list(pair) for pair in CLAIMS]
    async with start() as again:
        assert claimed(again, approval_id) == list(CLAIMS)
        again.session = core.session
        again.app.sessions.add(core.session)
        newer = (("client", "codex 0.170"), ("call", "call_2"))
        await ask_with_claims(again, newer)
        assert claimed(again, approval_id) == list(newer)
        await ask_with_claims(again, ())  # a call without ids takes none away
        assert claimed(again, approval_id) == list(newer)
    async with start() as last:
        assert claimed(last, approval_id) == list(newer)
        assert last.app.publisher.approvals()[0].times_asked == 3


async def test_a_spoilt_record_claims_nothing(start: Start, home: Path) -> None:
    async with start() as core:
        approval_id = await ask_with_claims(core)
    change_rows(
        home,
        "INSERT INTO audit(seq, event, run, body) SELECT 100, event, run, "
        "'{\"claims\": [7]}' FROM audit WHERE event = 'run.requested'",
        "INSERT INTO audit(seq, event, run, hash, body) SELECT 101, event, run, zeroblob(32), "
        "'}' FROM audit WHERE seq = 100",
    )
    async with start() as core:
        assert claimed(core, approval_id) == list(CLAIMS)


async def test_an_agent_has_stopped_waiting_once_no_call_of_it_is_held_for_a_while(
    core: Core, clock: FrozenClock
) -> None:
    approval_id, waiters = await ask_with_claims(core), core.app.publisher.waiters

    def after(seconds: float) -> float | None:
        clock.advance(seconds)
        waiters.sweep(core.app.publisher._is_open)
        return core.views(approval_id)[-1].stopped_waiting_at

    version = core.views(approval_id)[-1].version
    assert after(100) is None, "nobody ever waited"
    with waiters.waiting(approval_id):
        with waiters.waiting(approval_id):
            clock.advance(100)
        after(0)
    left = clock.now()
    assert after(GRACE_SECONDS - 0.1) is None, "a held call asks again within that time"
    assert after(0.1) == left
    with waiters.waiting(approval_id):
        assert core.views(approval_id)[-1].stopped_waiting_at is None
    assert after(GRACE_SECONDS) == left + GRACE_SECONDS
    assert core.views(approval_id)[-1].version == version
    await core.app.approvals.deny(approval_id, "")
    after(0)
    assert waiters._waits == {}


async def test_who_got_an_answer_did_not_stop_waiting(core: Core, clock: FrozenClock) -> None:
    approval_id, waiters = await ask_with_claims(core), core.app.publisher.waiters
    with waiters.waiting(approval_id):
        await core.app.approvals.deny(approval_id, "")
    clock.advance(60)
    waiters.sweep(core.app.publisher._is_open)
    assert core.views(approval_id)[-1].stopped_waiting_at is None


async def test_a_session_says_how_many_calls_wait_and_run(start: Start, mailbox: Mailbox) -> None:
    async with start() as core:
        mine = core.session.session_id

        def view(core: Core) -> SessionView:
            return next(v for v in core.app.publisher.sessions() if v.session_id == mine)

        first, _ = await core.ask(DRAFT), await core.ask(OTHER)
        await core.call("list-drafts", {})
        assert (view(core).waiting, view(core).running) == (2, 0)
        await core.until(
            lambda: any(
                (event.sessions[0].waiting, event.sessions[0].running) == (2, 0)
                for event in core.events
                if isinstance(event, SessionsUpdated)
            )
        )
        with hold_answers(mailbox, "POST send"):
            await core.approve(first)
            await core.view(first.approval_id, lambda v: v.state == "executing")
            assert (view(core).waiting, view(core).running) == (1, 1)
        await core.ended(first)
        assert (view(core).waiting, view(core).running) == (1, 0)
        core.app.session_service.set_claims(mine, (("client", "codex 0.169"),))
        assert [(f.label, f.value) for f in view(core).claims] == [("client", "codex 0.169")]
    async with start() as again:
        assert (view(again).waiting, view(again).running) == (1, 0)
        assert view(again).claims == ()


@pytest.fixture
async def url(core: Core) -> AsyncIterator[str]:
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
    result = AgentApi(core.app).result(core.session, view.approval_id, wait=60, gone=gone)
    poll = asyncio.get_running_loop().create_task(result)
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
