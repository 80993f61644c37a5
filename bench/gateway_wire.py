"""What the gateway measurement's upstream and client agree on: loads, answers, stamped chunks.

The request's model names the answer, so one upstream serves every load: `json-<bytes>` is one JSON
body, `sse-<chunks>-<gap in ms>` a stream. Both have the shape of Anthropic's Messages API, because
LiteLLM reads what it passes on. A chunk carries the time of its write (`time.monotonic_ns`, one
clock for all processes of the machine).
"""

import json
import re
from dataclasses import dataclass
from typing import Any, Literal

PATH = "/v1/messages"
JSON_BYTES = 2048
BODY_BYTES = 10 * 1024 * 1024
CHUNK_BYTES = 150

_HEAD = b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
_STAMP = b'{"type":"text_delta","text":"%019d '
_TAIL = b'"}}\n\n'
_TEXT = "TEXT"
NUMBER = b"--------"
"""Stands in a conversation where each request has its own number."""
_TOOLS = [
    {
        "name": f"tool_{number}",
        "description": "Read a file of the project. " * 10,
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
    for number in range(10)
]
_PADDING = b"." * (CHUNK_BYTES - len(_HEAD) - len(_STAMP % 0) - len(_TAIL))
STAMP = re.compile(rb'"text":"(\d{19}) ')
FIRST = (
    b'event: message_start\ndata: {"type":"message_start","message":{"id":"msg_bench",'
    b'"type":"message","role":"assistant","model":"bench","content":[],"stop_reason":null,'
    b'"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
    b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
    b'"content_block":{"type":"text","text":""}}\n\n'
)
LAST = (
    b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n'
    b'event: message_delta\ndata: {"type":"message_delta","delta":{"stop_reason":"end_turn",'
    b'"stop_sequence":null},"usage":{"output_tokens":1}}\n\n'
    b'event: message_stop\ndata: {"type":"message_stop"}\n\n'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One way of asking: so many connections, each with one request after the other."""

    name: str
    model: str
    connections: int
    requests: int
    """Over all connections, at most."""
    seconds: float
    """After this no further request begins."""
    request_bytes: int = JSON_BYTES
    conversation: Literal["", "goes on", "is new"] = ""
    """A request of many messages with an agent's tools, in place of one long text: from one request
    to the next its last turn changes, or all of them."""

    @property
    def streams(self) -> bool:
        """Whether the answers are streams of stamped chunks."""
        return self.model.startswith("sse-")


def chunk(stamp: int) -> bytes:
    """Return one event of `CHUNK_BYTES` bytes that says when it was written."""
    return _HEAD + _STAMP % stamp + _PADDING + _TAIL


def answer(model: str) -> bytes:
    """Return the JSON body that *model* (`json-<bytes>`) names."""
    message = {
        "id": "msg_bench",
        "type": "message",
        "role": "assistant",
        "model": "bench",
        "content": [{"type": "text", "text": _TEXT}],
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    return _filled(json.dumps(message), int(model.removeprefix("json-")))


def question(load: Load) -> bytes:
    """Return the request body of *load*."""
    body_text = [{"role": "user", "content": [{"type": "text", "text": _TEXT}]}]
    body: dict[str, Any] = {
        "model": load.model,
        "max_tokens": 64,
        "stream": load.streams,
        "messages": body_text,
    }
    if load.conversation:
        body = {**body, "tools": _TOOLS, "messages": []}
        changes = _turn(NUMBER.decode())
        turn = changes if load.conversation == "is new" else _turn("." * len(NUMBER))
        left = load.request_bytes - len(json.dumps(body)) - 200
        turns = left // (len(json.dumps(turn)) + 2)
        body["messages"] = [*turn * (turns - 1), *changes, *body_text]
    return _filled(json.dumps(body), load.request_bytes)


def _turn(number: str) -> list[dict[str, Any]]:
    """Return what an agent adds to a conversation for one call of a tool of its own: 3 kB."""
    call = {"type": "tool_use", "id": "toolu_bench", "name": "tool_0", "input": {"path": "a/b.py"}}
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_bench",
        "content": number + "line of code\n" * 200,
    }
    return [
        {"role": "assistant", "content": [{"type": "text", "text": "I look at it."}, call]},
        {"role": "user", "content": [result]},
    ]


def _filled(body: str, size: int) -> bytes:
    """Return *body* with so much text that it has *size* bytes."""
    missing = size - len(body) + len(_TEXT)
    return body.replace(_TEXT, "x" * missing, 1).encode()
