"""A provider's key from the vault: where it is put in, where it never goes, and what comes back of it."""

import asyncio
import base64
import contextlib
import gzip
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from aileron_core.errors import InvalidRequest
from aileron_core.server.gateway.key_injection import StreamMask
from aileron_core.sessions.model import OpenedSession
from aileron_core.settings import GatewaySettings
from aileron_core.vault.secret import Secret
from tests.core.server.gateway.harness import (
    PATIENCE,
    Answering,
    Client,
    Gateway,
    Upstream,
    answering_with,
    fine,
    passing,
    read_head,
)
from tests.core.server.gateway.test_dialling import Names, certificates, dialling
from tests.core.server.gateway.test_passing import SWITCHED, UPGRADE, echo_back
from tests.support.core_harness import records

PHRASE = "the passphrase of a test"
KEY = b"sk-canary_51ab90-Zz/+x"
PROVIDERS = ("anthropic", "openai", "gemini")
HEADERS = {
    "anthropic": (b"x-api-key", b""),
    "openai": (b"Authorization", b"Bearer "),
    "gemini": (b"x-goog-api-key", b""),
}
PATHS = {
    "anthropic": b"/v1/messages?beta=true",
    "openai": b"/v1/responses",
    "gemini": b"/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
}
STATUS_OF_LOCKED = {"anthropic": "api_error", "openai": "server_error", "gemini": "UNAVAILABLE"}


@dataclass(kw_only=True)
class Keyed:
    """A gateway whose vault has a key for each provider, and a session that may use them."""

    gateway: Gateway
    upstream: Upstream
    opened: OpenedSession
    client: Client

    @property
    def placeholder(self) -> bytes:
        return self.opened.placeholder.encode()

    def line(self, provider: str, value: bytes | None = None) -> bytes:
        name, before = HEADERS[provider]
        return name + b": " + before + (self.placeholder if value is None else value)

    async def ask(self, provider: str = "openai", value: bytes | None = None) -> Any:
        """Ask a model over the session's own connection, see `line`."""
        return await self.client.ask(b"POST", PATHS[provider], self.line(provider, value))

    async def lock(self) -> None:
        await self.gateway.app.vault_service.lock()

    async def unlock(self) -> None:
        await self.gateway.app.vault_service.unlock(Secret(PHRASE), way="console")

    @property
    def waits(self) -> bool:
        views = {each.session_id: each for each in self.gateway.app.publisher.sessions()}
        return views[self.opened.session.session_id].waits_for_vault

    async def records(self) -> list[dict[str, object]]:
        """Return the audit's records, once everything that passed is on record."""
        await self.gateway.app.traffic.sweep(everything=True)
        return await records(self.gateway.app)


@contextlib.asynccontextmanager
async def keyed(
    folder: Path,
    answering: Answering = fine,
    *,
    providers: tuple[str, ...] = PROVIDERS,
    require_unlocked: bool = False,
) -> AsyncGenerator[Keyed, None]:
    context, ca = certificates(folder, "models.example")
    async with Upstream(answering, ssl=context).listening() as upstream:
        url = f"https://models.example:{upstream.port}"
        to = {"anthropic": url, "openai": url, "gemini": url}
        settings = GatewaySettings(**to, require_unlocked=require_unlocked)
        dialer = dialling(Names("127.0.0.1"), ca=ca)
        async with passing(settings=settings, dialer=dialer) as gateway:
            app = gateway.app
            await app.vault_service.create(Secret(PHRASE), way="console")
            for provider in PROVIDERS:
                await app.model_keys.set(provider, url, Secret(KEY))
            opened = await gateway.another_session(opened_by="launch", key_providers=providers)
            client = await gateway.client(opened.gateway_token)
            yield Keyed(gateway=gateway, upstream=upstream, opened=opened, client=client)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_key_replaces_its_placeholder_in_a_header(provider: str, tmp_path: Path) -> None:
    async with keyed(tmp_path) as made:
        body = b'{"said": "%b"}' % made.placeholder
        target = PATHS[provider] + (b"&" if b"?" in PATHS[provider] else b"?")
        target += b"said=" + made.placeholder
        head, answer = await made.client.ask(
            b"POST", target, made.line(provider), b"X-Said: " + made.placeholder,
            b"Accept-Encoding: gzip, br", body=body,
        )  # fmt: skip
        assert head.startswith(b"HTTP/1.1 200")
        assert answer == b"ok"
        (seen,) = made.upstream.seen
        assert (seen.line, seen.body) == (b"POST " + target + b" HTTP/1.1", body)
        assert seen.lines == [
            b"Host: models.example:%d" % made.upstream.port,
            made.line(provider, KEY),
            b"X-Said: " + made.placeholder,
            b"Content-Length: %d" % len(body),
            b"Accept-Encoding: identity",
        ]
        records = await made.records()
        (passed,) = [each for each in records if each["event"] == "gateway.passed"]
        assert passed["requests"][0][7:] == ["key"]  # type: ignore[index]
        opened = [each for each in records if each["event"] == "session.opened"][-1]
        assert opened["key_providers"] == list(PROVIDERS)
        assert KEY.decode() not in json.dumps(records)
        assert made.opened.placeholder not in json.dumps(records)
        home = made.gateway.app.home.path
        kept = [path.read_bytes() for path in home.rglob("*") if path.is_file()]
        assert not [each for each in kept if KEY in each or made.placeholder in each]


