"""Large JSON of a guest, read in slices: the value that any reader finds, or none."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.connectors.wasm import json_slices
from aileron_core.connectors.wasm.json_slices import (
    LEFT_OUT,
    LongString,
    MalformedString,
    StructureTooLarge,
    load_json,
)
from tests.support.any_values import json_values

LONG = st.text(min_size=60, max_size=300)
VALUES = json_values(st.text(max_size=5) | LONG, st.integers())
LEAF = st.integers(0, 9) | st.text('[]{}N"\\', max_size=3) | st.text("x]", min_size=65, max_size=70)
BLOCKS = st.lists(st.dictionaries(st.sampled_from(["list", "t"]), LEAF | st.lists(st.lists(LEAF, max_size=2))), max_size=8)  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices of a few bytes, so that every kind of character and escape lies across an edge."""
    monkeypatch.setattr(json_slices, "SLICE_BYTES", 16)


def at_once() -> None:
    """Nobody else wants the interpreter."""


def load_slices(data: bytes, errors: str = "strict") -> Any:
    return load_json(
        data, at_once, convert_long_string=lambda text: text.text(at_once, errors), errors=errors
    )


@given(VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_the_value_is_the_one_of_any_reader(value: Any, ascii_only: bool, indent: Any) -> None:
    data = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert load_slices(data) == value


@given(VALUES, st.data())
def test_what_no_reader_takes_is_refused(value: Any, data: Any) -> None:
    text = json.dumps(value)
    at = data.draw(st.integers(0, len(text) - 1))
    kept = data.draw(st.sampled_from([0, 1]))
    put = data.draw(st.sampled_from(["", "}", "{", ",", '"', " ", "1", ":", "\\", "N", "NaN", "\x01"]))  # fmt: skip
    damaged = text[:at] + put + text[at + kept :]
    try:
        expected = json.loads(damaged, parse_constant=refuse)
        json.dumps(expected, ensure_ascii=False).encode()
    except ValueError:
        with pytest.raises(ValueError):
            load_slices(damaged.encode())
    else:
        assert load_slices(damaged.encode()) == expected


def refuse(name: str) -> None:
    raise ValueError(name)


@given(LONG, st.integers(0, 300), st.sampled_from(["\\ud800", "\\udc00", "\\uDBFF\\u0041"]), st.booleans())  # fmt: skip
def test_half_a_surrogate_pair_is_refused_wherever_it_stands(text: str, at: int, half: str, to_utf8: bool) -> None:  # fmt: skip
    inside = json.dumps(text)[1:-1] if text.isascii() and "\\" not in text else "x" * 100
    spelled = f"{inside[:at]}{half}{inside[at:]}"
    for data in (f'["{spelled}"]', f'{{"{spelled}": 1}}', f'["{"y" * 100}", "{half}"]'):
        with pytest.raises(MalformedString, match="contains a lone surrogate"):
            load_slices(data.encode())
    long, read = f'["{spelled}{"z" * 70}"]', LongString.utf8 if to_utf8 else LongString.text
    with pytest.raises(MalformedString):
        load_json(long.encode(), at_once, convert_long_string=lambda found: read(found, at_once))
    escaped = f'["{"x" * 100}\\{half}"]'
    assert load_slices(escaped.encode()) == json.loads(escaped)


@given(st.permutations(["list", "rest", "x", "y"]), st.data(), st.sampled_from([None, 1]))
def test_what_is_left_out_of_a_large_value_is_the_end_of_it_and_no_other_part(
    names: list[str], data: Any, indent: Any
) -> None:
    rest = LEAF | BLOCKS | st.fixed_dictionaries({"list": BLOCKS})
    kinds = {"list": LEAF | BLOCKS, "rest": rest, "y": LEAF | BLOCKS}
    members = {each: data.draw(kinds.get(each, LEAF)) for each in names}
    members["x"] = {"list": members["x"]}
    text = json.dumps({"y": members["y"], "in": members}, indent=indent).encode()
    try:
        found = load_json(
            b" " * json_slices.SLICE_BYTES + text,
            at_once,
            convert_long_string=lambda text: text.text(at_once),
            max_structure=data.draw(st.integers(100, 300)),
            spare="rest",
            shorten="list",
        )
    except StructureTooLarge:
        return
    assert (found["y"], found["in"].keys()) == (members["y"], members.keys())
    for name, value in found["in"].items():
        if value is LEFT_OUT:
            assert name == "rest"
        elif isinstance(value, list) and value[-1:] == [LEFT_OUT]:
            assert name == "list"
            assert value[:-1] == members[name][: len(value) - 1]
        else:
            assert value == members[name]


@given(LONG)
def test_a_long_text_is_the_same_in_utf8(text: str) -> None:
    data = json.dumps([text + "x" * 64]).encode()
    (found,) = load_json(data, at_once, convert_long_string=lambda long: long.utf8(at_once))
    assert found == (text + "x" * 64).encode()


@pytest.mark.parametrize("unit", [b"{},", b"1,", b'"",', b'"short",', b" ", b'"k":1,', b"[", b'"\\"",'])  # fmt: skip
def test_more_than_so_much_beside_long_texts_is_refused(unit: bytes) -> None:
    text = b'"' + b"x" * 500_000 + b'"'
    many = unit * (400_000 // len(unit))
    for data in (b"[" + many + b"1]", b"[" + text + b"," + many + b"1]"):
        with pytest.raises(StructureTooLarge):
            load_slices(data)
    assert len(load_slices(b"[" + text + b"," + text + b"]")[1]) == 500_000


def test_others_get_a_turn_after_each_slice_and_may_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_slices, "SLICE_BYTES", 1000)
    turns: list[int] = []
    data = b'["' + b"\\n" * 50_000 + b'"]'

    def turn() -> None:
        turns.append(1)

    (found,) = load_json(data, turn, convert_long_string=lambda text: text.text(turn))
    assert found == "\n" * 50_000
    assert len(turns) >= 2 * len(data) // 1000  # once to find its end, once to read it

    def over() -> None:
        raise LookupError

    with pytest.raises(LookupError):
        load_json(data, over, convert_long_string=LongString.__len__)
