"""What `/mcp` lets in and refuses, its late import, and what a tool call costs."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.types import Message

from aileron_core.server.agent_api import AgentApi
from aileron_core.server.asgi import create_app
from aileron_mcp.http_messages import LongTexts
from aileron_mcp.lazy_mount import LazyMcpApp
from tests.support.mcp_harness import NEW, OTHER_TOKEN, TOKEN, ThreadConsole

pytestmark = pytest.mark.anyio
CLIENT = {"name": "x", "version": "1"}
PARAMS = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": CLIENT}
INITIALIZE = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": PARAMS}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
DISCOVER = {"jsonrpc": "2.0", "id": 3, "method": "server/discover", "params": {"_meta": NEW}}
NEW_HEADERS = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}
ACCEPT = {"Accept": "application/json, text/event-stream"}
MUCH = 20_000
ICONS = [{"src": ""}] * 2_000
"""22 kB as text; a megabyte as the objects that the package would keep."""


def http_client(console: ThreadConsole, token: str | None) -> httpx.AsyncClient:
    bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
    base = f"http://127.0.0.1:{console.port}"
    return httpx.AsyncClient(base_url=base, headers={**ACCEPT, **bearer}, timeout=10)


@pytest.fixture
async def agent(console: ThreadConsole) -> AsyncIterator[httpx.AsyncClient]:
    async with http_client(console, TOKEN) as opened:
        yield opened


async def greeted(agent: httpx.AsyncClient) -> dict[str, str]:
    opened = await agent.post("/mcp", json=INITIALIZE)
    assert opened.status_code == 200
    mine = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await agent.post("/mcp", json=ready, headers=mine)
    return mine


async def called_tool(
    agent: httpx.AsyncClient, *, tool: str = "read_inbox", meta: Any = None, **more: Any
) -> httpx.Response:
    """Call *tool* as a client of the new era does: with `arguments`, and `headers` besides."""
    params: Any = {"name": tool, "arguments": more.get("arguments", {})}
    params["_meta"] = {**NEW, **(meta or {})}
    message = {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params}
    named = {**NEW_HEADERS, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    return await agent.post("/mcp", json=message, headers={**named, **more.get("headers", {})})


async def test_one_token_may_not_use_the_mcp_session_of_another(
    console: ThreadConsole, agent: httpx.AsyncClient
) -> None:
    """To a second token the first one's session id does not exist, whatever the method."""
    theirs = await greeted(agent)
    async with http_client(console, OTHER_TOKEN) as second:
        for method, body in (("POST", LIST), ("GET", None), ("DELETE", None)):
            refused = await second.request(method, "/mcp", json=body, headers=theirs)
            assert refused.status_code == 404, method
    listed = await agent.post("/mcp", json=LIST, headers=theirs)
    assert listed.status_code == 200
    assert "read_inbox" in listed.text


async def test_a_change_before_a_clients_stream_is_announced_in_it(
    console: ThreadConsole, agent: httpx.AsyncClient
) -> None:
    """The client lists the tools while it opens the stream: else it never hears of a change then."""
    async with asyncio.timeout(20):
        mine = await greeted(agent)
        assert "in_between" not in (await agent.post("/mcp", json=LIST, headers=mine)).text
        await asyncio.to_thread(console.control.add_action, "in-between")
        async with agent.stream("GET", "/mcp", headers=mine) as stream:
            async for line in stream.aiter_lines():
                if "notifications/tools/list_changed" in line:
                    break


async def test_a_large_text_arrives_as_it_is_in_both_eras(agent: httpx.AsyncClient) -> None:
    """And by the API. It is sent in parts, which the `mcp` package knows nothing of."""
    large = 'a "quoted"\n\\ line of letters, \x1b[31m, \u202e, ü, 日本, 😀 ' * 8_000
    call = {"name": "read_inbox", "arguments": {"text": large}}
    asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}
    old = await agent.post("/mcp", json=asked, headers=await greeted(agent))
    new = await called_tool(agent, arguments={"text": large})
    api = await agent.post("/v1/actions/read-inbox/run", json={"args": {"text": large}})
    (line,) = [each for each in old.text.split("\n") if each.startswith("data: {")]
    output = {"op": "do", "args": {"text": large}}
    for answer in (json.loads(line.removeprefix("data: ")), new.json()):
        result = answer["result"]
        assert result["structuredContent"]["output"] == api.json()["output"] == output
        assert json.loads(result["content"][0]["text"])["output"] == output
        assert "\x1b" not in result["content"][0]["text"]
    assert int(api.headers["content-length"]) == len(api.content) > len(large)


