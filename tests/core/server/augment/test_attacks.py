"""What an attacker tried: making what ran forgotten or repeated, answers that belong to nobody, names of ours."""

import asyncio
import gc
import json
import weakref
from typing import Any, cast

import pytest

from aileron_core.console_port.intents import EndSession
from aileron_core.errors import StorageUnavailable
from aileron_core.server.augment import exchange as exchange_module
from aileron_core.server.augment import limits as limits_module
from aileron_core.server.augment import plans
from aileron_core.server.augment import room as room_module
from aileron_core.server.augment.conversations import Conversations
from aileron_core.server.augment.limits import AugmentLimits
from aileron_core.server.augment.room import AugmentRoom
from aileron_core.server.augment.views import ClientAnswer
from aileron_core.server.shares import Shares
from tests.core.server.augment.harness import Augmented, augmenting
from tests.core.server.augment.scripted_model import Call, Refusal, ScriptedModel, Text
from tests.core.server.augment.test_ends import MESSAGES, PATHS, model_request, read_head
from tests.core.server.gateway.harness import writes
from tests.support.core_harness import records

LARGE = "x" * 12_000_000
OWN = [{"name": "own", "description": "o", "input_schema": {"type": "object"}}]


async def all_over(made: Augmented) -> None:
    """Wait until no request is open any more."""
    await made.until(lambda: not made.handler._open or None)


def conversations(made: Augmented) -> Conversations:
    """Return what is kept of the session's conversations in Messages."""
    room = cast("AugmentRoom", made.handler.augment_room)
    known = room._known
    return known[made.session.session.session_id][b"/v1/messages"]


def shape(messages: list[dict[str, Any]]) -> list[list[str]]:
    """Return who said what kinds of things."""
    return [
        [
            each["role"],
            *(
                [block["type"] for block in each["content"]]
                if isinstance(each["content"], list)
                else ["text"]
            ),
        ]
        for each in messages
    ]


RAN = [["user", "text"], ["assistant", "tool_use"], ["user", "tool_result"]]


async def test_what_ran_is_known_when_the_agent_hangs_up_on_its_answer() -> None:
    """Also where the model's last answer has calls of both: they have no results."""
    last = [Text(LARGE), Call("own", {}), Call("read_inbox", {"text": "twice"})]
    model = ScriptedModel([Call("read_inbox", {"text": "once"})], last, [Text("again")])
    async with augmenting(model) as made:
        body = model_request(stream=False, tools=OWN)
        gone = await made.client()
        await gone.send(b"POST", b"/v1/messages", body=body)
        await read_head(gone.reader)
        gone.hang_up()
        await all_over(made)
        later = await made.client()
        await later.ask(b"POST", b"/v1/messages", body=body)
        told = model.requests[2]["messages"]
        assert shape(told)[:3] == RAN
        assert told[2]["content"][0]["type"] == "tool_result"
        assert "own" not in json.dumps(told)
        assert "twice" in json.dumps(told)


async def test_what_one_format_hides_is_not_sent_in_another() -> None:
    """A fallback to another provider gets the agent's own history."""
    model = ScriptedModel(
        [Call("read_inbox", {"text": "once"})], [Text("Read.")], [Text("B.")],
        [Call("read_inbox", {"text": "twice"})], Refusal(529, "overloaded"), [Text("C.")],
    )  # fmt: skip
    async with augmenting(model) as made:
        await made.agent("messages").ask("read it")
        chat = made.agent("chat")
        chat.history = [
            {"role": "user", "content": "read it"},
            {"role": "assistant", "content": "Read."},
        ]
        await chat.ask("and now?")
        assert model.requests[2]["messages"][:2] == chat.history[:2]
        with pytest.raises(Exception, match="overloaded"):
            await made.agent("messages").ask("read more")
        await made.agent("chat").ask("read more")
        assert model.requests[5]["messages"] == [{"role": "user", "content": "read more"}]


async def test_a_request_that_is_refused_loses_nothing_of_what_ran() -> None:
    model = ScriptedModel(
        [Call("send_draft", {"text": "one"})], [Text("passed")], [Text("It waits.")]
    )
    async with augmenting(model) as made:
        gone = await made.client()
        await gone.send(b"POST", b"/v1/messages", body=model_request())
        await read_head(gone.reader)
        await made.waiting()
        gone.hang_up()
        await all_over(made)
        later = await made.client()
        await later.ask(b"POST", b"/v1/messages", body=model_request(tools=[{"name": 5}]))
        await later.ask(b"POST", b"/v1/messages", body=model_request())
        assert [len(each["messages"]) for each in model.requests] == [1, 1, 3]


