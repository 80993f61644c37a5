"""Agents on the official SDKs, which know nothing of Aileron: what they get, what their model is asked."""

import asyncio
import json
from itertools import pairwise
from typing import Any

import pytest

from tests.core.server.augment.harness import EACH_WIRE, STREAMED, augmenting
from tests.core.server.augment.scripted_model import Call, ScriptedModel, Text, Thinking, events_of


def tool_names(request: dict[str, Any]) -> list[str]:
    return [tool.get("name") or tool["function"]["name"] for tool in request["tools"]]


def history(request: dict[str, Any]) -> list[Any]:
    return request.get("messages") or request["input"]


@EACH_WIRE
@STREAMED
async def test_a_call_of_ours_runs_and_the_agent_sees_one_answer(wire: str, stream: bool) -> None:
    call = Call("read_inbox", {"text": "hello"})
    model = ScriptedModel([Text("I look. "), call], [Text("It says hello.")])
    async with augmenting(model) as made:
        reply = await made.agent(wire, stream=stream, tools=("own_tool",)).ask("read it")
        assert reply.text == "I look. It says hello."
        assert reply.calls == ()
        assert reply.output_tokens == 14
        assert reply.id.endswith("0")
        first, second = model.requests
        ours = ["read_inbox", "send_draft", "check_action_status", "withdraw_action"]
        assert tool_names(first) == ["own_tool", *ours]
        assert first["tools"] == second["tools"]
        assert '\\"hello\\"' in json.dumps(history(second)[-1])
        assert await made.runs() == [("read-inbox", "completed")]


@EACH_WIRE
@STREAMED
@pytest.mark.parametrize("allowed", [True, False], ids=["allowed", "denied"])
async def test_what_a_person_says_reaches_the_model(wire: str, stream: bool, allowed: bool) -> None:
    """While the answer waits; the agent sees what the model makes of it."""
    model = ScriptedModel([Call("send_draft", {"text": "to Anna"})], [Text("So it is.")])
    async with augmenting(model) as made:
        asking = asyncio.create_task(made.agent(wire, stream=stream).ask("send it"))
        await (made.approve() if allowed else made.deny("not on a Friday"))
        assert (await asking).text == "So it is."
        told = json.dumps(history(model.requests[1])[-1])
        assert ("to Anna" in told) is allowed
        assert ("A person denied this. Their reason" in told) is not allowed
        assert ("not on a Friday" in told) is not allowed
        assert await made.runs() == [("send-draft", "completed" if allowed else "denied")]


@EACH_WIRE
async def test_a_call_that_nobody_decides_is_pending_and_can_be_asked_after(wire: str) -> None:
    model = ScriptedModel([Call("send_draft", {"text": "to Anna"})], [Text("It waits.")])
    async with augmenting(model, hold_seconds=0) as made:
        agent = made.agent(wire, stream=True)
        assert (await agent.ask("send it")).text == "It waits."
        told = json.dumps(history(model.requests[1])[-1])
        view = await made.waiting()
        assert view.approval_id in told
        assert "check_action_status" in told
        await made.approve()
        await made.until(lambda: made.app.publisher.approvals()[0].ended_at)
        check = Call("check_action_status", {"approval_id": view.approval_id})
        model.answers += [[check], [Text("Done.")]]
        assert (await agent.ask("and now?")).text == "Done."
        assert "to Anna" in json.dumps(history(model.requests[3])[-1])
        assert await made.runs() == [("send-draft", "completed")]


def _same_beginning(model: ScriptedModel) -> None:
    """Each request has the tools, and begins with the history, of the one before it, byte for byte."""
    for earlier, later in pairwise(model.seen):
        assert _value(earlier.body, b"tools") == _value(later.body, b"tools")
        name = b"input" if b"/v1/responses" in earlier.line else b"messages"
        before, after = _value(earlier.body, name), _value(later.body, name)
        assert before[-1:] == b"]"
        assert after.startswith(before[:-1] + b",")
        # What stands before the history too.
        assert later.body.startswith(earlier.body[: earlier.body.index(before)])


def _value(body: bytes, name: bytes) -> bytes:
    _, _, rest = body.partition(b'"%b":' % name)
    text = rest.decode().lstrip()
    return text[: json.JSONDecoder().raw_decode(text)[1]].encode()


