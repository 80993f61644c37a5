"""What each wire format can do: requests of an agent and of our own, answers whole and streamed."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import ClassVar, Literal, TypeAlias

from aileron_core.errors import ModelFormatError
from aileron_core.models.json_values import JsonDict, dump, objects_of, parse_object
from aileron_core.models.neutral import (
    Answer,
    Event,
    Failed,
    Limits,
    Part,
    Tool,
    ToolResult,
)
from aileron_core.models.shared import check_calls, joined_usage
from aileron_core.models.sse import EventSplitter, Frame

ToolChoice = Literal["auto", "none", "forced"]
Shown: TypeAlias = Callable[[str], str | None]
"""The name that a client sees for a tool's name at the model; None: the client sees no such call."""

_MOST_AT_END = 1024
"""Events of one answer from the first that belongs to its end."""


def as_it_is(name: str) -> str | None:
    """Show every call under its own name."""
    return name


class StreamReader(ABC):
    """Reads one streamed answer; after an error it reads no further."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._splitter = EventSplitter(limits.event_bytes)
        self._bytes = 0
        self._calls = 0
        self._broken = False
        self._complete = False
        self._error: Failed | None = None

    def feed(self, data: bytes) -> Iterator[Event]:
        """Yield the events that *data* completes; those before an error come before it is raised.

        What is yielded has to be read to its end before the next call.

        Raises:
            ModelFormatError: the stream is not of the format, or over a limit.
        """
        self._bytes += len(data)
        return self._events(self._splitter.feed(data))

    def finish(self) -> Iterator[Event]:
        """Yield what is left after the last byte.

        Raises:
            ModelFormatError: as `feed`; that the answer is not complete, only `answer` tells.
        """
        try:
            yield from self._events(self._splitter.finish())
        except ModelFormatError as error:
            raise ModelFormatError(f"{error.message} The stream ended with it.") from None

    def answer(self) -> Answer:
        """Return the answer, assembled from its events.

        Raises:
            ModelFormatError: it is not complete, or the stream could not be read.
        """
        self._check()
        if not self._complete:
            raise ModelFormatError("The model's stream ended before its answer was complete.")
        return self._answer()

    def _events(self, frames: Iterator[Frame]) -> Iterator[Event]:
        self._check()
        try:
            for frame in frames:
                yield self._event(frame)
        except ModelFormatError:
            self._broken = True
            raise

    def _check(self) -> None:
        if self._bytes > self._limits.answer_bytes:
            limit = self._limits.answer_bytes
            raise ModelFormatError(f"The model's answer is over {limit} bytes.")
        if self._broken:
            raise ModelFormatError("The model's stream could not be read, so neither can its rest.")

    def _event(self, frame: Frame) -> Event:
        if not frame.data:
            return Event(frame.raw, frame.name, None)
        if frame.data.startswith("[DONE]"):
            self._done()
            return Event(frame.raw, frame.name, None, is_done=True)
        data = parse_object(frame.data, "an event of the model's stream")
        return Event(frame.raw, frame.name, data, tuple(self._parts(data, frame.name)))

    def _count_call(self) -> None:
        self._calls += 1
        check_calls(self._calls, self._limits)

    def _fail(self, error: Failed) -> None:
        self._error, self._complete = error, True

    def _done(self) -> None:  # noqa: B027 - only one format has it
        """Take note of `[DONE]`."""

    @abstractmethod
    def _parts(self, data: JsonDict, name: str) -> Iterator[Part]: ...

    @abstractmethod
    def _answer(self) -> Answer: ...


class StreamWriter(ABC):
    """Writes what a client sees of one answer, or of several that follow each other, as one stream.

    An event that needs no change is written byte for byte. The end of each answer waits
    until `next_answer` replaces it or `finish` writes it. Output tokens are added up; input tokens
    are those of the last answer.
    """

    def __init__(self, shown: Shown = as_it_is) -> None:
        self._shown = shown
        self._tail: list[Event] = []
        self._earlier: list[JsonDict] = []  # the usage of each answer before this one
        self._usage: JsonDict = {}
        self._is_open = False  # what was written last has no empty line at its end

    def write(self, event: Event) -> bytes:
        """Return what of *event* the client gets now, which may be nothing.

        Raises:
            ModelFormatError: the event is not one that the reader of this format gave.
        """
        if self._tail or self._is_end(event):
            if event.data is not None or event.is_done:  # comments at the end say nothing
                self._tail.append(event)
                if len(self._tail) > _MOST_AT_END:
                    raise ModelFormatError("The model's stream goes on after its end.")
            return b""
        written = self._written(event)
        if written:
            self._is_open = not written.endswith((b"\n\n", b"\r\n\r\n", b"\r\r"))
        return written

    def next_answer(self) -> bytes:
        """Begin another answer; return what this one's end has of content."""
        tail, self._tail = self._tail, []
        written = b"".join(self._written_without_end(e) for e in tail if not e.is_done)
        self._earlier.append(self._usage)
        self._usage = {}
        self._begin_answer()
        return written

    def finish(self) -> bytes:
        """Return the end of the last answer."""
        tail, self._tail = self._tail, []
        return b"".join(self._written(event) for event in tail)

    def joined_usage(self) -> JsonDict:
        return joined_usage([*self._earlier, self._usage])

    @property
    def _is_later(self) -> bool:
        """Whether an answer came before this one."""
        return bool(self._earlier)

    def error(self, message: str, kind: str = "api_error") -> bytes:
        """Return an error of ours in the provider's shape, which ends the stream."""
        return b"\n\n" * self._is_open + self._encoded_error(message, kind)

    def keep_alive(self) -> bytes:
        """Return bytes that every client of the format ignores."""
        return b": keep-alive\n\n"

    @abstractmethod
    def _encoded_error(self, message: str, kind: str) -> bytes: ...

    @abstractmethod
    def _is_end(self, event: Event) -> bool: ...

    @abstractmethod
    def _written(self, event: Event) -> bytes: ...

    @abstractmethod
    def _written_without_end(self, event: Event) -> bytes: ...

    @abstractmethod
    def _begin_answer(self) -> None: ...


