"""A program on `openai`'s Chat Completions: `sdk_chat.py (whole|streamed|chunks|async-streamed)`."""

import sys
from typing import Any

import openai
from openai.types.chat import ChatCompletionMessage
from talking import ABOUT, SCHEMA, run_own, talk

FUNCTION: Any = {"name": "own_note", "description": ABOUT, "parameters": SCHEMA}
ASKED: Any = {"model": "m", "tools": [{"type": "function", "function": FUNCTION}]}
CALL: Any = {"id": True, "type": True, "function": {"name", "arguments"}}
"""What the history keeps of a call."""
history: list[Any] = []


def taken(message: Any) -> bool:
    """Put the model's message into the history; return whether it is to be asked again."""
    calls = message.tool_calls or []
    kept = {"tool_calls": [call.model_dump(include=CALL) for call in calls]} if calls else {}
    history.append({"role": "assistant", "content": message.content, **kept})
    for call in calls:
        text = run_own(call.function.name, call.function.arguments)
        history.append({"role": "tool", "tool_call_id": call.id, "content": text})
    return bool(calls)


def streamed() -> Any:
    return client.chat.completions.stream(messages=history, **ASKED)


def from_chunks() -> Any:
    """Put a message together by hand, as most programs do."""
    text, calls = "", dict[int, Any]()
    for chunk in client.chat.completions.create(messages=history, stream=True, **ASKED):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            for piece in choice.delta.tool_calls or ():
                new = {"id": "", "type": "function", "function": {"name": "", "arguments": ""}}
                call = calls.setdefault(piece.index, new)
                call["id"] += piece.id or ""
                call["function"]["name"] += piece.function.name or ""
                call["function"]["arguments"] += piece.function.arguments or ""
    assert list(calls) == list(range(len(calls)))
    said = {"role": "assistant", "content": text, "tool_calls": [*calls.values()]}
    return ChatCompletionMessage.model_validate(said)


def ask(text: str) -> str:
    history.append({"role": "user", "content": text})
    while True:
        if sys.argv[1] == "whole":
            message = client.chat.completions.create(messages=history, **ASKED).choices[0].message
        elif sys.argv[1] == "streamed":
            with streamed() as stream:
                message = stream.get_final_completion().choices[0].message
        else:
            message = from_chunks()
        if not taken(message):
            return message.content


async def ask_async(text: str) -> str:
    history.append({"role": "user", "content": text})
    while True:
        async with streamed() as stream:
            message = (await stream.get_final_completion()).choices[0].message
        if not taken(message):
            return message.content


is_async = sys.argv[1] == "async-streamed"
client: Any = (openai.AsyncOpenAI if is_async else openai.OpenAI)(api_key="sk-own")
talk(ask_async if is_async else ask)
