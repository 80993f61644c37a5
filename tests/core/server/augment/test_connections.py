"""The agent's connection and the model's: slow readers, HTTP/1.0, either side gone in the middle."""

import asyncio
import json
from typing import Any, cast

import httpx2
import pytest

from tests.core.server.augment.harness import (
    EACH_WIRE,
    PATHS,
    STREAMED,
    augmenting,
    model_request,
    sdk,
)
from tests.core.server.augment.scripted_model import (
    STREAM_HEAD,
    BrokenOff,
    Call,
    Refusal,
    ScriptedModel,
    Text,
    chunk,
    events_of,
    path_of,
)
from tests.core.server.gateway.harness import Seen, narrow, read_chunks, read_head, slow_client
from tests.core.server.gateway.test_ending import wait_until_stable
from tests.support.core_harness import PATIENCE
from tests.support.variants import variants

MB = 1024 * 1024


@pytest.mark.parametrize("wire", variants(PATHS))
async def test_an_agent_that_does_not_read_makes_its_model_wait_and_nobody_else(wire: str) -> None:
    """What the model could say before it had to wait is bounded by buffers, not by its answer."""
    times, wrote = 160, 0

    async def endless(seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        nonlocal wrote
        events = events_of(path_of(seen), 0, [Text("x" * 400_000)])
        place = next(n for n, event in enumerate(events) if b"x" * 1000 in event)
        writer.write(STREAM_HEAD)
        for event in [*events[:place], *[events[place]] * times, *events[place + 1 :]]:
            writer.write(chunk(event))
            await writer.drain()
            wrote += len(event)
        writer.write(b"0\r\n\r\n")

    other = ScriptedModel([Call("read_inbox", {"text": "a"})], [Text("Read.")])

    async def answering(seen: Seen, *ends: Any) -> None:
        await (other if b"read it" in seen.body else endless)(seen, *ends)

    async with augmenting(cast("ScriptedModel", answering)) as made:
        gateway: Any = made
        slow = await slow_client(gateway)
        narrow(gateway)
        await slow.send(b"POST", PATHS[wire], body=model_request(wire))
        await made.until(lambda: wrote)
        await wait_until_stable(lambda: wrote)
        assert wrote < 24 * MB
        sides = made.server._server.server_state.connections
        (side,) = [each for each in sides if each.client_is_full]
        assert side.transport.get_write_buffer_size() < MB
        assert (await made.agent(wire, stream=True).ask("read it")).text == "Read."
        await read_head(slow.reader)
        body = b"".join(await read_chunks(slow.reader))
        assert body.count(b"x" * 1000) >= times * 200


@EACH_WIRE
@STREAMED
async def test_http_1_0_gets_a_body_without_chunks_and_its_end(wire: str, stream: bool) -> None:
    """It ends with the connection, so only a reset tells that a stream is not whole."""
    looks = [Text("I look. "), Call("read_inbox", {})]
    model = ScriptedModel(looks, [Text("It says hello.")], looks, BrokenOff([Text("Half of it.")]))

    async def asked() -> asyncio.StreamReader:
        agent, said = await made.client(), model_request(wire, stream=stream)
        start = b"POST /gw/%b%b HTTP/1.0\r\nHost: %b\r\nContent-Length: %d\r\n\r\n%b"
        agent.writer.write(start % (agent.token, PATHS[wire], agent.host, len(said), said))
        await agent.writer.drain()
        return agent.reader

    async with augmenting(model) as made:
        head, _, body = (await (await asked()).read()).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in head.lower()
        assert b"transfer-encoding" not in head.lower()
        assert (b"content-length: %d" % len(body) in head.lower()) is not stream
        if stream:
            lines = [each for each in body.split(b"\n") if each]
            assert [each for each in lines if not each.startswith((b"event: ", b"data: "))] == []
            with pytest.raises(ConnectionResetError):
                await (await asked()).read()
        else:
            json.loads(body)
        assert b"read_inbox" not in body
        assert b"hello." in body
        assert len(await made.runs()) == 1 + stream


@EACH_WIRE
@pytest.mark.parametrize(
    ("stream", "then"),
    [
        (False, BrokenOff([Text("Half of it.")])),
        (True, BrokenOff([Text("Half of it.")])),
        (False, Refusal(529, "overloaded")),
    ],
    ids=["broken whole", "broken stream", "refused"],
)
async def test_what_ran_before_a_bad_answer_is_not_run_again(
    wire: str, stream: bool, then: BrokenOff | Refusal
) -> None:
    """SDKs repeat a whole one by themselves; a stream breaks, and its agent asks again."""
    model = ScriptedModel([Call("read_inbox", {"text": "once"})], then, [Text("Read.")])
    async with augmenting(model) as made:
        agent = made.agent(wire, stream=stream, retries=0 if stream else 2)
        if stream:
            with pytest.raises((httpx2.TransportError, sdk("openai").APIConnectionError)):
                await agent.ask("read it")
            assert (await agent.again()).text == "Read."
        else:
            assert (await agent.ask("read it")).text == "Read."
        assert await made.runs() == [("read-inbox", "completed")]
        assert model.requests[1] == model.requests[2]


@EACH_WIRE
@STREAMED
async def test_an_agent_hanging_up_midway_ends_the_models_answer(wire: str, stream: bool) -> None:
    """Its connection is closed, not kept; what the model called in the rest of it does not run."""
    model = ScriptedModel([Text("At once."), Call("read_inbox", {})])
    model.hold = asyncio.Event()
    async with augmenting(model) as made:
        agent = await made.sent(wire, stream=stream)
        if stream:
            await read_head(agent.reader)
        await model.asked.wait()
        agent.hang_up()
        await made.all_over()
        model.hold.set()
        async with asyncio.timeout(PATIENCE):
            await made.upstream.lost.get()
        assert await made.runs() == []
