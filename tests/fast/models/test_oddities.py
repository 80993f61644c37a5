"""What real servers send beside the plain case, and what clients rely on in it."""

import json
from typing import Any

import pytest

from aileron_core.errors import ModelFormatError
from aileron_core.models import ANTHROPIC_MESSAGES, CHAT_COMPLETIONS, FORMATS, OPENAI_RESPONSES
from aileron_core.models.format import Format, write_body
from aileron_core.models.neutral import (
    CallBegun,
    Failed,
    OtherCall,
    Part,
    RefusalDelta,
    Stopped,
    ToolCall,
    Usage,
)
from tests.fast.models import sdk
from tests.fast.models.test_streams import read_stream
from tests.support.scripted_answers import STREAM, WHOLE, Events, Said, Turn, say_call, sse, stream

each_format = pytest.mark.parametrize("name", sorted(FORMATS))
Json = dict[str, Any]


def parts(format_: Format, data: bytes) -> list[Part]:
    return [part for event in read_stream(format_, data)[0] for part in event.parts]


def written(format_: Format, data: bytes, hidden: str = "ours") -> bytes:
    writer = format_.writer(lambda name: None if name == hidden else name)
    return (
        b"".join(writer.write(event) for event in read_stream(format_, data)[0]) + writer.finish()
    )


@each_format
def test_the_forms_that_an_event_may_have_all_read_the_same(name: str) -> None:
    turn = Turn(1, (Said("text", ("hi",)), say_call("read", {"a": 1})))
    plain = read_stream(FORMATS[name], stream(name, turn))
    tight = stream(name, turn).replace(b"data: ", b"data:").replace(b"event: ", b"event:")
    spread = b""
    for kind, data in STREAM[name](turn):
        text = data if isinstance(data, str) else json.dumps(data, indent=1)
        lines = (f"data: {line}" for line in text.splitlines())
        spread += "\n".join(["id: 7", "retry: 1", f"event: {kind}", *lines, "\n"]).encode()
    bare = stream(name, turn, names=False)  # compatible servers leave `event` out
    for data in (tight, spread, stream(name, turn).rstrip(b"\n"), bare):
        events, answer = read_stream(FORMATS[name], data)
        assert answer == plain[1]
        assert [e.parts for e in events] == [e.parts for e in plain[0]]
        assert b"".join(event.raw for event in events) == data


@each_format
def test_unknown_events_and_members_pass_unchanged(name: str) -> None:
    """A provider's next invention reaches the client as it came."""
    events = STREAM[name](Turn(1, (Said("text", ("hi",)), say_call("ours", {"a": 1}))))
    new = {"type": "new.kind", "object": "new", "choices": [], "payload": {"deep": [{"x": None}]}}
    data = sse([*events[:2], ("new.kind", new), *events[2:]])
    assert sse([("new.kind", new)]) in written(FORMATS[name], data, hidden="other")
    assert b'"payload"' in written(FORMATS[name], data)


@each_format
def test_our_own_error_and_keep_alive_are_what_the_sdk_expects(name: str) -> None:
    turn = Turn(1, (Said("text", ("hi",)),))
    writer = FORMATS[name].writer()
    first = read_stream(FORMATS[name], stream(name, turn))[0]
    alive = writer.write(first[0]) + writer.keep_alive() + writer.keep_alive()
    rest = b"".join(writer.write(event) for event in first[1:]) + writer.finish()
    assert sdk.events_read(name, alive + rest) == sdk.events_read(name, stream(name, turn))
    broken = alive + writer.error("too many turns", "aileron_limit")
    assert "too many turns" in sdk.error(name, broken)
    failed = read_stream(FORMATS[name], broken)[1]
    assert failed.error == Failed("aileron_limit", "too many turns")
    assert failed.stop.kind == "error"
    whole = FORMATS[name].read_answer(write_body(FORMATS[name].error_body("no", "k")))
    assert (whole.error, whole.stop.kind) == (Failed("k", "no"), "error")
    # The provider's last event may lack its empty line.
    whole = stream(name, Turn(1, (Said("text", ("hi",)),)))
    begun = whole[: whole.index(b"\n\n")]
    reader, writer = FORMATS[name].reader(), FORMATS[name].writer()
    written = b"".join(writer.write(event) for event in [*reader.feed(begun), *reader.finish()])
    with pytest.raises(ModelFormatError):
        reader.answer()
    assert "broke off" in sdk.error(name, written + writer.error("The stream broke off."))


