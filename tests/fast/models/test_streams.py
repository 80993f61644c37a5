"""Streams of each format: read the same however cut, written so that the provider's SDK sees the same."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.models import FORMATS
from aileron_core.models.format import Format, write_body
from aileron_core.models.neutral import Answer, CallBegun, Event, TextDelta
from aileron_core.models.sse import encode_event
from tests.fast.models import sdk
from tests.support.making import cut
from tests.support.scripted_answers import WHOLE, Said, Turn, say_call, stream

NAMES = sorted(FORMATS)
OURS = {"send_draft", "merge"}
each_format = pytest.mark.parametrize("name", NAMES)

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
def turns(draw: st.DrawFn, said: st.SearchStrategy[Said] = _SAID, number: int = 1) -> Turn:
    """An answer of a model, each of its calls with an id of its own."""
    parts = [
        Said(each.kind, each.pieces, each.name, f"call_{number}_{place}" if each.name else "")
        for place, each in enumerate(draw(st.lists(said, max_size=5)))
    ]
    return Turn(number, tuple(parts), draw(st.integers(0, 99)), draw(st.integers(0, 99)))


def read(format_: Format, *pieces: bytes) -> tuple[list[Event], Answer]:
    reader = format_.reader()
    events = [event for piece in pieces for event in reader.feed(piece)]
    events += reader.finish()
    return events, reader.answer()


def read_turn(name: str, turn: Turn) -> tuple[list[Event], Answer]:
    return read(FORMATS[name], stream(name, turn))


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
    events, answer = read(FORMATS[name], data)
    assert (events, answer) == read(FORMATS[name], *cut(data, sizes))
    assert (events, answer) == read(FORMATS[name], *(data[i : i + 1] for i in range(len(data))))
    assert b"".join(event.raw for event in events) == data
    writer = FORMATS[name].writer()
    assert b"".join([writer.write(event) for event in events] + [writer.finish()]) == data


@each_format
@given(turn=turns())
def test_a_stream_and_the_same_answer_whole_say_the_same(name: str, turn: Turn) -> None:
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


@each_format
@given(turn=turns())
def test_the_providers_sdk_reads_what_was_read_and_written(name: str, turn: Turn) -> None:
    data = stream(name, turn)
    events, answer = read(FORMATS[name], data)
    anew = b"".join(
        encode_event(event.data, event.name) if event.data else event.raw for event in events
    )
    assert sdk.events(name, anew) == sdk.events(name, data)
    body = write_body(WHOLE[name](turn))
    written = write_body(FORMATS[name].read_answer(body).body)
    assert sdk.whole(name, written) == sdk.whole(name, body)
    assert _comparable(sdk.final(name, data)) == _comparable(
        sdk.whole(name, write_body(answer.body))
    )


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
    again = read(FORMATS[name], written)[1]
    assert [c.name for c in again.calls] == [
        c.name for a in answers for c in a.calls if c.name not in OURS
    ]
    assert again.text == "".join(answer.text for answer in answers)
    assert again.usage.output == sum(turn.output_tokens for turn in turns)
    assert again.usage.input == answers[-1].usage.input
    assert again.body["id"] == answers[0].body["id"]
    _check_order(name, sdk.events(name, written))


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
    return {
        key: _comparable(value)
        for key, value in body.items()
        if key not in left_out and value not in (None, [])
    }
