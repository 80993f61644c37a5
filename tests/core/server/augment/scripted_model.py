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


def _named(kind: str, **members: Any) -> bytes:
    """Return an event that is called what its data say is their type."""
    return _event({"type": kind, **members}, kind)


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


class _Messages:
    def __init__(self, number: int, parts: Sequence[Part]) -> None:
        self.id = f"msg_{number}"
        self.blocks = [self._block(p, f"toolu_{number}_{place}") for place, p in enumerate(parts)]
        calls = any(isinstance(part, Call) for part in parts)
        self.stop = "tool_use" if calls else "end_turn"

    @staticmethod
    def _block(part: Part, id_: str) -> dict[str, Any]:
        match part:
            case Text(text):
                return {"type": "text", "text": text}
            case Thinking(text, signature):
                return {"type": "thinking", "thinking": text, "signature": signature}
            case Call(name, arguments, own):
                return {"type": "tool_use", "id": own or id_, "name": name, "input": arguments}

    def _head(self) -> dict[str, Any]:
        return {"id": self.id, "type": "message", "role": "assistant", "model": "m", "content": [],
                "stop_reason": None, "stop_sequence": None, "usage": {"input_tokens": 10, "output_tokens": 1}}  # fmt: skip

    def whole(self) -> dict[str, Any]:
        return {**self._head(), "content": self.blocks, "stop_reason": self.stop,
                "usage": {"input_tokens": 10, "output_tokens": 7}}  # fmt: skip

    @staticmethod
    def _streamed(block: dict[str, Any]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """Return the members that are empty at the block's beginning, and what fills them."""
        match block["type"]:
            case "text":
                halves = _halves(block["text"])
                return {"text": ""}, [{"type": "text_delta", "text": half} for half in halves]
            case "thinking":
                return {"thinking": "", "signature": ""}, [
                    {"type": "thinking_delta", "thinking": block["thinking"]},
                    {"type": "signature_delta", "signature": block["signature"]},
                ]
            case _:
                halves = _halves(json.dumps(block["input"]))
                kind = "input_json_delta"
                return {"input": {}}, [{"type": kind, "partial_json": half} for half in halves]

    def events(self) -> list[bytes]:
        found = [_named("message_start", message=self._head())]
        for index, block in enumerate(self.blocks):
            empty, deltas = self._streamed(block)
            begun = {**block, **empty}
            found.append(_named("content_block_start", index=index, content_block=begun))
            found += [_named("content_block_delta", index=index, delta=each) for each in deltas]
            found.append(_named("content_block_stop", index=index))
        delta = {"stop_reason": self.stop, "stop_sequence": None}
        found.append(_named("message_delta", delta=delta, usage={"output_tokens": 7}))
        return [*found, _named("message_stop")]


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

    def _chunk(self, **members: Any) -> bytes:
        return _event({**self.head, "object": "chat.completion.chunk", **members})

    def _delta(self, finish: str | None = None, **delta: Any) -> bytes:
        return self._chunk(choices=[{"index": 0, "delta": delta, "finish_reason": finish}])

    def events(self) -> list[bytes]:
        found = [self._delta(role="assistant", content="")]
        found += [self._delta(content=half) for half in _halves(self.text) if half]
        for index, call in enumerate(self.calls):
            first, second = _halves(call["function"]["arguments"])
            begun = {**call, "function": {"name": call["function"]["name"], "arguments": first}}
            for part in (begun, {"function": {"arguments": second}}):
                found.append(self._delta(tool_calls=[{"index": index, **part}]))
        found += [self._delta(self.stop), self._chunk(choices=[], usage=self.usage)]
        return [*found, b"data: [DONE]\n\n"]


class _Responses:
    def __init__(self, number: int, parts: Sequence[Part]) -> None:
        self.items = [self._item(part, f"{number}_{place}") for place, part in enumerate(parts)]
        self.head = {"id": f"resp_{number}", "object": "response", "created_at": 1, "model": "m", "output": [],
                     "parallel_tool_calls": True, "tool_choice": "auto", "tools": [], "status": "in_progress"}  # fmt: skip

    @staticmethod
    def _item(part: Part, number: str) -> dict[str, Any]:
        match part:
            case Text(text):
                content = [{"type": "output_text", "text": text, "annotations": []}]
                return {"type": "message", "id": f"m_{number}", "role": "assistant",
                        "status": "completed", "content": content}  # fmt: skip
            case Thinking(_, signature):
                return {"type": "reasoning", "id": f"rs_{number}", "summary": [],
                        "encrypted_content": signature}  # fmt: skip
            case Call(name, arguments, id_):
                return {"type": "function_call", "id": f"fc_{number}", "call_id": id_ or f"call_{number}",
                        "name": name, "arguments": json.dumps(arguments), "status": "completed"}  # fmt: skip

    def whole(self) -> dict[str, Any]:
        usage = {
            "input_tokens": 10,
            "output_tokens": 7,
            "total_tokens": 17,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": 0},
        }
        return {**self.head, "output": self.items, "status": "completed", "usage": usage}

    @staticmethod
    def _between(index: int, item: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
        """Return an item as it begins, and what fills it."""
        where = {"output_index": index, "item_id": item["id"]}
        match item["type"]:
            case "message":
                begun, where = {**item, "content": []}, {**where, "content_index": 0}
                (part,) = item["content"]
                text = {**where, "logprobs": []}
                rest = [
                    ("content_part.added", {**where, "part": {**part, "text": ""}}),
                    *(("output_text.delta", {**text, "delta": h}) for h in _halves(part["text"])),
                    ("output_text.done", {**text, "text": part["text"]}),
                    ("content_part.done", {**where, "part": part}),
                ]
            case "function_call":
                begun, arguments = {**item, "arguments": ""}, item["arguments"]
                kind = "function_call_arguments"
                rest = [(f"{kind}.delta", {**where, "delta": half}) for half in _halves(arguments)]
                done = {**where, "arguments": arguments, "name": item["name"]}
                rest.append((f"{kind}.done", done))
            case _:
                begun, rest = item, []
        return [("output_item.added", {"output_index": index, "item": begun}), *rest]

    def events(self) -> list[bytes]:
        made: list[tuple[str, dict[str, Any]]] = [("created", {"response": self.head})]
        for index, item in enumerate(self.items):
            made += self._between(index, item)
            made.append(("output_item.done", {"output_index": index, "item": item}))
        made.append(("completed", {"response": self.whole()}))
        return [
            _named(f"response.{kind}", **each, sequence_number=n)
            for n, (kind, each) in enumerate(made)
        ]


WIRE_ANSWERS = {
    b"/v1/messages": _Messages,
    b"/v1/chat/completions": _Chat,
    b"/v1/responses": _Responses,
}
"""What makes an answer's events and body, by the path that is asked."""
