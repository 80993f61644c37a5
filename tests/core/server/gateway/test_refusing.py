"""Who may pass, and how the gateway's own errors read."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from aileron_core.server.gateway import providers
from aileron_core.server.gateway.providers import GatewayErrorKind
from aileron_core.server.sockets import bind_unix
from tests.core.server.gateway.harness import Client, passing, read_head
from tests.core.server.gateway.test_dialling import Names, leading

KINDS: tuple[GatewayErrorKind, ...] = (
    "unauthorized", "forbidden", "invalid", "too_many", "unreachable", "timeout", "unavailable",
)  # fmt: skip


@pytest.mark.parametrize(
    ("method", "path", "header", "provider"),
    [
        (b"POST", b"/v1/messages", b"", "anthropic"),
        (b"POST", b"/v1/messages/count_tokens", b"", "anthropic"),
        (b"HEAD", b"/api/hello", b"", "anthropic"),
        (b"HEAD", b"/", b"", "anthropic"),
        (b"GET", b"/", b"", "openai"),
        (b"POST", b"/v1/responses", b"", "openai"),
        (b"POST", b"/v1/chat/completions", b"anthropic-version", "openai"),
        (b"GET", b"/v1/models", b"", "openai"),
        (b"GET", b"/v1/models", b"Anthropic-VERSION", "anthropic"),
        (b"GET", b"/v1/files", b"anthropic-version", "anthropic"),
        (b"POST", b"/v1/messagesx", b"", "openai"),
        (b"POST", b"/v1beta/models/gemini-3:streamGenerateContent", b"", "gemini"),
        (b"POST", b"/v1/models/gemini-3:generateContent", b"", "gemini"),
        (b"GET", b"/v1beta/models", b"anthropic-version", "gemini"),
        (b"POST", b"/chat/completions", b"", "openai"),
    ],
)
def test_the_path_says_whose_api_it_is_and_else_a_header_does(
    method: bytes, path: bytes, header: bytes, provider: str
) -> None:
    assert providers.provider_of(method, path, ((header, b"2023-06-01"),)) == provider


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


async def test_a_refused_request_with_a_large_body_smuggles_no_other() -> None:
    """Its body is read and forgotten, whatever it looks like, and its answer is the last one."""
    async with passing() as gateway:
        client = await gateway.client("wrong")
        token = gateway.session.gateway_token.encode()
        hidden = b"GET /gw/%b/v1/models HTTP/1.1\r\nHost: %b\r\n\r\n" % (token, client.host)
        await client.send(b"POST", b"/v1/messages", body=hidden * 50_000)
        assert (await client.answer())[0].startswith(b"HTTP/1.1 401 ")
        assert await client.reader.read() == b""
        assert gateway.upstream.seen == []


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
        assert sent[0]["status"] == 404
        assert gateway.upstream.connections == 0


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
        assert gateway.upstream.raw == b""
        assert gateway.traffic.gateway_errors == len(OUT_OF_IT)


@pytest.mark.parametrize(
    ("base", "path"),
    [
        ("/team-a", b"/v1/models/..x/...?a=/../b"),
        ("/team-a", b"/v1/models/a%2Fb;v=1/x.%2e.y/%25"),
        ("", b"/v1/../%2e%2e/x"),
    ],
)
async def test_a_path_that_leaves_no_base_path_goes_up_as_it_is(base: str, path: bytes) -> None:
    async with passing(base=base) as gateway:
        assert (await gateway.get(path))[1] == b"ok"
        assert gateway.upstream.seen[0].line == b"GET %b%b HTTP/1.1" % (base.encode(), path)


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
