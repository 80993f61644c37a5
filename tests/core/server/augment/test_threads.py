"""Conversations that the provider of Messages keeps: an agent sends what is new, and names a message."""

from typing import Any

import pytest

from tests.core.server.augment.harness import Agent, augmenting
from tests.core.server.augment.scripted_model import Call, ScriptedModel, Text


def go_on(agent: Agent, **thread: Any) -> None:
    agent.history, agent.more = [], {"extra_body": {"thread": thread}}


@pytest.mark.parametrize("stream", [False, True])
async def test_an_earlier_message_is_named_as_the_provider_knows_it(stream: bool) -> None:
    """As the tool runner of Anthropic's SDK does it; and results that the provider waits for come first."""
    model = ScriptedModel(
        [Call("read_inbox", {"text": "a"})],
        [Text("Read.")],
        [Call("read_inbox", {"text": "b"}, "ours"), Call("own_tool", {}, "own")],
        [Text("Done.")],
    )
    async with augmenting(model) as made:
        agent = made.agent("messages", stream=stream, tools=("own_tool",))
        go_on(agent, type="create")
        reply = await agent.ask("read it")
        assert reply.id == "msg_0"
        go_on(agent, type="continue", previous_message_id=reply.id)
        reply = await agent.ask("more")
        assert model.requests[2]["thread"]["previous_message_id"] == "msg_1"
        go_on(agent, type="continue", previous_message_id=reply.id)
        assert (await agent.answer_call(reply, "own result")).text == "Done."
        last = model.requests[3]
        assert last["thread"] == {"type": "continue", "previous_message_id": "msg_2"}
        (told,) = last["messages"]
        assert [each["tool_use_id"] for each in told["content"]] == ["ours", "own"]
        assert len(await made.runs()) == 2
