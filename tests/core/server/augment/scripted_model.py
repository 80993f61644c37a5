"""A model on loopback that says what a test wrote, in the three wire formats, whole or streamed."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.core.server.gateway.harness import STREAM_HEAD, Seen
from tests.support.scripted_answers import STREAM, WHOLE, Said, Turn, sse


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
        self.hold: asyncio.Event | None = None
        """Where there is one, a stream stops in its middle until it is set, and a whole answer before it."""
        self.asked = asyncio.Event()

    async def __call__(self, seen: Seen, _reader: object, writer: asyncio.StreamWriter) -> None:
        request = json.loads(seen.body)
        number = len(self.requests)
        self.requests.append(request)
        self.seen.append(seen)
        self.asked.set()
        answer = self.answers.pop(0)
        if isinstance(answer, Refusal):
            error = {"type": "overloaded_error", "message": answer.message}
            _write(writer, answer.status, {"error": error, "type": "error"})
            return
        breaks = isinstance(answer, BrokenOff)
        path, parts = path_of(seen), answer.parts if breaks else answer
        if not request.get("stream"):
            if self.hold is not None:
                await self.hold.wait()
            _write(writer, 200, WHOLE[FORMATS[path]](turn(number, parts)), breaks=breaks)
            return
        events = events_of(path, number, parts)
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
    return seen.line.split(b" ")[1].partition(b"?")[0]


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


FORMATS = {
    b"/v1/messages": "anthropic_messages",
    b"/v1/chat/completions": "chat_completions",
    b"/v1/responses": "openai_responses",
}


def turn(number: int, parts: Sequence[Part]) -> Turn:
    """Return what the model says to its request *number*, most of it in two pieces."""
    said = [_said(part, f"call_{number}_{place}") for place, part in enumerate(parts)]
    return Turn(number, tuple(said), output_tokens=7)


def _said(part: Part, id_: str) -> Said:
    match part:
        case Text(text):
            return Said("text", _halves(text))
        case Thinking(text, signature):
            return Said("thinking", (text,), signature=signature)
        case Call(name, arguments, own):
            return Said("call", _halves(json.dumps(arguments)), name, own or id_)


def _halves(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


def events_of(path: bytes, number: int, parts: Sequence[Part]) -> list[bytes]:
    """Return the stream of `turn`, in the format that is spoken at *path*."""
    return [sse([event]) for event in STREAM[FORMATS[path]](turn(number, parts))]
