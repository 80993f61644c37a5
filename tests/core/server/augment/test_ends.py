"""How an answer ends early: a hang-up, a slow reader, limits, refusals; what ran never runs again, and who asks is told of it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from aileron_core.console_port.intents import EndSession, SetPause, StopEverything
from aileron_core.models.sse import EventSplitter
from aileron_core.sessions import session_table
from tests.core.server.augment.harness import (
    EACH_WIRE,
    LAUNCHED,
    PATHS,
    STREAMED,
    WIRE_AND_STREAM,
    Augmented,
    StreamedError,
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
from tests.core.server.gateway.harness import (
    Client,
    Seen,
    narrow,
    read_chunk,
    read_chunks,
    read_head,
    slow_client,
)
from tests.core.server.gateway.test_ending import MB, wait_until_stable
from tests.core.server.gateway.test_model_keys import keyed
from tests.support.core_harness import PATIENCE
from tests.support.variants import variants


def errors() -> tuple[type[Exception], ...]:
    return (sdk("anthropic").APIError, sdk("openai").APIError, StreamedError)


async def until_chunk(agent: Client, *, begins: bytes) -> None:
    while not (await read_chunk(agent.reader)).startswith(begins):
        pass


@EACH_WIRE
@pytest.mark.parametrize("paused", [False, True])
async def test_a_stream_is_kept_alive_while_a_person_thinks(wire: str, paused: bool) -> None:
    call = Call("read_inbox" if paused else "send_draft", {"text": "x"})
    model = ScriptedModel([call], [Text("Done.")])
    async with augmenting(model) as made:
        made.limit(keep_alive_seconds=0.01)
        if paused:
            await made.app.console.carry_out(SetPause(paused=True))
        agent = await made.sent(wire)
        await read_head(agent.reader)
        sign = b"event: ping" if wire == "messages" else b": keep-alive\n\n"
        await until_chunk(agent, begins=sign)
        await until_chunk(agent, begins=sign)
        assert len(model.requests) == 1
        if paused:
            assert await made.runs() == []
            await made.app.console.carry_out(SetPause(paused=False))
        else:
            await made.approve()
        while b'"Do' not in await read_chunk(agent.reader):
            pass
        assert await made.runs() == [(call.name.replace("_", "-"), "completed")]


@WIRE_AND_STREAM
async def test_a_refusal_passes_as_it_is_or_as_an_event(wire: str, stream: bool) -> None:
    """The stream has begun, so the status can say nothing any more."""
    refusal, looks = Refusal(529, "overloaded"), [Text("I look."), Call("read_inbox", {})]
    async with augmenting(ScriptedModel(refusal, looks, refusal)) as made:
        kinds = (sdk("anthropic").APIStatusError, sdk("openai").APIStatusError)
        with pytest.raises(kinds) as caught:
            await made.agent(wire, stream=stream).ask("read it")
        assert caught.value.status_code == 529
        with pytest.raises(errors(), match=r"status 529\. overloaded"):
            await made.agent(wire, stream=True).ask("read it")


@WIRE_AND_STREAM
@pytest.mark.parametrize(
    ("limits", "answers", "said"),
    [
        ({"turns": 2}, 2, "asked 2 times"),
        ({"calls": 1}, 2, "more than 1 calls"),
        ({"bytes": 2000}, 9, "over 2000 bytes"),
    ],
)
async def test_each_bound_ends_in_an_error_of_the_providers_shape(
    wire: str, stream: bool, limits: dict[str, int], answers: int, said: str
) -> None:
    model = ScriptedModel(*([Call("read_inbox", {"text": "again"})] for _ in range(answers)))
    async with augmenting(model) as made:
        made.limit(**limits)
        with pytest.raises(errors(), match=said) as caught:
            await made.agent(wire, stream=stream, retries=2).ask("go")
        assert getattr(caught.value, "status_code", 200) == (200 if stream else 400)
        assert len(await made.runs()) < 9
        assert len(model.requests) <= (9 if "bytes" in limits else 2)


@WIRE_AND_STREAM
async def test_the_bound_of_time_ends_a_wait_for_a_person_too(wire: str, stream: bool) -> None:
    """What it asked for stays with the person, and is told to the model that is asked again."""
    model = ScriptedModel([Call("send_draft", {"text": "x"})], [Text("It waits.")])
    async with augmenting(model) as made:
        made.limit(seconds=0.5)
        agent = made.agent(wire, stream=stream, retries=2)
        with pytest.raises(errors(), match=r"longer than 0\.5 seconds"):
            await agent.ask("send it")
        assert len(model.requests) == 1
        made.limit(seconds=60)
        assert (await agent.again()).text == "It waits."
        assert await made.runs() == [("send-draft", "pending")]


@EACH_WIRE
@pytest.mark.parametrize("stop", [False, True], ids=["session ends", "everything stops"])
async def test_the_end_of_a_session_cuts_its_answer(wire: str, stop: bool) -> None:
    """As in the normal mode, and ctrl+k ends every session; nothing is kept of it, and nothing runs."""
    model = ScriptedModel([Call("send_draft", {"text": "x"})])
    async with augmenting(model) as made:
        agent = await made.sent(wire, stream=stop)
        await made.waiting()
        intent = StopEverything() if stop else EndSession(session_id=made.session_id)
        await made.app.console.carry_out(intent)
        with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
            await agent.answer()
        await made.until(lambda: not made.room.session_ids)
        assert len(model.requests) == 1
        assert await made.runs() == [("send-draft", "denied" if stop else "pending")]
        head, _ = await made.asked(wire)
        assert head.startswith(b"HTTP/1.1 401 ")
        assert len(model.requests) == 1


@EACH_WIRE
async def test_a_call_that_was_held_too_long_in_a_pause_is_refused_to_the_model(wire: str) -> None:
    model = ScriptedModel([Call("read_inbox", {"text": "x"})], [Text("Later then.")])
    async with augmenting(model) as made:
        made.app.pause.hold_seconds = 0.01
        await made.app.console.carry_out(SetPause(paused=True))
        assert (await made.agent(wire, stream=True).ask("read it")).text == "Later then."
        assert "A person has put all calls on hold" in json.dumps(model.requests[1])
        assert await made.runs() == []


@WIRE_AND_STREAM
@pytest.mark.parametrize("required", [False, True], ids=["key", "required"])
async def test_a_vault_locked_midway_stops_the_model(
    wire: str, stream: bool, required: bool, tmp_path: Path
) -> None:
    """Said in the provider's shape; after the unlocking, an equal request goes on from there."""
    status = Call("check_action_status", {"approval_id": "act-20260101T000000-0000000000000000"})
    model = ScriptedModel([status], [Text("Unlocked.")])

    async def locking(*given: Any) -> None:
        if not model.requests:
            await made.lock()
        await model(*given)

    async with keyed(tmp_path, locking, require_unlocked=required) as made:
        both = ("anthropic", "openai")
        made.opened = await made.gateway.another_session(**LAUNCHED, key_providers=both)
        agent = await made.gateway.client(made.opened.gateway_token)
        provider = "anthropic" if wire == "messages" else "openai"
        line = made.line(provider, b"sk-own" if required else None)
        body = model_request(wire, stream=stream)
        head, answer = await agent.ask(b"POST", PATHS[wire], line, body=body)
        assert head.startswith(b"HTTP/1.1 %d " % (200 if stream else 503))
        error = next(each for each in answer.split(b"\n") if b"The vault is locked" in each)
        told = json.loads(error.removeprefix(b"data: "))
        assert "The vault is locked" in told.get("error", told)["message"]
        assert (len(model.requests), made.waits) == (1, True)
        await made.unlock()
        _, answer = await agent.ask(b"POST", PATHS[wire], line, body=body)
        assert b"cked." in answer
        assert "This session has no approval" in json.dumps(model.requests[1])


