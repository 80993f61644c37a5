"""OpenAI Chat Completions, with the deviations of compatible servers.

Some give a call no `index` or no `id`, or a whole call in one delta, and end it with `stop`; some
say `""` for a finish reason that is not there yet.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from aileron_core.errors import ModelFormatError
from aileron_core.models.format import Format, Shown, StreamReader, StreamWriter, as_it_is
from aileron_core.models.json_values import (
    JsonDict,
    dump,
    integer_of,
    object_of,
    objects_of,
    text_of,
)
from aileron_core.models.neutral import (
    Answer,
    CallBegun,
    Event,
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
)
from aileron_core.models.shared import (
    Pieces,
    encode_like,
    error_of,
    grow,
    grown,
    joined_body,
    rename_at,
    usage_of,
)
from aileron_core.models.sse import encode_event

_STOPS: dict[str, StopKind] = {
    "length": "length",
    "tool_calls": "tools",
    "function_call": "tools",
    "content_filter": "refusal",
    "error": "error",
}


@dataclass(slots=True)
class _Call:
    number: int
    choice: int
    id: str
    name: str = ""
    value: JsonDict = field(default_factory=dict[str, Any])
    arguments: Pieces = field(default_factory=Pieces)
    custom: bool = False  # no function: it only passes
    begun: bool = False
    ended: bool = False

    def complete(self) -> JsonDict:
        """Return the call as it stands in a whole answer."""
        if self.custom:
            value = grown(self.value)
            custom = {**object_of(value, "custom"), "name": self.name}
            return {**value, "id": self.id, "type": "custom", "custom": custom}
        function = object_of(self.value, "function")
        function = {**function, "name": self.name, "arguments": "".join(self.arguments)}
        return {"type": "function", **self.value, "id": self.id, "function": function}


class _Calls:
    """Tells which call each delta of an answer belongs to."""

    def __init__(self) -> None:
        self.all: list[_Call] = []
        self._by_index: dict[tuple[int, int], _Call] = {}

    def of(self, choice: int, delta: JsonDict) -> _Call:
        """Return the call of *delta*, with its name as far as it is known.

        Raises:
            ModelFormatError: it belongs to none, or gives a call another name.
        """
        index, id_ = integer_of(delta, "index"), text_of(delta, "id")
        function, custom = object_of(delta, "function"), object_of(delta, "custom")
        name = text_of(custom or function, "name")
        call = self._latest(choice, index, id_, name)
        is_new = call is None or (name and id_ and call.id and id_ != call.id)
        if call is None or is_new:
            if not (id_ or name or index is not None):
                raise ModelFormatError("The model's stream has a piece of a call that never began.")
            call = _Call(len(self.all), choice, id_)
            self.all.append(call)
        if index is not None:
            self._by_index[choice, index] = call
        if name and call.name and name != call.name:
            raise ModelFormatError("The model's stream gives a call a second name.")
        if (
            not is_new
            and call.name
            and ((custom and not call.custom) or (function and call.custom))
        ):
            raise ModelFormatError("The model's stream gives a call a second type.")
        call.id, call.name = call.id or id_, call.name or name
        call.custom = call.custom or bool(custom)
        return call

    def _latest(self, choice: int, index: int | None, id_: str, name: str) -> _Call | None:
        if index is not None:
            return self._by_index.get((choice, index))
        calls = [call for call in self.all if call.choice == choice]
        if id_:
            known = [call for call in calls if call.id == id_]
            return known[-1] if known else None if name or not calls else calls[-1]
        return calls[-1] if calls and not name else None


class _Reader(StreamReader):
    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._envelope: JsonDict = {}
        self._choices: dict[int, JsonDict] = {}
        self._found = _Calls()

    def _parts(self, data: JsonDict, name: str) -> Iterator[Part]:
        del name  # the format has none
        self._envelope |= {key: value for key, value in data.items() if value is not None}
        if error := error_of(data):
            self._fail(error)
        for choice in objects_of(data, "choices"):
            yield from self._choice(choice)

    def _choice(self, choice: JsonDict) -> Iterator[Part]:
        number, delta = integer_of(choice, "index") or 0, object_of(choice, "delta")
        whole = self._choices.setdefault(
            number, {"index": number, "message": {"role": "assistant", "content": None}}
        )
        rest = {k: v for k, v in delta.items() if k not in ("tool_calls", "role", "function_call")}
        grow(whole["message"], rest)
        grow(whole, {"logprobs": choice.get("logprobs")})
        if text := _said(delta, "content"):
            yield TextDelta(text)
        if refusal := _said(delta, "refusal"):
            yield RefusalDelta(refusal)
        if function := object_of(delta, "function_call"):
            grow(whole["message"], {"function_call": function})
            if function.get("name"):
                yield OtherCall("function_call", text_of(function, "name"))
        for piece in objects_of(delta, "tool_calls"):
            yield from self._piece(number, piece)
        if reason := text_of(choice, "finish_reason"):
            whole["finish_reason"] = reason
            self._end_calls(number)
            self._complete = True

    def _piece(self, choice: int, piece: JsonDict) -> Iterator[Part]:
        known = len(self._found.all)
        call = self._found.of(choice, piece)
        if call.number == known:
            self._count_call()
        if call.ended:
            raise ModelFormatError("The model's stream adds to a call after its end.")
        rest = {k: v for k, v in piece.items() if k not in ("index", "id")}
        if call.custom:
            grow(call.value, rest)
            if call.name and not call.begun:
                call.begun = True
                yield OtherCall("custom", call.name)
            return
        call.value |= {k: v for k, v in rest.items() if v is not None}
        call.arguments.append(_arguments(object_of(piece, "function")))
        if call.name and not call.begun:
            call.begun = True
            call.id = call.id or f"call_{call.number}"
            yield CallBegun(call.name)

    def _done(self) -> None:
        self._complete = True
        for choice in self._choices:
            self._end_calls(choice)

    def _end_calls(self, choice: int) -> None:
        for call in self._found.all:
            if call.choice == choice and not call.custom:
                if not call.name:
                    raise ModelFormatError("The model's stream has a call without a name.")
                call.ended = True

    def _answer(self) -> Answer:
        choices: list[JsonDict] = []
        for number in sorted(self._choices):
            choice = grown(self._choices[number])
            calls = [call.complete() for call in self._found.all if call.choice == number]
            if calls:
                choice["message"]["tool_calls"] = calls
            choices.append(choice)
        return _answer_of(self._envelope | {"object": "chat.completion", "choices": choices})


def _said(message: JsonDict, key: str) -> str:
    """Return a text of a delta or a message; what is no text passes unread."""
    found = message.get(key)
    return found if isinstance(found, str) else ""


def _arguments(function: JsonDict) -> str:
    """Return the arguments' text; some servers send the object itself."""
    given = function.get("arguments")
    return (
        dump(cast("object", given)).decode()
        if isinstance(given, dict)
        else text_of(function, "arguments")
    )


