"""A program on `anthropic`: `sdk_messages.py (whole|streamed|runner|async-streamed)`.

`runner` leaves the loop to the SDK, which asks at another address (`?beta=true`).
"""

import json
import sys
from typing import Any

import anthropic
from talking import ABOUT, SCHEMA, own_note, run_own, talk

OWN: Any = {"name": "own_note", "description": ABOUT, "input_schema": SCHEMA}
ASKED: Any = {"model": "m", "max_tokens": 99, "tools": [OWN]}
history: list[Any] = []


def said(message: Any) -> str:
    return "".join(block.text for block in message.content if block.type == "text")


def taken(message: Any) -> bool:
    """Put the model's message into the history; return whether it is to be asked again."""
    history.append({"role": "assistant", "content": message.content})
    results: list[Any] = []
    for block in message.content:
        if block.type == "tool_use":
            text = run_own(block.name, json.dumps(block.input))
            results.append({"type": "tool_result", "tool_use_id": block.id, "content": text})
    if results:
        history.append({"role": "user", "content": results})
    return bool(results)


def ask(text: str) -> str:
    history.append({"role": "user", "content": text})
    while True:
        if sys.argv[1] == "whole":
            message = client.messages.create(messages=history, **ASKED)
        else:
            with client.messages.stream(messages=history, **ASKED) as stream:
                message = stream.get_final_message()
        if not taken(message):
            return said(message)


async def ask_async(text: str) -> str:
    history.append({"role": "user", "content": text})
    while True:
        async with client.messages.stream(messages=history, **ASKED) as stream:
            message = await stream.get_final_message()
        if not taken(message):
            return said(message)


def ask_runner(text: str) -> str:
    """Keep what the runner was answered, as its own history is not shown."""
    history.append({"role": "user", "content": text})
    runner = client.beta.messages.tool_runner(
        model="m", max_tokens=99, messages=history, tools=[anthropic.beta_tool(own_note)]
    )
    last: Any = None
    for message in runner:
        history.append({"role": "assistant", "content": message.content})
        results = runner.generate_tool_call_response()
        if results is not None:
            history.append(results)
        last = message
    return said(last)


is_async = sys.argv[1] == "async-streamed"
client: Any = (anthropic.AsyncAnthropic if is_async else anthropic.Anthropic)(api_key="sk-own")
talk(ask_async if is_async else ask_runner if sys.argv[1] == "runner" else ask)
