"""Answers of a scripted model in each provider's format: whole, and as the events of its stream."""

import itertools
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

Json = dict[str, Any]
Events = list[tuple[str, Json | str]]
"""Each with its name, which may be empty, and its data, which is a text for `[DONE]`."""


@dataclass(frozen=True)
class Said:
    """One thing that the model says, in the pieces that the provider sends it in."""

    kind: Literal["text", "thinking", "refusal", "call", "other"]
    pieces: tuple[str, ...]
    name: str = ""
    id: str = ""
    signature: str | None = None
    """Of thinking; None for one that is made of the text."""

    @property
    def whole(self) -> str:
        return "".join(self.pieces)

    def sign(self, prefix: str) -> str:
        return f"{prefix}-{self.whole}" if self.signature is None else self.signature


@dataclass(frozen=True)
class Turn:
    """One answer of the model, to one request."""

    number: int
    said: tuple[Said, ...]
    input_tokens: int = 10
    output_tokens: int = 5

    @property
    def calls(self) -> list[Said]:
        return [each for each in self.said if each.kind == "call"]


def say_call(name: str, arguments: Json | str, id_: str = "call_1", *, cuts: int = 3) -> Said:
    """A call whose arguments come in *cuts* pieces."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    size = max(1, -(-len(text) // cuts))
    return Said("call", tuple(text[i : i + size] for i in range(0, len(text), size)), name, id_)


def sse(events: Events, *, end: str = "\n", names: bool = True) -> bytes:
    lines: list[str] = []
    for name, data in events:
        if name and names:
            lines.append(f"event: {name}")
        lines += [f"data: {data if isinstance(data, str) else json.dumps(data)}", ""]
    return "".join(line + end for line in lines).encode()


# Anthropic Messages


def anthropic_whole(turn: Turn) -> Json:
    usage = {"input_tokens": turn.input_tokens, "output_tokens": turn.output_tokens}
    usage |= {"cache_read_input_tokens": 3, "service_tier": "standard"}
    whole: Json = {"id": f"msg_{turn.number}", "type": "message", "role": "assistant"}
    whole |= {"model": "claude-test", "content": [_block(each) for each in turn.said]}
    whole |= {"stop_reason": "tool_use" if turn.calls else "end_turn", "stop_sequence": None}
    return whole | {"usage": usage, "new_member": {"kept": [1, None]}}


def _block(said: Said) -> Json:
    match said.kind:
        case "text" | "refusal":
            return {"type": "text", "text": said.whole}
        case "thinking":
            return {"type": "thinking", "thinking": said.whole, "signature": said.sign("sig")}
        case "call":
            block = {"type": "tool_use", "id": said.id, "name": said.name}
            return {**block, "input": json.loads(said.whole or "{}")}
        case "other":
            return {"type": "redacted_thinking", "data": said.whole}


def anthropic_stream(turn: Turn) -> Events:
    whole = anthropic_whole(turn)
    usage = whole["usage"] | {"output_tokens": 1}
    begun = whole | {"content": [], "stop_reason": None, "usage": usage}
    bare: list[Json] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    for index, said in enumerate(turn.said):
        start, deltas = _empty_block(said)
        place = {"index": index}
        bare.append({"type": "content_block_start", **place, "content_block": start})
        bare += [{"type": "content_block_delta", **place, "delta": delta} for delta in deltas]
        bare.append({"type": "content_block_stop", **place})
    delta = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    counted = {"output_tokens": turn.output_tokens}
    bare.append({"type": "message_delta", "delta": delta, "usage": counted})
    return _named([*bare, {"type": "message_stop"}])


def _named(bare: Iterable[Json]) -> Events:
    return [(event["type"], event) for event in bare]


def _empty_block(said: Said) -> tuple[Json, list[Json]]:
    block = _block(said)
    empty: Json
    match said.kind:
        case "text" | "refusal":
            empty, kind, member = {"text": ""}, "text_delta", "text"
        case "thinking":
            empty, kind, member = {"thinking": "", "signature": ""}, "thinking_delta", "thinking"
        case "call":
            empty, kind, member = {"input": {}}, "input_json_delta", "partial_json"
        case "other":
            return block, []
    pieces = ("", *said.pieces) if said.kind == "call" else said.pieces
    deltas = [{"type": kind, member: piece} for piece in pieces]
    if said.kind == "thinking":
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    return block | empty, deltas


# Chat Completions


_CHAT_KEYS = {"text": "content", "refusal": "refusal", "thinking": "reasoning_content"}


def chat_whole(turn: Turn) -> Json:
    message: Json = {"role": "assistant", "content": None, "refusal": None}
    for kind, key in _CHAT_KEYS.items():
        said = [each.whole for each in turn.said if each.kind == kind]
        if any(said):
            message[key] = "".join(said)
    if turn.calls:
        message["tool_calls"] = [_chat_call(each) for each in turn.calls]
    reason = "tool_calls" if turn.calls else "stop"
    counts = {"prompt_tokens": turn.input_tokens, "completion_tokens": turn.output_tokens}
    total = {"total_tokens": turn.input_tokens + turn.output_tokens}
    usage = {**counts, **total, "completion_tokens_details": {"reasoning_tokens": 2}}
    choice = {"index": 0, "message": message, "finish_reason": reason, "logprobs": None}
    head = {"id": f"chatcmpl-{turn.number}", "created": 1_700_000_000 + turn.number}
    head |= {"object": "chat.completion", "model": "gpt-test", "system_fingerprint": "fp_1"}
    return {**head, "choices": [choice], "usage": usage}


def _chat_call(said: Said) -> Json:
    function = {"name": said.name, "arguments": said.whole}
    return {"id": said.id, "type": "function", "function": function}


def chat_stream(turn: Turn) -> Events:
    whole = chat_whole(turn)
    envelope = {**whole, "object": "chat.completion.chunk", "usage": None}

    def chunk(delta: Json, reason: str | None = None) -> tuple[str, Json]:
        choice = {"index": 0, "delta": delta, "finish_reason": reason, "logprobs": None}
        return "", {**envelope, "choices": [choice]}

    events: Events = [chunk({"role": "assistant", "content": None, "refusal": None})]
    index = itertools.count()
    for said in turn.said:
        events += [chunk(delta) for delta in _chat_deltas(said, index)]
    events.append(chunk({}, whole["choices"][0]["finish_reason"]))
    events.append(("", {**envelope, "choices": [], "usage": whole["usage"]}))
    events.append(("", "[DONE]"))
    return events


def _chat_deltas(said: Said, index: Iterator[int]) -> Iterator[Json]:
    if key := _CHAT_KEYS.get(said.kind):
        yield from ({key: piece} for piece in said.pieces)
    elif said.kind == "call":
        call: Json = {"index": next(index)}
        function = {"name": said.name, "arguments": ""}
        yield {"tool_calls": [{**call, "id": said.id, "type": "function", "function": function}]}
        for piece in said.pieces:
            yield {"tool_calls": [{**call, "function": {"arguments": piece}}]}


# Responses


def responses_whole(turn: Turn) -> Json:
    usage: Json = {"input_tokens": turn.input_tokens, "output_tokens": turn.output_tokens}
    usage |= {"total_tokens": turn.input_tokens + turn.output_tokens}
    usage["input_tokens_details"] = {"cached_tokens": 3, "cache_write_tokens": 0}
    usage["output_tokens_details"] = {"reasoning_tokens": 2}
    whole: Json = {"id": f"resp_{turn.number}", "created_at": 1_700_000_000 + turn.number}
    whole |= {"object": "response", "status": "completed", "model": "gpt-test"}
    whole["output"] = [_item(turn, index, said) for index, said in enumerate(turn.said)]
    whole |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    whole |= {"error": None, "incomplete_details": None, "usage": usage}
    return whole | {"new_member": {"kept": [1, None]}}


def _item(turn: Turn, index: int, said: Said) -> Json:
    id_ = f"item_{turn.number}_{index}"
    match said.kind:
        case "text" | "refusal":
            part = _part(said, said.whole)
            message = {"id": id_, "type": "message", "role": "assistant", "status": "completed"}
            return {**message, "content": [part]}
        case "thinking":
            summary = [{"type": "summary_text", "text": said.whole}]
            sealed = {"encrypted_content": said.sign("sealed")}
            return {"id": id_, "type": "reasoning", "summary": summary, **sealed}
        case "call":
            call = {"id": id_, "type": "function_call", "call_id": said.id, "name": said.name}
            return {**call, "arguments": said.whole, "status": "completed"}
        case "other":
            custom = {"id": id_, "type": "custom_tool_call", "call_id": id_ + "c"}
            return {**custom, "name": "apply_patch", "input": said.whole}


def _part(said: Said, text: str) -> Json:
    if said.kind == "refusal":
        return {"type": "refusal", "refusal": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def responses_stream(turn: Turn) -> Events:
    whole = responses_whole(turn)
    begun = {"response": whole | {"status": "in_progress", "output": [], "usage": None}}
    bare: list[Json] = [{"type": "response.created", **begun}]
    bare.append({"type": "response.in_progress", **begun})
    for index, said in enumerate(turn.said):
        bare += _item_events(index, said, whole["output"][index])
    bare.append({"type": "response.completed", "response": whole})
    return _named({**event, "sequence_number": number} for number, event in enumerate(bare))


def _item_events(index: int, said: Said, item: Json) -> Iterator[Json]:
    place = {"output_index": index, "item_id": item["id"]}
    empty = {"text": "", "refusal": "", "arguments": "", "input": "", "status": "in_progress"}
    start = {key: empty.get(key, value) for key, value in item.items()}
    start |= {key: [] for key in ("content", "summary") if key in item}
    yield {"type": "response.output_item.added", "output_index": index, "item": start}
    match said.kind:
        case "text" | "refusal" as member:
            kind = "response.output_text" if member == "text" else "response.refusal"
            place |= {"content_index": 0}
            extra: Json = {"logprobs": []} if member == "text" else {}
            yield {"type": "response.content_part.added", **place, "part": _part(said, "")}
            for piece in said.pieces:
                yield {"type": f"{kind}.delta", **place, "delta": piece, **extra}
            yield {"type": f"{kind}.done", **place, member: said.whole, **extra}
            yield {"type": "response.content_part.done", **place, "part": _part(said, said.whole)}
            kind = ""
        case "thinking":
            kind = "response.reasoning_summary_text"
            place |= {"summary_index": 0}
        case "call":
            kind = "response.function_call_arguments"
        case "other":
            kind = "response.custom_tool_call_input"
    if kind:
        for piece in said.pieces:
            yield {"type": f"{kind}.delta", **place, "delta": piece}
    if said.kind == "call":
        yield {"type": f"{kind}.done", **place, "arguments": said.whole}
    yield {"type": "response.output_item.done", "output_index": index, "item": item}


_NAMES: tuple[str, ...] = ("anthropic_messages", "chat_completions", "openai_responses")
WHOLE = dict(zip(_NAMES, (anthropic_whole, chat_whole, responses_whole), strict=True))
STREAM = dict(zip(_NAMES, (anthropic_stream, chat_stream, responses_stream), strict=True))


def stream(name: str, turn: Turn, **options: Any) -> bytes:
    return sse(STREAM[name](turn), **options)
