"""How an answer ends early: an agent that hangs up, limits, refusals; what ran never runs again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from aileron_core.console_port.intents import EndSession, SetPause, StopEverything
from tests.core.server.augment.harness import (
    EACH_WIRE,
    LAUNCHED,
    PATHS,
    WIRE_AND_STREAM,
    StreamedError,
    augmenting,
    model_request,
    sdk,
)
from tests.core.server.augment.scripted_model import Call, Refusal, ScriptedModel, Text
from tests.core.server.gateway.harness import Client, read_chunk, read_head
from tests.core.server.gateway.test_model_keys import keyed
from tests.support.core_harness import records


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


@EACH_WIRE
async def test_text_reaches_the_agent_before_the_model_has_said_the_rest(wire: str) -> None:
    model = ScriptedModel([Text("At once.")])
    model.hold = asyncio.Event()
    async with augmenting(model) as made:
        agent = await made.sent(wire)
        await read_head(agent.reader)
        while b"At o" not in await read_chunk(agent.reader):
            pass
        assert not model.hold.is_set()
        model.hold.set()
        while await read_chunk(agent.reader):
            pass


async def test_a_run_that_began_before_the_agent_hung_up_is_told_and_not_repeated() -> None:
    """It takes as long as it takes; an equal request waits for its end."""
    model = ScriptedModel([Call("read_inbox", {"text": "once"})], [Text("Read.")])
    async with augmenting(model) as made:
        begun, may_end = made.hold_runs()
        agent = await made.sent()
        await begun.acquire()
        agent.hang_up()
        await made.all_over()
        again = asyncio.create_task(made.agent("messages", stream=True).ask("send it"))
        await made.until(lambda: made.handler._open)
        may_end.set()
        assert (await again).text == "Read."
        assert await made.runs() == [("read-inbox", "completed")]
        assert "once" in json.dumps(model.requests[1]["messages"][2])


async def test_an_agent_that_hangs_up_ends_the_loop_and_an_equal_request_goes_on() -> None:
    """The call is still with the person; it is not made a second time."""
    model = ScriptedModel([Call("send_draft", {"text": "x"})])
    async with augmenting(model) as made:
        agent = await made.sent()
        await read_head(agent.reader)
        view = await made.waiting()
        agent.hang_up()
        await made.all_over()
        assert len(model.requests) == 1
        model.answers.append([Text("It waits.")])
        _, body = await made.asked()
        assert b"aits." in body
        told = model.requests[1]["messages"]
        assert [each["role"] for each in told] == ["user", "assistant", "user"]
        assert view.approval_id in json.dumps(told[2])
        assert await made.runs() == [("send-draft", "pending")]


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


async def test_each_request_to_the_model_is_on_record() -> None:
    model = ScriptedModel([Call("read_inbox", {"text": "x"})], [Text("Read.")])
    async with augmenting(model) as made:
        await made.agent("messages", stream=True).ask("read it")
        await made.app.traffic.sweep(everything=True)
        kept = await records(made.app, "gateway.passed")
        passed = [row for body in kept for row in body["requests"]]
        assert [row[1:5] for row in passed] == [["anthropic", "POST", "/v1/messages", 200]] * 2
        assert sorted(row[5] for row in passed) == sorted(len(seen.body) for seen in model.seen)
        opened = (await records(made.app, "session.opened"))[0]
        assert opened["augment"] is True
        assert opened["containment"].startswith("Not contained: opened in augment mode")