class Format(ABC):
    """A provider's wire format. Request bodies are never changed: each method returns a new one.

    Every method that reads raises ModelFormatError where a body is not of the format.
    """

    name: ClassVar[str]
    _history: ClassVar[str]  # the request's member with the conversation
    _reader: ClassVar[type[StreamReader]]
    _writer: ClassVar[type[StreamWriter]]

    # Requests

    def streams(self, request: JsonDict) -> bool:
        """Whether the answer is to be streamed."""
        return request.get("stream") is True

    def tool_choice(self, request: JsonDict) -> ToolChoice:
        """Return what the model is told; `forced` is any choice that leaves it less than all tools."""
        choice = request.get("tool_choice") or "auto"
        return choice if choice in ("auto", "none") else "forced"

    def with_tools(self, request: JsonDict, tools: Sequence[Tool]) -> JsonDict:
        """Return *request* with *tools* after those that it has."""
        ours = [self._offered(tool) for tool in tools]
        return {**request, "tools": [*objects_of(request, "tools"), *ours]}

    def history(self, request: JsonDict) -> list[JsonDict]:
        """Return the messages or items of *request* in a new list; what is in it may not be changed."""
        return objects_of(request, self._history)

    def with_history(self, request: JsonDict, items: Sequence[JsonDict]) -> JsonDict:
        return {**request, self._history: list(items)}

    def user(self, text: str) -> JsonDict:
        """Return a person's message as an item of a history."""
        return {"role": "user", "content": text}

    @abstractmethod
    def tool_names(self, request: JsonDict) -> list[str]:
        """Return the names of the tools that *request* offers; in a namespace: `namespace.name`."""

    def renamed(self, request: JsonDict, names: Mapping[str, str]) -> JsonDict:
        """Return *request* with functions called by other names: offered, chosen and called."""
        changed = {**request}
        for member in ("tools", self._history):
            if isinstance(request.get(member), list):
                items = objects_of(request, member)
                changed[member] = [self._renamed(item, names) for item in items]
        if isinstance(request.get("tool_choice"), dict):
            changed["tool_choice"] = self._renamed(request["tool_choice"], names)
        return changed

    @abstractmethod
    def turn(self, answer: Answer) -> list[JsonDict]:
        """Return *answer* as items of a history, with all that the provider wants back."""

    @abstractmethod
    def results(self, results: Sequence[ToolResult]) -> list[JsonDict]:
        """Return the results of one turn's calls as items of a history."""

    def request(
        self,
        *,
        model: str,
        system: str,
        history: Sequence[JsonDict],
        max_tokens: int | None = None,
    ) -> JsonDict:
        """Return a request of our own, without tools, for a streamed answer.

        Args:
            system: may be empty.
            max_tokens: of the answer; None leaves it to the provider, or is 8192 if it wants a number.
        """
        own = self._own_request(system, history, max_tokens)
        return {"model": model, "stream": True, **own}

    # Answers

    def read_answer(self, data: bytes, limits: Limits | None = None) -> Answer:
        """Read an answer that is not streamed, or an error.

        Raises:
            ModelFormatError: it is not of the format, or over a limit.
        """
        limits = limits or Limits()
        if len(data) > limits.answer_bytes:
            raise ModelFormatError(f"The model's answer is over {limits.answer_bytes} bytes.")
        body = parse_object(data, "the model's answer")
        answer = self.answer_of(body)
        check_calls(len(answer.calls), limits)
        return answer

    @abstractmethod
    def answer_of(self, body: JsonDict) -> Answer: ...

    @abstractmethod
    def joined(self, answers: Sequence[Answer], shown: Shown = as_it_is) -> JsonDict:
        """Return the one whole answer that a client sees of *answers*, of which there is one at least.

        It has the first's id, the last's end, usage as `StreamWriter` says, and one choice.
        """

    def error_body(self, message: str, kind: str = "api_error") -> JsonDict:
        """Return an error of ours as a whole answer in the provider's shape."""
        return {"error": {"message": message, "type": kind, "param": None, "code": None}}

    def reader(self, limits: Limits | None = None) -> StreamReader:
        return self._reader(limits or Limits())

    def writer(self, shown: Shown = as_it_is) -> StreamWriter:
        return self._writer(shown)

    @abstractmethod
    def _renamed(self, value: JsonDict, names: Mapping[str, str]) -> JsonDict:
        """Return a tool, a choice of tools or an item of a history with functions called by other names."""

    @abstractmethod
    def _own_request(
        self, system: str, history: Sequence[JsonDict], max_tokens: int | None
    ) -> JsonDict:
        """Return what the members of `request` are here, but for those that all formats share."""

    @abstractmethod
    def _offered(self, tool: Tool) -> JsonDict:
        """Return *tool* as a request offers it."""


def write_body(body: JsonDict) -> bytes:
    """Return the bytes of a request or a whole answer."""
    return dump(body)
