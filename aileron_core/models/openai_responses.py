"""OpenAI Responses: output items with indexes, numbered events, a response that ends the stream."""

from collections.abc import Iterator, Mapping, Sequence

from aileron_core.errors import ModelFormatError
from aileron_core.models.format import Format, Shown, StreamReader, StreamWriter, as_it_is
from aileron_core.models.json_values import (
    JsonDict,
    integer_of,
    object_of,
    objects_of,
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
    Stopped,
    TextDelta,
    Tool,
    ToolCall,
    ToolResult,
)
from aileron_core.models.shared import (
    check_calls,
    encode_like,
    error_of,
    joined_body,
    rename_at,
    type_of,
    usage_of,
)
from aileron_core.models.sse import encode_event

_BEGINS = ("response.created", "response.queued", "response.in_progress")
_ENDS = ("response.completed", "response.incomplete", "response.failed")
_DELTAS: dict[str, type[TextDelta | RefusalDelta]] = {
    "response.output_text.delta": TextDelta,
    "response.refusal.delta": RefusalDelta,
}


class _Reader(StreamReader):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._response: JsonDict = {}
        self._items: dict[int, JsonDict] = {}
        self._begun: set[int] = set()  # the indexes of calls

    def _parts(self, data: JsonDict, name: str) -> Iterator[Part]:
        kind = text_of(data, "type") or name
        if self._complete:
            return
        if kind in _DELTAS:
            yield _DELTAS[kind](text_of(data, "delta"))
        elif kind in _BEGINS:
            self._response = object_of(data, "response")
        elif kind in _ENDS:
            yield from self._end(object_of(data, "response"))
        elif kind in ("response.output_item.added", "response.output_item.done"):
            yield from self._item(
                self._index(data), object_of(data, "item"), ended=kind.endswith("done")
            )
        elif kind == "response.function_call_arguments.delta":
            if self._index(data) not in self._begun:
                raise ModelFormatError("The model's stream has a piece of a call that never began.")
        elif kind == "error":
            self._fail(_stream_error(data))

    def _index(self, data: JsonDict) -> int:
        index = integer_of(data, "output_index")
        if index is None:
            raise ModelFormatError("The model's stream has an event without `output_index`.")
        return index

    def _item(self, index: int, item: JsonDict, *, ended: bool) -> Iterator[Part]:
        before, kind = self._items.get(index), text_of(item, "type")
        if before is not None and text_of(before, "type") != kind:
            raise ModelFormatError("The model's stream gives an item a second type.")
        self._items[index] = item
        if kind != "function_call":
            if ended:
                yield from _other_calls([item])
            return
        call = _call(item)
        if before is not None and call.name != _name(before):
            raise ModelFormatError("The model's stream gives a call a second name.")
        if index not in self._begun:
            self._count_call()
            self._begun.add(index)
            yield CallBegun(call.name)

    def _end(self, response: JsonDict) -> Iterator[Part]:
        told = [i for i in objects_of(response, "output") if i.get("type") == "function_call"]
        check_calls(len(told), self._limits)
        for item in told:  # most servers have told all of it by now
            same = [i for i in self._begun if _call(self._items[i]).id == _call(item).id]
            index = same[0] if same else max(self._items, default=-1) + 1
            yield from self._item(index, item, ended=True)
        self._response = response
        if not response.get("output"):
            items = [self._items[index] for index in sorted(self._items)]
            self._response = {**response, "output": items}
        self._complete = True

    def _answer(self) -> Answer:
        if self._error is None or self._response.get("error"):
            return _answer_of(self._response)
        items = [self._items[index] for index in sorted(self._items)]
        failed = {"code": self._error.kind, "message": self._error.message}
        return _answer_of({**self._response, "status": "failed", "error": failed, "output": items})


def _stream_error(data: JsonDict) -> Failed:
    """Return what an `error` event says, whose members some servers put into an object."""
    if error := error_of(data):
        return error
    return Failed(text_of(data, "code"), text_of(data, "message"))