def _stop(reason: str, *, calls: bool) -> Stopped:
    kind = _STOPS.get(reason, "end")
    return Stopped("tools" if calls and kind == "end" else kind, reason)


def _call(value: JsonDict, number: int) -> ToolCall:
    function = object_of(value, "function")
    return ToolCall(
        id=text_of(value, "id") or f"call_{number}",
        name=text_of(function, "name"),
        arguments=_arguments(function),
    )


def _function_calls(message: JsonDict) -> list[JsonDict]:
    return [call for call in objects_of(message, "tool_calls") if "function" in call]


def _other_calls(choices: list[JsonDict]) -> Iterator[OtherCall]:
    for number, choice in enumerate(choices):
        message = object_of(choice, "message")
        if function := object_of(message, "function_call"):
            yield OtherCall("function_call", text_of(function, "name"))
        for call in objects_of(message, "tool_calls"):
            if "function" not in call:
                yield OtherCall("custom", text_of(object_of(call, "custom"), "name"))
            elif number:
                yield OtherCall("function", text_of(object_of(call, "function"), "name"))


def _answer_of(body: JsonDict) -> Answer:
    error = error_of(body)
    choices = objects_of(body, "choices")
    if not choices and error is None:
        raise ModelFormatError("The model's answer has no choice.")
    choice = choices[0] if choices else {}
    message = object_of(choice, "message")
    calls = tuple(_call(value, n) for n, value in enumerate(_function_calls(message)))
    stop = _stop(text_of(choice, "finish_reason"), calls=bool(calls))
    return Answer(
        body=body,
        text=_said(message, "content"),
        refusal=_said(message, "refusal"),
        calls=calls,
        other_calls=tuple(_other_calls(choices)),
        usage=usage_of(body, "prompt_tokens", "completion_tokens"),
        stop=Stopped("error", error.kind) if error else stop,
        error=error,
    )


