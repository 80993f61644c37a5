"""A request written with changes: every byte of what did not change is the agent's."""

import json
import weakref
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from aileron_core.errors import ModelFormatError
from aileron_core.models.json_values import parse_object
from aileron_core.models.splicing import SplicedObject

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)  # fmt: skip
OBJECTS = st.dictionaries(st.text(), VALUES, max_size=5)
WRITTEN = (
    {},
    {"indent": 1},
    {"separators": (",", ":"), "ensure_ascii": False},
    {"separators": (" ,\r\n", "\t: ")},
)


@given(OBJECTS, st.sampled_from(WRITTEN), VALUES)
def test_what_is_read_and_written_is_the_same(value: Any, how: Any, more: Any) -> None:
    """However it is spaced and escaped; also with a member and an element more."""
    source = SplicedObject(json.dumps(value, **how).encode(errors="surrogatepass"), "it")
    assert source.value == value
    assert json.loads(source.write(source.value)) == value
    changed = {key: [*v, more] if isinstance(v, list) else v for key, v in source.value.items()}
    assert json.loads(source.write({**changed, "more": more})) == {**changed, "more": more}


def test_what_does_not_change_keeps_its_bytes() -> None:
    """How a number is written, what is escaped, the order, and within members and between elements the spaces."""
    elements = [
        '{"b" : 1.50}',
        '["\\u00e9 \u00e9"]',
        '{"n":-0}',
        "[ 1E2 ]",
        "[ ]",
        '{"role":"user"}',
    ]
    members = ('"n": 1e1', '"\u00e9" : "\u00fc\\u0041"', '"s": [-0, "a", "\\u0061" ]')
    n, accented, s = members
    data = f' {{{n} , "m" : [ {" , ".join(elements)} ],{accented}, {s}}}\n'.encode()
    source = SplicedObject(data, "it")
    items = source.value["m"]
    whole = f'{{{n},"m" : [ {" , ".join(elements)} ],{accented},{s}}}'
    assert source.write(source.value) == whole.encode()
    new = {"new": 1}
    changed = {**source.value, "m": [items[0], items[1], new, items[3], items[4], items[2]], "x": 2}
    a, b, c, d, e, _ = elements
    assert source.write(changed) == (
        f'{{{n},"m":[{a} , {b},{{"new":1}},{d} , {e},{c}],{accented},{s},"x":2}}'.encode()
    )


def test_equal_values_keep_each_its_own_bytes() -> None:
    """Python has one object for all small integers of a value, and for all texts of one letter."""
    data = b'{"a":0,"b":-0,"c":"a","d":"\\u0061","e":null,"f":[0,"a"]}'
    source = SplicedObject(data, "it")
    assert source.write({**source.value}) == data


def outcome(read: Callable[[], Any]) -> Any:
    try:
        return read()
    except ModelFormatError as error:
        return error.message


def assert_read_alike(text: str) -> Any:
    """Return what was read, or the sentence of the refusal."""
    whole = outcome(lambda: parse_object(text.encode(), "it"))
    assert outcome(lambda: SplicedObject(text.encode(), "it").value) == whole
    return whole


@given(OBJECTS, st.integers(0, 400), st.text(alphabet='{}[],:"\\ 1e-tNa\n', max_size=3))
def test_it_refuses_what_the_whole_reader_refuses(value: Any, at: int, put: str) -> None:
    """With the same sentence, and takes what that takes."""
    text = json.dumps(value)
    assert_read_alike(text[:at] + put + text[at + at % 3 :])


def test_a_list_may_be_as_deep_in_parts_as_whole() -> None:
    """Two of its levels are the object and the list itself."""
    assert isinstance(assert_read_alike(f'{{"a":{"[" * 199}{"]" * 199}}}'), dict)
    assert "too deeply" in assert_read_alike(f'{{"a":{"[" * 200}{"]" * 200}}}')
    depth = 199
    data = f'{{"\u00e9": {"[" * depth}{"]" * depth},"o": {{"a":{"[" * (depth - 1)}{"]" * (depth - 1)}}}}}'
    source = SplicedObject(data.encode(), "it")
    assert source.write(source.value) == data.encode()


def test_it_refuses_brackets_of_two_kinds() -> None:
    """As the whole reader does."""
    for text in ("[}", " [ } ", "{]", '{"a":[}}', '{"a":{]}'):
        assert "it is not JSON" in assert_read_alike(text)


@given(OBJECTS, st.sampled_from(WRITTEN), st.lists(VALUES, max_size=3), st.integers(0, 4))
def test_it_reads_the_same_behind_a_previous_one(
    value: Any, how: Any, more: list[Any], at: int
) -> None:
    """Whatever the lists of both have in common, and however each is written."""
    lists = {"l": [[1], {"a": 2}, [], more], **{k: v for k, v in value.items() if v}}
    changed = {k: [*v[:at], *more, *v[at:]] if isinstance(v, list) else v for k, v in lists.items()}
    previous = SplicedObject(json.dumps({**value, **lists}, **how).encode(), "it")
    for each, written in ((changed, how), (changed, {}), (lists, how), ({**value, "l": more}, {})):
        data = json.dumps(each, **written).encode()
        alone, behind = SplicedObject(data, "it"), SplicedObject(data, "it", previous)
        assert behind.value == alone.value == each
        backwards = {k: v[::-1] if isinstance(v, list) else v for k, v in behind.value.items()}
        for edited in (behind.value, backwards):
            assert json.loads(behind.write(edited)) == edited
        assert behind.write(behind.value) == alone.write(alone.value)
        previous = behind


def test_what_a_previous_one_has_is_not_read_again() -> None:
    """Each element that has the same text at the same place in its list."""
    previous = SplicedObject(b'{"n":1,"m":[{"a":1},{"b":[2]},{"c":3},4],"t":[{"d":5}]}', "it")
    data = b'{"n":10,"t":[{"d":5}], "m":[{"a":1} ,{"b":[2]},{"c":30},4,{"e":{}}]}'
    following = SplicedObject(data, "it", previous)
    before, after = previous.value, following.value
    assert after == json.loads(data)
    assert [new is old for new, old in zip(after["m"], before["m"], strict=False)][:3] == [
        True, True, False,
    ]  # fmt: skip
    assert after["t"][0] is before["t"][0]
    assert following.write({**after, "m": [*after["m"], 6]}) == (
        b'{"n":10,"t":[{"d":5}],"m":[{"a":1} ,{"b":[2]},{"c":30},4,{"e":{}},6]}'
    )
    held = weakref.ref(previous)
    del previous
    assert held() is None, "each keeps all those before it"