async def test_a_body_in_chunks_carries_the_key_over_a_connection_of_ours(tmp_path: Path) -> None:
    """Nothing that an agent sent with its own key is in front of it."""
    async with keyed(tmp_path) as made:
        for _ in range(2):
            await made.ask(value=b"sk-mine")
            await made.ask()
        assert [each.connection for each in made.upstream.seen] == [1, 2, 1, 2]
        lines = (made.line("openai"), b"Transfer-Encoding: chunked")
        await made.client.send(b"POST", PATHS["openai"], *lines)
        made.client.writer.write(b"2\r\nhi\r\n0\r\n\r\n")
        assert (await made.client.answer())[1] == b"ok"
        seen = made.upstream.seen[-1]
        assert seen.body == b"hi"
        assert made.line("openai", KEY) in seen.lines


async def test_elsewhere_a_request_with_the_placeholder_is_refused(tmp_path: Path) -> None:
    """With the same key those paths read and delete what the account holds."""
    async with keyed(tmp_path) as made:
        files = (b"POST /v1/files", b"GET /v1/responses/resp_1", b"DELETE /v1/models/ft:gpt:mine")
        nearby = (b"GET /v1/models/../files", b"GET /v1/models/%2e%2e%2ffiles")
        slashes = (b"POST /v1/responses/", b"POST //v1/responses")
        batches = (b"GET /v1/messages/batches", b"POST /v1/messages/batches")
        tuned = (b"DELETE /v1beta/tunedModels/x", b"POST /v1beta/tunedModels/x:generateContent")
        actions = (b"GET /v1beta/models/x:anything", b"POST /v1beta/models/x:batchGenerateContent")
        for provider, asked, lines in (
            *(("openai", each, ()) for each in (*files, *nearby, *slashes)),
            ("openai", b"POST /v1/responses", (b"X-HTTP-Method-Override: DELETE",)),
            ("openai", b"GET /v1/models", (b"Connection: Upgrade", b"Upgrade: websocket")),
            ("openai", b"POST /v1/responses", (b"Content-Length: 2", b"Content-Length: 2")),
            ("openai", b"POST /v1/responses", (b"Transfer-Encoding: gzip, chunked",)),
            *(("anthropic", each, ()) for each in batches),
            ("anthropic", b"DELETE /v1/models/x", (b"anthropic-version: 1",)),
            *(("gemini", each, ()) for each in (b"POST /v1beta/files", *tuned, *actions)),
        ):
            client = await made.gateway.client(made.opened.gateway_token)
            await client.send(*asked.split(), made.line(provider), *lines)
            head, _ = await client.answer()
            assert head.split()[1] in (b"400", b"403"), (asked, head)
        assert made.upstream.raw == b""


async def test_only_a_sessions_own_placeholder_and_its_own_providers_count(tmp_path: Path) -> None:
    async with keyed(tmp_path, providers=("openai",)) as made:
        other = await made.gateway.another_session(key_providers=PROVIDERS)
        for value in (other.placeholder, made.opened.token, made.opened.gateway_token, "sk-mine"):
            await made.ask(value=value.encode())
            assert made.line("openai", value.encode()) in made.upstream.seen[-1].lines
        await made.client.ask(b"POST", PATHS["anthropic"], made.line("openai"))
        assert made.line("openai") in made.upstream.seen[-1].lines  # not that provider's header
        head, body = await made.ask("anthropic")
        assert head.startswith(b"HTTP/1.1 403 ")
        assert "may not use the vault's key for anthropic" in json.loads(body)["error"]["message"]
        assert KEY not in made.upstream.raw
        plain = await made.gateway.client()  # a session without a placeholder
        await plain.ask(b"POST", PATHS["openai"], made.line("openai"))
        assert made.line("openai") in made.upstream.seen[-1].lines
        assert KEY not in made.upstream.raw


