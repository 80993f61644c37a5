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
from aileron_core.server.augment.views import ClientAnswer
from aileron_core.server.shares import Shares
from tests.core.server.augment.harness import EACH_WIRE, Augmented, augmenting, model_request
from tests.core.server.augment.scripted_model import Call, Refusal, ScriptedModel, Text
from tests.core.server.gateway.harness import answering_with, read_head
from tests.support.core_harness import records


def conversations(made: Augmented) -> Conversations:
    return made.room._known[made.session_id][b"/v1/messages"]


async def test_what_ran_is_known_when_the_agent_hangs_up_on_its_answer() -> None:
    """Also where the model's last answer has calls of both: they have no results."""
    own = [{"name": "own", "description": "o", "input_schema": {"type": "object"}}]
    last = [Text("x" * 12_000_000), Call("own", {}), Call("read_inbox", {"text": "twice"})]
    model = ScriptedModel([Call("read_inbox", {"text": "once"})], last, [Text("again")])
    async with augmenting(model) as made:
        gone = await made.sent(stream=False, tools=own)
        await read_head(gone.reader)
        gone.hang_up()
        await made.all_over()
        await made.asked(stream=False, tools=own)
        asked, called, answered, *_ = told = model.requests[2]["messages"]
        assert [each["role"] for each in told[:3]] == ["user", "assistant", "user"]
        assert asked["content"] == "send it"
        assert [each["type"] for each in called["content"]] == ["tool_use"]
        assert [each["type"] for each in answered["content"]] == ["tool_result"]
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
        said = ("user", "read it"), ("assistant", "Read.")
        before = [{"role": role, "content": content} for role, content in said]
        await made.agent("chat", history=[*before]).ask("and now?")
        assert model.requests[2]["messages"][:2] == before
        with pytest.raises(Exception, match="overloaded"):
            await made.agent("messages").ask("read more")
        await made.agent("chat").ask("read more")
        assert model.requests[5]["messages"] == [{"role": "user", "content": "read more"}]


async def test_what_cannot_be_put_on_record_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither in the middle of an answer, nor by a request that passes as it is."""
    model = ScriptedModel([Call("read_inbox", {"text": "once"})], [Text("Passed.")])
    async with augmenting(model) as made:
        run = made.agents.run

        async def filled(*args: Any, **more: Any) -> Any:
            made.app.traffic.is_full = lambda session_id: True
            return await run(*args, **more)

        async def unavailable(*_: Any) -> None:
            raise StorageUnavailable("The disk is full.")

        with monkeypatch.context() as patch:
            patch.setattr(made.app.session_service, "record", unavailable)
            head, _ = await made.asked(tool_choice={"type": "any"})
        assert head.startswith(b"HTTP/1.1 500 ")
        assert model.requests == []
        made.agents.run = filled
        with pytest.raises(Exception, match="cannot write its audit record"):
            await made.agent("messages").ask("read it")
        assert len(model.requests) == 1
        del made.app.traffic.is_full
        await made.asked(tool_choice={"type": "any"})
        assert len(await records(made.app, "session.not_augmented")) == 1


@EACH_WIRE
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
        await made.asked(wire, tools=tools)
    tools = model.requests[0]["tools"]
    names = [(each.get("function") or each.get("custom") or each)["name"] for each in tools]
    assert len(names) == len(set(names))
    assert names[:2] in ([taken, "read_inbox"], [f"agent_{taken}", "read_inbox"])


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
        await made.asked(thread={"type": "create"})
        await made.asked(**more)
    assert model.seen[1].body == model_request(**more)


async def test_no_call_begins_once_the_agent_has_hung_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the moment in which the answer with it has come to its end: it would be kept for nobody."""
    model = ScriptedModel([Call("read_inbox", {"text": "x"})])
    called, original = list[int](), exchange_module.read_turn
    async with augmenting(model) as made:

        def read_turn(*given: Any) -> Any:
            for each in made.handler._open.values():
                for exchange in each:
                    cast("Any", exchange)._client.client_gone()
            return original(*given)

        async def run(*_: Any, **__: Any) -> None:
            called.append(1)

        monkeypatch.setattr(exchange_module, "read_turn", read_turn)
        monkeypatch.setattr(made.agents, "run", run)
        await made.sent()
        await model.asked.wait()
        await made.all_over()
    assert called == []


