"""Streams of each format, read the same however cut; and what nobody should send: read, or refused with the one error."""

import contextlib
import copy
import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.errors import ModelFormatError
from aileron_core.models import FORMATS
from aileron_core.models.format import Format, write_body
from aileron_core.models.json_values import parse_object
from aileron_core.models.neutral import (
    Answer,
    CallBegun,
    Event,
    Limits,
    TextDelta,
    Tool,
    ToolCall,
    ToolResult,
)
from aileron_core.models.sse import EventSplitter, encode_event
from tests.fast.models import sdk
from tests.support.any_values import json_values
from tests.support.making import cut
from tests.support.scripted_answers import STREAM, WHOLE, Said, Turn, say_call, sse, stream

each_format = pytest.mark.parametrize("name", sorted(FORMATS))
TURN = Turn(
    1,
    (Said("thinking", ("hm",)), Said("text", ("a", "b")),
     say_call("send_draft", {"to": "x"}, "call_1"), Said("other", ("z",)),
     Said("refusal", ("no",)), say_call("read", {}, "call_2")),
)  # fmt: skip
JSON = json_values(st.text(max_size=5), st.integers() | st.floats(allow_nan=False))
DEEP = '{"a":' * 3000 + "1" + "}" * 3000
REFUSED = {
    "nested deeper than the stack": ('{"a":' * 100_000, "nested too deeply"),
    "nested too deeply": (DEEP, "nested too deeply"),
    "nested over 200": ('{"a":' * 201 + "1" + "}" * 201, "nested too deeply"),
    "a number of 5,000 digits": ('{"a":' + "9" * 5000 + "}", "a number is too long"),
    "a number out of range": ('{"a":1e999}', "a number is out of range"),
    "no number": ('{"a":NaN}', "a number is out of range"),
    "a key twice": ('{"name":"a","name":"b"}', "an object has a key twice"),
    "a list": ("[]", "no JSON object"),
    "no JSON": ("{'a': 1}", "not JSON"),
    "half": ('{"a": "secret', "not JSON"),
}
USAGE = {"type": "message_start", "message": {"usage": {f"k{n}": 0 for n in range(1001)}}}
CALLS = [{"type": "function_call", "call_id": "c", "name": "x"}] * 129
DONE = {"type": "response.completed", "response": {"output": CALLS}}
OURS = {"send_draft", "merge"}
_TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
_PIECES = st.lists(st.text(st.characters(codec="utf-8"), min_size=1, max_size=8), max_size=4)
_ARGUMENTS = st.dictionaries(_TEXT, st.integers() | _TEXT | st.none(), max_size=3)
_SAID = st.one_of(
    _PIECES.map(lambda p: Said("text", tuple(p))),
    _PIECES.map(lambda p: Said("thinking", tuple(p))),
    _PIECES.map(lambda p: Said("other", tuple(p))),
    st.tuples(st.sampled_from(["read", "send_draft", "merge"]), _ARGUMENTS, st.integers(1, 9)).map(
        lambda t: say_call(t[0], t[1], cuts=t[2])
    ),
)


@st.composite
def spoiled(draw: st.DrawFn, value: Any) -> Any:
    value = copy.deepcopy(value)
    places: list[tuple[Any, Any]] = []
    waiting = [value]
    while waiting:
        holder = waiting.pop()
        keys = list(holder) if isinstance(holder, dict) else range(len(holder))
        for key in keys:
            places.append((holder, key))
            if isinstance(holder[key], dict | list):
                waiting.append(holder[key])
    for _ in range(draw(st.integers(1, 2))):
        holder, key = draw(st.sampled_from(places))
        with contextlib.suppress(KeyError, IndexError, TypeError):
            if isinstance(holder, dict) and draw(st.booleans()):
                del holder[key]
            else:
                holder[key] = draw(JSON)
    return value


def shown_name(name: str) -> str | None:
    return None if name == "send_draft" else name


def take(format_: Format, data: bytes, limits: Limits | None = None) -> None:
    reader, writer = format_.reader(limits), format_.writer(shown_name)
    for end in (writer.next_answer, writer.finish):
        for event in [*reader.feed(data), *reader.finish()]:
            writer.write(event)
        end()
        answer = reader.answer()
        for made in answer.calls:
            with contextlib.suppress(ModelFormatError):
                made.parsed_arguments()
        write_body({"items": format_.turn(answer)})
        write_body(format_.joined([answer, answer], shown_name))
        reader = format_.reader(limits)