async def test_a_locked_vault_is_said_in_the_providers_shape(tmp_path: Path) -> None:
    """503, which agents try again; nothing reaches the upstream, and the console knows who waits."""
    async with keyed(tmp_path) as made:
        await made.lock()
        for provider in PROVIDERS:
            head, body = await made.ask(provider)
            assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            error = json.loads(body)["error"]
            assert STATUS_OF_LOCKED[provider] in (error.get("type"), error.get("status"))
            assert "The vault is locked" in error["message"]
            assert "aileron vault unlock" in error["message"]
            assert made.waits
        assert made.upstream.raw == b""
        await made.ask(value=b"sk-mine")
        assert len(made.upstream.seen) == 1
        await made.ask()
        assert made.waits
        await made.unlock()
        assert not made.waits
        assert (await made.ask())[0].startswith(b"HTTP/1.1 200")


async def test_a_key_is_for_one_https_address(tmp_path: Path) -> None:
    async with keyed(tmp_path) as made:
        keys = made.gateway.app.model_keys
        with pytest.raises(InvalidRequest, match="not https"):
            await keys.set("openai", "http://models.example", Secret(KEY))
        for change in (
            lambda: keys.set("openai", "https://other.example", Secret(KEY)),
            lambda: keys.remove("openai"),
        ):
            await change()
            head, body = await made.ask()
            assert head.startswith(b"HTTP/1.1 403 ")
            assert "aileron gateway key set openai" in json.loads(body)["error"]["message"]
        assert made.upstream.raw == b""
        events = [each["event"] for each in await made.records()]
        assert events.count("gateway.key_set") == len(PROVIDERS) + 1
        assert events.count("gateway.key_removed") == 1


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    """It is the agent's answer; the agent has a placeholder to follow it with."""
    moved = b"HTTP/1.1 307 Moved\r\nLocation: https://other.example/%b\r\nContent-Length: 0\r\n\r\n"
    async with keyed(tmp_path, answering_with(moved % KEY)) as made:
        head, _ = await made.ask()
        assert head.startswith(b"HTTP/1.1 307 Moved\r\n")
        assert b"Location: https://other.example/" + b"*" * len(KEY) in head
        assert len(made.upstream.seen) == 1


@pytest.mark.parametrize("framing", ["length", "chunked", "close"])
async def test_a_key_that_comes_back_is_masked_however_cut(framing: str, tmp_path: Path) -> None:
    encoded = base64.b64encode(KEY)
    text = b"data: " + KEY + b" sk-ca " + encoded + b" sk-canary\n\nsk-c"

    async def echoes(_seen, _reader, writer) -> None:  # type: ignore[no-untyped-def]
        writer.write(b"HTTP/1.1 200 %b\r\nX-Echo: <%b>\r\n" % (KEY, KEY))
        if framing == "length":
            writer.write(b"Content-Length: %d\r\n\r\n" % len(text))
        elif framing == "chunked":
            writer.write(b"Transfer-Encoding: chunked\r\n\r\n")
        else:
            writer.write(b"\r\n")
        for at in range(len(text)):
            piece = text[at : at + 1]
            writer.write(b"1\r\n%b\r\n" % piece if framing == "chunked" else piece)
            await writer.drain()
            await asyncio.sleep(0)
        if framing == "chunked":
            writer.write(b"0\r\n\r\n")
        elif framing == "close":
            writer.write_eof() if writer.can_write_eof() else writer.close()

    async with keyed(tmp_path, echoes) as made:
        head, body = await made.ask()
        assert head.startswith(b"HTTP/1.1 200 " + b"*" * len(KEY) + b"\r\n")
        assert b"X-Echo: <" + b"*" * len(KEY) + b">\r\n" in head
        assert len(body) == len(text)
        assert body.startswith(b"data: " + b"*" * len(KEY) + b" sk-ca ")
        assert encoded[:24] not in body
        assert body.endswith(b" sk-canary\n\nsk-c")