@pytest.mark.parametrize("stream", [False, True])
async def test_bodies_and_answers_are_bounded_over_all_requests(stream: bool) -> None:
    """Whole answers, and what is put together of streams, are in memory until their end."""
    model = ScriptedModel([Text("x" * 9000)], [Text("Fits.")])
    async with augmenting(model) as made:
        made.room._buffered = Shares(2000)
        head, _ = await made.asked(stream=stream, more="x" * 1000)
        assert head.startswith(b"HTTP/1.1 429 ")
        assert model.requests == []
        made.room._buffered = Shares(18000)
        with pytest.raises(Exception, match="too many large requests and answers"):
            await made.agent("messages", stream=stream).ask("go")
        await made.all_over()
        assert (await made.agent("messages", stream=stream).ask("go")).text == "Fits."


async def test_unfinished_bodies_of_one_harm_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
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
            head, _ = await made.post(b"/v1/messages", body=b" " * 210_000)
        made.session = await made.another_session()
        head, _ = await made.post(b"/v1/messages", body=model_request() + b" " * 300_000)
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
        assert not made.room._buffered.held(made.session_id)


async def test_other_requests_go_on_while_a_long_answer_is_read() -> None:
    """It comes in a few large pieces, with an event in each byte of them."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100000\r\n\r\n"
    async with augmenting(answering_with(head + b"\n" * 100_000)) as made:
        await read_head((await made.sent()).reader)
        turns = 0
        while made.handler._open:
            turns += 1
            await asyncio.sleep(0)
    assert turns > 100_000 / 1000


async def test_an_agents_headers_repeat_no_call_and_each_request_to_the_model_is_on_record() -> (
    None
):
    """Who honours its key would give the first answer again; a body that is not compressed may be said to be so."""
    model = ScriptedModel([Call("read_inbox", {"text": "x"})], [Text("Read.")])
    async with augmenting(model) as made:
        await made.asked("messages", b"Idempotency-Key: 4711", b"Content-Encoding: identity")
        assert await records(made.app, "session.not_augmented") == []
        await made.app.traffic.sweep(everything=True)
        kept = await records(made.app, "gateway.passed")
        passed = [row for body in kept for row in body["requests"]]
        assert [row[1:5] for row in passed] == [["anthropic", "POST", "/v1/messages", 200]] * 2
        assert sorted(row[5] for row in passed) == sorted(len(seen.body) for seen in model.seen)
        opened = (await records(made.app, "session.opened"))[0]
        assert opened["augment"] is True
        assert opened["containment"].startswith("Not contained: opened in augment mode")
    assert not any(b"4711" in seen.head for seen in model.seen)
    assert model.requests[0]["tools"]


async def test_runs_that_began_before_the_agent_hung_up_are_told_and_not_repeated() -> None:
    """They take as long as they take; an equal request waits for their end.

    Of two equal requests that were given up; a third waited for both, and was given up too.
    """
    calls = ([Call("read_inbox", {"text": text})] for text in ("one", "two"))
    model = ScriptedModel(*calls, [Text("Read.")])
    async with augmenting(model) as made:
        begun, may_end = made.hold_runs()
        both = list[Any]()
        for _ in range(2):
            both.append(await made.sent())
            await begun.acquire()
        for each in both:
            each.hang_up()
        await made.all_over()
        unfinished = conversations(made)._unfinished.values
        third = await made.sent()
        await made.until(lambda: not unfinished)
        third.hang_up()
        await made.all_over()
        again = asyncio.create_task(made.asked())
        await made.until(lambda: made.handler._open)
        may_end.set()
        _, answer = await again
        assert b"ad." in answer
        assert await made.runs() == [("read-inbox", "completed")] * 2
        told = json.dumps(model.requests[-1]["messages"])
        assert '"one"' in told
        assert '"two"' in told


async def test_an_agent_that_hangs_up_ends_the_loop_and_an_equal_request_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The call is still with the person; it is not made a second time, nor lost by a request that is refused.

    It is kept in the moment of the hang-up: the equal request may have come with it, and be read
    in the same turn of the event loop.
    """
    call = Call("send_draft", {"text": "x"})
    model = ScriptedModel([call], [Text("passed")], [Text("It waits.")])
    left, kept = ClientAnswer.client_gone, list[int]()
    async with augmenting(model) as made:

        def client_gone(answer: ClientAnswer) -> None:
            left(answer)
            kept.append(len(conversations(made)._unfinished.values))

        monkeypatch.setattr(ClientAnswer, "client_gone", client_gone)
        agent = await made.sent()
        await read_head(agent.reader)
        view = await made.waiting()
        agent.hang_up()
        await made.all_over()
        assert (kept, len(model.requests)) == ([1], 1)
        await made.asked(tools=[{"name": 5}])
        _, body = await made.asked()
        assert b"aits." in body
        assert [len(each["messages"]) for each in model.requests] == [1, 1, 3]
        told = model.requests[2]["messages"]
        assert [each["role"] for each in told] == ["user", "assistant", "user"]
        assert view.approval_id in json.dumps(told[2])
        assert await made.runs() == [("send-draft", "pending")]