@each_format
@given(data=st.data())
def test_what_is_spoiled_is_read_or_refused_as_one_error(name: str, data: st.DataObject) -> None:
    events = data.draw(spoiled(STREAM[name](TURN)))
    assert isinstance(events, list)
    pairs = [each for each in events if isinstance(each, list | tuple) and len(each) == 2]
    lines = [f"event: {kind}\ndata: {json.dumps(data_)}\n\n" for kind, data_ in pairs]
    with contextlib.suppress(ModelFormatError):
        take(FORMATS[name], "".join(lines).encode("utf-8", "replace"))
    format_ = FORMATS[name]
    body = data.draw(spoiled(WHOLE[name](TURN)))
    with contextlib.suppress(ModelFormatError):
        answer = format_.read_answer(write_body(body))
        format_.turn(answer)
        format_.joined([answer, answer], shown_name)
    answer = format_.answer_of(WHOLE[name](TURN))
    history = [format_.user("?"), *format_.turn(answer)]
    tools = [Tool(name="read", description="d", schema={"type": "object"})]
    request = format_.with_tools(format_.request(model="m", system="s", history=history), tools)
    request["tool_choice"] = {"type": "function", "function": {"name": "read"}, "name": "read"}
    with contextlib.suppress(ModelFormatError):
        work_on(format_, data.draw(spoiled(request)))


@each_format
@given(data=st.binary(max_size=60) | JSON.map(lambda value: b"data: " + json.dumps(value).encode()))
def test_any_bytes_are_read_or_refused_with_the_one_error(name: str, data: bytes) -> None:
    with contextlib.suppress(ModelFormatError):
        take(FORMATS[name], data)
    with contextlib.suppress(ModelFormatError):
        FORMATS[name].read_answer(data.removeprefix(b"data: "))
    with contextlib.suppress(ModelFormatError):
        work_on(FORMATS[name], parse_object(data.removeprefix(b"data: "), "it"))


def work_on(format_: Format, request: dict[str, Any]) -> None:
    format_.streams(request)
    format_.tool_names(request)
    format_.tool_choice(request)
    request = format_.with_tools(request, [Tool(name="t", description="", schema={})])
    request = format_.renamed(request, {"read": "agent_read", "": "x"})
    history = [*format_.history(request), *format_.results([ToolResult(call_id="1", text="ok")])]
    write_body(format_.with_history(request, history))


@pytest.mark.parametrize("what", REFUSED)
@each_format
def test_json_that_readers_may_disagree_on_is_refused(name: str, what: str) -> None:
    text, sentence = REFUSED[what]
    for read in (
        lambda: list(FORMATS[name].reader().feed(f"data: {text}\n\n".encode())),
        lambda: FORMATS[name].read_answer(text.encode()),
        lambda: parse_object(text.encode(), "it"),
    ):
        with pytest.raises(ModelFormatError, match=sentence) as caught:
            read()
        assert "secret" not in caught.value.message


def test_json_within_the_bounds_is_read_as_it_is() -> None:
    text = '{"a":' * 199 + '[9007199254740993,"\\ud800",1.5,1e300]' + "}" * 199
    value = parse_object(text, "it")
    assert parse_object(write_body(value), "it") == value


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_over_the_limit_is_refused_and_one_of_exactly_the_limit_is_not(size: int) -> None:
    event = b"data: " + b"x" * 92 + b"\n\n"
    splitter = EventSplitter(len(event))
    data = b"data: 1\n\n" + event
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    assert [f.data for p in pieces for f in splitter.feed(p)] == ["1", "x" * 92]
    splitter = EventSplitter(len(event) - 1)
    frames: list[str] = []
    with pytest.raises(ModelFormatError, match="over 99 bytes"):
        frames.extend(frame.data for piece in pieces for frame in splitter.feed(piece))
    assert frames == ["1"]


def test_a_long_event_in_small_pieces_takes_linear_time_and_too_many_lines_are_refused() -> None:
    """A megabyte, byte by byte where it matters: looked at once each, not from the beginning."""
    splitter = EventSplitter(4_000_000)
    pieces = [b"data: "] + [b"x" * 20] * 50_000 + [b"\n\n"]
    assert [len(f.data) for p in pieces for f in splitter.feed(p)] == [1_000_000]
    with pytest.raises(ModelFormatError, match="over 100000 lines"):
        list(EventSplitter(4_000_000).feed(b":\n" * 100_001))


@each_format
def test_calls_and_bytes_over_the_limit_and_bytes_that_are_not_utf8_are_refused(name: str) -> None:
    format_, data = FORMATS[name], stream(name, TURN)
    body = write_body(WHOLE[name](TURN))
    with pytest.raises(ModelFormatError, match="more than 1 calls"):
        take(format_, data, Limits(calls=1))
    with pytest.raises(ModelFormatError, match="more than 1 calls"):
        format_.read_answer(body, Limits(calls=1))
    with pytest.raises(ModelFormatError, match="over 99 bytes"):
        format_.read_answer(body, Limits(answer_bytes=99))
    reader = format_.reader(Limits(answer_bytes=len(data) - 1))
    with pytest.raises(ModelFormatError, match=f"over {len(data) - 1} bytes"):
        list(reader.feed(data))
    with pytest.raises(ModelFormatError):
        list(reader.feed(b""))
    with pytest.raises(ModelFormatError):
        reader.answer()
    for data in (b'data: {"type":"\xff"}\n\n', b": \xff\n\n"):
        with pytest.raises(ModelFormatError, match="not UTF-8"):
            list(FORMATS[name].reader().feed(data))
    with pytest.raises(ModelFormatError, match="not UTF-8"):
        FORMATS[name].read_answer(b'{"a":"\xff"}')


