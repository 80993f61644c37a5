"""An agent on openai-agents, which speaks Responses: `framework_openai_agents.py (sync|async|streamed|chained)`.

`chained` leaves its history with the provider.
"""

import sys
from typing import Any

from agents import Agent, Runner, function_tool, set_tracing_disabled
from talking import own_note, talk

set_tracing_disabled(True)  # it would go to the provider's own address
agent = Agent(name="clerk", model="gpt-4.1", tools=[function_tool(own_note)])
history: list[Any] = []
more: dict[str, Any] = {}


def begin(text: str) -> list[Any]:
    history.append({"role": "user", "content": text})
    return history


def ask(text: str) -> str:
    result = Runner.run_sync(agent, begin(text))
    history[:] = result.to_input_list()
    return result.final_output


async def ask_async(text: str) -> str:
    result = await Runner.run(agent, begin(text))
    history[:] = result.to_input_list()
    return result.final_output


async def ask_streamed(text: str) -> str:
    result = Runner.run_streamed(agent, begin(text))
    async for _ in result.stream_events():
        pass
    history[:] = result.to_input_list()
    return result.final_output


async def ask_chained(text: str) -> str:
    result = await Runner.run(agent, text, auto_previous_response_id=True, **more)
    more["previous_response_id"] = result.last_response_id
    return result.final_output


ASKS = {"sync": ask, "async": ask_async, "streamed": ask_streamed, "chained": ask_chained}
talk(ASKS[sys.argv[1]])
