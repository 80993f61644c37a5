"""Who may pass, how the gateway's own errors read, and what is kept of a request that passed."""

import asyncio
import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from aileron_core import app as app_module
from aileron_core.app import App, AppOptions
from aileron_core.console_port.events import CoreEvent, SessionsUpdated
from aileron_core.errors import StorageUnavailable
from aileron_core.home.layout import Home
from aileron_core.ids import new_token, token_hash
from aileron_core.server.gateway import providers
from aileron_core.server.gateway.providers import GatewayErrorKind
from aileron_core.server.sockets import bind_unix
from aileron_core.sessions import traffic as traffic_module
from tests.core.server.gateway.harness import (
    Client,
    Gateway,
    Seen,
    answering_with,
    passing,
    read_chunk,
    read_head,
)
from tests.core.server.gateway.test_dialling import Names, leading
from tests.support.core_harness import change_rows, open_session, records

KINDS: tuple[GatewayErrorKind, ...] = (
    "unauthorized", "forbidden", "invalid", "too_many", "unreachable", "timeout", "unavailable",
)  # fmt: skip
CLAUDE = (b"POST /v1/messages", b"POST /v1/messages/count_tokens", b"HEAD /api/hello", b"HEAD /")
CODEX = (b"GET /", b"POST /v1/responses", b"GET /v1/models", b"POST /v1/messagesx")
GEMINI = (b"POST /v1beta/models/g:streamGenerateContent", b"POST /v1/models/g:generateContent")


@pytest.mark.parametrize(
    ("asked", "header", "provider"),
    [
        *((each, b"", "anthropic") for each in CLAUDE),
        *((each, b"", "openai") for each in (*CODEX, b"POST /chat/completions")),
        *((each, b"", "gemini") for each in GEMINI),
        (b"POST /v1/chat/completions", b"anthropic-version", "openai"),
        (b"GET /v1/models", b"Anthropic-VERSION", "anthropic"),
        (b"GET /v1/files", b"anthropic-version", "anthropic"),
        (b"GET /v1beta/models", b"anthropic-version", "gemini"),
    ],
)
def test_the_path_says_whose_api_it_is(asked: bytes, header: bytes, provider: str) -> None:
    """And else a header does."""
    assert providers.provider_of(*asked.split(), ((header, b"2023-06-01"),)) == provider


@pytest.mark.parametrize("kind", KINDS)
def test_our_errors_have_the_shape_and_a_status_of_the_provider(kind: GatewayErrorKind) -> None:
    fault = providers.GatewayError(kind, "Why.")
    said = {name: providers.error_body(name, fault) for name in ("anthropic", "openai", "gemini")}
    bodies = {name: json.loads(body) for name, (_, body) in said.items()}
    errors = {name: body["error"] for name, body in bodies.items()}
    assert 400 <= said["anthropic"][0] < 600
    assert {each["message"] for each in errors.values()} == {"Why."}
    assert (bodies["anthropic"]["type"], set(errors["anthropic"])) == ("error", {"type", "message"})
    assert set(errors["openai"]) == {"message", "type", "param", "code"}
    assert errors["gemini"]["code"] == said["gemini"][0]
    assert errors["gemini"]["status"].isupper()