@EACH_WIRE
@STREAMED
async def test_each_request_begins_with_the_one_before(wire: str, stream: bool) -> None:
    """Hidden calls and results stand at their place, thinking with its signature: prompt caches hold."""
    thinks = () if wire == "chat" else (Thinking("hm", "sig-1"),)
    model = ScriptedModel(
        [*thinks, Text("First. "), Call("read_inbox", {"text": "a"})],
        [*thinks, Call("read_inbox", {"text": "b"})],
        [*thinks, Text("Both read.")],
        [Text("You are welcome.")],
        [Call("read_inbox", {"text": "c"})],
        [Text("And a third.")],
    )
    async with augmenting(model) as made:
        agent = made.agent(wire, stream=stream, tools=("own_tool",))
        assert (await agent.ask("read twice")).text == "First. Both read."
        assert (await agent.ask("thanks")).text == "You are welcome."
        assert (await agent.ask("once more")).text == "And a third."
        _same_beginning(model)
        assert len(model.requests) == 6
        if thinks:
            assert json.dumps(model.requests[-1]).count("sig-1") == 3


@STREAMED
@pytest.mark.parametrize(
    ("store", "encrypted", "kept"), [(False, "", 0), (False, "sealed", 1), (True, "", 1)]
)
async def test_reasoning_returns(stream: bool, store: bool, encrypted: str, kept: int) -> None:
    """OpenAI refuses an item of which it knows nothing but the id."""
    call = Call("read_inbox", {"text": "a"})
    model = ScriptedModel([Thinking("hm", encrypted), call], [Text("Read.")])
    async with augmenting(model) as made:
        await made.agent("responses", stream=stream, more={"store": store}).ask("read it")
        kinds = [each.get("type") for each in history(model.requests[1])]
        assert kinds.count("reasoning") == kept
        assert kinds[-2:] == ["function_call", "function_call_output"]


@EACH_WIRE
@STREAMED
async def test_in_a_mixed_turn_ours_run_and_the_agent_gets_its_own(wire: str, stream: bool) -> None:
    """On its next request our pair of call and result is back at its place."""
    model = ScriptedModel(
        [Text("Both. "), Call("read_inbox", {"text": "ours"}), Call("own_tool", {}, "c-own")],
        [Text("All done.")],
        [Text("Welcome.")],
    )
    async with augmenting(model) as made:
        agent = made.agent(wire, stream=stream, tools=("own_tool",))
        reply = await agent.ask("do both")
        assert reply.text == "Both. "
        assert reply.calls == (("c-own", "own_tool"),)
        assert await made.runs() == [("read-inbox", "completed")]
        assert (await agent.answer_call(reply, "of the agent")).text == "All done."
        told = json.dumps(history(model.requests[1]))
        assert told.index("read_inbox") < told.index("own_tool") < told.index("of the agent")
        assert "ours" in told
        if wire == "messages":
            results = history(model.requests[1])[-1]["content"]
            assert [each["tool_use_id"] for each in results] == ["call_0_1", "c-own"]
        await agent.ask("thanks")
        _same_beginning(model)
        assert await made.runs() == [("read-inbox", "completed")]


async def test_what_does_not_change_passes_byte_for_byte() -> None:
    """A stream without a call of ours is the model's own bytes."""
    asked = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "x"}]}
    async with augmenting(ScriptedModel([Text("Hi.")])) as made:
        _, answer = await made.post(b"/v1/messages", body=json.dumps(asked).encode())
    assert answer == b"".join(events_of(b"/v1/messages", 0, [Text("Hi.")]))


@pytest.mark.parametrize("size", [10, 1_200_000])
async def test_what_does_not_change_in_a_request_says_the_same(size: int) -> None:
    model = ScriptedModel([Call("read_inbox", {}), Call("own_tool", {})], [Text("Done.")])
    kept = (
        '{"role" : "user","content":"\\u00e9 é \\ud800 ' + "x" * size + '"}',
        '"metadata":{"user_id" :"u"},"temperature":1.0E0,"seed":9007199254740993',
        '{"name": "own_tool","input_schema": {"type":"object"} }',
    )
    body = f'{{"model":"m","max_tokens":9,"tools":[{kept[2]}],{kept[1]},"messages":[{kept[0]}]}}'
    async with augmenting(model) as made:
        head, _ = await made.post(b"/v1/messages", body=body.encode())
    assert head.startswith(b"HTTP/1.1 200 ")
    sent, said = json.loads(model.seen[0].body), json.loads(body)
    assert tool_names(sent)[0] == "own_tool"
    sent["tools"] = sent["tools"][:1]
    assert json.dumps(sent) == json.dumps(said)
