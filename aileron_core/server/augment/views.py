"""What an agent sees of the answers of its model, streamed or whole: one answer, without our calls, written to its connection."""

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence

from aileron_core import tasks
from aileron_core.errors import ModelFormatError
from aileron_core.models import Format
from aileron_core.models.format import write_body
from aileron_core.models.json_values import parse_object
from aileron_core.models.neutral import Answer, Event, Limits
from aileron_core.models.shared import error_of
from aileron_core.server.augment.catalogue import Offer
from aileron_core.server.augment.upstream_answer import AnswerHead, UpstreamAnswer
from aileron_core.server.gateway.client_request import ClientRequest
from aileron_core.server.gateway.forwarding import passed_headers

_OF_THE_BODY = frozenset((b"content-length", b"transfer-encoding", b"trailer"))


class ClientAnswer:
    """Writes one answer, and knows whether the agent is still there: the connection's listener."""

    def __init__(self, client: ClientRequest) -> None:
        self._client = client
        self._room = asyncio.Event()
        self._room.set()
        self._chunked = False
        self.on_gone: Callable[[], None] | None = None
        """Called at once where the agent hangs up."""
        self.begun = False
        self.finished = False
        self.gone = asyncio.Event()
        """Set once the agent has hung up, or was cut off."""

    def begin(self, head: AnswerHead, length: int | None = None) -> None:
        """Write *head*; a body of *length* bytes follows, or one of any length."""
        client = self._client
        has_any_length = length is None and head.status not in (204, 304)
        self._chunked = has_any_length and client.version != "1.0"
        if has_any_length and not self._chunked:
            client.close_after()
        lines = [b"HTTP/1.1 %d %b\r\n" % (head.status, head.reason)]
        lines += [
            b"%b: %b\r\n" % (name, value)
            for name, value in passed_headers(list(head.headers))
            if name.lower() not in _OF_THE_BODY
        ]
        if length is not None:
            lines.append(b"Content-Length: %d\r\n" % length)
        elif self._chunked:
            lines.append(b"Transfer-Encoding: chunked\r\n")
        if not client.is_complete:
            client.close_after()
        if not client.keeps_alive:
            lines.append(b"Connection: close\r\n")
        client.start()
        client.write([*lines, b"\r\n"])
        self.begun = True

    async def write(self, data: bytes) -> None:
        """Write a piece of the body, and wait until there is room for more."""
        if data and not self.gone.is_set():
            self.write_now(data)
            await self._room.wait()

    def write_now(self, data: bytes) -> None:
        if self.gone.is_set() or self.finished:
            return
        self._client.write([b"%x\r\n" % len(data), data, b"\r\n"] if self._chunked else [data])

    @property
    def has_room(self) -> bool:
        return self._room.is_set()

    def finish(self) -> None:
        """End the answer as whole."""
        if self.gone.is_set() or self.finished:
            return
        self.finished = True
        if self._chunked:
            self._client.write([b"0\r\n\r\n"])
        self._client.finish()

    def abort(self) -> None:
        """End it so that its reader knows that it is not whole."""
        if not self.gone.is_set() and not self.finished:
            self._leave()
            self._client.abort_response(at_once=True)

    # From the connection

    def client_full(self) -> None:
        self._room.clear()

    def client_ready(self) -> None:
        self._room.set()

    def client_gone(self) -> None:
        self._client.mark_disconnected()
        self._leave()

    def _leave(self) -> None:
        if not self.gone.is_set() and self.on_gone is not None:
            self.on_gone()
        self.gone.set()
        self._room.set()


_JSON = ((b"Content-Type", b"application/json"),)
_ERROR_BYTES = 1024 * 1024
_MOST_AT_ONCE = 256
"""Events that are read in one turn of the loop."""