def _name(item: JsonDict) -> str:
    namespace, name = text_of(item, "namespace"), text_of(item, "name")
    return f"{namespace}.{name}" if namespace else name


def _other_calls(items: Sequence[JsonDict]) -> Iterator[OtherCall]:
    for item in items:
        kind = text_of(item, "type")
        if kind.endswith("_call") and kind != "function_call":
            yield OtherCall(kind, _name(item))


def _call(item: JsonDict) -> ToolCall:
    return ToolCall(
        id=text_of(item, "call_id") or text_of(item, "id"),
        name=_name(item),
        arguments=text_of(item, "arguments"),
    )


def _stop(body: JsonDict, *, calls: bool) -> Stopped:
    status = text_of(body, "status")
    if status == "failed" or error_of(body):
        return Stopped("error", status)
    if status == "incomplete":
        reason = text_of(object_of(body, "incomplete_details"), "reason")
        return Stopped("refusal" if reason == "content_filter" else "length", reason)
    return Stopped("tools" if calls else "end", status)


def _answer_of(body: JsonDict) -> Answer:
    items, error = objects_of(body, "output"), error_of(body)
    if error is None and body.get("output") is None:
        raise ModelFormatError("The model's answer has no output.")
    parts = [
        part
        for item in items
        if item.get("type") == "message"
        for part in objects_of(item, "content")
    ]
    calls = tuple(_call(item) for item in items if item.get("type") == "function_call")
    return Answer(
        body=body,
        text="".join(text_of(part, "text") for part in parts if part.get("type") == "output_text"),
        refusal="".join(text_of(part, "refusal") for part in parts),
        calls=calls,
        other_calls=tuple(_other_calls(items)),
        usage=usage_of(body, "input_tokens", "output_tokens"),
        stop=_stop(body, calls=bool(calls)),
        error=error,
    )


class _Writer(StreamWriter):
    def __init__(self, shown: Shown = as_it_is) -> None:
        super().__init__(shown)
        self._first: JsonDict = {}  # members that every response of a stream shares
        self._sequence: int | None = None
        self._next_index = 0
        self._indexes: dict[int, int | None] = {}  # at the model: at the client, None if hidden
        self._output: list[JsonDict] = []  # what the client has seen of earlier answers
        self._items: dict[int, JsonDict] = {}

    def _begin_answer(self) -> None:
        self._indexes, self._items = {}, {}

    def _is_end(self, event: Event) -> bool:
        return type_of(event) in _ENDS

    def _written(self, event: Event) -> bytes:
        data = event.data
        if data is None:
            return event.raw
        changed: JsonDict | None = data
        if type_of(event) in _BEGINS:
            if self._is_later:
                return b""
            response = object_of(data, "response")
            self._first = {k: response[k] for k in ("id", "created_at") if k in response}
        elif type_of(event) in _ENDS:
            changed = self._end(data, object_of(data, "response"))
        elif data.get("output_index") is not None:
            changed = self._of_item(data, integer_of(data, "output_index") or 0, type_of(event))
        return b"" if changed is None else encode_like(event, self._numbered(changed))

    def _written_without_end(self, event: Event) -> bytes:
        if type_of(event) not in _ENDS or event.data is None:
            return self._written(event)
        response = object_of(event.data, "response")
        self._usage = object_of(response, "usage")
        self._output += self._seen(response)
        return b""

    def _seen(self, response: JsonDict) -> list[JsonDict]:
        """Return what the client sees of an answer's items, which its end may leave out."""
        items = objects_of(response, "output") or list(self._items.values())
        return [seen for item in items if (seen := _shown_item(item, self._shown)) is not None]

    def _end(self, data: JsonDict, response: JsonDict) -> JsonDict:
        self._usage = object_of(response, "usage")
        output = objects_of(response, "output")
        seen = [*self._output, *self._seen(response)]
        if not self._is_later and (not output or seen == output):
            return data
        changed = response | self._first
        if response.get("output") is not None:  # without it, clients put it together themselves
            changed["output"] = seen
        if self._is_later and self._usage:
            changed["usage"] = self.joined_usage()
        return {**data, "response": changed}

    def _of_item(self, data: JsonDict, index: int, kind: str) -> JsonDict | None:
        changed = data
        if kind.startswith("response.output_item."):
            item = object_of(data, "item")
            shown = _shown_item(item, self._shown)
            if index not in self._indexes:
                self._indexes[index] = None if shown is None else self._next_index
                self._next_index += shown is not None
            if shown is not None:
                self._items[index] = item
                changed = data if shown is item else {**data, "item": shown}
        elif index not in self._indexes:
            self._indexes[index] = self._next_index
            self._next_index += 1
        written = self._indexes[index]
        if written is None:
            return None
        return changed if written == index else {**changed, "output_index": written}

    def _numbered(self, data: JsonDict) -> JsonDict:
        number = data.get("sequence_number")
        if not isinstance(number, int):
            return data
        self._sequence = number if self._sequence is None else self._sequence + 1
        return data if number == self._sequence else {**data, "sequence_number": self._sequence}

    def _encoded_error(self, message: str, kind: str) -> bytes:
        data: JsonDict = {"type": "error", "code": kind, "message": message, "param": None}
        data["sequence_number"] = 0 if self._sequence is None else self._sequence + 1
        return encode_event(data, "error")


