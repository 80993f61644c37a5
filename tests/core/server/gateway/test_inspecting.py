"""`[gateway] inspect`: the stream is the same with it and without, and only names of tools are kept."""

import asyncio
import contextlib
import gzip
import json
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aileron_core.app import App, AppOptions
from aileron_core.console_port.view_models import ToolCallsView
from aileron_core.home.layout import Home
from aileron_core.models.format import StreamReader
from aileron_core.server import inspection
from aileron_core.settings import GatewaySettings, Settings
from tests.core.server.gateway.harness import Answering, Client, Gateway, Seen, passing, read_head
from tests.core.server.gateway.test_passing import echo_back, open_tunnel
from tests.support import scripted_answers as scripted
from tests.support.core_harness import PATIENCE, open_session, records

ROOT = Path(__file__).parents[4]
CANARY = "canary-51c7d0"


def event(data: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (data["type"].encode(), json.dumps(data).encode())


def message_stream(*tools: str) -> bytes:
    call = partial(scripted.say_call, arguments={"command": CANARY})
    calls = (call(name, id_=f"t{n}") for n, name in enumerate(tools, 1))
    said = scripted.Said("text", (f"{CANARY} \u00e9\u2028",))
    return scripted.stream("anthropic_messages", scripted.Turn(1, (said, *calls)))


def stream_of_items(*items: dict[str, Any]) -> bytes:
    events: list[dict[str, Any]] = [{"type": "response.created", "response": {"id": "r"}}]
    for n, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": n, "item": item})
        events.append({"type": "response.output_item.done", "output_index": n, "item": item})
    done = {"id": "r", "status": "completed", "output": [*items]}
    events.append({"type": "response.completed", "response": done})
    return b"".join(map(event, events))


SSE = b"Content-Type: text/event-stream; charset=utf-8"
JSON = b"Content-Type: application/json"


def says(pieces: Sequence[bytes], *lines: bytes) -> Answering:
    async def answering(_seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        head = b"\r\n".join([b"HTTP/1.1 200 OK", b"Transfer-Encoding: chunked", *lines])
        writer.write(head + b"\r\n\r\n")
        for piece in pieces:
            writer.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        writer.write(b"0\r\n\r\n")

    return answering


@contextlib.asynccontextmanager
async def inspecting(
    answering: Answering, agent: str = "claude", builtins: str = "instead", *, augment: bool = False
) -> AsyncGenerator[Gateway, None]:
    async with passing(answering, inspect=True) as gateway:
        gateway.session = await gateway.another_session(
            agent=agent, opened_by="launch", builtins=builtins, augment=augment
        )
        yield gateway


def seen_of(gateway: Gateway) -> ToolCallsView:
    found = gateway.app.tool_calls.view(gateway.session_id)
    assert found is not None
    return found


async def until_seen(gateway: Gateway, **expected: Any) -> ToolCallsView:
    async with asyncio.timeout(PATIENCE):
        while any(getattr(seen_of(gateway), name) != each for name, each in expected.items()):
            await asyncio.sleep(0.005)
    return seen_of(gateway)


async def ask_model(
    client: Client, target: bytes = b"/v1/messages?beta=true", method: bytes = b"POST"
) -> tuple[bytes, bytes]:
    body = b'{"model": "m", "secret": "%b"}' % CANARY.encode()
    return await client.ask(method, target, body=body)


async def answers_of(inspects: bool, splits: list[list[bytes]]) -> list[tuple[bytes, bytes]]:
    """Return what a client gets for each way to send the same stream."""
    answers: list[tuple[bytes, bytes]] = []
    async with passing(says([]), inspect=inspects) as gateway:
        for pieces in splits:
            gateway.upstream.answering = says(pieces, SSE)
            answers.append(await gateway.post(b"/v1/messages", body=b"{}"))
        if inspects:
            expected = tuple((name, len(splits)) for name in ("Bash", "Read"))
            await until_seen(gateway, by_name=expected, unread=())
    return answers


async def test_a_stream_split_anywhere_is_the_same_and_read_the_same() -> None:
    """Also byte by byte, in the middle of a letter, of a line end and of a name."""
    stream = message_stream("Bash", "Read")
    splits = [[stream[:n], stream[n:]] for n in range(1, len(stream), 11)]
    splits.append([stream[n : n + 1] for n in range(len(stream))])
    with_it, without = [await answers_of(each, splits) for each in (True, False)]
    assert [body for _, body in with_it] == [body for _, body in without] == [stream] * len(splits)
    assert {head for head, _ in with_it} == {head for head, _ in without}


@pytest.mark.parametrize(
    "body",
    [
        b"data: {broken\n\n" + message_stream("Bash"),
        message_stream("Bash")[:-40] + b"\xff\xfe\n\n",
        b"data: " + b"x" * 300_000,
        b"data: []\n\n",
        b'event: content_block_stop\ndata: {"type": "content_block_stop", "index": 9}\n\n',
    ],
)
async def test_what_is_no_format_passes(body: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG"):
        async with inspecting(says([body[:7], body[7:]], SSE)) as gateway:
            client = await gateway.client()
            assert (await ask_model(client))[1] == body
            await until_seen(gateway, unread=(("error", 1),))
            assert (await ask_model(client))[1] == body, "the connection is as good as before"
    assert CANARY not in caplog.text


async def test_a_call_of_a_tool_that_was_switched_off_marks_the_session() -> None:
    """Once for each tool; what goes through the gate does not."""
    async with inspecting(says([message_stream("mcp__aileron__Read", "WebFetch")], SSE)) as gateway:
        await ask_model(await gateway.client())
        seen = await until_seen(gateway, by_name=(("WebFetch", 1), ("mcp__aileron__Read", 1)))
        assert seen.went_around == ()
        await gateway.app.tool_calls.sweep()
        assert await records(gateway.app, "session.went_around") == []
        gateway.upstream.answering = says([message_stream("Bash", "Bash")], SSE)
        before = gateway.app.clock.now()
        for _ in range(2):
            await ask_model(await gateway.client())
        counts = (("Bash", 4), ("WebFetch", 1), ("mcp__aileron__Read", 1))
        seen = await until_seen(gateway, by_name=counts)
        (around,) = seen.went_around
        assert around.tool == "Bash"
        assert before <= around.at <= gateway.app.clock.now()
        own = gateway.session_id
        (view,) = [each for each in gateway.app.publisher.sessions() if each.session_id == own]
        assert view.went_around == seen.went_around
        await gateway.app.tool_calls.sweep()
        (mark,) = await records(gateway.app, "session.went_around")
        assert (mark["session"], mark["tool"]) == (own, "Bash")
        await gateway.app.session_service.end(own, "a test")
        await gateway.app.tool_calls.sweep()
        (counted,) = await records(gateway.app, "session.calls_counted")
        assert counted["calls"] == dict(counts)
        assert len(await records(gateway.app, "session.went_around")) == 1


async def test_codex_calls_of_every_kind_are_seen() -> None:
    items: tuple[dict[str, Any], ...] = (
        {"type": "function_call", "call_id": "a", "name": "Bash", "namespace": "mcp__aileron"},
        {"type": "function_call", "call_id": "b", "name": "exec_command", "arguments": "{}"},
        {"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": CANARY},
        {"type": "local_shell_call", "call_id": "d", "action": {"command": [CANARY]}},
        {"type": "custom_tool_call", "call_id": "e", "name": "apply_patch", "namespace": "mcp__x"},
    )
    whole = json.dumps({"id": "r", "status": "completed", "output": items}).encode()
    for body, kind in ((stream_of_items(*items), SSE), (whole, JSON)):
        async with inspecting(says([body], kind), "codex") as gateway:
            assert (await ask_model(await gateway.client(), b"/v1/responses"))[1] == body
            around = ("apply_patch", "exec_command", "local_shell_call")
            names = (*around, "mcp__aileron.Bash", "mcp__x.apply_patch")
            seen = await until_seen(gateway, by_name=tuple((name, 1) for name in names))
            assert {each.tool for each in seen.went_around} == {*around}


async def test_calls_of_chat_completions_are_seen_whole_and_streamed() -> None:
    function = {"name": "bash", "arguments": "{}"}
    calls = [{"index": 0, "id": "c", "type": "function", "function": function}]
    choice = {"index": 0, "delta": {"tool_calls": calls}, "finish_reason": None}
    streamed = b"data: %b\n\ndata: [DONE]\n\n" % json.dumps({"choices": [choice]}).encode()
    message = {"role": "assistant", "content": None, "tool_calls": calls}
    whole = json.dumps({"choices": [{"message": message, "finish_reason": "tool_calls"}]}).encode()
    async with inspecting(says([streamed], SSE), "opencode", "") as gateway:
        await ask_model(await gateway.client(), b"/v1/chat/completions")
        gateway.upstream.answering = says([whole], JSON)
        await ask_model(await gateway.client(), b"/v1/chat/completions")
        seen = await until_seen(gateway, by_name=(("bash", 2),))
        assert [each.tool for each in seen.went_around] == ["bash"]


async def test_an_answer_that_is_not_read_is_counted_with_the_reason() -> None:
    packed = gzip.compress(message_stream("Bash"))
    async with inspecting(says([packed], SSE, b"Content-Encoding: gzip")) as gateway:
        client = await gateway.client()
        assert (await ask_model(client))[1] == packed
        gateway.upstream.answering = says([b"data: {}\n\n"], SSE)
        await ask_model(client, b"/v1beta/models/g:streamGenerateContent?alt=sse")
        gateway.upstream.answering = says([message_stream("Bash")])
        await ask_model(client)
        await ask_model(client, b"/v1/models", b"GET")
        await ask_model(client, b"/v1/messages/count_tokens")
        assert (await until_seen(gateway, unread=(("compressed", 1), ("format", 2)))).by_name == ()


@pytest.mark.parametrize("augment", [False, True])
async def test_a_websocket_is_counted_as_not_read(augment: bool) -> None:
    """But in augment mode, where nothing is inspected: nobody knows what the tools of such a program do."""
    async with inspecting(echo_back, "codex", augment=augment) as gateway:
        client = await open_tunnel(gateway)
        if augment:
            assert seen_of(gateway) == ToolCallsView()
        else:
            await until_seen(gateway, unread=(("websocket", 1),))
        client.writer.write(b"\x81\x05again")
        assert await client.reader.readexactly(7) == b"\x81\x05again"


@pytest.fixture
def go_on(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    event, feed = threading.Event(), StreamReader.feed

    def slow(self: StreamReader, data: bytes) -> Any:
        event.wait(PATIENCE)
        return feed(self, data)

    monkeypatch.setattr(StreamReader, "feed", slow)
    yield event
    event.set()


async def all_read(gateway: Gateway) -> None:
    inspector: Any = gateway.handler._inspector
    async with asyncio.timeout(PATIENCE):
        while inspector._shares._used:
            await asyncio.sleep(0.005)


async def test_a_reader_that_is_slow_delays_nothing(go_on: threading.Event) -> None:
    stream = message_stream("Bash")
    async with inspecting(says([stream[:50], stream[50:]], SSE)) as gateway:
        for _ in range(3):
            assert (await ask_model(await gateway.client()))[1] == stream
        assert seen_of(gateway) == ToolCallsView()
        go_on.set()
        await until_seen(gateway, by_name=(("Bash", 3),))


async def test_reading_is_bounded(go_on: threading.Event, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = message_stream("Bash")
    monkeypatch.setattr(inspection, "MAX_BYTES", 2 * len(stream) + 20)
    async with inspecting(says([stream], SSE)) as gateway:
        for _ in range(2):
            assert (await ask_model(await gateway.client()))[1] == stream
        await until_seen(gateway, unread=(("busy", 1),))
        other = await gateway.another_session()
        await ask_model(await gateway.client(other.gateway_token))
        go_on.set()
        await until_seen(gateway, by_name=(("Bash", 1),))
        await all_read(gateway)
        await ask_model(await gateway.client())
        await until_seen(gateway, by_name=(("Bash", 2),), unread=(("busy", 1),))
        seen = gateway.app.tool_calls.view(other.session.session_id)
        assert (seen.by_name, seen.unread) == ((("Bash", 1),), ())


@pytest.mark.parametrize("method", ["begin", "take", "end", "names_in"])
async def test_whatever_fails_in_it_the_stream_goes_on(
    method: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fails(*_: object) -> Any:
        raise RuntimeError(CANARY)

    monkeypatch.setattr(inspection.AnswerReading, method, fails)
    stream = message_stream("Bash")
    async with inspecting(says([stream[:9], stream[9:]], SSE)) as gateway:
        client = await gateway.client()
        for _ in range(2):
            assert (await ask_model(client))[1] == stream
        async with asyncio.timeout(PATIENCE):
            while caplog.text.count("failed with RuntimeError") < 2:
                await asyncio.sleep(0.005)
    assert CANARY not in caplog.text


async def test_a_client_that_hangs_up_leaves_nothing_unread_and_calls_so_far_count() -> None:
    stream = message_stream("Bash")
    began = stream[: stream.index(b"input_json_delta")]

    async def answering(_seen: Seen, reader: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n" + SSE + b"\r\n\r\n")
        writer.write(b"%x\r\n%b\r\n" % (len(began), began))
        await reader.read()

    async with inspecting(answering) as gateway:
        client = await gateway.asking(b"POST", b"/v1/messages", body=b"{}")
        await read_head(client.reader)
        await until_seen(gateway, by_name=(("Bash", 1),))
        client.hang_up()
        await gateway.until_traffic(lambda view: not view.in_flight)
        await all_read(gateway)
        assert seen_of(gateway).unread == ()


async def test_nothing_of_arguments_or_text_is_kept(caplog: pytest.LogCaptureFixture) -> None:
    name = f"Bash {CANARY}!"
    with caplog.at_level("DEBUG"):
        async with inspecting(says([message_stream("Bash", name)], SSE)) as gateway:
            assert CANARY.encode() in (await ask_model(await gateway.client()))[1]
            await until_seen(gateway, by_name=(("Bash", 1),), others=1)
            await gateway.app.traffic.sweep(everything=True)
            await gateway.app.tool_calls.sweep(everything=True)
            files = gateway.app.home.path.rglob("*")
            kept = [each.read_bytes() for each in files if each.is_file()]
            assert b"session.went_around" in b"".join(kept)
            assert b"session.calls_counted" in b"".join(kept)
            assert CANARY.encode() not in b"".join(kept)
            assert CANARY not in repr(gateway.app.publisher.sessions())
    assert CANARY not in caplog.text


async def test_a_mark_outlives_the_console(tmp_path: Path) -> None:
    home = Home(tmp_path / "home")
    home.path.mkdir(mode=0o700)
    settings = Settings(gateway=GatewaySettings(inspect=True))

    terms = {"opened_by": "launch", "builtins": "instead"}
    async with App.open(home, AppOptions(settings=settings)) as app:
        marked = (await open_session(app, **terms)).session.session_id
        other = (await open_session(app, opened_by="launch")).session.session_id
        app.tool_calls.add(marked, "Read")
        app.tool_calls.add(other, "Read")
        assert app.tool_calls.view(other) == ToolCallsView(by_name=(("Read", 1),))
        first = app.tool_calls.view(marked)
    async with App.open(home, AppOptions()) as app:
        assert app.tool_calls.view(other) is None
        again = app.tool_calls.view(marked)
        assert [each.tool for each in again.went_around] == ["Read"]
        assert abs(again.went_around[0].at - first.went_around[0].at) < 0.01
        assert again == replace(first, by_name=(), went_around=again.went_around)
        app.tool_calls.add(marked, "Read")
        await app.tool_calls.sweep()
        assert len(await records(app, "session.went_around")) == 1


def test_a_gateway_imports_only_what_its_sessions_need() -> None:
    """Nothing of inspection where it does not inspect, and nothing of augment mode without a session in it."""
    script = (
        "import sys, asyncio\n"
        "import aileron_tui.cli.runtime, aileron_tui.cli.serving, aileron_mcp.server\n"
        "from tests.core.server.gateway.harness import passing\n"
        "async def ask_model(inspects):\n"
        "    async with passing(inspect=inspects) as gateway:\n"
        "        assert (await gateway.post(b'/v1/messages', body=b'{}'))[1] == b'ok'\n"
        "rooms = ('models', 'server.augment', 'server.inspection')\n"
        "for inspects in (False, True):\n"
        "    asyncio.run(ask_model(inspects))\n"
        "    print([each for each in rooms if f'aileron_core.{each}' in sys.modules])\n"
    )
    done = subprocess.check_output([sys.executable, "-c", script], cwd=ROOT, text=True)
    assert done == "[]\n['models', 'server.inspection']\n"
