"""What agents on the official SDKs get, and what their model is asked or never gets."""

import asyncio
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.protocol import Route
from examples.mailbox import Mailbox
from tests.core.server.augment.harness import (
    EACH_WIRE,
    KEY,
    LAUNCHED,
    STREAMED,
    Agent,
    augmenting,
    echoing_action,
)
from tests.core.server.augment.scripted_model import Call, ScriptedModel, Text, Thinking, events_of
from tests.core.server.gateway.harness import fine
from tests.core.server.gateway.test_model_keys import KEY as VAULT_KEY
from tests.core.server.gateway.test_model_keys import keyed
from tests.support.core_harness import DRAFT, install_examples, records
from tests.support.echoes import install_connectors


@EACH_WIRE
@STREAMED
async def test_names_that_meet_are_told_apart_both_ways(wire: str, stream: bool) -> None:
    """The agent's own tool keeps its name, unless it begins with our prefix; then only the model sees another."""
    model = ScriptedModel(
        [Call("read_inbox", {}, "c-1"), Call("agent_aileron_x", {}, "c-2")],
        [Call("aileron_read_inbox", {"text": "ours"})],
        [Text("Done.")],
    )
    async with augmenting(model) as made:
        agent = made.agent(wire, stream=stream, tools=("read_inbox", "aileron_x"))
        reply = await agent.ask("go")
        assert reply.calls == (("c-1", "read_inbox"), ("c-2", "aileron_x"))
        assert await made.runs() == []
        assert (await agent.answer_call(reply, "own")).text == "Done."
        told = ["read_inbox", "agent_aileron_x", "aileron_read_inbox"]
        assert tool_names(model.requests[0])[:3] == told
        assert '"agent_aileron_x"' in json.dumps(history(model.requests[1]))
        assert await made.runs() == [("read-inbox", "completed")]
        (record,) = await records(made.app, "session.tools_renamed")
        assert (record["tools"], record["count"]) == (["aileron_x"], 1)
        assert record["session"] == made.session_id


@EACH_WIRE
async def test_what_an_agent_sets_stays_as_it_was(wire: str) -> None:
    model = ScriptedModel([Text("Hi.")])
    more: Any = {"tool_choice": "auto", "parallel_tool_calls": False}
    if wire == "messages":
        marked = {"type": "text", "text": "s", "cache_control": {"type": "ephemeral"}}
        choice = {"type": "auto", "disable_parallel_tool_use": True}
        more = {"tool_choice": choice, "system": [marked]}
    async with augmenting(model) as made:
        await made.agent(wire, tools=("own_tool",), more=more).ask("hello")
        (asked,) = model.requests
        assert {name: asked[name] for name in more} == more
        head = model.seen[0].head.lower()
        assert KEY.encode() in head
        assert (head.count(b"accept-encoding: identity"), head.count(b"accept-encoding")) == (1, 1)


@pytest.mark.parametrize(
    ("path", "more", "reason"),
    [
        (b"/v1/messages", {"tool_choice": {"type": "any"}}, "it forces a tool"),
        (b"/v1/messages", {"tool_choice": {"type": "tool", "name": "x"}}, "it forces a tool"),
        (b"/v1/messages", {"messages": 5}, "it could not be read"),
        (b"/v1/chat/completions", {"n": 2}, "several answers"),
        (b"/v1/chat/completions", {"functions": []}, "`functions`"),
        (b"/v1/chat/completions", {"tool_choice": "required"}, "it forces a tool"),
        (b"/v1/responses", {"tool_choice": "required"}, "it forces a tool"),
        (b"/v1/responses", {"background": True}, "in the background"),
        (b"/v1/responses", {"conversation": "conv_1"}, "stored at the provider"),
        (b"/v1/responses", {"x-encoding": "gzip"}, "its body is compressed"),
        (b"/v1/responses", {"x-long": "x" * 5000}, "its body is over"),
        (b"/v1/responses", {"x-long": "x" * 500_000}, "its body is over"),
        (b"/v1/responses/compact", {}, ""),
        (b"/v1/responses/resp_1", {}, ""),
        (b"/v1/messages/count_tokens", {}, ""),
    ],
)
async def test_what_is_not_augmented_passes(path: bytes, more: dict[str, Any], reason: str) -> None:
    """Byte for byte, with blanks that our own writer would not write."""
    lines = [b"Content-Encoding: gzip"] if "x-encoding" in more else []
    async with augmenting(fine) as made:
        made.limit(request_bytes=4000)
        body = json.dumps({"model": "m", "messages": [], "input": "x", **more}, indent=3).encode()
        for _ in range(2):
            assert (await made.post(path, *lines, body=body))[1] == b"ok"
        assert [each.body for each in made.upstream.seen] == [body, body]
        said = [each["reason"] for each in await records(made.app, "session.not_augmented")]
        assert len(said) == bool(reason)
        assert reason in "".join(said)


