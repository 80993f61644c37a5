"""The door of `/mcp`, its late import, and the caller within the process."""

import asyncio
import json
from typing import Any

import httpx
import pytest

from aileron_mcp.lazy_mount import LazyMcpApp, asgi_call
from tests.unit.mcp.harness import NEW, OTHER_TOKEN, TOKEN, ThreadConsole

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


def client(console: ThreadConsole, token: str | None) -> httpx.AsyncClient:
    bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
    base = f"http://127.0.0.1:{console.port}"
    return httpx.AsyncClient(base_url=base, headers={**ACCEPT, **bearer}, timeout=10)


async def test_one_token_may_not_use_the_mcp_session_of_another(console: ThreadConsole) -> None:
    """To a second token the first one's session id does not exist, whatever the method."""
    async with client(console, TOKEN) as first, client(console, OTHER_TOKEN) as second:
        opened = await first.post("/mcp", json=INITIALIZE)
        assert opened.status_code == 200
        theirs = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        for method, body in (("POST", LIST), ("GET", None), ("DELETE", None)):
            refused = await second.request(method, "/mcp", json=body, headers=theirs)
            assert refused.status_code == 404, method
        listed = await first.post("/mcp", json=LIST, headers=theirs)
        assert listed.status_code == 200
        assert "read_inbox" in listed.text


async def test_what_changed_before_a_client_had_its_stream_open_is_told_once_it_is(
    console: ThreadConsole,
) -> None:
    """The client lists the tools while it opens the stream: else it never hears of a change then."""
    async with client(console, TOKEN) as agent, asyncio.timeout(20):
        opened = await agent.post("/mcp", json=INITIALIZE)
        mine = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        await agent.post(
            "/mcp", json={"jsonrpc": "2.0", "method": "notifications/initialized"}, headers=mine
        )
        assert "in_between" not in (await agent.post("/mcp", json=LIST, headers=mine)).text
        await asyncio.to_thread(console.control.add_action, "in-between")
        async with agent.stream("GET", "/mcp", headers=mine) as stream:
            async for line in stream.aiter_lines():
                if "notifications/tools/list_changed" in line:
                    break


@pytest.mark.parametrize("token", [None, "wrong"])
@pytest.mark.parametrize("path", ["/mcp", "/mcp/"])
async def test_without_a_session_token_the_door_stays_shut(
    console: ThreadConsole, token: str | None, path: str
) -> None:
    """401 in the one error body, before any protocol, in both eras and for every method."""
    async with client(console, token) as stranger:
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
    console: ThreadConsole,
) -> None:
    """A wrong method, media type or Accept: JSON with a sentence on what to do, and Allow kept."""
    new = {"MCP-Protocol-Version": "2026-07-28"}
    plain = {"Content-Type": "text/plain"}
    async with client(console, TOKEN) as agent:
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


def _said(**client: Any) -> dict[str, Any]:
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
        _said(name="x" * MUCH),
        _said(version="x" * MUCH),
        _said(title="x" * MUCH),
        _said(icons=ICONS),
        _said(anything=[{}] * MUCH),
        {**INITIALIZE, "params": {**INITIALIZE["params"], "capabilities": {"a": "x" * MUCH}}},
        {**INITIALIZE, "params": {**INITIALIZE["params"], "arguments": "x" * MUCH}},
        {**LIST, "params": {"_meta": {"a": "x" * MUCH}}},
    ],
)
async def test_what_a_client_says_of_itself_is_bounded(
    console: ThreadConsole, message: dict[str, Any]
) -> None:
    """The package would keep it as objects for half an hour; on a session that is open as well."""
    async with client(console, TOKEN) as agent:
        opened = await agent.post("/mcp", json=INITIALIZE)
        mine = {"Mcp-Session-Id": opened.headers["mcp-session-id"]}
        for headers in ({}, mine):
            refused = await agent.post("/mcp", json=message, headers=headers)
            assert refused.status_code == 413
            assert refused.json()["error"]["class"] == "payload_too_large"
            assert "mcp-session-id" not in refused.headers
        assert (await agent.post("/mcp", json=LIST, headers=mine)).status_code == 200


async def test_a_call_of_the_new_era_is_bounded_but_for_its_arguments(
    console: ThreadConsole,
) -> None:
    """There each call says who the client is, anew."""
    headers = {**NEW_HEADERS, "Mcp-Method": "tools/call", "Mcp-Name": "read_inbox"}
    info = {"io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1", "icons": ICONS}}
    async with client(console, TOKEN) as agent:
        refused = await agent.post("/mcp", json=_new(info), headers=headers)
        assert refused.status_code == 413
        answered = await agent.post("/mcp", json=_new({}, text="x" * MUCH), headers=headers)
        assert answered.status_code == 200