def messages(*blocks: list[Json], stop: Json | None = None) -> bytes:
    events: Events = STREAM["anthropic_messages"](Turn(1, ()))
    begin, end = events[:2], events[2:]
    if stop:
        end[0] = ("message_delta", {**dict(end[0][1]), "delta": stop})  # type: ignore[arg-type]
    middle: Events = []
    for index, block in enumerate(blocks):
        kinds = ["content_block_start", *["content_block_delta"] * (len(block) - 1)]
        for kind, value in zip(kinds, block, strict=True):
            member = "content_block" if kind == "content_block_start" else "delta"
            middle.append((kind, {"type": kind, "index": index, member: value}))
        middle.append(("content_block_stop", {"type": "content_block_stop", "index": index}))
    return sse([*begin, *middle, *end])


def test_thinking_signatures_redactions_and_citations_come_back_in_the_turn() -> None:
    """The provider refuses a thinking block that is not as it gave it."""
    citation = {"type": "char_location", "cited_text": "c", "document_index": 0}
    thinking: list[Json] = [{"type": "thinking", "thinking": "", "signature": ""}]
    thinking += [{"type": "thinking_delta", "thinking": text} for text in ("let me", " see")]
    thinking += [{"type": "signature_delta", "signature": "c2ln"}]
    said: list[Json] = [{"type": "text", "text": "", "citations": None}]
    said += [{"type": "text_delta", "text": "so"}]
    said += [{"type": "citations_delta", "citation": citation}]
    sealed: Json = {"type": "redacted_thinking", "data": "c2VhbGVk"}
    data = messages(thinking, [sealed], said, [{"type": "text", "text": ""}])
    answer = read_stream(ANTHROPIC_MESSAGES, data)[1]
    content = [
        {"type": "thinking", "thinking": "let me see", "signature": "c2ln"},
        {"type": "redacted_thinking", "data": "c2VhbGVk"},
        {"type": "text", "text": "so", "citations": [citation]},
    ]
    assert ANTHROPIC_MESSAGES.turn(answer) == [{"role": "assistant", "content": content}]
    assert sdk.final("anthropic_messages", data)["content"] == answer.body["content"]


def test_calls_of_the_providers_own_tools_pass_and_keep_their_input() -> None:
    """`server_tool_use` runs at the provider; its result is a block of the answer."""
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    call: list[Json] = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        *({"type": "input_json_delta", "partial_json": text} for text in ('{"query":', '"x"}')),
    ]
    data = messages(call, [result])
    assert OtherCall("server_tool_use", "web_search") in parts(ANTHROPIC_MESSAGES, data)
    answer = read_stream(ANTHROPIC_MESSAGES, data)[1]
    assert answer.calls == ()
    assert [b.get("input") for b in answer.body["content"]] == [{"query": "x"}, None]
    assert written(ANTHROPIC_MESSAGES, data, hidden="web_search") == data


def test_a_call_whose_json_was_cut_off_can_go_back_to_the_provider() -> None:
    """`max_tokens` ends a call anywhere; an input must be an object."""
    block = {"type": "tool_use", "id": "t1", "name": "read", "input": {}}
    stop: Json = {"stop_reason": "max_tokens", "stop_sequence": None}
    cut = {"type": "input_json_delta", "partial_json": '{"path": "/a'}
    data = messages([block, cut], stop=stop)
    answer = read_stream(ANTHROPIC_MESSAGES, data)[1]
    assert answer.stop == Stopped("length", "max_tokens")
    assert answer.body["content"][0]["input"] == {"INVALID_JSON": '{"path": "/a'}
    with pytest.raises(ModelFormatError):
        answer.calls[0].parsed_arguments()