async def test_a_session_in_the_normal_mode_is_not_read() -> None:
    model = ScriptedModel([Text("Hi.")])
    async with augmenting(model, augment=False) as made:
        await made.agent("messages", tools=("own_tool",)).ask("hello")
        assert tool_names(model.requests[0]) == ["own_tool"]
        assert made.handler._room is None


async def test_nothing_of_a_preview_enters_a_request_to_a_model(mailbox: Mailbox) -> None:
    """The person sees the draft's lines; the model that asked for it is told only how it ended."""
    call = Call("send_draft", {"draft_id": DRAFT})
    model = ScriptedModel([call], [Text("It waits.")])
    route = Route(host="gmail.googleapis.com:443", address="127.0.0.1", port=mailbox.port)
    async with augmenting(model, furnish=install_examples, hold_seconds=0, routes=(route,)) as made:
        agent = made.agent("messages", stream=True)
        await agent.ask("send it")
        view = await made.waiting()
        assert "Anna Brandt" in str(view.preview)
        assert "Q3 numbers" in str(view.preview)
        check = Call("check_action_status", {"approval_id": view.approval_id})
        model.answers += [[check, call], [Text("It still waits.")], [check], [Text("Denied.")]]
        await agent.ask("is it there?")
        await made.deny("no")
        assert (await agent.ask("now?")).text == "Denied."
        sent = b"".join(each.body for each in model.seen)
        assert len(model.seen) == 6
        assert sent.count(b"pending_approval") > 3
        for canary in (b"Anna", b"Brandt", b"Q3", view.digest.encode()):
            assert canary not in sent


async def test_another_sessions_approval_is_not_found() -> None:
    model = ScriptedModel([Call("send_draft", {"text": "x"})], [Text("It waits.")])
    async with augmenting(model, hold_seconds=0) as made:
        await made.agent("chat").ask("send it")
        view = await made.waiting()
        other = await made.another_session()
        name = {"approval_id": view.approval_id}
        calls = [Call(each, name) for each in ("check_action_status", "withdraw_action")]
        model.answers += [calls, [Text("No.")]]
        agent = made.agent("chat")
        agent.base = agent.base.replace(made.session.gateway_token, other.gateway_token)
        await agent.ask("withdraw it")
        told = [each["content"] for each in history(model.requests[3]) if each["role"] == "tool"]
        assert len(told) == 2
        assert all("This session has no approval" in each for each in told)
        assert await made.runs() == [("send-draft", "pending")]


async def test_tools_stay_the_same_for_a_conversation() -> None:
    model = ScriptedModel([Text("Hi.")], [Text("Hi again.")], [Text("Hello.")])
    async with augmenting(model) as made:
        agent = made.agent("chat", stream=True)
        await agent.ask("hello")
        text = echoing_action(install_connectors(made.app.home.path), "new-one", gated=False)
        (made.app.home.actions / "new-one.md").write_text(text, "utf-8")
        await made.app.library.load()
        await made.app.library.accept_all()
        await agent.ask("hello again")
        await made.agent("chat").ask("another conversation")
        first, second, third = (tool_names(each) for each in model.requests)
        assert "new_one" not in first
        assert first == second
        assert "new_one" in third


@STREAMED
@pytest.mark.parametrize(("wire", "ids"), [("responses", "resp_{}"), ("messages", "msg_{}")])
async def test_an_earlier_answer_is_named_as_known(wire: str, ids: str, stream: bool) -> None:
    """The agent knows the id of the first of several; and results that the provider waits for come first."""
    model = ScriptedModel(
        [Call("read_inbox", {"text": "a"})],
        [Text("Read.")],
        [Call("read_inbox", {"text": "b"}, "ours"), Call("own_tool", {}, "own")],
        [Text("Done.")],
    )

    def named(request: dict[str, Any]) -> str:
        thread = request.get("thread", {})
        return request.get("previous_response_id") or thread["previous_message_id"]

    def go_on(agent: Agent, earlier: str) -> None:
        """For Messages as the tool runner of Anthropic's SDK does it."""
        thread = {"type": "continue", "previous_message_id": earlier}
        by_thread = {"extra_body": {"thread": thread if earlier else {"type": "create"}}}
        by_response = {"previous_response_id": earlier} if earlier else {}
        agent.history = []
        agent.more = by_thread if wire == "messages" else by_response

    async with augmenting(model) as made:
        agent = made.agent(wire, stream=stream, tools=("own_tool",))
        go_on(agent, "")
        reply = await agent.ask("read it")
        assert reply.id == ids.format(0)
        go_on(agent, reply.id)
        reply = await agent.ask("more")
        assert named(model.requests[2]) == ids.format(1)
        go_on(agent, reply.id)
        assert (await agent.answer_call(reply, "own result")).text == "Done."
        last = model.requests[3]
        assert named(last) == ids.format(2)
        told = last.get("input") or last["messages"][0]["content"]
        assert [each.get("call_id") or each["tool_use_id"] for each in told] == ["ours", "own"]
        assert len(await made.runs()) == 2