async def test_nothing_is_asked_of_a_model_that_cannot_be_put_on_record() -> None:
    model = ScriptedModel([Call("read_inbox", {"text": "once"})], [Text("Read.")])
    async with augmenting(model) as made:
        run = made.agents.run

        async def filled(*args: Any, **more: Any) -> Any:
            made.app.traffic.is_full = lambda session_id: True
            return await run(*args, **more)

        made.agents.run = filled
        with pytest.raises(Exception, match="cannot write its audit record"):
            await made.agent("messages").ask("read it")
        assert len(model.requests) == 1


@pytest.mark.parametrize("wire", ["messages", "chat", "responses"])
async def test_no_tool_has_the_name_of_another(wire: str) -> None:
    """What is no function keeps its name, so ours takes another."""
    taken = "aileron_read_inbox"
    tools: list[dict[str, Any]] = {
        "messages": [{"type": "bash_20250124", "name": taken}, {"name": "read_inbox", "input_schema": {}}],
        "chat": [
            {"type": "custom", "custom": {"name": taken}},
            {"type": "function", "function": {"name": "read_inbox"}},
        ],
        "responses": [
            {"type": "custom", "name": taken},
            {"type": "function", "name": "read_inbox", "parameters": {}},
        ],
    }[wire]  # fmt: skip
    model = ScriptedModel([Text("Nothing.")])
    async with augmenting(model) as made:
        await made.post(PATHS[wire], body=model_request(wire, tools=tools))
    names = [
        each.get("name") or (each.get("function") or each["custom"])["name"]
        for each in model.requests[0]["tools"]
    ]
    assert len(names) == len(set(names))
    assert names[:2] in ([taken, "read_inbox"], [f"agent_{taken}", "read_inbox"])


async def test_a_model_that_does_not_stream_as_asked_shows_no_call_of_ours() -> None:
    model = ScriptedModel(Refusal(200, "no stream"))
    async with augmenting(model) as made:
        with pytest.raises(Exception, match="did not stream its answer"):
            await made.agent("messages", stream=True).ask("read it")


@pytest.mark.parametrize(
    "more",
    [
        {"more": [0] * 1_000_001},
        {"messages": [{}] * 20_001},
        {"messages": [{"role": "user", "content": [{}] * 20_001}]},
        {"tools": [{"name": "aileron_x"}] * 20_001},
        {"messages": [{}] * 20_001, "thread": {"type": "continue", "previous_message_id": "msg_0"}},
    ],
)
async def test_a_request_of_too_many_values_passes_as_it_is(more: dict[str, Any]) -> None:
    """Reading it would hold up everything else."""
    model = ScriptedModel([Text("Hi.")], [Text("Passed.")])
    async with augmenting(model) as made:
        agent = await made.client()
        await agent.ask(b"POST", b"/v1/messages", body=model_request(thread={"type": "create"}))
        body = json.dumps({"model": "m", "messages": MESSAGES, **more}).encode()
        await agent.ask(b"POST", b"/v1/messages", body=body)
    assert model.seen[1].body == body