async def test_an_event_is_passed_on_before_the_next_one_comes(tmp_path: Path) -> None:
    """Searching an answer delays nothing of a stream."""
    more = asyncio.Event()

    async def streams(_seen, _reader, writer) -> None:  # type: ignore[no-untyped-def]
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        writer.write(b"a\r\ndata: 1!\n\n\r\n")
        await more.wait()
        writer.write(b"0\r\n\r\n")

    async with keyed(tmp_path, streams) as made:
        await made.client.send(b"POST", PATHS["openai"], made.line("openai"))
        await read_head(made.client.reader)
        assert await made.client.reader.readexactly(15) == b"a\r\ndata: 1!\n\n\r\n"
        more.set()
        assert await made.client.reader.readexactly(5) == b"0\r\n\r\n"


@pytest.mark.parametrize("where", [b"Content-Encoding: gzip", b"Transfer-Encoding: gzip, chunked"])
async def test_an_answer_that_is_compressed_is_not_passed_on(where: bytes, tmp_path: Path) -> None:
    body = gzip.compress(KEY)
    rest = b"Content-Length: %d\r\n\r\n%b"
    if where.startswith(b"Transfer"):
        rest = b"\r\n%x\r\n%b\r\n0\r\n\r\n"
    answer = b"HTTP/1.1 200 OK\r\n%b\r\n" % where + rest % (len(body), body)
    async with keyed(tmp_path, answering_with(answer)) as made:
        head, body = await made.ask()
        assert head.startswith(b"HTTP/1.1 502 ")
        assert "compressed its answer" in json.loads(body)["error"]["message"]


async def test_model_traffic_waits_for_the_vault_where_config_requires_it(tmp_path: Path) -> None:
    async with keyed(tmp_path, require_unlocked=True) as made:
        for locked in (False, True, False):
            before = len(made.upstream.seen)
            head, body = await made.ask("anthropic", b"sk-mine")
            assert head.split()[1] == (b"503" if locked else b"200")
            assert len(made.upstream.seen) == before + (not locked)
            if locked:
                error = json.loads(body)
                assert (error["type"], error["error"]["type"]) == ("error", "api_error")
                assert made.waits
                await made.unlock()
            else:
                await made.lock()


async def test_a_websocket_ends_when_the_vault_locks_where_config_says_so(tmp_path: Path) -> None:
    """Each frame in it may be another request; one without a key of the vault as well."""
    for required in (True, False):
        (tmp_path / str(required)).mkdir()
        async with keyed(tmp_path / str(required), echo_back, require_unlocked=required) as made:
            reader = made.client.reader
            await made.client.send(b"GET", b"/v1/responses", *UPGRADE)
            assert await read_head(reader) == SWITCHED
            assert await reader.readexactly(7) == b"\x81\x05hello"
            await made.lock()
            made.client.writer.write(b"another request")
            async with asyncio.timeout(PATIENCE):
                if required:
                    with pytest.raises((asyncio.IncompleteReadError, ConnectionResetError)):
                        await reader.readexactly(15)
                else:
                    assert await reader.readexactly(15) == b"another request"


async def test_without_a_vault_there_is_none_to_wait_for() -> None:
    """`require_unlocked` is about a vault that exists."""
    async with passing() as first:
        url = f"http://127.0.0.1:{first.upstream.port}"
        async with passing(settings=GatewaySettings(openai=url, require_unlocked=True)) as gateway:
            assert (await gateway.get())[1] == b"ok"


def test_a_mask_keeps_back_a_word_at_the_end_and_never_more_than_a_spelling_has() -> None:
    mask = StreamMask(b"sk-abcdefgh")
    assert mask.feed(b"hello sk-abc") == b"hello "
    assert mask.feed(b"def") == b""
    assert mask.feed(b"gh!") == b"***********!"
    assert mask.feed(b'"}\n\n') == b'"}\n\n'
    longest = len("sk-abcdefgh") * len("%73")
    assert mask.feed(b"x" * 500) == b"x" * (500 - longest + 1)
    assert mask.rest() == b"x" * (longest - 1)


def test_the_sizes_of_pieces_do_not_tell_how_much_of_a_key_was_guessed() -> None:
    """An agent that has the provider echo its guesses learns nothing from where an answer is cut."""
    masks = [StreamMask(each) for each in (b"sk-canary-12345", b"sk-Other/+-6789")]
    for guess in (b"sk-c", b"sk-canary-1", b"sk-d", b"c2stY2", b"sk%2Dcan", b"sk\\u002D", b"no"):
        for mask in masks:
            mask.rest()
        first, second = (mask.feed(b'{"echo": "' + guess) for mask in masks)
        assert first == second
