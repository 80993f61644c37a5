"""What is kept of a request that passed: that it did, and nothing of what it held."""

import asyncio
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
from aileron_core.sessions import traffic as traffic_module
from tests.core.server.gateway.harness import Gateway, Seen, passing, read_chunk, read_head, writes
from tests.support.core_harness import change_rows, open_session, records

CANARY = b"canary-7f3a91"
STREAM = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


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
        gateway.upstream.answering = writes(b"", closes=True)
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
        writer.write(STREAM)
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
        took = asyncio.get_running_loop().time() - began
        assert len(updates) <= took / 0.5 + 1
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