async def test_a_ping_waits_until_a_long_text_is_sent() -> None:
    texts, sent = LongTexts(), [b""]
    event = {"data": "x" * 1_000_000, "few": "y"}

    async def send(message: Message) -> None:
        await asyncio.sleep(0)
        sent.append(message["body"])

    def body(data: bytes) -> Message:
        return {"type": "http.response.body", "body": data, "more_body": True}

    marked = json.dumps(texts.mark(event)).encode()
    assert len(marked) < 100
    sender = texts.sender(send)
    await asyncio.gather(sender(body(marked)), sender(body(b": ping")))
    assert b"".join(sent) == json.dumps(event).encode() + b": ping"
    assert len(sent) > 10


@pytest.mark.parametrize("token", [None, "wrong"])
async def test_without_a_token_nothing_is_served(console: ThreadConsole, token: str | None) -> None:
    async with http_client(console, token) as stranger:
        for path in ("/mcp", "/mcp/"):
            for answer in (
                await stranger.post(path, json=INITIALIZE),
                await stranger.post(path, json=DISCOVER, headers=NEW_HEADERS),
                await stranger.get(path),
                await stranger.delete(path),
            ):
                assert answer.status_code == 401
                assert answer.json()["error"]["class"] == "unauthorized"
                assert "mcp-session-id" not in answer.headers


async def test_what_the_package_refuses_has_the_one_error_body(agent: httpx.AsyncClient) -> None:
    """A wrong method, media type or Accept: JSON with a sentence on what to do, and Allow kept."""
    new = {"MCP-Protocol-Version": "2026-07-28"}
    plain = await agent.post("/mcp", content="{}", headers={"Content-Type": "text/plain"})
    other_method = await agent.get("/mcp", headers=new)
    accepting = await agent.post("/mcp", json=LIST, headers={**new, "Accept": "x/y"})
    for status, answer, names in (
        (400, plain, "application/json"),
        (405, other_method, "POST"),
        (406, accepting, "Accept"),
    ):
        assert (answer.status_code, answer.headers["content-type"]) == (status, "application/json")
        assert answer.json()["error"]["class"] == "invalid_request"
        assert names in answer.json()["error"]["message"]
    assert other_method.headers["allow"] == "POST"


def _initialize(**params: Any) -> dict[str, Any]:
    return {**INITIALIZE, "params": {**PARAMS, **params}}


@pytest.mark.parametrize(
    "message",
    [
        _initialize(clientInfo={"name": "x" * MUCH, "version": "1"}),
        _initialize(clientInfo={"name": "x", "version": "1", "icons": ICONS}),
        _initialize(clientInfo={"name": "x", "version": "1", "anything": [{}] * MUCH}),
        _initialize(capabilities={"a": "x" * MUCH}),
        _initialize(arguments="x" * MUCH),
        {**LIST, "params": {"_meta": {"a": "x" * MUCH}}},
    ],
)
async def test_what_a_client_says_of_itself_is_bounded(
    agent: httpx.AsyncClient, message: dict[str, Any]
) -> None:
    """The package would keep it as objects for half an hour; on a session that is open as well."""
    mine = await greeted(agent)
    for headers in ({}, mine):
        refused = await agent.post("/mcp", json=message, headers=headers)
        assert (refused.status_code, refused.json()["error"]["class"]) == (413, "payload_too_large")
        assert "mcp-session-id" not in refused.headers
    assert (await agent.post("/mcp", json=LIST, headers=mine)).status_code == 200
    # A call of the new era says who the client is, anew; its arguments are not bounded by that.
    info = {"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1", "icons": ICONS}}
    assert (await called_tool(agent, meta=info)).status_code == 413
    assert (await called_tool(agent, arguments={"text": "x" * MUCH})).status_code == 200


@pytest.mark.parametrize("tool", ["read_inbox", "send_draft"])
async def test_calls_with_one_idempotency_key_are_one(agent: httpx.AsyncClient, tool: str) -> None:
    """Gated or not; a key that no record could show is refused, and only a relay is told of the approval at once."""

    async def call(key: str, text: str = "once", waited: str = "1000") -> str:
        headers = {"Idempotency-Key": key, "Aileron-Waited": waited}
        return (await called_tool(agent, tool=tool, arguments={"text": text}, headers=headers)).text

    first, again = await call(f"k-{tool}"), await call(f"k-{tool}")
    assert len({re.findall(r"run-\w{26}", each)[0] for each in (first, again)}) == 1
    assert "conflict" in await call(f"k-{tool}", "else")
    for bad in ("k" * 129, "a b", ""):
        assert "invalid_request" in await call(bad)
    assert ("aileron.relay" in first) is (tool == "send_draft")
    assert "aileron.relay" not in await call(f"k-{tool}", waited="soon")