class AnswerView(ABC):
    """Reads the model's answers and shows them as one."""

    def __init__(self, format_: Format, offer: Offer, client: ClientAnswer) -> None:
        self._format = format_
        self._offer = offer
        self._client = client

    @property
    def client_gone(self) -> bool:
        return self._client.gone.is_set()

    def reads(self, head: AnswerHead) -> bool:
        """Return whether an answer with this head is one of a model, rather than a refusal."""
        return head.status == 200

    @abstractmethod
    async def take(self, head: AnswerHead, answer: UpstreamAnswer, limits: Limits) -> Answer:
        """Read one answer to its end, and show of it what can be shown now.

        Raises:
            ModelFormatError: it is not of the format, or over a limit.
            AnswerBroken: it broke off.
        """

    @abstractmethod
    async def next_answer(self) -> None:
        """Go on with another answer of the model."""

    @abstractmethod
    async def finish(self, answers: Sequence[Answer]) -> None:
        """Show the end."""

    async def refuse(self, head: AnswerHead, answer: UpstreamAnswer) -> None:
        """Show what the upstream answered in place of a model's answer, as it is."""
        self._client.begin(head)
        async for piece in answer.pieces():
            await self._client.write(piece)
        self._client.finish()

    def fail(self, message: str, status: int, reason: bytes, kind: str) -> None:
        """Show an error of ours in the provider's shape."""
        if self._client.begun:  # a second head would be read as the next answer
            self._client.abort()
            return
        body = write_body(self._format.error_body(message, kind))
        self._client.begin(AnswerHead(status=status, reason=reason, headers=_JSON), len(body))
        self._client.write_now(body)
        self._client.finish()

    @contextlib.asynccontextmanager
    async def kept_alive(self, seconds: float) -> AsyncGenerator[None, None]:
        """Show signs of life while entered, where that is possible."""
        del seconds
        yield


class WholeView(AnswerView):
    """One JSON object."""

    def __init__(self, format_: Format, offer: Offer, client: ClientAnswer) -> None:
        super().__init__(format_, offer, client)
        self._head: AnswerHead | None = None
        self._raw = b""

    async def take(self, head: AnswerHead, answer: UpstreamAnswer, limits: Limits) -> Answer:
        self._head = head
        self._raw = await answer.whole(limits.answer_bytes)
        return self._format.read_answer(self._raw, limits)

    async def next_answer(self) -> None:
        """Keep what was read; all is shown at the end."""

    async def finish(self, answers: Sequence[Answer]) -> None:
        assert self._head is not None
        body = self._raw
        calls = (*answers[0].calls, *answers[0].other_calls)
        if len(answers) > 1 or any(self._offer.shown(call.name) != call.name for call in calls):
            body = write_body(self._format.joined(answers, self._offer.shown))
        self._client.begin(self._head, len(body))
        await self._client.write(body)
        self._client.finish()


class StreamView(AnswerView):
    """A stream of events, which flow on the moment they come."""

    def __init__(self, format_: Format, offer: Offer, client: ClientAnswer) -> None:
        super().__init__(format_, offer, client)
        self._writer = format_.writer(offer.shown)

    def reads(self, head: AnswerHead) -> bool:
        return head.status == 200 and head.is_stream

    async def take(self, head: AnswerHead, answer: UpstreamAnswer, limits: Limits) -> Answer:
        if not self._client.begun:
            self._client.begin(head)
        reader = self._format.reader(limits)
        async for piece in answer.pieces():
            await self._pass(reader.feed(piece))
        await self._pass(reader.finish())
        return reader.answer()

    async def _pass(self, events: Iterable[Event]) -> None:
        written: list[bytes] = []
        try:
            for number, event in enumerate(events, 1):
                written.append(self._writer.write(event))
                if number % _MOST_AT_ONCE == 0:
                    await self._client.write(b"".join(written))
                    written.clear()
                    await asyncio.sleep(0)
        finally:
            await self._client.write(b"".join(written))

    async def next_answer(self) -> None:
        await self._client.write(self._writer.next_answer())

    async def finish(self, answers: Sequence[Answer]) -> None:
        del answers
        await self._client.write(self._writer.finish())
        self._client.finish()

    async def refuse(self, head: AnswerHead, answer: UpstreamAnswer) -> None:
        if not self._client.begun:
            await super().refuse(head, answer)
            return
        message, kind = "", ""
        with contextlib.suppress(ModelFormatError):
            body = parse_object(await answer.whole(_ERROR_BYTES), "the model's answer")
            error = error_of(body)
            message, kind = (error.message, error.kind) if error else ("", "")
        said = f"The model's server answered with status {head.status}. {message}".rstrip()
        self.fail(said, head.status, head.reason, kind or "api_error")

    def fail(self, message: str, status: int, reason: bytes, kind: str) -> None:
        if not self._client.begun:
            super().fail(message, status, reason, kind)
            return
        self._client.write_now(self._writer.error(message, kind))
        self._client.finish()

    @contextlib.asynccontextmanager
    async def kept_alive(self, seconds: float) -> AsyncGenerator[None, None]:
        async def tick() -> None:
            while True:
                await asyncio.sleep(seconds)
                if self._client.begun and self._client.has_room:
                    self._client.write_now(self._writer.keep_alive())

        ticking = tasks.spawn(tick(), name="augment keep alive")
        try:
            yield
        finally:
            ticking.cancel()