def test_a_refusal_of_anthropic_is_a_stop_reason_and_an_error_inside_its_stream_ends_it() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "Not that."}
    data = messages(stop={"stop_reason": "refusal", "stop_details": details})
    found = parts(ANTHROPIC_MESSAGES, data)
    assert found[-1] == RefusalDelta("Not that.")
    answer = read_stream(ANTHROPIC_MESSAGES, data)[1]
    assert (answer.refusal, answer.stop) == ("Not that.", Stopped("refusal", "refusal"))
    body = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    begun = STREAM["anthropic_messages"](Turn(1, (Said("text", ("half",)),)))[:4]
    answer = read_stream(ANTHROPIC_MESSAGES, sse([*begun, ("error", body)]))[1]
    assert answer.error == Failed("overloaded_error", "Overloaded")
    assert (answer.text, answer.stop.kind) == ("half", "error")


def test_a_block_ends_once() -> None:
    """A call that ended twice would be made twice."""
    block = {"type": "tool_use", "id": "t1", "name": "read", "input": {"a": 1}}
    data = messages([block])
    stop = sse([("content_block_stop", {"type": "content_block_stop", "index": 0})])
    assert stop in data
    with pytest.raises(ModelFormatError, match="not open"):
        read_stream(ANTHROPIC_MESSAGES, data.replace(stop, stop + stop))
    for other in (data, data.replace(stop, b""), data + stop + data):
        answer = read_stream(ANTHROPIC_MESSAGES, other)[1]
        assert [made.parsed_arguments() for made in answer.calls] == [{"a": 1}]


def test_what_a_message_read_from_the_cache_counts_as_input() -> None:
    """`input_tokens` alone leaves out what was cached."""
    answer = read_stream(ANTHROPIC_MESSAGES, stream("anthropic_messages", Turn(1, (), 10, 7)))[1]
    assert answer.usage == Usage(input=13, output=7)


def chat(*deltas: Json, reason: str | None = "tool_calls", done: bool = True) -> bytes:
    """A stream of bare chunks, as small servers send them; a piece of a call is a chunk by itself."""
    told = [{"tool_calls": [each]} if "function" in each else each for each in deltas]
    events: Events = [
        ("", {"id": "c1", "object": "chat.completion.chunk", "created": 1, "choices": [choice]})
        for choice in [
            *({"index": 0, "delta": delta} for delta in told),
            *([{"index": 0, "delta": {}, "finish_reason": reason}] if reason else []),
        ]
    ]
    return sse([*events, ("", "[DONE]")] if done else events)


def piece(arguments: str = "", **members: Any) -> Json:
    name = {"name": members.pop("name")} if "name" in members else {}
    return {**members, "function": {"arguments": arguments, **name}}


def calls_of(data: bytes) -> list[tuple[str, str, str]]:
    answer = read_stream(CHAT_COMPLETIONS, data)[1]
    assert answer.stop.kind == "tools"
    return [(c.id, c.name, c.arguments) for c in answer.calls]