async def test_both_spellings_of_the_path_serve(console: ThreadConsole) -> None:
    """`/mcp` and `/mcp/` are the same place; what lies below is nowhere."""
    async with client(console, TOKEN) as agent:
        for path, status in (("/mcp", 200), ("/mcp/", 200), ("/mcp/x", 404)):
            assert (await agent.post(path, json=INITIALIZE)).status_code == status


async def test_a_session_that_its_socket_proves_needs_no_token(console: ThreadConsole) -> None:
    """The server's own layer names a contained session in the scope; it is let in and passed on."""
    call = asgi_call(_with_headers(console.state.app, {**ACCEPT, **NEW_HEADERS}))
    extensions = {"aileron": {"session": "ses-contained"}}

    async def ask(with_extension: bool) -> tuple[int, Any]:
        work = call("POST", "/mcp", DISCOVER, None, extensions=extensions if with_extension else {})
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, console.loop()))

    status, body = await ask(True)
    assert status == 200
    assert body["result"]["capabilities"]["tools"]["listChanged"] is True
    assert (await ask(False))[0] == 401


def _with_headers(app: Any, headers: dict[str, str]) -> Any:
    more = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    names = {name for name, _ in more}

    async def wrapped(scope: Any, receive: Any, send: Any) -> None:
        kept = [pair for pair in scope["headers"] if pair[0] not in names]
        await app({**scope, "headers": kept + more}, receive, send)

    return wrapped


async def test_the_inner_call_is_an_ordinary_request() -> None:
    """Method, path, query, body, bearer, host, state and extensions arrive; the JSON comes back."""
    seen: dict[str, Any] = {}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.update(scope, sent=await receive())
        await send({"type": "http.response.start", "status": 201, "headers": []})
        await send({"type": "http.response.body", "body": b'{"a"', "more_body": True})
        await send({"type": "http.response.body", "body": b": 1}"})

    call = asgi_call(app, state={"app": 7})
    answer = await call("POST", "/v1/x?wait=1", {"é": 1}, "t", extensions={"aileron": {"k": 1}})
    assert answer == (201, {"a": 1})
    headers = dict(seen["headers"])
    assert (seen["path"], seen["query_string"]) == ("/v1/x", b"wait=1")
    assert headers[b"host"] == b"127.0.0.1"
    assert headers[b"authorization"] == b"Bearer t"
    assert json.loads(seen["sent"]["body"]) == {"é": 1}
    assert seen["state"] == {"app": 7}
    assert seen["extensions"] == {"aileron": {"k": 1}}


async def test_who_stops_waiting_is_told_to_the_route_and_does_not_break_it_off() -> None:
    """A cancelled caller looks like a client that hung up: what runs, runs to its end."""
    begun, told, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        begun.set()
        assert (await receive())["type"] == "http.disconnect"
        told.set()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})
        ended.set()

    waiting = asyncio.get_running_loop().create_task(_asked(asgi_call(app)))
    await begun.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    async with asyncio.timeout(5):
        await told.wait()
        await ended.wait()


async def _asked(call: Any) -> Any:
    return await call("GET", "/", None, None)


async def test_a_route_that_breaks_is_an_answer_and_its_message_is_not_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """500 without a body, as over a socket; the exception's text may quote arguments."""

    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("secret argument")

    assert await _asked(asgi_call(app)) == (500, None)
    assert "RuntimeError" in caplog.text
    assert "secret argument" not in caplog.text


async def test_the_first_request_waits_for_the_import_and_none_is_served_outside_run() -> None:
    """Before and after `run` the answer is 503; within it the first request is answered in full."""

    async def routes(scope: Any, receive: Any, send: Any) -> None:
        status = 404 if (b"authorization", b"Bearer t") in scope["headers"] else 401
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    lazy = LazyMcpApp(asgi_call(routes))
    door = asgi_call(_with_headers(lazy.app, {**ACCEPT, **NEW_HEADERS}))
    assert (await door("POST", "/mcp", DISCOVER, "t"))[0] == 503
    async with lazy.run():
        status, body = await door("POST", "/mcp", DISCOVER, "t")
        assert status == 200
        assert body["result"]["supportedVersions"] == ["2026-07-28"]
        assert (await door("POST", "/mcp", DISCOVER, "other"))[0] == 401
    assert (await door("POST", "/mcp", DISCOVER, "t"))[0] == 503
