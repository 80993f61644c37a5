"""A request written with changes: every byte of what did not change is the agent's."""

import json
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
    """How a number is written, what is escaped, the order, and between elements the spaces too."""
    elements = ['{"b" : 1.50}', '"\\u00e9 \u00e9"', "-0", "1E2", "[ ]", '{"role":"user"}']
    data = f' {{"n": 1e1 , "m" : [ {" , ".join(elements)} ],"s":"\u00fc\\u0041" }}\n'.encode()
    source = SplicedObject(data, "it")
    items = source.value["m"]
    assert (
        source.write(source.value)
        == (f'{{"n":1e1,"m":[ {" , ".join(elements)} ],"s":"\u00fc\\u0041"}}').encode()
    )
    new = {"new": 1}
    changed = {**source.value, "m": [items[0], items[1], new, items[3], items[4], items[2]], "x": 2}
    a, b, c, d, e, _ = elements
    assert source.write(changed) == (
        f'{{"n":1e1,"m":[{a} , {b},{{"new":1}},{d} , {e},{c}],"s":"\u00fc\\u0041","x":2}}'.encode()
    )


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
