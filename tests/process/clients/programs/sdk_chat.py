"""A program on `openai`'s Chat Completions: `sdk_chat.py (whole|streamed|chunks|async-streamed)`."""

import sys
from typing import Any

import openai
from talking import ABOUT, SCHEMA, run_own, talk

FUNCTION: Any = {"name": "own_note", "description": ABOUT, "parameters": SCHEMA}
TOOLS: Any = [{"type": "function", "function": FUNCTION}]
history: list[Any] = []


def taken(message: Any) -> bool:
    """Put the model's message into the history; return whether it is to be asked again."""
    item: Any = {"role": "assistant", "content": message.content}
    calls = message.tool_calls or []
    if calls:
        item["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in calls
        ]
    history.append(item)
    for call in calls:
        text = run_own(call.function.name, call.function.arguments)
        history.append({"role": "tool", "tool_call_id": call.id, "content": text})
    return bool(calls)


def whole(client: Any) -> Any:
    return client.chat.completions.create(model="m", messages=history, tools=TOOLS)


def streamed(client: Any) -> Any:
    return client.chat.completions.stream(model="m", messages=history, tools=TOOLS)


def from_chunks(client: openai.OpenAI) -> Any:
    """Put a message together by hand, as most programs do."""
    text, calls = "", {}
    for chunk in client.chat.completions.create(
        model="m", messages=history, tools=TOOLS, stream=True
    ):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                assert piece.function is not None
                call = calls.setdefault(piece.index, {"id": "", "name": "", "arguments": ""})
                call["id"] += piece.id or ""
                call["name"] += piece.function.name or ""
                call["arguments"] += piece.function.arguments or ""
    assert list(calls) == list(range(len(calls)))
    return openai.types.chat.ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": text,
            "tool_calls": [
                {
                    "id": call["id"],
                    "type": "function",
                    "function": {"name": call["name"], "arguments": call["arguments"]},
                }
                for call in calls.values()
            ],
        }
    )


def ask(text: str) -> str:
    history.append({"role": "user", "content": text})
    while True:
        if sys.argv[1] == "whole":
            message = whole(client).choices[0].message
        elif sys.argv[1] == "streamed":
            with streamed(client) as stream:
                message = stream.get_final_completion().choices[0].message
        else:
            message = from_chunks(client)
        if not taken(message):
            return message.content


async def ask_async(text: str) -> str:
    history.append({"role": "user", "content": text})
    while True:
        async with streamed(client) as stream:
            message = (await stream.get_final_completion()).choices[0].message
        if not taken(message):
            return message.content


is_async = sys.argv[1] == "async-streamed"
client: Any = (openai.AsyncOpenAI if is_async else openai.OpenAI)(api_key="sk-own")
talk(ask_async if is_async else ask)
