"""What `/mcp` lets in and refuses, its late import, and what a tool call costs."""

import asyncio
import json
import re
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

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
LIST = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
DISCOVER = {"jsonrpc": "2.0", "id": 3, "method": "server/discover", "params": {"_meta": NEW}}
NEW_HEADERS = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "server/discover"}
ACCEPT = {"Accept": "application/json, text/event-stream"}


def http_client(console: ThreadConsole, token: str | None) -> httpx.AsyncClient:
    bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
    base = f"http://127.0.0.1:{console.port}"
    return httpx.AsyncClient(base_url=base, headers={**ACCEPT, **bearer}, timeout=10)


async def greeted(agent: httpx.AsyncClient) -> dict[str, str]:
    """Open an MCP session, and return the header that names it."""
    opened = await agent.post("/mcp", json=INITIALIZE)
    assert opened.status_code == 200
    mine = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    await agent.post("/mcp", json=ready, headers=mine)
    return mine


async def test_one_token_may_not_use_the_mcp_session_of_another(mcp_console: ThreadConsole) -> None:
    """To a second token the first one's session id does not exist, whatever the method."""
    async with (
        http_client(mcp_console, TOKEN) as first,
        http_client(mcp_console, OTHER_TOKEN) as second,
    ):
        theirs = await greeted(first)
        for method, body in (("POST", LIST), ("GET", None), ("DELETE", None)):
            refused = await second.request(method, "/mcp", json=body, headers=theirs)
            assert refused.status_code == 404, method
        listed = await first.post("/mcp", json=LIST, headers=theirs)
        assert listed.status_code == 200
        assert "read_inbox" in listed.text


async def test_what_changed_before_a_client_had_its_stream_open_is_announced_once_it_is(
    mcp_console: ThreadConsole,
) -> None:
    """The client lists the tools while it opens the stream: else it never hears of a change then."""
    async with http_client(mcp_console, TOKEN) as agent, asyncio.timeout(20):
        mine = await greeted(agent)
        assert "in_between" not in (await agent.post("/mcp", json=LIST, headers=mine)).text
        await asyncio.to_thread(mcp_console.control.add_action, "in-between")
        async with agent.stream("GET", "/mcp", headers=mine) as stream:
            async for line in stream.aiter_lines():
                if "notifications/tools/list_changed" in line:
                    break


LARGE = 'a "quoted"\n\\ line of letters, \x1b[31m, \u202e, ü, 日本, 😀 ' * 8_000
CALL = {"name": "read_inbox", "arguments": {"text": LARGE}}


async def test_a_large_text_arrives_as_it_is_in_both_eras_and_by_the_api(
    mcp_console: ThreadConsole,
) -> None:
    """It is sent in parts, which the `mcp` package knows nothing of."""
    new = {
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "read_inbox",
    }
    asked = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
    async with http_client(mcp_console, TOKEN) as agent:
        old = await agent.post("/mcp", json={**asked, "params": CALL}, headers=await greeted(agent))
        later = await agent.post(
            "/mcp", json={**asked, "params": {**CALL, "_meta": NEW}}, headers=new
        )
        api = await agent.post("/v1/actions/read-inbox/run", json={"args": CALL["arguments"]})
    (line,) = [each for each in old.text.split("\n") if each.startswith("data: {")]
    output = {"op": "do", "args": {"text": LARGE}}
    answers = [json.loads(line.removeprefix("data: ")), later.json()]
    for result in (each["result"] for each in answers):
        assert result["structuredContent"]["output"] == api.json()["output"] == output
        assert json.loads(result["content"][0]["text"])["output"] == output
        assert "\x1b" not in result["content"][0]["text"]
    assert int(api.headers["content-length"]) == len(api.content) > len(LARGE)


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
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_without_a_session_token_the_door_stays_shut(
    mcp_console: ThreadConsole, token: str | None, path: str
) -> None:
    """401 in the one error body, before any protocol, in both eras and for every method."""
    async with http_client(mcp_console, token) as stranger:
        answers = [
            await stranger.post(path, json=INITIALIZE),
            await stranger.post(path, json=DISCOVER, headers=NEW_HEADERS),
            await stranger.get(path),
            await stranger.delete(path),
        ]
    for answer in answers:
        assert answer.status_code == 401
        assert answer.json()["error"]["class"] == "unauthorized"
        assert "mcp-session-id" not in answer.headers


async def test_what_the_package_refuses_without_a_word_is_refused_in_the_one_error_body(
    mcp_console: ThreadConsole,
) -> None:
    """A wrong method, media type or Accept: JSON with a sentence on what to do, and Allow kept."""
    new = {"MCP-Protocol-Version": "2026-07-28"}
    plain = {"Content-Type": "text/plain"}
    async with http_client(mcp_console, TOKEN) as agent:
        answers = [
            (400, await agent.post("/mcp", content="{}", headers=plain), "application/json"),
            (405, await agent.get("/mcp", headers=new), "POST"),
            (406, await agent.post("/mcp", json=LIST, headers={**new, "Accept": "x/y"}), "Accept"),
        ]
    for status, answer, names in answers:
        assert answer.status_code == status
        assert answer.headers["content-type"] == "application/json"
        assert answer.json()["error"]["class"] == "invalid_request"
        assert names in answer.json()["error"]["message"]
    assert answers[1][1].headers["allow"] == "POST"