async def test_another_token_passes_nothing_and_this_one_opens_nothing_else() -> None:
    """An error of ours to HEAD has no body: else the next answer on the connection would begin with it."""
    async with passing() as gateway:
        for wrong in ("", "x", "0" * 43, "%00", "a/b", "é"):
            head, _ = await (await gateway.client(wrong)).ask(b"GET", b"/v1/models")
            assert head.startswith((b"HTTP/1.1 401 ", b"HTTP/1.1 400 ")), wrong
        client = await gateway.client(gateway.session.token)
        for _ in range(2):
            await client.send(b"HEAD", b"/v1/models")
            assert (await read_head(client.reader)).startswith(b"HTTP/1.1 401 ")
        head, body = await client.ask(b"POST", b"/v1/messages", body=b"{}")
        assert head.startswith(b"HTTP/1.1 401 Unauthorized\r\n")
        assert json.loads(body)["error"]["type"] == "authentication_error"
        client = await gateway.client()
        start = b"GET /v1/actions HTTP/1.1\r\nHost: %b\r\nAuthorization: Bearer %b\r\n\r\n"
        for token, status in ((gateway.session.token, 200), (gateway.session.gateway_token, 401)):
            client.writer.write(start % (client.host, token.encode()))
            head, _ = await client.answer()
            assert head.startswith(b"HTTP/1.1 %d " % status)
        # A large body smuggles no other: it is read and forgotten, and its answer is the last one.
        client, token = await gateway.client("wrong"), gateway.session.gateway_token.encode()
        hidden = b"GET /gw/%b/v1/models HTTP/1.1\r\nHost: %b\r\n\r\n" % (token, client.host)
        await client.send(b"POST", b"/v1/messages", body=hidden * 50_000)
        assert (await client.answer())[0].startswith(b"HTTP/1.1 401 ")
        assert await client.reader.read() == b""
        assert gateway.upstream.connections == 0


async def test_a_foreign_host_or_any_origin_is_refused() -> None:
    """As for every request over TCP: a web page that learnt the address passes nothing."""
    async with passing() as gateway:
        for lines in (
            (b"Host: 127.0.0.1:1",),
            (b"Host: localhost",),
            (),
            (b"Host: {host}", b"Host: {host}"),
            (b"Host: {host}", b"Origin: http://127.0.0.1"),
            (b"Host: {host}", b"Origin: null"),
        ):
            client = await gateway.client()
            sent = [line.replace(b"{host}", client.host) for line in lines]
            first = b"GET /gw/%b/v1/messages HTTP/1.1" % client.token
            client.writer.write(b"\r\n".join([first, *sent, b"", b""]))
            head, body = await client.answer()
            assert head.startswith(b"HTTP/1.1 403 Forbidden\r\n"), lines
            assert json.loads(body)["error"]["type"] == "permission_error"
        assert gateway.upstream.connections == 0


async def test_a_sessions_own_socket_passes_its_token_and_no_other(tmp_path: Path) -> None:
    async with passing() as gateway:
        other = (await gateway.another_session()).gateway_token
        listening = bind_unix(tmp_path / "s")
        server = await gateway.server.serve_session(listening, gateway.session_id, lambda _: None)
        ends = await asyncio.open_unix_connection(str(tmp_path / "s"))
        client = Client(*ends, b"anything", other.encode())
        head, _ = await client.ask(b"GET", b"/v1/models")
        assert head.startswith(b"HTTP/1.1 401 ")
        client.token = gateway.session.gateway_token.encode()
        assert (await client.ask(b"GET", b"/v1/models"))[1] == b"ok"
        assert gateway.traffic.requests == 1
        await gateway.app.session_service.end(gateway.session_id, "a test")
        head, _ = await client.ask(b"GET", b"/v1/models")
        assert head.startswith(b"HTTP/1.1 401 ")
        assert len(gateway.upstream.seen) == 1
        client.hang_up()
        server.close()


async def test_the_gateway_is_found_by_the_bytes_of_the_path_not_by_what_they_decode_to() -> None:
    """`/%67w/` and an absolute URL are no way in, nor is CONNECT, nor what the MCP server asks in process."""
    async with passing() as gateway:
        client, sent = await gateway.client(), list[Any]()
        for target in (
            b"/%%67w/%b/v1/models" % client.token,
            b"/GW/%b/v1/models" % client.token,
            b"http://%b/gw/%b/v1/models" % (client.host, client.token),
            b"/x/../gw/%b/v1/models" % client.token,
            b"/gw",
        ):
            client.writer.write(b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (target, client.host))
            head, _ = await client.answer()
            assert head.startswith(b"HTTP/1.1 404 ")
        for place in (b"127.0.0.1:%d" % gateway.upstream.port, b"/gw/%b/v1/x" % client.token):
            client = await gateway.client()
            client.writer.write(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (place, client.host))
            assert not (await client.reader.read(100)).startswith(b"HTTP/1.1 200 ")

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        path = f"/gw/{gateway.session.gateway_token}/v1/models"
        scope = {
            "type": "http", "method": "GET", "path": path, "raw_path": path.encode(),
            "query_string": b"", "headers": [], "server": None, "client": None,
            "scheme": "http", "http_version": "1.1", "root_path": "", "state": {},
        }  # fmt: skip
        await gateway.server._server.config.loaded_app(scope, receive, send)
        assert (sent[0]["status"], gateway.upstream.connections) == (404, 0)


