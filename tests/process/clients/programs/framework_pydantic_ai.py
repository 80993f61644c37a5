"""An agent on pydantic-ai: `framework_pydantic_ai.py MODEL (sync|async|streamed)`."""

import sys
from typing import Any

from pydantic_ai import Agent
from talking import own_note, talk

agent = Agent(sys.argv[1])
agent.tool_plain(own_note)
history: list[Any] = []


def ask(text: str) -> str:
    result = agent.run_sync(text, message_history=history)
    history[:] = result.all_messages()
    return result.output


async def ask_async(text: str) -> str:
    result = await agent.run(text, message_history=history)
    history[:] = result.all_messages()
    return result.output


async def ask_streamed(text: str) -> str:
    async with agent.run_stream(text, message_history=history) as result:
        said = [piece async for piece in result.stream_text(delta=True)]
        history[:] = result.all_messages()
    return "".join(said)


talk({"sync": ask, "async": ask_async, "streamed": ask_streamed}[sys.argv[2]])