def _initialize(**client: Any) -> dict[str, Any]:
    info = {**INITIALIZE["params"]["clientInfo"], **client}
    return {**INITIALIZE, "params": {**INITIALIZE["params"], "clientInfo": info}}


def _new(meta: dict[str, Any], **arguments: Any) -> dict[str, Any]:
    params = {"name": "read_inbox", "arguments": arguments, "_meta": {**NEW, **meta}}
    return {"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": params}


MUCH = 20_000
ICONS = [{"src": ""}] * 2_000
"""22 kB as text; a megabyte as the objects that the package would keep."""


@pytest.mark.parametrize(
    "message",
    [
        _initialize(name="x" * MUCH),
        _initialize(version="x" * MUCH),
        _initialize(title="x" * MUCH),
        _initialize(icons=ICONS),
        _initialize(anything=[{}] * MUCH),
        {**INITIALIZE, "params": {**INITIALIZE["params"], "capabilities": {"a": "x" * MUCH}}},
        {**INITIALIZE, "params": {**INITIALIZE["params"], "arguments": "x" * MUCH}},
        {**LIST, "params": {"_meta": {"a": "x" * MUCH}}},
    ],
)
async def test_what_a_client_says_of_itself_is_bounded(
    mcp_console: ThreadConsole, message: dict[str, Any]
) -> None:
    """The package would keep it as objects for half an hour; on a session that is open as well."""
    async with http_client(mcp_console, TOKEN) as agent:
        mine = await greeted(agent)
        for headers in ({}, mine):
            refused = await agent.post("/mcp", json=message, headers=headers)
            assert refused.status_code == 413
            assert refused.json()["error"]["class"] == "payload_too_large"
            assert "mcp-session-id" not in refused.headers
        assert (await agent.post("/mcp", json=LIST, headers=mine)).status_code == 200


async def test_a_call_of_the_new_era_is_bounded_but_for_its_arguments(
    mcp_console: ThreadConsole,
) -> None:
    """There each call says who the client is, anew."""
    headers = {**NEW_HEADERS, "Mcp-Method": "tools/call", "Mcp-Name": "read_inbox"}
    info = {"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1", "icons": ICONS}}
    async with http_client(mcp_console, TOKEN) as agent:
        refused = await agent.post("/mcp", json=_new(info), headers=headers)
        assert refused.status_code == 413
        answered = await agent.post("/mcp", json=_new({}, text="x" * MUCH), headers=headers)
        assert answered.status_code == 200


@pytest.mark.parametrize("tool", ["read_inbox", "send_draft"])
async def test_a_call_with_an_idempotency_key_is_one_call_however_often_it_is_sent(
    mcp_console: ThreadConsole, tool: str
) -> None:
    """Gated or not; a key that no record could show is refused, and only a relay is told of the approval at once."""
    headers = {**NEW_HEADERS, "Mcp-Method": "tools/call", "Mcp-Name": tool}
    message = _new({}, text="once")
    message["params"]["name"] = tool
    other = _new({}, text="else")
    other["params"]["name"] = tool
    async with http_client(mcp_console, TOKEN) as agent:

        async def call(key: str, sent: dict[str, Any] = message, **more: str) -> str:
            asked = {**headers, "Idempotency-Key": key, "Aileron-Waited": "1000", **more}
            return (await agent.post("/mcp", json=sent, headers=asked)).text

        first, again = await call(f"k-{tool}"), await call(f"k-{tool}")
        ids = {re.findall(r"run-\w{26}", each)[0] for each in (first, again)}
        assert len(ids) == 1
        assert "conflict" in await call(f"k-{tool}", other)
        for bad in ("k" * 129, "a b", ""):
            assert "invalid_request" in await call(bad)
        assert ("aileron.relay" in first) is (tool == "send_draft")
        assert "aileron.relay" not in await call(f"k-{tool}", **{"Aileron-Waited": "soon"})


async def test_both_spellings_of_the_path_serve(mcp_console: ThreadConsole) -> None:
    """`/mcp` and `/mcp/` are the same place; what lies below is nowhere."""
    async with http_client(mcp_console, TOKEN) as agent:
        for path, status in (("/mcp", 200), ("/mcp/", 200), ("/mcp/x", 404)):
            assert (await agent.post(path, json=INITIALIZE)).status_code == status