async def test_a_thread_whose_tool_is_forced_shows_no_call_of_ours() -> None:
    """The provider keeps our tools for it, so the forced one may be ours."""
    model = ScriptedModel([Text("Hi.")], [Call("read_inbox", {"text": "x"})], [Text("Read.")])
    async with augmenting(model) as made:
        await made.asked(thread={"type": "create"})
        thread = {"type": "continue", "previous_message_id": "msg_0"}
        _, answer = await made.asked(thread=thread, tool_choice={"type": "any"})
        assert b"ad." in answer
        assert b"read_inbox" not in answer
        assert await made.runs() == [("read-inbox", "completed")]


async def test_an_answer_that_nobody_asked_for_shows_no_call_of_ours() -> None:
    call = {"id": "x", "function": {"name": "read_inbox", "arguments": "{}"}}
    said = {"message": {"role": "assistant", "content": "Hi."}, "finish_reason": "stop"}
    more = {"message": {"role": "assistant", "tool_calls": [call]}, "finish_reason": "tool_calls"}
    body = json.dumps({"id": "c", "choices": [said, {"index": 1, **more}]}).encode()
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    async with augmenting(answering_with(head % len(body) + body)) as made:
        _, answer = await made.asked("chat", stream=False)
        assert b"Hi." in answer
        assert b"read_inbox" not in answer
        made.upstream.answering = ScriptedModel(Refusal(200, "no stream"))
        with pytest.raises(Exception, match="did not stream its answer"):
            await made.agent("messages", stream=True).ask("read it")


@pytest.mark.parametrize("status", [204, 304])
async def test_an_answer_that_has_no_body_gets_none(status: int) -> None:
    """The end of a chunked one would be read as the beginning of the next answer."""
    async with augmenting(answering_with(b"HTTP/1.1 %d X\r\n\r\n" % status)) as made:
        agent = await made.client()
        for _ in range(2):
            await agent.send(b"POST", b"/v1/messages", body=model_request())
            assert (await read_head(agent.reader)).startswith(b"HTTP/1.1 %d " % status)
        await made.all_over()
        assert not bytes(agent.reader._buffer)  # type: ignore[attr-defined]


@pytest.mark.parametrize("more", [{"n": 2}, {}])
async def test_nothing_is_sent_for_a_session_that_has_ended(
    monkeypatch: pytest.MonkeyPatch, more: dict[str, Any]
) -> None:
    """While its request was read: neither with tools nor as it is; nor is anything of the session kept."""
    model, loop = ScriptedModel([Text("Late.")]), asyncio.get_running_loop()
    async with augmenting(model) as made:

        async def end() -> None:
            await made.app.console.carry_out(EndSession(session_id=made.session_id))
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
        await made.all_over()
        assert made.room.session_ids == ()
    assert model.requests == []


@pytest.mark.parametrize("stream", [True, False])
async def test_no_request_outlives_its_end(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    """Nor does it wait for a collection of garbage."""
    read: list[weakref.ref[object]] = []

    def read_request(*given: Any) -> Any:
        asked = plans.read_request(*given)
        read.append(weakref.ref(asked.history.digest))
        return asked

    monkeypatch.setattr(room_module, "read_request", read_request)
    model = ScriptedModel([Call("read_inbox", {"text": "once"})], [Text("Done.")])
    async with augmenting(model) as made:
        gc.disable()
        try:
            await made.asked(stream=stream)
            await made.all_over()
            await made.until(lambda: [each() for each in read] == [None])
        finally:
            gc.enable()
