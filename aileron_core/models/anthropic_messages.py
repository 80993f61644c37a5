"""Anthropic Messages: content blocks with indexes, named events, `message_start` to `message_stop`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from aileron_core.errors import ModelFormatError
from aileron_core.models.format import (
    Format,
    Shown,
    StreamReader,
    StreamWriter,
    ToolChoice,
    as_it_is,
)
from aileron_core.models.json_values import (
    JsonDict,
    dump,
    integer_of,
    object_of,
    objects_of,
    parse_object,
    text_of,
)
from aileron_core.models.neutral import (
    Answer,
    CallBegun,
    Event,
    Failed,
    Limits,
    OtherCall,
    Part,
    RefusalDelta,
    StopKind,
    Stopped,
    TextDelta,
    Tool,
    ToolCall,
    ToolResult,
    Usage,
)
from aileron_core.models.shared import encode_like, error_of, joined_body, rename_at, type_of
from aileron_core.models.sse import encode_event

_MAX_TOKENS = 8192  # the provider requires a number
_BROKEN = "INVALID_JSON"
_MOST_USAGE = 1000
_STOPS: dict[str, StopKind] = {
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "tool_use": "tools",
    "refusal": "refusal",
    "pause_turn": "paused",
}
_GROWING = {"text_delta": "text", "thinking_delta": "thinking", "input_json_delta": "partial_json"}


@dataclass(slots=True)
class _Block:
    value: JsonDict
    pieces: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    ended: bool = False
    citations: list[JsonDict] | None = None

    def close(self) -> None:
        """Put the pieces into the block."""
        for kind, pieces in self.pieces.items():
            text = "".join(pieces)
            if kind == "partial_json":
                if text:
                    self.value["input"] = _input(text)
            else:
                self.value[kind] = text
        self.pieces = {}


def _input(text: str) -> JsonDict:
    """Return arguments; where they are none, the form in which the provider takes them back."""
    try:
        return parse_object(text, "the arguments of a call")
    except ModelFormatError:
        return {_BROKEN: text}


class _Reader(StreamReader):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._message: JsonDict | None = None
        self._blocks: dict[int, _Block] = {}

    def _parts(self, data: JsonDict, name: str) -> Iterator[Part]:
        if self._complete:
            return
        match text_of(data, "type") or name:
            case "message_start":
                if self._message is not None:
                    raise ModelFormatError("The model's stream begins a second message.")
                self._message = {**object_of(data, "message")}
                self._message["usage"] = {**object_of(self._message, "usage")}
            case "content_block_start":
                yield from self._block_begun(data)
            case "content_block_delta":
                yield from self._block_grown(self._block(data), object_of(data, "delta"))
            case "content_block_stop":
                self._block(data).ended = True
            case "message_delta":
                yield from self._message_changed(data)
            case "message_stop":
                self._complete = True
            case "error":
                self._fail(error_of(data) or Failed("", ""))
            case _:
                pass

    def _block(self, data: JsonDict) -> _Block:
        index = integer_of(data, "index")
        if index is None or index not in self._blocks or self._blocks[index].ended:
            raise ModelFormatError("The model's stream names a block that is not open.")
        return self._blocks[index]

    def _block_begun(self, data: JsonDict) -> Iterator[Part]:
        index, value = integer_of(data, "index"), {**object_of(data, "content_block")}
        if index is None or index in self._blocks:
            raise ModelFormatError("The model's stream begins a block without an index of its own.")
        kind = text_of(value, "type")
        if kind == "tool_use":
            self._count_call()
            yield CallBegun(text_of(value, "name"))
        elif kind == "text" and value.get("text"):
            yield TextDelta(text_of(value, "text"))
        else:
            yield from _other_calls([value])
        self._blocks[index] = _Block(value)

    def _block_grown(self, block: _Block, delta: JsonDict) -> Iterator[Part]:
        kind = text_of(delta, "type")
        if kind == "signature_delta":
            block.value["signature"] = text_of(delta, "signature")
        elif kind == "citations_delta":
            if block.citations is None:  # grows in its place: a copy for each would be quadratic
                block.citations = block.value["citations"] = objects_of(block.value, "citations")
            block.citations.append(object_of(delta, "citation"))
        elif member := _GROWING.get(kind):
            text = text_of(delta, member)
            block.pieces.setdefault(member, [text_of(block.value, member)]).append(text)
            if kind == "text_delta":
                yield TextDelta(text)

    def _message_changed(self, data: JsonDict) -> Iterator[Part]:
        if self._message is None:
            raise ModelFormatError("The model's stream ends a message that it did not begin.")
        delta = object_of(data, "delta")
        self._message |= delta
        self._message["usage"] = _merged(self._message["usage"], object_of(data, "usage"))
        if delta.get("stop_reason") is not None and _stop(self._message).kind == "refusal":
            yield RefusalDelta(_refusal(self._message))

    def _answer(self) -> Answer:
        for block in self._blocks.values():
            block.close()
        content = [self._blocks[index].value for index in sorted(self._blocks)]
        message = {**(self._message or {}), "content": content}
        return _answer_of(message, self._error)


def _merged(usage: JsonDict, later: JsonDict) -> JsonDict:
    """Return *usage* with what *later* says, which is cumulative and leaves out what is the same."""
    if len(usage) + len(later) > _MOST_USAGE:
        raise ModelFormatError(f"The model's answer counts tokens of over {_MOST_USAGE} kinds.")
    return usage | {key: value for key, value in later.items() if value is not None}


def _usage(usage: JsonDict) -> Usage:
    cached = integer_of(usage, "cache_read_input_tokens") or 0
    written = integer_of(usage, "cache_creation_input_tokens") or 0
    return Usage(
        input=(integer_of(usage, "input_tokens") or 0) + cached + written,
        output=integer_of(usage, "output_tokens") or 0,
    )


def _stop(message: JsonDict) -> Stopped:
    reason = text_of(message, "stop_reason")
    return Stopped(_STOPS.get(reason, "end"), reason)


def _refusal(message: JsonDict) -> str:
    return text_of(object_of(message, "stop_details"), "explanation")


def _call(block: JsonDict) -> ToolCall:
    given = object_of(block, "input")
    broken = given.get(_BROKEN) if len(given) == 1 else None
    return ToolCall(
        id=text_of(block, "id"),
        name=text_of(block, "name"),
        arguments=broken if isinstance(broken, str) else dump(given).decode(),
    )


def _other_calls(blocks: Sequence[JsonDict]) -> Iterator[OtherCall]:
    for block in blocks:
        kind = text_of(block, "type")
        if kind.endswith("tool_use") and kind != "tool_use":
            yield OtherCall(kind, text_of(block, "name"))


def _answer_of(body: JsonDict, error: Failed | None) -> Answer:
    blocks = objects_of(body, "content")
    if error is None and body.get("content") is None:
        raise ModelFormatError("The model's answer has no content.")
    stop = Stopped("error", error.kind) if error else _stop(body)
    return Answer(
        body=body,
        text="".join(text_of(block, "text") for block in blocks if block.get("type") == "text"),
        refusal=_refusal(body) if stop.kind == "refusal" else "",
        calls=tuple(_call(block) for block in blocks if block.get("type") == "tool_use"),
        other_calls=tuple(_other_calls(blocks)),
        usage=_usage(object_of(body, "usage")),
        stop=stop,
        error=error,
    )


class _Writer(StreamWriter):
    def __init__(self, shown: Shown = as_it_is) -> None:
        super().__init__(shown)
        self._next_index = 0
        self._indexes: dict[int, int | None] = {}  # at the model: at the client, None if hidden

    def _begin_answer(self) -> None:
        self._indexes = {}

    def _is_end(self, event: Event) -> bool:
        return type_of(event) in ("message_delta", "message_stop")

    def _written(self, event: Event) -> bytes:
        data = event.data
        match type_of(event):
            case "message_start" if data:
                self._usage = object_of(object_of(data, "message"), "usage")
                return b"" if self._is_later else event.raw
            case "content_block_start" | "content_block_delta" | "content_block_stop" if data:
                return self._block(event, data)
            case "message_delta" if data:
                self._usage = _merged(self._usage, object_of(data, "usage"))
                usage = self.joined_usage()
                return encode_like(event, {**data, "usage": usage} if self._is_later else data)
            case _:
                return event.raw

    def _written_without_end(self, event: Event) -> bytes:
        kind = type_of(event)
        if kind == "message_delta" and event.data:
            self._usage = _merged(self._usage, object_of(event.data, "usage"))
        return b"" if kind in ("message_delta", "message_stop") else self._written(event)

    def _block(self, event: Event, data: JsonDict) -> bytes:
        index = integer_of(data, "index") or 0
        changed = data
        if type_of(event) == "content_block_start":
            block = object_of(data, "content_block")
            shown = _shown_block(block, self._shown)
            self._indexes[index] = None if shown is None else self._next_index
            self._next_index += shown is not None
            if shown is not block:
                changed = {**data, "content_block": shown}
        written = self._indexes.get(index)
        if written is None:
            return b""
        if written != index:
            changed = {**changed, "index": written}
        return encode_like(event, changed)

    def _encoded_error(self, message: str, kind: str) -> bytes:
        return encode_event(ANTHROPIC_MESSAGES.error_body(message, kind), "error")

    def keep_alive(self) -> bytes:
        return encode_event({"type": "ping"}, "ping")


def _shown_block(block: JsonDict, shown: Shown) -> JsonDict | None:
    if block.get("type") != "tool_use":
        return block
    name = shown(text_of(block, "name"))
    if name is None:
        return None
    return block if name == block.get("name") else {**block, "name": name}


class _AnthropicMessages(Format):
    name = "anthropic_messages"
    _history = "messages"
    _reader = _Reader
    _writer = _Writer

    def tool_names(self, request: JsonDict) -> list[str]:
        return [text_of(tool, "name") for tool in objects_of(request, "tools")]

    def _offered(self, tool: Tool) -> JsonDict:
        return {
            "name": tool.name,
            "description": tool.description,
            "input_schema": tool.schema,
        }

    def _renamed(self, value: JsonDict, names: Mapping[str, str]) -> JsonDict:
        content = value.get("content")
        if value.get("role") == "assistant" and isinstance(content, list):
            blocks = [self._renamed(block, names) for block in objects_of(value, "content")]
            return {**value, "content": blocks}
        is_function = value.get("type") in (None, "custom", "tool", "tool_use")
        return rename_at(value, names) if is_function else value

    def tool_choice(self, request: JsonDict) -> ToolChoice:
        kind = text_of(object_of(request, "tool_choice"), "type") or "auto"
        return kind if kind in ("auto", "none") else "forced"

    def turn(self, answer: Answer) -> list[JsonDict]:
        blocks = objects_of(answer.body, "content")
        content = [b for b in blocks if b.get("type") != "text" or b.get("text")]  # empty: refused
        return [{"role": "assistant", "content": content}] if content else []

    def results(self, results: Sequence[ToolResult]) -> list[JsonDict]:
        content: list[JsonDict] = [
            {"type": "tool_result", "tool_use_id": result.call_id, "content": result.text}
            | ({"is_error": True} if result.is_error else {})
            for result in results
        ]
        return [{"role": "user", "content": content}] if content else []

    def _own_request(
        self, system: str, history: Sequence[JsonDict], max_tokens: int | None
    ) -> JsonDict:
        body: JsonDict = {"max_tokens": max_tokens or _MAX_TOKENS, "messages": [*history]}
        return body | ({"system": system} if system else {})

    def answer_of(self, body: JsonDict) -> Answer:
        error = error_of(body) if body.get("type") == "error" else None
        return _answer_of(body, error)

    def joined(self, answers: Sequence[Answer], shown: Shown = as_it_is) -> JsonDict:
        blocks = [block for answer in answers for block in objects_of(answer.body, "content")]
        content = [seen for block in blocks if (seen := _shown_block(block, shown)) is not None]
        return joined_body(answers, ("id",)) | {"content": content}

    def error_body(self, message: str, kind: str = "api_error") -> JsonDict:
        return {"type": "error", "error": {"type": kind, "message": message}}


ANTHROPIC_MESSAGES = _AnthropicMessages()