class _Writer(StreamWriter):
    def __init__(self, shown: Shown = as_it_is) -> None:
        super().__init__(shown)
        self._first: JsonDict = {}  # members that all chunks of a stream share
        self._next_index: dict[int, int] = {}  # by choice
        self._hides = False
        self._begin_answer()

    def _begin_answer(self) -> None:
        self._calls = _Calls()
        self._waiting: dict[int, list[JsonDict]] = {}  # pieces of calls without a name
        self._indexes: dict[int, int | None] = {}  # at the client, by call; None if hidden

    def _is_end(self, event: Event) -> bool:
        data = event.data or {}
        choices = objects_of(data, "choices")
        return (
            event.is_done
            or any(text_of(choice, "finish_reason") for choice in choices)
            or (not choices and data.get("usage") is not None)
        )

    def _written(self, event: Event) -> bytes:
        if event.data is None:
            return event.raw
        self._usage = object_of(event.data, "usage") or self._usage
        changed = self._changed(event.data)
        return b"" if changed is None else encode_like(event, changed)

    def _written_without_end(self, event: Event) -> bytes:
        if event.data is None:
            return b""
        self._usage = object_of(event.data, "usage") or self._usage
        choices = [
            {**choice, "finish_reason": None}
            for choice in objects_of(event.data, "choices")
            if _says_something(object_of(choice, "delta"))
        ]
        if not choices:
            return b""
        changed = self._changed({**event.data, "choices": choices, "usage": None})
        return b"" if changed is None else encode_event(changed, event.name)

    def _changed(self, data: JsonDict) -> JsonDict | None:
        """Return what of *data* is written, which may be *data* itself or nothing."""
        if not self._first:
            self._first = {key: data[key] for key in ("id", "created") if key in data}
        choices = objects_of(data, "choices")
        seen = [self._choice(choice) for choice in choices]
        changed = data
        if any(new is not old for new, old in zip(seen, choices, strict=True)):
            changed = {**data, "choices": [choice for choice in seen if choice is not None]}
            if not changed["choices"] and data.get("usage") is None:
                return None
        if not self._is_later:
            return changed
        usage = {"usage": self.joined_usage()} if data.get("usage") is not None else {}
        return {**changed, **self._first, **usage}

    def _choice(self, choice: JsonDict) -> JsonDict | None:
        delta = changed = object_of(choice, "delta")
        pieces = objects_of(delta, "tool_calls")
        seen = self._pieces(integer_of(choice, "index") or 0, pieces)
        if len(seen) != len(pieces) or any(a is not b for a, b in zip(seen, pieces, strict=True)):
            changed = {key: value for key, value in delta.items() if key != "tool_calls"}
            if seen:
                changed["tool_calls"] = seen
        if self._is_later and "role" in delta:
            changed = {key: value for key, value in changed.items() if key != "role"}
        if changed is delta:
            return choice
        if not text_of(choice, "finish_reason") and "role" not in changed:
            return {**choice, "delta": changed} if _says_something(changed) else None
        return {**choice, "delta": changed}

    def _pieces(self, choice: int, pieces: list[JsonDict]) -> list[JsonDict]:
        seen: list[JsonDict] = []
        for piece in pieces:
            call = self._calls.of(choice, piece)
            held = [*self._waiting.pop(call.number, []), piece]
            if not call.name:
                self._waiting[call.number] = held
                continue
            name = call.name if call.custom else self._shown(call.name)
            if call.number not in self._indexes:
                index = self._next_index.get(choice, 0)
                self._indexes[call.number] = None if name is None else index
                self._next_index[choice] = index + (name is not None)
                self._hides = self._hides or name is None
            index = self._indexes[call.number]
            if name is not None and index is not None:
                seen += [self._piece(each, name, index) for each in held]
        return seen

    def _piece(self, piece: JsonDict, name: str, index: int) -> JsonDict:
        changed = piece
        function = object_of(piece, "function")
        if function.get("name") and function["name"] != name:
            changed = {**piece, "function": {**function, "name": name}}
        if (self._hides or self._is_later) and piece.get("index") != index:
            changed = {**changed, "index": index}
        return changed

    def _encoded_error(self, message: str, kind: str) -> bytes:
        return encode_event(CHAT_COMPLETIONS.error_body(message, kind)) + b"data: [DONE]\n\n"