def _shown_item(item: JsonDict, shown: Shown) -> JsonDict | None:
    if item.get("type") != "function_call":
        return item
    old = _name(item)
    name = shown(old)
    if name is None:
        return None
    return item if name == old else {**item, "name": name}


class _OpenaiResponses(Format):
    name = "openai_responses"
    _history = "input"
    _reader = _Reader
    _writer = _Writer

    def tool_names(self, request: JsonDict) -> list[str]:
        names: list[str] = []
        for tool in objects_of(request, "tools"):
            if tool.get("type") == "namespace":
                space = text_of(tool, "name")
                names += [f"{space}.{text_of(t, 'name')}" for t in objects_of(tool, "tools")]
            elif tool.get("name"):
                names.append(text_of(tool, "name"))
        return names

    def _offered(self, tool: Tool) -> JsonDict:
        return {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
            "strict": False,  # by default, every input would be required
        }

    def _renamed(self, value: JsonDict, names: Mapping[str, str]) -> JsonDict:
        if value.get("type") == "allowed_tools":
            tools = [self._renamed(tool, names) for tool in objects_of(value, "tools")]
            return {**value, "tools": tools}
        is_function = value.get("type") in ("function", "function_call")
        return rename_at(value, names) if is_function and not value.get("namespace") else value

    def history(self, request: JsonDict) -> list[JsonDict]:
        given = request.get("input")
        return [self.user(given)] if isinstance(given, str) else objects_of(request, "input")

    def turn(self, answer: Answer) -> list[JsonDict]:
        return objects_of(answer.body, "output")

    def results(self, results: Sequence[ToolResult]) -> list[JsonDict]:
        return [
            {"type": "function_call_output", "call_id": result.call_id, "output": result.text}
            for result in results
        ]

    def _own_request(
        self, system: str, history: Sequence[JsonDict], max_tokens: int | None
    ) -> JsonDict:
        body: JsonDict = {"store": False, "include": ["reasoning.encrypted_content"]}
        body["input"] = [*history]
        if system:
            body["instructions"] = system
        if max_tokens:
            body["max_output_tokens"] = max_tokens
        return body

    def answer_of(self, body: JsonDict) -> Answer:
        return _answer_of(body)

    def joined(self, answers: Sequence[Answer], shown: Shown = as_it_is) -> JsonDict:
        items = [item for answer in answers for item in objects_of(answer.body, "output")]
        output = [seen for item in items if (seen := _shown_item(item, shown)) is not None]
        return joined_body(answers, ("id", "created_at")) | {"output": output}


OPENAI_RESPONSES = _OpenaiResponses()