async def test_both_spellings_of_the_path_serve(agent: httpx.AsyncClient) -> None:
    for path, status in (("/mcp", 200), ("/mcp/", 200), ("/mcp/x", 404)):
        assert (await agent.post(path, json=INITIALIZE)).status_code == status


async def test_a_session_that_its_socket_proves_needs_no_token(console: ThreadConsole) -> None:
    """The socket of a contained session is the session, and the home's own socket is nobody's."""
    asked = {"agent": "a-test", "cwd": "/", "launched": True, "contained": True}
    new = {**ACCEPT, **NEW_HEADERS}
    home = httpx.AsyncHTTPTransport(uds=str(console.home / "run" / "console.sock"))
    async with httpx.AsyncClient(transport=home, base_url="http://aileron") as person:
        opened = (await person.post("/v1/sessions", json=asked)).json()
        assert (await person.post("/mcp", json=DISCOVER, headers=new)).status_code == 401
    own = httpx.AsyncHTTPTransport(uds=opened["socket"])
    async with httpx.AsyncClient(transport=own, base_url="http://aileron") as contained:
        answer = await contained.post("/mcp", json=DISCOVER, headers=new)
    assert answer.status_code == 200
    assert answer.json()["result"]["capabilities"]["tools"]["listChanged"] is True


async def test_a_fault_of_ours_is_a_result_without_its_message(
    agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The exception's text may quote arguments. A list that fails is an error: an agent would take an empty one
    for "there are no actions".
    """

    async def run(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret argument")

    def list_actions(*_: Any) -> Any:
        raise RuntimeError("secret argument")

    mine = await greeted(agent)
    monkeypatch.setattr(AgentApi, "run", run)
    monkeypatch.setattr(AgentApi, "list_actions", list_actions)
    answer, listed = await called_tool(agent), await agent.post("/mcp", json=LIST, headers=mine)
    assert "internal_error" in answer.text
    assert "could not list its actions (HTTP 500)" in listed.text
    assert "RuntimeError" in caplog.text
    assert "secret argument" not in answer.text + listed.text + caplog.text


async def test_what_a_server_returned_reaches_the_agent_as_it_is(
    agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that is none of MCP's becomes a text: the call was made all the same."""
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    output = {"content": [image, {"type": "widget"}], "isError": False}
    body = {"status": "completed", "audit_id": "run-1", "output": output, "of_server": True}

    async def run(*_: Any, **__: Any) -> Any:
        return body

    monkeypatch.setattr(AgentApi, "run", run)
    answer = (await called_tool(agent)).json()["result"]
    assert answer["content"] == [image, {"type": "text", "text": '{"type": "widget"}'}]
    assert "structuredContent" not in answer
    assert answer["_meta"]["aileron/audit_id"] == "run-1"


async def test_a_tool_call_is_one_pass_through_the_application(
    agent: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the MCP server asks of the core it asks as values, not over HTTP again."""
    passes: list[str] = []
    inner = Starlette.__call__

    async def counted(self: Any, scope: Any, receive: Any, send: Any) -> None:
        passes.append(scope["path"])
        await inner(self, scope, receive, send)

    monkeypatch.setattr(Starlette, "__call__", counted)
    assert '"isError":false' in (await called_tool(agent, arguments={"text": "once"})).text
    assert passes == ["/mcp"]


async def test_the_first_request_waits_for_the_import_within_run(console: ThreadConsole) -> None:
    agents = AgentApi(console.served.app)

    async def story() -> list[int]:
        lazy = LazyMcpApp(agents)
        door = create_app(console.served.app, {"/mcp": lazy.app})

        async def with_state(scope: Any, receive: Any, send: Any) -> None:
            state = {"app": console.served.app, "agents": agents}
            await door({**scope, "state": state}, receive, send)

        async def ask(token: str) -> int:
            bearer = {"Authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(with_state),
                base_url=f"http://127.0.0.1:{console.port}",
                headers={**ACCEPT, **NEW_HEADERS, **bearer},
            ) as stranger:
                return (await stranger.post("/mcp", json=DISCOVER)).status_code

        statuses = [await ask(TOKEN)]
        async with lazy.run():
            statuses += [await ask(TOKEN), await ask("other")]
        return [*statuses, await ask(TOKEN)]

    assert await asyncio.to_thread(console.on_loop, story()) == [503, 200, 401, 503]