def _says_something(delta: JsonDict) -> bool:
    return any(value not in (None, "", []) for key, value in delta.items() if key != "role")


class _ChatCompletions(Format):
    name = "chat_completions"
    _history = "messages"
    _reader = _Reader
    _writer = _Writer

    def tool_names(self, request: JsonDict) -> list[str]:
        tools = objects_of(request, "tools")
        kinds = [text_of(tool, "type") or "function" for tool in tools]
        return [text_of(object_of(t, k), "name") for t, k in zip(tools, kinds, strict=True)]

    def _offered(self, tool: Tool) -> JsonDict:
        function = {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.schema,
        }
        return {"type": "function", "function": function}

    def _renamed(self, value: JsonDict, names: Mapping[str, str]) -> JsonDict:
        if value.get("tool_calls"):
            calls = [_renamed(call, names) for call in objects_of(value, "tool_calls")]
            return {**value, "tool_calls": calls}
        if allowed := object_of(value, "allowed_tools"):
            tools = [_renamed(tool, names) for tool in objects_of(allowed, "tools")]
            return {**value, "allowed_tools": {**allowed, "tools": tools}}
        return _renamed(value, names)

    def turn(self, answer: Answer) -> list[JsonDict]:
        choices = objects_of(answer.body, "choices")
        message = object_of(choices[0], "message") if choices else {}
        kept = {k: v for k, v in message.items() if v not in (None, []) or k == "content"}
        number = 0
        calls = objects_of(message, "tool_calls")
        for place, call in enumerate(calls):
            if "function" in call:
                made = _call(call, number)
                function = {**object_of(call, "function"), "arguments": made.arguments or "{}"}
                calls[place] = {**call, "id": made.id, "function": function}
                number += 1
        return [{**kept, "role": "assistant"} | ({"tool_calls": calls} if calls else {})]

    def results(self, results: Sequence[ToolResult]) -> list[JsonDict]:
        return [
            {"role": "tool", "tool_call_id": result.call_id, "content": result.text}
            for result in results
        ]

    def _own_request(
        self, system: str, history: Sequence[JsonDict], max_tokens: int | None
    ) -> JsonDict:
        first = [{"role": "system", "content": system}] if system else []
        body: JsonDict = {"stream_options": {"include_usage": True}, "messages": [*first, *history]}
        return body | ({"max_tokens": max_tokens} if max_tokens else {})

    def answer_of(self, body: JsonDict) -> Answer:
        return _answer_of(body)

    def joined(self, answers: Sequence[Answer], shown: Shown = as_it_is) -> JsonDict:
        message: JsonDict = {}
        calls: list[JsonDict] = []
        for answer in answers:
            for choice in objects_of(answer.body, "choices")[:1]:
                given = object_of(choice, "message")
                grow(message, {k: v for k, v in given.items() if k not in ("tool_calls", "role")})
                calls += objects_of(given, "tool_calls")
        message = {"role": "assistant", **grown(message)}
        if visible := [call for call in (_shown_call(c, shown) for c in calls) if call]:
            message["tool_calls"] = visible
        last = objects_of(answers[-1].body, "choices")
        joined = joined_body(answers, ("id", "created"))
        if last:
            joined["choices"] = [{**last[0], "message": message}]
        return joined


def _renamed(value: JsonDict, names: Mapping[str, str]) -> JsonDict:
    """Return a tool, a choice or a call with another name of its function."""
    function = object_of(value, "function")
    changed = rename_at(function, names)
    return value if changed is function else {**value, "function": changed}


def _shown_call(call: JsonDict, shown: Shown) -> JsonDict | None:
    if "function" not in call:
        return call
    old = text_of(object_of(call, "function"), "name")
    name = shown(old)
    return None if name is None else _renamed(call, {old: name})


CHAT_COMPLETIONS = _ChatCompletions()