def test_calls_are_told_apart_by_their_ids_or_their_names_and_their_pieces_may_alternate() -> None:
    first, rest = piece('{"a"', id="x", name="read"), piece(":1}", id="x")
    by_id = chat(first, rest, piece("{}", id="y", name="read"))
    assert calls_of(by_id) == [("x", "read", '{"a":1}'), ("y", "read", "{}")]
    both = {"tool_calls": [piece("{}", name="read"), piece("", name="list")]}
    by_name = chat(piece('{"a"', name="read"), piece(":1}"), both)
    calls = [("call_0", "read", '{"a":1}'), ("call_1", "read", "{}"), ("call_2", "list", "")]
    assert calls_of(by_name) == calls
    # Some servers give each of several calls index 0, and one gives each delta another id.
    data = chat(piece("{}", index=0, id="x", name="a"), piece("{}", index=0, id="y", name="a"))
    assert calls_of(data) == [("x", "a", "{}"), ("y", "a", "{}")]
    data = chat(piece("", index=0, id="r1", name="read"), piece("{}", index=0, id="r2"))
    assert calls_of(data) == [("r1", "read", "{}")]
    both = [piece("", index=0, id="x", name="a"), piece("", index=1, id="y", name="b")]
    data = chat(
        {"tool_calls": both},
        {"content": "meanwhile", "tool_calls": [piece('{"k"', index=1, name="b")]},
        {"tool_calls": [piece("{", index=0, name=""), piece(":2}", index=1)]},
        piece("}", index=0),
    )
    assert calls_of(data) == [("x", "a", "{}"), ("y", "b", '{"k":2}')]
    shown = sdk.final("chat_completions", written(CHAT_COMPLETIONS, data, hidden="a"))
    message = shown["choices"][0]["message"]
    assert message["content"] == "meanwhile"
    (kept,) = message["tool_calls"]
    assert (kept["id"], kept["function"]["arguments"]) == ("y", '{"k":2}')


def test_an_empty_finish_reason_ends_nothing() -> None:
    """Some compatible servers send it with every chunk: a call goes on, and so does what a client sees."""
    deltas = [{"content": "so"}, piece("{", index=0, id="x", name="read"), piece("}", index=0)]
    data = chat(*deltas).replace(b'"delta": {"', b'"finish_reason": "", "delta": {"')
    assert data.count(b'"finish_reason": ""') == len(deltas)
    assert calls_of(data) == [("x", "read", "{}")]
    writer = CHAT_COMPLETIONS.writer()
    events = read_stream(CHAT_COMPLETIONS, data)[0]
    assert [writer.write(event) for event in events[:3]] == [event.raw for event in events[:3]]


def test_a_call_is_kept_back_until_its_name_is_known() -> None:
    data = chat(
        {"role": "assistant"},
        {"tool_calls": [{"index": 0, "id": "x", "type": "function"}]},
        piece("{", index=0),
        piece("}", index=0, name="read"),
    )
    begun = [p for p in parts(CHAT_COMPLETIONS, data) if isinstance(p, CallBegun)]
    assert begun == [CallBegun("read")]
    assert calls_of(data) == [("x", "read", "{}")]
    writer = CHAT_COMPLETIONS.writer()
    events = read_stream(CHAT_COMPLETIONS, data)[0]
    assert writer.write(events[0]) == events[0].raw
    assert [writer.write(event) for event in events[1:3]] == [b"", b""]
    assert calls_of(writer.write(events[3]) + b"data: [DONE]\n\n") == [("x", "read", "{}")]
    assert (
        read_stream(CHAT_COMPLETIONS, written(CHAT_COMPLETIONS, data, hidden="read"))[1].calls == ()
    )


@pytest.mark.parametrize("reason", ["stop", "tool_calls", "function_call", None])
def test_a_whole_call_in_one_delta_is_a_call_whatever_the_finish_reason(reason: str | None) -> None:
    """Some servers say `stop`, and some say nothing before `[DONE]`."""
    data = chat(piece('{"a":1}', id="x", name="read", type="function"), reason=reason)
    assert calls_of(data) == [("x", "read", '{"a":1}')]


TWICE = [piece("", index=0, id="x", name=n) for n in ("delete", "_all")]
CUSTOM = {"tool_calls": [{"index": 0, "id": "x", "custom": {"name": "read"}}]}