WORD = b"0123456789abcdef" * 2
ASKS = b"Aileron-Calls: %b\r\nConnection: keep-alive, aileron-calls" % WORD


def told(answer: bytes) -> list[tuple[str, str]]:
    mark = b": %b " % WORD
    raw = [frame.raw for frame in EventSplitter(1 << 20).feed(answer)]
    said = [json.loads(each[len(mark) :]) for each in raw if each.startswith(mark)]
    return [(each["action"], each["status"]) for each in said]


def pending_count(made: Augmented) -> int:
    return sum(view.state == "pending" for view in made.app.publisher.approvals())


async def test_calls_are_told_to_who_asks_for_it_and_to_nobody_else() -> None:
    """Longer than any other call is held; and the model's server learns nothing of the word."""
    model = ScriptedModel(
        [Call("read_inbox", {"text": "a"})], [Call("send_draft", {"text": "b"})], [Text("Sent.")]
    )
    async with augmenting(model, hold_seconds=0.0) as made:
        asking = asyncio.create_task(made.asked("chat", ASKS))
        await made.approve()
        _, answer = await asking
        assert told(answer) == [
            ("read-inbox", "unknown"), ("read-inbox", "completed"),
            ("send-draft", "unknown"), ("send-draft", "pending_approval"), ("send-draft", "completed"),
        ]  # fmt: skip
        assert len(model.requests) == 3
        assert not [seen for seen in model.seen if b"aileron-calls" in seen.head.lower()]
        model.answers += [[Call("read_inbox", {"text": "c"})], [Text("Read.")]]
        _, answer = await made.asked("chat", user="u")
        assert b"run-" not in answer