@each_format
def test_what_came_before_an_unreadable_event_or_early_end_is_given_no_answer(name: str) -> None:
    good = stream(name, TURN)
    begun = good[: good.index(b"\n\n") + 2]
    reader = FORMATS[name].reader()
    events: list[Event] = []
    with pytest.raises(ModelFormatError, match="not JSON"):
        events.extend(reader.feed(begun + b"data: {\n\n" + good))
    assert b"".join(event.raw for event in events) == begun
    with pytest.raises(ModelFormatError, match="could not be read"):
        list(reader.feed(good))
    data = sse(STREAM[name](TURN)[:4])
    ends = [b"", b": half a comm"]
    if name != "chat_completions":  # there it is an end
        ends.append(b"data: [DONE]\n\n")
    for end in ends:
        reader = FORMATS[name].reader()
        events = [*reader.feed(data + end), *reader.finish()]
        assert b"".join(event.raw for event in events) == data + end
        with pytest.raises(ModelFormatError, match="before its answer was complete"):
            reader.answer()


@pytest.mark.parametrize("text", ["[]", "1", "{", '{"a":1,"a":2}'])
def test_arguments_that_are_no_object_are_refused_when_they_are_parsed(text: str) -> None:
    """The call itself was read: the model is to hear what is wrong with it."""
    with pytest.raises(ModelFormatError, match="the arguments of a call"):
        ToolCall(id="1", name="x", arguments=text).parsed_arguments()
    # Models send an empty text for a tool that takes nothing.
    assert ToolCall(id="1", name="x", arguments="").parsed_arguments() == {}


def unnamed(events: Iterable[Any]) -> bytes:
    return sse([("", event) for event in events])


def test_an_item_that_becomes_a_call_is_refused() -> None:
    """A client was shown the beginning, and would get a call that it should not see."""
    item = {"id": "i", "call_id": "c", "name": "read", "arguments": "{}"}
    events = [
        {"type": f"response.output_item.{when}", "output_index": 0, "item": {**item, "type": kind}}
        for when, kind in (("added", "custom_tool_call"), ("done", "function_call"))
    ]
    with pytest.raises(ModelFormatError, match="a second type"):
        take(FORMATS["openai_responses"], unnamed(events))