@pytest.mark.parametrize(
    ("deltas", "sentence"),
    [
        ([piece("{}", index=0, id="x")], "without a name"),
        ([piece("{}")], "never began"),
        (TWICE, "a second name"),
        ([CUSTOM, piece("{}", index=0, name="read")], "a second type"),
    ],
)
def test_a_call_that_cannot_be_told_is_refused(deltas: list[Json], sentence: str) -> None:
    """Half a name could be another tool's whole one."""
    with pytest.raises(ModelFormatError, match=sentence):
        read_stream(CHAT_COMPLETIONS, chat(*deltas))


def test_what_a_server_adds_comes_back_in_the_turn_and_calls_without_ids_get_some() -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    data = chat(
        {"role": "assistant", "reasoning_content": "let "},
        {"reasoning_content": "me", "reasoning_details": [{"type": "reasoning.text", "text": "t"}]},
        {"reasoning_details": [{"type": "reasoning.encrypted", "data": "d"}]},
        piece("", index=0, id="x", name="read", extra_content=signed),
    )
    answer = read_stream(CHAT_COMPLETIONS, data)[1]
    (turn,) = CHAT_COMPLETIONS.turn(answer)
    assert turn["reasoning_content"] == "let me"
    kinds = [detail["type"] for detail in turn["reasoning_details"]]
    assert kinds == ["reasoning.text", "reasoning.encrypted"]
    (made,) = turn["tool_calls"]
    assert made["extra_content"] == signed
    assert made["function"] == {"name": "read", "arguments": "{}"}
    body = WHOLE["chat_completions"](Turn(1, (say_call("read", {}), say_call("list", {}))))
    for made in body["choices"][0]["message"]["tool_calls"]:
        del made["id"]
        made["function"]["arguments"] = {}  # an object, as some servers send it
    answer = CHAT_COMPLETIONS.read_answer(write_body(body))
    (turn,) = CHAT_COMPLETIONS.turn(answer)
    assert [c["id"] for c in turn["tool_calls"]] == [c.id for c in answer.calls]
    assert [c["function"]["arguments"] for c in turn["tool_calls"]] == ["{}", "{}"]


def test_how_an_answer_of_chat_completions_ends_is_told_and_an_error_inside_ends_it() -> None:
    refused = chat({"refusal": "I "}, {"refusal": "won't"}, reason="stop")
    assert read_stream(CHAT_COMPLETIONS, refused)[1].refusal == "I won't"
    filtered = read_stream(CHAT_COMPLETIONS, chat({"content": "x"}, reason="content_filter"))[1]
    assert filtered.stop == Stopped("refusal", "content_filter")
    none = read_stream(CHAT_COMPLETIONS, chat({"content": "hm"}))[1]
    assert (none.stop.kind, none.calls) == ("tools", ())
    for error, kind in (({"message": "m", "type": "server_error"}, "server_error"), ("m", "")):
        data = chat({"content": "half"}, reason=None, done=False) + sse([("", {"error": error})])
        answer = read_stream(CHAT_COMPLETIONS, data)[1]
        assert (answer.error, answer.text) == (Failed(kind, "m"), "half")
        assert written(CHAT_COMPLETIONS, data) == data


