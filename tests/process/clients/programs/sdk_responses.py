"""A program on `openai`'s Responses: `sdk_responses.py (whole|streamed|chained|async-streamed)`.

`chained` sends what is new alone, and names the response before it.
"""

import sys
from typing import Any

import openai
from talking import ABOUT, SCHEMA, run_own, talk

OWN: Any = {"type": "function", "name": "own_note", "description": ABOUT, "parameters": SCHEMA}
ASKED: Any = {"model": "m", "tools": [{**OWN, "strict": True}]}
history: list[Any] = []


def taken(response: Any) -> bool:
    """Put the model's items into the history; return whether it is to be asked again."""
    if sys.argv[1] == "chained":
        history.clear()
        ASKED["previous_response_id"] = response.id
    else:
        history.extend(response.output)
    calls = [item for item in response.output if item.type == "function_call"]
    for call in calls:
        text = run_own(call.name, call.arguments)
        history.append({"type": "function_call_output", "call_id": call.call_id, "output": text})
    return bool(calls)


def ask(text: str) -> str:
    history.append({"role": "user", "content": text})
    while True:
        if sys.argv[1] == "whole":
            response = client.responses.create(input=history, **ASKED)
        else:
            with client.responses.stream(input=history, **ASKED) as stream:
                response = stream.get_final_response()
        if not taken(response):
            return response.output_text


async def ask_async(text: str) -> str:
    history.append({"role": "user", "content": text})
    while True:
        async with client.responses.stream(input=history, **ASKED) as stream:
            response = await stream.get_final_response()
        if not taken(response):
            return response.output_text


is_async = sys.argv[1] == "async-streamed"
client: Any = (openai.AsyncOpenAI if is_async else openai.OpenAI)(api_key="sk-own")
talk(ask_async if is_async else ask)