async def test_a_request_passes_only_once_it_is_on_record_that_it_does(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = ScriptedModel([Text("Passed.")])
    forced = model_request(tool_choice={"type": "any"})
    async with augmenting(model) as made:

        async def unavailable(*_: Any) -> None:
            raise StorageUnavailable("The disk is full.")

        agent = await made.client()
        with monkeypatch.context() as patch:
            patch.setattr(made.app.session_service, "record", unavailable)
            head, _ = await agent.ask(b"POST", b"/v1/messages", body=forced)
        assert head.startswith(b"HTTP/1.1 500 ")
        assert model.requests == []
        await agent.ask(b"POST", b"/v1/messages", body=forced)
        assert len(await records(made.app, "session.not_augmented")) == 1


async def test_no_call_begins_once_the_agent_has_hung_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the moment in which the answer with it has come to its end: it would be kept for nobody."""
    model = ScriptedModel([Call("read_inbox", {"text": "x"})])
    async with augmenting(model) as made:

        def read_turn(*given: Any) -> Any:
            for each in made.handler._open.values():
                for exchange in each:
                    cast("Any", exchange)._client.client_gone()
            return original(*given)

        async def run(*_: Any, **__: Any) -> None:
            called.append(1)

        called: list[int] = []
        original = exchange_module.read_turn
        monkeypatch.setattr(exchange_module, "read_turn", read_turn)
        monkeypatch.setattr(made.agents, "run", run)
        agent = await made.client()
        await agent.send(b"POST", b"/v1/messages", body=model_request())
        await model.asked.wait()
        await all_over(made)
    assert called == []


async def test_bodies_that_wait_are_bounded_over_all_requests() -> None:
    model = ScriptedModel([Text("Late.")])
    async with augmenting(model) as made:
        room = cast("AugmentRoom", made.handler.augment_room)
        room._buffered = Shares(2000)
        head, _ = await made.post(b"/v1/messages", body=model_request() + b" " * 1000)
        assert head.startswith(b"HTTP/1.1 429 ")
        assert model.requests == []


async def test_a_session_with_unfinished_bodies_has_no_other_one_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Five of them filled the memory that all sessions share, and another one got 429 for 96 seconds."""
    limits = AugmentLimits(buffered_bytes=1_000_000)
    monkeypatch.setattr(room_module, "AugmentLimits", lambda: limits)
    model = ScriptedModel([Text("Heard.")])
    async with augmenting(model) as made:
        for _ in range(5):
            greedy = await made.client()
            await greedy.send(b"POST", b"/v1/messages", b"Content-Length: 9999999")
            greedy.writer.write(b" " * 210_000)
        head = b""
        while not head.startswith(b"HTTP/1.1 429 "):  # so it has all that it can have
            head, _ = await (await made.client()).ask(b"POST", b"/v1/messages", body=b" " * 210_000)
        made.session = await made.another_session()
        large = model_request() + b" " * 300_000
        head, _ = await (await made.client()).ask(b"POST", b"/v1/messages", body=large)
        assert head.startswith(b"HTTP/1.1 200 ")
    assert len(model.requests) == 1


async def test_bodies_that_stop_end_and_are_kept_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its memory is others' too; the agent is told why."""
    monkeypatch.setattr(exchange_module, "PROGRESS_SECONDS", 0.3, raising=False)
    async with augmenting(ScriptedModel()) as made, asyncio.timeout(20):
        agent = await made.client()
        await agent.send(b"POST", b"/v1/messages", b"Content-Length: 9999")
        agent.writer.write(b" " * 100)
        head, body = await agent.answer()
        assert head.startswith(b"HTTP/1.1 504 ")
        assert b"Nothing more of the request arrived" in body
        room = cast("AugmentRoom", made.handler.augment_room)
        assert not room._buffered.held(made.session.session.session_id)


@pytest.mark.parametrize("stream", [False, True])
async def test_the_answers_of_models_are_bounded_over_all_requests_too(stream: bool) -> None:
    """Whole answers, and what is put together of streams, are in memory until their end."""
    model = ScriptedModel([Text("x" * 9000)], [Text("Fits.")])
    async with augmenting(model) as made:
        room = cast("AugmentRoom", made.handler.augment_room)
        room._buffered = Shares(18000)
        with pytest.raises(Exception, match="too many large requests and answers"):
            await made.agent("messages", stream=stream).ask("go")
        await all_over(made)
        assert (await made.agent("messages", stream=stream).ask("go")).text == "Fits."


async def test_other_requests_go_on_while_a_long_answer_is_read() -> None:
    """It comes in a few large pieces, with an event in each byte of them."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n"
    async with augmenting(writes(head + b"\n" * 100_000)) as made:
        agent = await made.client()
        await agent.send(b"POST", b"/v1/messages", body=model_request())
        await read_head(agent.reader)
        turns = 0
        while made.handler._open:
            turns += 1
            await asyncio.sleep(0)
    assert turns > 100_000 / 1000


async def test_no_request_of_the_loop_repeats_a_key_of_the_agents() -> None:
    """Who honours it would give the first answer again, and the call would run again."""
    model = ScriptedModel([Call("read_inbox", {"text": "x"})], [Text("Read.")])
    async with augmenting(model) as made:
        await made.post(b"/v1/messages", b"Idempotency-Key: 4711", body=model_request())
    assert len(model.seen) == 2
    assert not any(b"4711" in seen.head for seen in model.seen)


async def test_a_hang_up_while_earlier_calls_are_awaited_loses_none_of_them() -> None:
    """Of two equal requests that were given up; a third waited for both, and was given up too."""
    model = ScriptedModel(
        [Call("read_inbox", {"text": "one"})],
        [Call("read_inbox", {"text": "two"})],
        [Text("Read.")],
    )
    async with augmenting(model) as made:
        begun, may_end = made.hold_runs()
        both = [await made.client(), await made.client()]
        for each in both:
            await each.send(b"POST", b"/v1/messages", body=model_request())
            await begun.acquire()
        for each in both:
            each.hang_up()
        await all_over(made)
        unfinished = conversations(made)._unfinished.values
        third = await made.client()
        await third.send(b"POST", b"/v1/messages", body=model_request())
        await made.until(lambda: not unfinished)
        third.hang_up()
        await all_over(made)
        may_end.set()
        last = await made.client()
        await last.ask(b"POST", b"/v1/messages", body=model_request())
        last.hang_up()
        told = json.dumps(model.requests[-1]["messages"])
        assert '"one"' in told
        assert '"two"' in told


async def test_what_ran_is_kept_in_the_moment_of_a_hang_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """The equal request may have come with it, and be read in the same turn of the event loop."""
    model = ScriptedModel([Call("send_draft", {"text": "x"})])
    left = ClientAnswer.client_gone
    kept: list[int] = []
    async with augmenting(model) as made:

        def client_gone(answer: ClientAnswer) -> None:
            left(answer)
            kept.append(len(conversations(made)._unfinished.values))

        monkeypatch.setattr(ClientAnswer, "client_gone", client_gone)
        agent = await made.client()
        await agent.send(b"POST", b"/v1/messages", body=model_request())
        await made.waiting()
        agent.hang_up()
        await all_over(made)
    assert kept == [1]


async def test_a_thread_whose_tool_is_forced_shows_no_call_of_ours() -> None:
    """The provider keeps our tools for it, so the forced one may be ours."""
    model = ScriptedModel([Text("Hi.")], [Call("read_inbox", {"text": "x"})], [Text("Read.")])
    async with augmenting(model) as made:
        agent = await made.client()
        await agent.ask(b"POST", b"/v1/messages", body=model_request(thread={"type": "create"}))
        more: dict[str, Any] = {
            "tool_choice": {"type": "any"},
            "thread": {"type": "continue", "previous_message_id": "msg_0"},
        }
        _, answer = await agent.ask(b"POST", b"/v1/messages", body=model_request(**more))
        agent.hang_up()
        assert b"ad." in answer
        assert b"read_inbox" not in answer
        assert await made.runs() == [("read-inbox", "completed")]


async def test_a_choice_that_nobody_asked_for_shows_no_call_of_ours() -> None:
    call = {"id": "x", "function": {"name": "read_inbox", "arguments": "{}"}}
    said = {"message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}
    more = {"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}
    body = json.dumps({"id": "c", "choices": [said, {"index": 1, **more}]}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    async with augmenting(writes(head % len(body) + body)) as made:
        _, answer = await made.post(PATHS["chat"], body=model_request("chat", stream=False))
    assert b"Hi." in answer
    assert b"read_inbox" not in answer


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_that_has_no_body_gets_none(status: int) -> None:
    """The end of a chunked one would be read as the beginning of the next answer."""
    async with augmenting(writes(b"HTTP/1.1 %d X\r\n\r\n" % status)) as made:
        agent = await made.client()
        for _ in range(2):
            await agent.send(b"POST", b"/v1/messages", body=model_request())
            assert (await read_head(agent.reader)).startswith(b"HTTP/1.1 %d " % status)
        await all_over(made)
        assert not bytes(agent.reader._buffer)  # type: ignore[attr-defined]


@pytest.mark.parametrize("more", [{"n": 2}, {}])
async def test_nothing_is_sent_for_a_session_that_ended_while_its_request_was_read(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    """Neither with tools nor as it is; nor is anything of the session kept."""
    model = ScriptedModel([Text("Late.")])
    async with augmenting(model) as made:
        ending = EndSession(session_id=made.session.session.session_id)
        loop = asyncio.get_running_loop()

        async def end() -> None:
            await made.app.console.carry_out(ending)
            (exchange,) = next(iter(made.handler._open.values()))
            await made.until(lambda: cast("Any", exchange).client_disconnected)

        def read_request(*given: Any) -> Any:
            asyncio.run_coroutine_threadsafe(end(), loop).result()
            return plans.read_request(*given)

        monkeypatch.setattr(room_module, "read_request", read_request)
        monkeypatch.setattr(limits_module, "_AT_ONCE", 0)
        agent = await made.client()
        await agent.send(b"POST", b"/v1/chat/completions", body=model_request(**more))
        with pytest.raises(ConnectionError):
            await agent.reader.read()
        await all_over(made)
        assert made.handler.augment_room.session_ids == ()
    assert model.requests == []


async def test_a_body_that_says_it_is_not_compressed_is_read() -> None:
    model = ScriptedModel([Text("Hi.")])
    async with augmenting(model) as made:
        await made.post(b"/v1/messages", b"Content-Encoding: identity", body=model_request())
        assert await records(made.app, "session.not_augmented") == []
    assert model.requests[0]["tools"]


@pytest.mark.parametrize("stream", [True, False])
async def test_nothing_of_a_request_outlives_its_answer(
    monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """Nor does it wait for a collection of garbage."""
    read: list[weakref.ref[object]] = []

    def read_request(*given: Any) -> Any:
        asked = plans.read_request(*given)
        read.append(weakref.ref(asked.history.digest))
        return asked

    monkeypatch.setattr(room_module, "read_request", read_request)
    model = ScriptedModel([Call("read_inbox", {"text": "once"})], [Text("Done.")])
    async with augmenting(model) as made:
        agent = await made.client()
        gc.disable()
        try:
            await agent.ask(b"POST", b"/v1/messages", body=model_request(stream=stream))
            await all_over(made)
            await made.until(lambda: [each() for each in read] == [None])
        finally:
            gc.enable()
