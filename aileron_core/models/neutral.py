"""What a model's answer is made of, whichever provider's format it came in."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from aileron_core.models.json_values import JsonDict, parse_object

StopKind = Literal["end", "length", "tools", "refusal", "paused", "error"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much of one answer is read; beyond it, `ModelFormatError`."""

    event_bytes: int = 16 * 1024 * 1024
    """One server-sent event with its line ends."""
    answer_bytes: int = 64 * 1024 * 1024
    """A whole answer, or all events of a stream."""
    calls: int = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A tool as it is offered to a model."""

    name: str
    description: str
    schema: JsonDict
    """JSON Schema of the arguments, which are an object."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a function by the model, complete."""

    id: str
    """The provider's; made up (`call_0` ...) where a server gives none."""
    name: str
    """Of a function in a namespace (Responses): `namespace.name`."""
    arguments: str
    """JSON text as the model wrote it; empty means no arguments."""

    def parsed_arguments(self) -> JsonDict:
        """Return the arguments.

        Raises:
            ModelFormatError: they are not one JSON object.
        """
        return parse_object(self.arguments or "{}", "the arguments of a call")


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """What a call gave, for the model to read."""

    call_id: str
    text: str
    is_error: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Tokens of one request, as far as the provider has said."""

    input: int = 0
    """All of the prompt, with what was read from or written to a cache."""
    output: int = 0


@dataclass(frozen=True, slots=True)
class TextDelta:
    """More text."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """More of a refusal."""

    text: str


@dataclass(frozen=True, slots=True)
class CallBegun:
    """A call of a function whose name is known."""

    name: str


@dataclass(frozen=True, slots=True)
class OtherCall:
    """A call of another kind than a function (of a server's tool, a custom tool): it only passes."""

    kind: str
    """As the provider calls it, such as `server_tool_use`, `custom_tool_call`."""
    name: str
    """May be empty."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """Why the answer ends."""

    kind: StopKind
    reason: str
    """As the provider calls it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """The provider's error, inside a stream or as the whole answer."""

    kind: str
    """The provider's type or code of it; may be empty."""
    message: str


Part: TypeAlias = TextDelta | RefusalDelta | CallBegun | OtherCall


@dataclass(frozen=True, slots=True)
class Event:
    """One server-sent event: as it came, and what it says."""

    raw: bytes
    """With its line ends; the events' `raw` joined are the stream."""
    name: str
    """Of its `event` line; may be empty."""
    data: JsonDict | None
    """Its JSON; None for a comment, an event without data and `[DONE]`. Not to be changed."""
    parts: tuple[Part, ...] = ()
    is_done: bool = False
    """Whether it is `[DONE]`, after which nothing comes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One complete answer, whole or assembled from its stream."""

    body: JsonDict
    """The provider's object with all members; of a stream: what it would be whole. Not to be changed."""
    text: str = ""
    refusal: str = ""
    calls: tuple[ToolCall, ...] = ()
    other_calls: tuple[OtherCall, ...] = ()
    """Those that only pass, also of functions in a choice after the first."""
    usage: Usage = field(default_factory=Usage)
    stop: Stopped
    error: Failed | None = None