async def test_a_session_that_its_socket_proves_needs_no_token(mcp_console: ThreadConsole) -> None:
    """The socket of a contained session is the session, and the home's own socket is nobody's."""
    home = httpx.AsyncHTTPTransport(uds=str(mcp_console.home / "run" / "console.sock"))
    asked = {"agent": "a-test", "cwd": "/", "launched": True, "contained": True}
    async with httpx.AsyncClient(transport=home, base_url="http://aileron") as person:
        opened = (await person.post("/v1/sessions", json=asked)).json()
        refused = await person.post("/mcp", json=DISCOVER, headers={**ACCEPT, **NEW_HEADERS})
    assert refused.status_code == 401
    own = httpx.AsyncHTTPTransport(uds=opened["socket"])
    async with httpx.AsyncClient(transport=own, base_url="http://aileron") as agent:
        answer = await agent.post("/mcp", json=DISCOVER, headers={**ACCEPT, **NEW_HEADERS})
    assert answer.status_code == 200
    assert answer.json()["result"]["capabilities"]["tools"]["listChanged"] is True


async def test_a_fault_of_ours_is_a_result_and_its_message_is_neither_sent_nor_logged(
    mcp_console: ThreadConsole, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The exception's text may quote arguments."""

    async def run(*_: Any, **__: Any) -> Any:
        raise RuntimeError("secret argument")

    monkeypatch.setattr(AgentApi, "run", run)
    headers = {**NEW_HEADERS, "Mcp-Method": "tools/call", "Mcp-Name": "read_inbox"}
    async with http_client(mcp_console, TOKEN) as agent:
        answer = await agent.post("/mcp", json=_new({}), headers=headers)
    assert "internal_error" in answer.text
    assert "RuntimeError" in caplog.text
    assert "secret argument" not in answer.text + caplog.text


async def test_what_an_mcp_server_returned_reaches_the_agent_as_it_is(
    mcp_console: ThreadConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A block that is none of MCP's becomes a text: the call was made all the same."""
    image = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
    output = {"content": [image, {"type": "widget"}], "isError": False}

    async def run(*_: Any, **__: Any) -> Any:
        body = {"status": "completed", "audit_id": "run-1", "output": output}
        return {**body, "of_server": True}

    monkeypatch.setattr(AgentApi, "run", run)
    headers = {**NEW_HEADERS, "Mcp-Method": "tools/call", "Mcp-Name": "read_inbox"}
    async with http_client(mcp_console, TOKEN) as agent:
        answer = (await agent.post("/mcp", json=_new({}), headers=headers)).json()["result"]
    assert answer["content"] == [image, {"type": "text", "text": '{"type": "widget"}'}]
    assert "structuredContent" not in answer
    assert answer["_meta"]["aileron/audit_id"] == "run-1"


async def test_a_list_that_cannot_be_made_is_an_error_and_not_empty(
    mcp_console: ThreadConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent would take an empty one for "there are no actions"."""

    def list_actions(*_: Any) -> Any:
        raise RuntimeError("secret argument")

    monkeypatch.setattr(AgentApi, "list_actions", list_actions)
    async with http_client(mcp_console, TOKEN) as agent:
        mine = await greeted(agent)
        answer = await agent.post("/mcp", json=LIST, headers=mine)
    assert "could not list its actions (HTTP 500)" in answer.text
    assert "secret argument" not in answer.text


async def test_a_tool_call_is_one_pass_through_the_application(
    mcp_console: ThreadConsole, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the MCP server asks of the core it asks as values, not over HTTP again."""
    passes: list[str] = []
    inner = Starlette.__call__

    async def counted(self: Any, scope: Any, receive: Any, send: Any) -> None:
        passes.append(scope["path"])
        await inner(self, scope, receive, send)

    monkeypatch.setattr(Starlette, "__call__", counted)
    headers = {**NEW_HEADERS, "Mcp-Method": "tools/call", "Mcp-Name": "read_inbox"}
    async with http_client(mcp_console, TOKEN) as agent:
        answer = await agent.post("/mcp", json=_new({}, text="once"), headers=headers)
    assert '"isError":false' in answer.text
    assert passes == ["/mcp"]


async def test_the_first_request_waits_for_the_import_and_none_is_served_outside_run(
    mcp_console: ThreadConsole,
) -> None:
    """Before and after `run` the answer is 503; within it the first request is answered in full."""

    async def story() -> list[int]:
        lazy = LazyMcpApp(AgentApi(mcp_console.served.app))
        door = create_app(mcp_console.served.app, {"/mcp": lazy.app})
        state = {"app": mcp_console.served.app, "agents": AgentApi(mcp_console.served.app)}

        async def ask(token: str) -> int:
            bearer = {"Authorization": f"Bearer {token}"}
            async with httpx.AsyncClient(
                transport=httpx.ASGITransport(_with_state(door, state)),
                base_url=f"http://127.0.0.1:{mcp_console.port}",
                headers={**ACCEPT, **NEW_HEADERS, **bearer},
            ) as agent:
                return (await agent.post("/mcp", json=DISCOVER)).status_code

        listings = [await ask(TOKEN)]
        async with lazy.run():
            listings += [await ask(TOKEN), await ask("other")]
        return [*listings, await ask(TOKEN)]

    assert await asyncio.to_thread(mcp_console.on_loop, story()) == [503, 200, 401, 503]


def _with_state(app: Any, state: dict[str, Any]) -> Any:
    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        await app({**scope, "state": state}, receive, send)

    return wrapped