OUT_OF_IT = (
    b"/..", b"/../x", b"/v1/../../x", b"/./x", b"/v1/..?q=1", b"/v1/..#x",
    b"/%2e%2e/x", b"/.%2E/x", b"/%2E./x", b"/..%2fx", b"/v1%2f..%2fx", b"/v1%2F%2e%2e",
    b"/%252e%252e/x", b"/v1%252f..%255cx", b"/..\\x", b"/v1\\..\\x", b"/..%5cx",
    b"/..;a=b/x", b"/..%3ba/x", b"/%2e%2e;/x", b"/..%00/x", b"/..%20/x", b"/%c0%ae%c0%ae/x",
    b"/" + b"%25" + b"25" * 20 + b"2e./x",
)  # fmt: skip


async def test_no_path_leaves_the_base_path_of_an_upstream() -> None:
    async with passing(base="/team-a/proxy") as gateway:
        client = await gateway.client()
        for path in OUT_OF_IT:
            head, body = await client.ask(b"GET", path)
            assert head.startswith(b"HTTP/1.1 400 "), path
            error = json.loads(body)["error"]
            assert error["type"] == "invalid_request_error"
            assert "base path" in error["message"]
        assert (gateway.upstream.raw, gateway.traffic.gateway_errors) == (b"", len(OUT_OF_IT))


@pytest.mark.parametrize(
    ("base", "path"),
    [
        *(("/base/a", each) for each in (b"/v1/models", b"", b"?a=b", b"//x")),
        ("/team-a", b"/v1/models/..x/...?a=/../b"),
        ("/team-a", b"/v1/models/a%2Fb;v=1/x.%2e.y/%25"),
        ("", b"/v1/../%2e%2e/x"),
    ],
)
async def test_a_path_that_leaves_no_base_path_goes_up_as_it_is(base: str, path: bytes) -> None:
    """Behind the base path of its upstream."""
    async with passing(base=base) as gateway:
        assert (await gateway.get(path))[1] == b"ok"
        up = base.encode() + (path if path.startswith(b"/") else b"/" + path)
        assert gateway.upstream.seen[0].line == b"GET %b HTTP/1.1" % up


async def test_traffic_that_unverified_settings_redirect_is_refused() -> None:
    async with passing() as gateway:
        gateway.app.accepted_settings.count = False
        head, body = await gateway.get()
        assert head.startswith(b"HTTP/1.1 503 ")
        assert "config.toml" in json.loads(body)["error"]["message"]
        assert gateway.upstream.seen == []
        gateway.app.accepted_settings.count = True
        assert (await gateway.get())[1] == b"ok"
    # What none redirects goes to its own provider without a config.toml as well.
    names = Names("127.0.0.1")
    async with leading("", names) as gateway:
        gateway.app.accepted_settings.count = False
        head, _ = await gateway.get()
        assert head.startswith(b"HTTP/1.1 403 ")  # an address of this machine, and not the settings
        assert names.asked == ["api.openai.com"]


CANARY = b"canary-7f3a91"


