"""A model on loopback that says what a test wrote, in the three wire formats, whole or streamed."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.core.server.gateway.harness import Seen


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Thinking:
    text: str
    signature: str = "sig"


@dataclass(frozen=True)
class Call:
    name: str
    arguments: dict[str, Any]
    id: str = ""


@dataclass(frozen=True)
class Refusal:
    """An answer that is no model's."""

    status: int
    message: str


Part: TypeAlias = Text | Thinking | Call


@dataclass(frozen=True)
class BrokenOff:
    """An answer after whose first half the connection ends."""

    parts: Sequence[Part]


Answer: TypeAlias = "Sequence[Part] | BrokenOff | Refusal"


class ScriptedModel:
    """Gives its answers in their order; keeps each request that it was asked with."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.seen: list[Seen] = []
        self.heads: list[bytes] = []
        self.hold: asyncio.Event | None = None
        """Where there is one, a stream stops in its middle until it is set, and a whole answer before it."""
        self.asked = asyncio.Event()

    async def __call__(
        self, seen: Seen, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        request = json.loads(seen.body)
        number = len(self.requests)
        self.requests.append(request)
        self.seen.append(seen)
        self.asked.set()
        answer = self.answers.pop(0)
        if isinstance(answer, Refusal):
            _write(
                writer,
                answer.status,
                {"error": {"type": "overloaded_error", "message": answer.message}, "type": "error"},
            )
            return
        breaks = isinstance(answer, BrokenOff)
        made = WIRE_ANSWERS[path_of(seen)](number, answer.parts if breaks else answer)
        if not request.get("stream"):
            if self.hold is not None:
                await self.hold.wait()
            _write(writer, 200, made.whole(), breaks=breaks)
            return
        events = made.events()
        writer.write(STREAM_HEAD)
        if breaks:
            writer.write(b"".join(map(chunk, events[: len(events) // 2])))
            writer.close()
            return
        for place, event in enumerate(events):
            if self.hold is not None and place == len(events) - 1:
                await writer.drain()
                await self.hold.wait()
            writer.write(chunk(event))
        writer.write(b"0\r\n\r\n")


def path_of(seen: Seen) -> bytes:
    """Return the path of a request, without its query."""
    return seen.line.split(b" ")[1].partition(b"?")[0]


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
)


def chunk(event: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(event), event)


def _write(writer: asyncio.StreamWriter, status: int, body: Any, *, breaks: bool = False) -> None:
    data = json.dumps(body).encode()
    writer.write(
        b"HTTP/1.1 %d X\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
        % (status, len(data), data[: len(data) // 2] if breaks else data)
    )
    if breaks:
        writer.close()


def _event(data: Any, name: str = "") -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


class _Messages:
    def __init__(self, number: int, parts: Sequence[Part]) -> None:
        self.id = f"msg_{number}"
        self.blocks: list[dict[str, Any]] = []
        for place, part in enumerate(parts):
            match part:
                case Text(text):
                    self.blocks.append({"type": "text", "text": text})
                case Thinking(text, signature):
                    self.blocks.append(
                        {"type": "thinking", "thinking": text, "signature": signature}
                    )
                case Call(name, arguments, id_):
                    id_ = id_ or f"toolu_{number}_{place}"
                    self.blocks.append(
                        {"type": "tool_use", "id": id_, "name": name, "input": arguments}
                    )
        calls = any(isinstance(part, Call) for part in parts)
        self.stop = "tool_use" if calls else "end_turn"

    def _head(self) -> dict[str, Any]:
        return {"id": self.id, "type": "message", "role": "assistant", "model": "m", "content": [],
                "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}  # fmt: skip

    def whole(self) -> dict[str, Any]:
        return {**self._head(), "content": self.blocks, "stop_reason": self.stop,
                "usage": {"input_tokens": 10, "output_tokens": 7}}  # fmt: skip

    def events(self) -> list[bytes]:
        found = [_event({"type": "message_start", "message": self._head()}, "message_start")]
        for index, block in enumerate(self.blocks):
            kind = block["type"]
            empty = {
                "text": {"text": ""},
                "thinking": {"thinking": "", "signature": ""},
                "tool_use": {"input": {}},
            }[kind]
            found.append(
                _event(
                    {
                        "type": "content_block_start",
                        "index": index,
                        "content_block": {**block, **empty},
                    },
                    "content_block_start",
                )
            )
            deltas: list[dict[str, Any]] = []
            if kind == "text":
                deltas = [{"type": "text_delta", "text": half} for half in _halves(block["text"])]
            elif kind == "thinking":
                deltas = [
                    {"type": "thinking_delta", "thinking": block["thinking"]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ]
            else:
                deltas = [
                    {"type": "input_json_delta", "partial_json": half}
                    for half in _halves(json.dumps(block["input"]))
                ]
            found += [
                _event(
                    {"type": "content_block_delta", "index": index, "delta": each},
                    "content_block_delta",
                )
                for each in deltas
            ]
            found.append(
                _event({"type": "content_block_stop", "index": index}, "content_block_stop")
            )
        found.append(
            _event(
                {
                    "type": "message_delta",
                    "delta": {"stop_reason": self.stop, "stop_sequence": None},
                    "usage": {"output_tokens": 7},
                },
                "message_delta",
            )
        )
        found.append(_event({"type": "message_stop"}, "message_stop"))
        return found


class _Chat:
    def __init__(self, number: int, parts: Sequence[Part]) -> None:
        self.head = {"id": f"chatcmpl-{number}", "created": 1, "model": "m"}
        self.text = "".join(part.text for part in parts if isinstance(part, Text))
        self.calls = [
            {
                "id": part.id or f"call_{number}_{place}",
                "type": "function",
                "function": {"name": part.name, "arguments": json.dumps(part.arguments)},
            }
            for place, part in enumerate(parts)
            if isinstance(part, Call)
        ]
        self.stop = "tool_calls" if self.calls else "stop"
        self.usage = {"prompt_tokens": 10, "completion_tokens": 7, "total_tokens": 17}

    def whole(self) -> dict[str, Any]:
        message: dict[str, Any] = {"role": "assistant", "content": self.text or None}
        if self.calls:
            message["tool_calls"] = self.calls
        return {**self.head, "object": "chat.completion", "usage": self.usage,
                "choices": [{"index": 0, "message": message, "finish_reason": self.stop}]}  # fmt: skip

    def _chunk(self, delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return _event({**self.head, "object": "chat.completion.chunk", "choices": [choice]})

    def events(self) -> list[bytes]:
        found = [self._chunk({"role": "assistant", "content": ""})]
        found += [self._chunk({"content": half}) for half in _halves(self.text) if half]
        for index, call in enumerate(self.calls):
            first, second = _halves(call["function"]["arguments"])
            begun = {
                **call,
                "index": index,
                "function": {"name": call["function"]["name"], "arguments": first},
            }
            found.append(self._chunk({"tool_calls": [begun]}))
            found.append(
                self._chunk({"tool_calls": [{"index": index, "function": {"arguments": second}}]})
            )
        found.append(self._chunk({}, self.stop))
        found.append(
            _event(
                {**self.head, "object": "chat.completion.chunk", "choices": [], "usage": self.usage}
            )
        )
        found.append(b"data: [DONE]\n\n")
        return found


class _Responses:
    def __init__(self, number: int, parts: Sequence[Part]) -> None:
        self.items: list[dict[str, Any]] = []
        for place, part in enumerate(parts):
            match part:
                case Text(text):
                    content = [{"type": "output_text", "text": text, "annotations": []}]
                    self.items.append(
                        {
                            "type": "message",
                            "id": f"m_{number}_{place}",
                            "role": "assistant",
                            "status": "completed",
                            "content": content,
                        }
                    )
                case Thinking(text, signature):
                    self.items.append(
                        {
                            "type": "reasoning",
                            "id": f"rs_{number}_{place}",
                            "summary": [],
                            "encrypted_content": signature,
                        }
                    )
                case Call(name, arguments, id_):
                    self.items.append(
                        {
                            "type": "function_call",
                            "id": f"fc_{number}_{place}",
                            "call_id": id_ or f"call_{number}_{place}",
                            "name": name,
                            "arguments": json.dumps(arguments),
                            "status": "completed",
                        }
                    )
        self.head = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "m", "output": [],
                     "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "in_progress"}  # fmt: skip

    def whole(self) -> dict[str, Any]:
        usage = {
            "input_tokens": 10,
            "output_tokens": 7,
            "total_tokens": 17,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {**self.head, "output": self.items, "status": "completed", "usage": usage}

    def events(self) -> list[bytes]:
        made: list[dict[str, Any]] = [{"type": "response.created", "response": self.head}]
        for index, item in enumerate(self.items):
            where = {"output_index": index, "item_id": item["id"]}
            if item["type"] == "message":
                made.append(
                    {
                        "type": "response.output_item.added",
                        "output_index": index,
                        "item": {**item, "content": []},
                    }
                )
                part = {"type": "output_text", "text": "", "annotations": []}
                made.append(
                    {
                        "type": "response.content_part.added",
                        **where,
                        "content_index": 0,
                        "part": part,
                    }
                )
                text = item["content"][0]["text"]
                made += [
                    {
                        "type": "response.output_text.delta",
                        **where,
                        "content_index": 0,
                        "delta": half,
                        "logprobs": [],
                    }
                    for half in _halves(text)
                ]
                made.append(
                    {
                        "type": "response.output_text.done",
                        **where,
                        "content_index": 0,
                        "text": text,
                        "logprobs": [],
                    }
                )
                made.append(
                    {
                        "type": "response.content_part.done",
                        **where,
                        "content_index": 0,
                        "part": {**part, "text": text},
                    }
                )
            elif item["type"] == "function_call":
                made.append(
                    {
                        "type": "response.output_item.added",
                        "output_index": index,
                        "item": {**item, "arguments": ""},
                    }
                )
                made += [
                    {"type": "response.function_call_arguments.delta", **where, "delta": half}
                    for half in _halves(item["arguments"])
                ]
                made.append(
                    {
                        "type": "response.function_call_arguments.done",
                        **where,
                        "arguments": item["arguments"],
                        "name": item["name"],
                    }
                )
            else:
                made.append(
                    {"type": "response.output_item.added", "output_index": index, "item": item}
                )
            made.append({"type": "response.output_item.done", "output_index": index, "item": item})
        made.append({"type": "response.completed", "response": self.whole()})
        return [_event({**each, "sequence_number": n}, each["type"]) for n, each in enumerate(made)]


WIRE_ANSWERS = {
    b"/v1/messages": _Messages,
    b"/v1/chat/completions": _Chat,
    b"/v1/responses": _Responses,
}
"""What makes an answer's events and body, by the path that is asked."""