async def test_what_is_told_is_withdrawn_once_nobody_reads_it_or_the_console_stops() -> None:
    """After its next start nobody would wait for it."""
    calls = ([Call("send_draft", {"text": text})] for text in ("one", "two", "three"))
    model = ScriptedModel(*calls, [Text("It was withdrawn.")])
    async with augmenting(model) as made:
        other = await made.sent("chat")
        await made.waiting()
        agent = await made.sent("chat", ASKS)
        await read_head(agent.reader)
        await until_chunk(agent, begins=b": %b {" % WORD)
        await made.until(lambda: pending_count(made) == 2)
        agent.hang_up()
        await made.until(lambda: pending_count(made) == 1)
        other.hang_up()
        pending, withdrawn = ("send-draft", "pending"), ("send-draft", "withdrawn")
        assert sorted(await made.runs()) == [pending, withdrawn]
        await made.sent("chat", ASKS)
        await made.until(lambda: pending_count(made) == 2)
        made.agents.draining.set()
        await made.until(lambda: pending_count(made) == 1)
        assert sorted(await made.runs()) == [pending, withdrawn, withdrawn]


async def test_a_call_that_comes_to_wait_after_its_session_has_ended_is_withdrawn() -> None:
    """A client that is ended in that moment leaves nothing to approve."""
    async with augmenting(ScriptedModel([Call("send_draft", {"text": "x"})])) as made:
        run, may_end = made.agents.run, asyncio.Event()

        async def slow(*given: Any, **named: Any) -> Any:
            answer = await run(*given, **named)
            await may_end.wait()
            return answer

        made.agents.run = slow
        agent = await made.sent("chat", ASKS)
        await made.waiting()
        agent.hang_up()
        await made.app.console.carry_out(EndSession(session_id=made.session_id))
        may_end.set()
        await made.until(lambda: pending_count(made) == 0)
        assert await made.runs() == [("send-draft", "withdrawn")]


async def test_a_session_with_an_address_of_its_own_goes_nowhere_else() -> None:
    """As an SDK has it: OpenAI's base URL ends with the version. Nor does it after a restart."""
    model = ScriptedModel(Refusal(404, "none"), Refusal(404, "none"))
    async with augmenting(model) as made:
        base = f"http://127.0.0.1:{made.upstream.port}/own/v9/"
        made.session = await made.another_session(base_url=base)
        for wire in ("chat", "messages"):
            await made.asked(wire)
        lines = [seen.line.split()[1] for seen in model.seen]
        assert lines == [b"/own/v9/chat/completions", b"/own/v9/v1/messages"]
        found = await made.app.database.read(lambda c: session_table.open_sessions(c, 0.0))
        assert base in [each.terms.base_url for each in found]


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

    async with augmenting(answering) as made:
        slow = await slow_client(made)
        narrow(made)
        await slow.send(b"POST", PATHS[wire], body=model_request(wire))
        await made.until(lambda: wrote)
        await wait_until_stable(lambda: wrote)
        assert wrote < 24 * MB
        sides = made.server._server.server_state.connections
        (side,) = [each for each in sides if each.client_is_full]
        assert side.transport.get_write_buffer_size() < MB
        assert (await made.agent(wire, stream=True).ask("read it")).text == "Read."
        await read_head(slow.reader)
        assert b"".join(await read_chunks(slow.reader)).count(b"x" * 1000) >= times * 200


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
async def test_text_reaches_an_agent_before_the_rest_and_its_hang_up_midway_ends_the_models_answer(
    wire: str, stream: bool
) -> None:
    """Its connection is closed, not kept; what the model called in the rest of it does not run."""
    model = ScriptedModel([Text("At once."), Call("read_inbox", {})])
    model.hold = asyncio.Event()
    async with augmenting(model) as made:
        agent = await made.sent(wire, stream=stream)
        if stream:
            await read_head(agent.reader)
            while b"At o" not in await read_chunk(agent.reader):
                pass
        await model.asked.wait()
        agent.hang_up()
        await made.all_over()
        model.hold.set()
        async with asyncio.timeout(PATIENCE):
            await made.upstream.lost.get()
        assert await made.runs() == []