def test_what_is_told_again_and_again_is_not_copied_each_time() -> None:
    """In time that grows with its square, a model could hold up the whole console."""
    cited = {"type": "citations_delta", "citation": {}}
    reader = FORMATS["anthropic_messages"].reader()
    begin = [
        {"type": "message_start", "message": {"usage": {}}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    ]
    list(reader.feed(unnamed(begin)))
    lists = set[int]()
    for _ in range(100):
        list(reader.feed(unnamed([{"type": "content_block_delta", "index": 0, "delta": cited}])))
        lists.add(id(reader._blocks[0].value["citations"]))  # type: ignore[attr-defined]
    assert len(lists) == 1


@pytest.mark.parametrize(
    ("name", "events", "sentence"),
    [
        ("anthropic_messages", [USAGE, {"type": "message_delta", "usage": {}}], "over 1000 kinds"),
        ("openai_responses", [DONE], "more than 128 calls"),
    ],
)
def test_what_events_look_through_is_bounded(name: str, events: list[Any], sentence: str) -> None:
    with pytest.raises(ModelFormatError, match=sentence):
        take(FORMATS[name], unnamed(events))


@st.composite
def turns(draw: st.DrawFn, said: st.SearchStrategy[Said] = _SAID, number: int = 1) -> Turn:
    """An answer of a model, each of its calls with an id of its own."""
    parts = [
        Said(each.kind, each.pieces, each.name, f"call_{number}_{place}" if each.name else "")
        for place, each in enumerate(draw(st.lists(said, max_size=5)))
    ]
    return Turn(number, tuple(parts), draw(st.integers(0, 99)), draw(st.integers(0, 99)))


def read_stream(format_: Format, *pieces: bytes) -> tuple[list[Event], Answer]:
    reader = format_.reader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    events += reader.finish()
    return events, reader.answer()


def read_turn(name: str, turn: Turn) -> tuple[list[Event], Answer]:
    return read_stream(FORMATS[name], stream(name, turn))


def renamed(name: str) -> str | None:
    """Hide calls of ours; undo the renaming of the agent's."""
    return None if name in OURS else {"agent_read": "read"}.get(name, name)


@each_format
@given(
    turn=turns(),
    end=st.sampled_from(["\n", "\r\n", "\r"]),
    bom=st.booleans(),
    sizes=st.lists(st.integers(0, 40), max_size=60),
)
def test_any_split_of_the_bytes_reads_the_same(
    name: str, turn: Turn, end: str, bom: bool, sizes: list[int]
) -> None:
    comment = f": waiting{end}{end}".encode()
    data = b"\xef\xbb\xbf" * bom + comment + stream(name, turn, end=end)
    events, answer = read_stream(FORMATS[name], data)
    assert (events, answer) == read_stream(FORMATS[name], *cut(data, sizes))
    assert (events, answer) == read_stream(
        FORMATS[name], *(data[i : i + 1] for i in range(len(data)))
    )
    assert b"".join(event.raw for event in events) == data
    writer = FORMATS[name].writer()
    assert b"".join([writer.write(event) for event in events] + [writer.finish()]) == data


@each_format
@given(turn=turns())
def test_a_stream_and_its_answer_whole_say_the_same_also_to_the_sdk(name: str, turn: Turn) -> None:
    events, streamed = read_turn(name, turn)
    whole = FORMATS[name].read_answer(write_body(WHOLE[name](turn)))
    assert streamed.body == whole.body
    assert streamed == whole
    parts = [part for event in events for part in event.parts]
    assert "".join(part.text for part in parts if isinstance(part, TextDelta)) == whole.text
    begun = [part.name for part in parts if isinstance(part, CallBegun)]
    assert begun == [call.name for call in whole.calls]
    for made, said in zip(whole.calls, turn.calls, strict=True):
        assert made.parsed_arguments() == json.loads(said.whole)
    data = stream(name, turn)
    events, answer = read_stream(FORMATS[name], data)
    anew = b"".join(encode_event(e.data, e.name) if e.data else e.raw for e in events)
    assert sdk.events_read(name, anew) == sdk.events_read(name, data)
    body = write_body(WHOLE[name](turn))
    written = write_body(FORMATS[name].read_answer(body).body)
    assert sdk.whole(name, written) == sdk.whole(name, body)
    whole = sdk.whole(name, write_body(answer.body))
    assert _comparable(sdk.final(name, data)) == _comparable(whole)


@each_format
@given(turns=st.tuples(turns(number=1), turns(number=2), turns(number=3)))
def test_several_answers_are_one_to_the_providers_sdk(name: str, turns: tuple[Turn, ...]) -> None:
    writer = FORMATS[name].writer(renamed)
    written = b""
    for turn in turns:
        written += writer.next_answer() if turn.number > 1 else b""
        written += b"".join(writer.write(event) for event in read_turn(name, turn)[0])
    written += writer.finish()
    answers = [read_turn(name, turn)[1] for turn in turns]
    joined = FORMATS[name].joined(answers, renamed)
    seen = sdk.whole(name, write_body(joined))
    assert _comparable(sdk.final(name, written)) == _comparable(seen)
    again = read_stream(FORMATS[name], written)[1]
    theirs = [c.name for a in answers for c in a.calls if c.name not in OURS]
    assert [c.name for c in again.calls] == theirs
    assert again.text == "".join(answer.text for answer in answers)
    assert again.usage.output == sum(turn.output_tokens for turn in turns)
    assert again.usage.input == answers[-1].usage.input
    assert again.body["id"] == answers[0].body["id"]
    _check_order(name, sdk.events_read(name, written))


def _check_order(name: str, events: list[dict[str, Any]]) -> None:
    """What a provider promises of its stream's numbers."""
    kinds = [event.get("type") for event in events]
    if name == "anthropic_messages":
        begun = [e["index"] for e in events if e["type"] == "content_block_start"]
        assert begun == list(range(len(begun)))
        assert (kinds.count("message_start"), kinds.count("message_stop")) == (1, 1)
    elif name == "openai_responses":
        assert [e["sequence_number"] for e in events] == list(range(len(events)))
        begun = [e["output_index"] for e in events if e["type"] == "response.output_item.added"]
        assert begun == list(range(len(begun)))
        assert (kinds.count("response.created"), kinds.count("response.completed")) == (1, 1)
    else:
        assert len({event["id"] for event in events}) == 1


def _comparable(body: dict[str, Any]) -> dict[str, Any]:
    """Leave out what an SDK adds to an answer that it put together itself."""
    if isinstance(body, list):
        return [_comparable(each) for each in body]
    if not isinstance(body, dict):
        return body
    left_out = {"parsed", "parsed_output", "parsed_arguments", "index"}
    kept = {key: value for key, value in body.items() if key not in left_out}
    return {key: _comparable(value) for key, value in kept.items() if value not in (None, [])}