async def echo_body(seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
    writer.write(
        b"HTTP/1.1 200 OK\r\nX-Echo: %b\r\nContent-Length: %d\r\n\r\n%b"
        % (CANARY, len(seen.body), seen.body)
    )


async def passed(gateway: Gateway) -> list[list[Any]]:
    return [body["requests"] for body in await records(gateway.app, "gateway.passed")]


async def test_no_byte_of_ours_goes_up_nor_is_theirs_kept(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        async with passing(echo_body) as gateway:
            client = await gateway.client()
            for method, target in (
                (b"POST", b"/v1/messages?key=" + CANARY),
                (b"POST", b"/v1/responses"),
                (b"PUT", b"/v1beta/models/g:generateContent?key=" + CANARY),
            ):
                head, body = await client.ask(
                    method, target, b"Authorization: Bearer " + CANARY, b"x-api-key: " + CANARY,
                    b"Referer: http://x/" + CANARY, b"Cookie: a=" + CANARY, body=CANARY * 9,
                )  # fmt: skip
                assert CANARY in head
                assert body == CANARY * 9
            await gateway.app.traffic.sweep(everything=True)
            for secret in (gateway.session.gateway_token, gateway.session.token, "aileron"):
                assert secret.encode() not in gateway.upstream.raw.lower()
                assert secret.encode() not in bytes(gateway.upstream.raw)
            files = gateway.app.home.path.rglob("*")
            kept = b"".join(each.read_bytes() for each in files if each.is_file())
            assert b"gateway.passed" in kept
            assert CANARY not in kept
            assert gateway.session.gateway_token.encode() not in kept
            assert CANARY.decode() not in caplog.text
            assert CANARY.decode() not in repr(gateway.app.publisher.sessions())


async def test_what_passed_is_on_record_with_time_route_status_and_sizes() -> None:
    """An error of ours counts as one; without the token there is nobody to count it for."""
    async with passing(echo_body, base="/secret") as gateway:
        # A config.toml that another program changed leaves a trace; its path may be a secret.
        (started,) = await records(gateway.app, "console.started")
        url = f"http://127.0.0.1:{gateway.upstream.port}"
        assert started["upstreams"] == {"anthropic": url, "openai": url, "gemini": url}
        client = await gateway.client()
        await client.ask(b"POST", b"/v1/messages?secret=1", body=b"12345")
        await client.ask(b"GET", b"/v1/models")
        await client.ask(b"HEAD", b"/api/hello")
        path = b"/v1/" + b"x" * 20_000  # is kept short, and passes whole
        await client.ask(b"GET", path)
        assert gateway.upstream.seen[-1].line == b"GET /secret" + path + b" HTTP/1.1"
        assert len(gateway.traffic.last_route) == len("GET ") + 200
        gateway.upstream.answering = answering_with(b"", closes=True)
        await gateway.get(b"/v1/responses/1")
        await (await gateway.client("wrong")).ask(b"GET", b"/v1/responses/1")
        numbers = await gateway.until_traffic(lambda view: not view.in_flight)
        assert (numbers.requests, numbers.gateway_errors, numbers.last_status) == (5, 1, 502)
        await gateway.app.traffic.sweep(everything=True)
        (batch,) = await passed(gateway)
        assert [entry[1:] for entry in batch[:3]] == [
            ["anthropic", "POST", "/v1/messages", 200, 5, 5],
            ["openai", "GET", "/v1/models", 200, 0, 0],
            ["anthropic", "HEAD", "/api/hello", 200, 0, 0],
        ]
        assert [entry[4] for entry in batch[3:]] == [200, 502]
        assert all(entry[0].endswith("Z") for entry in batch)


async def test_the_record_is_written_in_batches_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traffic_module, "_BATCH", 5)
    monkeypatch.setattr(app_module, "_SWEEP_SECONDS", 1000.0)
    async with passing(echo_body) as gateway:
        client = await gateway.client()
        for _ in range(5):
            await client.ask(b"GET", b"/v1/models")
        while not await passed(gateway):
            await asyncio.sleep(0)  # at the fifth, without a tick
        assert [len(batch) for batch in await passed(gateway)] == [5]
        await client.ask(b"GET", b"/v1/models")
        await gateway.until_traffic(lambda view: not view.in_flight)
        await gateway.app.traffic.sweep()
        assert [len(batch) for batch in await passed(gateway)] == [5]  # not due yet
        monkeypatch.setattr(traffic_module, "_RECORD_SECONDS", 0.0)
        await gateway.app.traffic.sweep()
        assert [len(batch) for batch in await passed(gateway)] == [5, 1]
        monkeypatch.setattr(traffic_module, "_RECORD_SECONDS", 1000.0)
        await client.ask(b"GET", b"/v1/models")
        await gateway.until_traffic(lambda view: not view.in_flight)
        await gateway.app.session_service.end(gateway.session_id, "a test")
        await gateway.app.traffic.sweep()
        assert [len(batch) for batch in await passed(gateway)] == [5, 1, 1]
        assert gateway.app.traffic.view(gateway.session_id) is None


async def test_where_nothing_can_be_recorded_nothing_passes(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(app_module, "_SWEEP_SECONDS", 1000.0)
    monkeypatch.setattr(traffic_module, "_MAX_UNRECORDED", 3)
    monkeypatch.setattr(traffic_module, "_RECORD_SECONDS", 1000.0)
    async with passing(echo_body) as gateway:
        client = await gateway.client()
        for _ in range(3):
            assert (await client.ask(b"GET", b"/v1/models"))[0].startswith(b"HTTP/1.1 200 ")
        await gateway.until_traffic(lambda view: not view.in_flight)
        blocker = sqlite3.connect(gateway.app.home.database, isolation_level=None)
        blocker.execute("PRAGMA busy_timeout = 0")
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StorageUnavailable):
            await gateway.app.traffic.sweep(everything=True)
        caplog.clear()  # that it could not be written stands there, as it should
        head, body = await client.ask(b"GET", b"/v1/models")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert b"cannot write its audit record" in body
        blocker.execute("ROLLBACK")
        blocker.close()
        await gateway.app.traffic.sweep(everything=True)
        assert [len(batch) for batch in await passed(gateway)] == [3]
        assert (await client.ask(b"GET", b"/v1/models"))[0].startswith(b"HTTP/1.1 200 ")


async def test_the_sessions_view_has_the_numbers_of_a_stream_and_not_for_each_chunk() -> None:
    chunks = 300
    updates: list[SessionsUpdated] = []

    async def answering(_seen: Seen, reader: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for _ in range(chunks):
            writer.write(b"4\r\ndata\r\n")
            await writer.drain()
            await asyncio.sleep(0)
        await reader.read()

    def hear(event: CoreEvent) -> None:
        if isinstance(event, SessionsUpdated):
            updates.append(event)

    async with passing(answering) as gateway:
        gateway.app.events.subscribe(hear)
        client = await gateway.client()
        began = asyncio.get_running_loop().time()
        await client.send(b"POST", b"/v1/messages?x=1", body=b"{}")
        await read_head(client.reader)
        for _ in range(chunks):
            assert await read_chunk(client.reader) == b"data"
        async with asyncio.timeout(10):
            while not _shown(updates, chunks * 4):
                await asyncio.sleep(0.01)
        assert len(updates) <= (asyncio.get_running_loop().time() - began) / 0.5 + 1
        client.hang_up()
        view = await gateway.until_traffic(lambda view: not view.in_flight)
        assert view.last_route == "POST /v1/messages"


def _shown(updates: list[SessionsUpdated], down: int) -> bool:
    if not updates or updates[-1].sessions[-1].traffic is None:
        return False
    numbers = updates[-1].sessions[-1].traffic
    return (numbers.requests, numbers.in_flight, numbers.bytes_down) == (1, 1, down)


async def test_a_gateway_token_in_a_planted_row_opens_nothing(home: Path) -> None:
    """A row is no authority; its session's record vouches for the token's hash."""
    mine = new_token()
    async with App.open(Home(home), AppOptions()) as app:
        own = (await open_session(app)).gateway_token
    async with App.open(Home(home), AppOptions()) as app:
        assert app.sessions.authenticate_gateway(own) is not None
    change_rows(home, f"UPDATE sessions SET gateway_hash = '{token_hash(mine)}'")
    async with App.open(Home(home), AppOptions()) as app:
        assert app.sessions.authenticate_gateway(mine) is None
        assert app.sessions.authenticate_gateway(own) is None