async def test_a_request_that_forces_a_tool_still_goes_on_from_what_the_provider_knows() -> None:
    """It gets no tools of ours, but the id that the provider knows and the results that it waits for."""
    model = ScriptedModel(
        [Call("read_inbox", {"text": "a"})],
        [Call("read_inbox", {"text": "b"}, "ours"), Call("own_tool", {}, "own")],
        [Text("Done.")],
    )
    async with augmenting(model) as made:
        agent = made.agent("responses", stream=True, tools=("own_tool",))
        reply = await agent.ask("read it")
        agent.history = []
        agent.more = {"previous_response_id": reply.id, "tool_choice": "required"}
        assert (await agent.answer_call(reply, "own result")).text == "Done."
        last = model.requests[2]
        assert last["previous_response_id"] == "resp_1"
        assert [each["call_id"] for each in last["input"]] == ["ours", "own"]
        assert tool_names(last) == ["own_tool"]


@EACH_WIRE
async def test_a_fork_has_what_ran_before_it_and_nothing_of_what_ran_after(wire: str) -> None:
    """The agent goes back to an earlier answer, and on from there with another question."""
    model = ScriptedModel(
        [Call("read_inbox", {"text": "one"})], [Text("First.")],
        [Call("read_inbox", {"text": "two"})], [Text("Second.")], [Text("Third.")],
    )  # fmt: skip
    async with augmenting(model) as made:
        agent = made.agent(wire, stream=True)
        await agent.ask("read one")
        fork = [*agent.history]
        await agent.ask("read two")
        agent.history = fork
        assert (await agent.ask("another question")).text == "Third."
        told = history(model.requests[4])
        assert told[:-1] == history(model.requests[2])[:-1]
        assert '\\"one\\"' in json.dumps(told)
        assert '\\"two\\"' not in json.dumps(told)
        assert "Record by Aileron" not in json.dumps(told)


@EACH_WIRE
async def test_where_a_history_is_cut_the_model_is_told_what_ran(wire: str) -> None:
    """The call has no place any more; one plain record stands before what was made from it."""
    model = ScriptedModel(
        [Text("Now. "), Call("read_inbox", {"text": "secret"})], [Text("Read.")], [Text("Yes.")]
    )
    async with augmenting(model) as made:
        agent = made.agent(wire, stream=True)
        await agent.ask("a long story")
        agent.history = [{"role": "user", "content": "a summary"}, *agent.history[1:]]
        await agent.ask("did you?")
        told = json.dumps(history(model.requests[2]))
        assert "read_inbox: completed" in told
        assert told.index("Record by Aileron") < told.index("Now. ")
        assert "secret" not in told


async def test_the_vaults_key_is_in_each_request_and_in_no_answer(tmp_path: Path) -> None:
    """A model that says the key, in a call and in its text, is masked before anybody reads it."""
    said = VAULT_KEY.decode()
    model = ScriptedModel([Text(f"{said}."), Call("nothing_of_ours", {"k": said})])
    async with keyed(tmp_path, model) as made:
        opened = await made.gateway.another_session(**LAUNCHED, key_providers=("anthropic",))
        agent = await made.gateway.client(opened.gateway_token)
        line = b"x-api-key: " + opened.placeholder.encode()
        model.answers.insert(0, [Call("check_action_status", {"approval_id": said})])
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "x"}]}).encode()
        _, answer = await agent.ask(b"POST", b"/v1/messages", line, body=body)
        assert VAULT_KEY not in answer
        assert b"*" * len(VAULT_KEY) in answer
        assert [b"x-api-key: " + VAULT_KEY in each.head for each in model.seen] == [True, True]
        assert all(VAULT_KEY not in each.body for each in model.seen)
        assert VAULT_KEY.decode() not in json.dumps(await made.records())


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
        assert (reply.text, reply.calls) == ("I look. It says hello.", ())
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
        assert (reply.text, reply.calls) == ("Both. ", (("c-own", "own_tool"),))
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