def test_content_in_the_last_chunk_is_not_lost_when_another_answer_follows() -> None:
    """Ollama sends finish reason, usage and a whole call in one chunk."""
    delta = {"content": "text", "tool_calls": [piece("{}", id="x", name="ours")]}
    choice = {"index": 0, "delta": delta, "finish_reason": "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "total_tokens": 3}
    last = sse([("", {"id": "c1", "choices": [choice], "usage": usage}), ("", "[DONE]")])
    writer = CHAT_COMPLETIONS.writer(lambda name: None if name == "ours" else name)
    assert b"".join(writer.write(event) for event in read_stream(CHAT_COMPLETIONS, last)[0]) == b""
    second = stream("chat_completions", Turn(2, (Said("text", ("!",)),)))
    out = writer.next_answer()
    out += b"".join(writer.write(event) for event in read_stream(CHAT_COMPLETIONS, second)[0])
    answer = read_stream(CHAT_COMPLETIONS, out + writer.finish())[1]
    assert (answer.text, answer.calls, answer.usage.output) == ("text!", (), 7)
    assert answer.body["id"] == "c1"


def test_what_is_no_function_of_ours_passes() -> None:
    thinking: Json = {"content": [{"type": "thinking", "thinking": []}]}
    old = {"function_call": {"name": "old", "arguments": "{}"}}
    data = chat(thinking, old, reason="function_call")
    assert OtherCall("function_call", "old") in parts(CHAT_COMPLETIONS, data)
    assert written(CHAT_COMPLETIONS, data, hidden="old") == data
    data = chat(
        {"tool_calls": [{"index": 0, "id": "x", "type": "custom", "custom": {"name": "ours"}}]},
        {"tool_calls": [{"index": 0, "type": "custom", "custom": {"name": "ours", "input": "a"}}]},
        {"tool_calls": [{"index": 0, "custom": {"input": "b"}}]},
    )
    assert OtherCall("custom", "ours") in parts(CHAT_COMPLETIONS, data)
    assert written(CHAT_COMPLETIONS, data) == data
    answer = read_stream(CHAT_COMPLETIONS, data)[1]
    assert answer.calls == ()
    call = {"custom": {"name": "ours", "input": "ab"}, "id": "x", "type": "custom"}
    assert CHAT_COMPLETIONS.turn(answer)[0]["tool_calls"] == [call]


def test_reasoning_items_come_back_in_the_turn_with_what_is_encrypted() -> None:
    turn = Turn(1, (Said("thinking", ("so",)), Said("other", ("p",)), say_call("read", {"a": 1})))
    events, answer = read_stream(OPENAI_RESPONSES, stream("openai_responses", turn))
    assert OPENAI_RESPONSES.turn(answer) == WHOLE["openai_responses"](turn)["output"]
    assert OPENAI_RESPONSES.turn(answer)[0]["encrypted_content"] == "sealed-so"
    found = [part for event in events for part in event.parts]
    assert OtherCall("custom_tool_call", "apply_patch") in found


def responses(*, end: Json, said: tuple[Said, ...] = ()) -> bytes:
    events = STREAM["openai_responses"](Turn(1, said))
    whole = WHOLE["openai_responses"](Turn(1, said))
    kind = "response." + end["status"]
    number = len(events) - 1
    events[-1] = (kind, {"type": kind, "response": whole | end, "sequence_number": number})
    return sse(events)


def test_how_a_response_ends_is_told() -> None:
    said = (Said("text", ("half",)),)
    error = {"code": "server_error", "message": "Sorry"}
    data = responses(end={"status": "failed", "error": error}, said=said)
    failed = read_stream(OPENAI_RESPONSES, data)[1]
    assert (failed.error, failed.stop.kind) == (Failed("server_error", "Sorry"), "error")
    for reason, kind in (("max_output_tokens", "length"), ("content_filter", "refusal")):
        end = {"status": "incomplete", "incomplete_details": {"reason": reason}}
        data = responses(end=end, said=said)
        answer = read_stream(OPENAI_RESPONSES, data)[1]
        assert (answer.text, answer.stop) == ("half", Stopped(kind, reason))  # type: ignore[arg-type]
        assert written(OPENAI_RESPONSES, data) == data
    begun = STREAM["openai_responses"](Turn(1, (Said("text", ("half",)),)))
    flat = {"type": "error", "code": "rate_limit", "message": "Slow", "param": None}
    nested = {"type": "error", "error": {"type": "rate_limit", "message": "Slow"}}
    for error in (flat, nested):
        answer = read_stream(OPENAI_RESPONSES, sse([*begun[:-1], ("error", error)]))[1]
        assert answer.error == Failed("rate_limit", "Slow")
        assert (answer.text, answer.stop.kind) == ("half", "error")
    data = stream("openai_responses", Turn(1, (Said("refusal", ("I ", "won't")),)))
    assert read_stream(OPENAI_RESPONSES, data)[1].refusal == "I won't"
    told = [p for p in parts(OPENAI_RESPONSES, data) if isinstance(p, RefusalDelta)]
    assert told == [RefusalDelta("I "), RefusalDelta("won't")]


def test_an_end_without_the_output_is_completed_from_the_items() -> None:
    """Some servers leave the output out of the last event."""
    said = (Said("text", ("hi",)), say_call("ours", {"a": 1}), say_call("read", {"b": 1}, "call_2"))
    whole = WHOLE["openai_responses"](Turn(1, said))["output"]
    for end in ({"output": []}, {"output": None}):
        data = responses(end={"status": "completed", **end}, said=said)
        answer = read_stream(OPENAI_RESPONSES, data)[1]
        assert answer.body["output"] == whole
        assert [c.name for c in answer.calls] == ["ours", "read"]


def test_a_call_in_a_namespace_is_not_one_of_ours() -> None:
    """Another server's tool may have the same name there."""
    turn = Turn(1, (say_call("ours", {"a": 1}),))
    named = b'"type": "function_call", "namespace": "mcp__x",'
    data = stream("openai_responses", turn).replace(b'"type": "function_call",', named)
    assert read_stream(OPENAI_RESPONSES, data)[1].calls[0].name == "mcp__x.ours"
    assert written(OPENAI_RESPONSES, data) == data


def test_each_call_is_told_once_also_where_only_the_end_of_the_stream_has_it() -> None:
    said = (say_call("read", {"b": 1}),)
    events = STREAM["openai_responses"](Turn(1, said))
    data = sse([*events[:2], events[-1]])
    found = parts(OPENAI_RESPONSES, data)
    made = ToolCall(id="call_1", name="read", arguments='{"b": 1}')
    assert found == [CallBegun("read")]
    assert read_stream(OPENAI_RESPONSES, data)[1].calls == (made,)
    data = stream("openai_responses", Turn(1, (say_call("a", {}, ""), say_call("b", {}, ""))))
    assert parts(OPENAI_RESPONSES, data) == [CallBegun("a"), CallBegun("b")]
    events = STREAM["openai_responses"](Turn(1, said))
    twice = sse([*events[:-1], events[-2], events[-1], events[-2], events[-1]])
    assert parts(OPENAI_RESPONSES, twice) == [CallBegun("read")]
    assert len(read_stream(OPENAI_RESPONSES, twice)[1].calls) == 1


def test_a_call_that_changes_its_name_on_the_way_is_refused() -> None:
    """The client would have been shown another call than the one that is made."""
    data = stream("openai_responses", Turn(1, (say_call("read", {"b": 1}),)))
    with pytest.raises(ModelFormatError, match="a second name"):
        read_stream(OPENAI_RESPONSES, data.replace(b'"read"', b'"ours"', 1))


def test_a_done_marker_between_answers_reaches_no_client() -> None:
    """Some proxies add it to every format; a client stops reading there."""
    for name in FORMATS:
        turns = [Turn(n, (Said("text", (str(n),)),)) for n in (1, 2)]
        writer = FORMATS[name].writer()
        written = b""
        for turn in turns:
            written += writer.next_answer() if turn.number > 1 else b""
            data = stream(name, turn).removesuffix(b"data: [DONE]\n\n") + b"data: [DONE]\n\n"
            written += b"".join(
                writer.write(event) for event in read_stream(FORMATS[name], data)[0]
            )
        written += writer.finish()
        assert written.count(b"[DONE]") == 1
        assert read_stream(FORMATS[name], written)[1].text == "12"
