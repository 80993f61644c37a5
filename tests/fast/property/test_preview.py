"""For any answer of a service: fields, and every difference told. For any template: filled once, whole, and never again."""

import json
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from aileron_core.actions.interpolate import interpolate, references, template_problems
from aileron_core.actions.json_paths import find, lookup
from aileron_core.actions.model import Preview
from aileron_core.canonical import canonical, encode_large_integers
from aileron_core.errors import MissingValue
from aileron_core.runs.preview.resolve import compare_outputs, render_gist, resolve_fields

KEY = st.sampled_from(["a", "A", "b", "name", "value", "To", "TO", "0", ""])
NUMBER = st.integers() | st.integers(-2, 2) | st.floats(allow_nan=False, allow_infinity=False)
TEXT = st.text(max_size=4) | st.sampled_from(["1", "true", "a\nb"])
VALUE = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(KEY, inner, max_size=4)),
)
HEADERS = st.lists(st.fixed_dictionaries({"name": KEY}, optional={"value": VALUE}), max_size=4)
OUTPUT = st.one_of(VALUE, st.dictionaries(KEY, st.one_of(VALUE, HEADERS), max_size=4))
STEP = KEY | st.sampled_from(["1", "-1", "²", "9" * 5000])
PATH = st.lists(STEP, min_size=1).map(".".join)
RENDER = st.dictionaries(st.sampled_from(["A", "B", "C"]), PATH)
LEAF = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
NAMES = st.sampled_from(["a", "b", "name", "value"])
FILLED = st.recursive(LEAF, lambda e: st.lists(e, max_size=3) | st.dictionaries(NAMES, e))
REFERENCES = ["${args.x}", "${args.teamId}", "${s.a}", "${s.a.0}", "${s.b.name}", "${q.a}"]
PIECE = st.sampled_from([*REFERENCES, "text ", "$", "{", "}", "${", ""])
STRING = st.lists(PIECE, max_size=4).map("".join)
LISTED = st.recursive(STRING | LEAF, lambda inner: st.lists(inner, max_size=3))
TEMPLATE = st.dictionaries(st.text(max_size=3), LISTED)
HOSTILE = st.sampled_from(["${args.teamId}", "${s.a}", "${", "$${args.x}", "}"])


def preview_of(render: dict[str, str]) -> Preview:
    return Preview(op="x", render=tuple(render.items()), gist="${A}-${B}")


@given(OUTPUT, RENDER)
def test_any_answer_gives_every_field_once(output: Any, render: dict[str, str]) -> None:
    fields = resolve_fields(preview_of(render), output)
    assert [field.label for field in fields] == list(render)
    for field, path in zip(fields, render.values(), strict=True):
        assert field.missing is (find(output, path) is None)
        assert not (field.missing and field.value)
    assert isinstance(render_gist(preview_of(render), fields), str)


def _at(output: Any, place: tuple[str | int, ...]) -> Any:
    for step in place:
        output = output[step]
    return output


@given(OUTPUT, PATH)
def test_what_a_person_is_shown_holds_what_a_step_would_be_given(output: Any, path: str) -> None:
    found, located = find(output, path), lookup(output, path)
    places = found.places if found is not None else ()
    assert len(set(places)) == len(places)
    if found is not None:
        assert [_at(output, place) for place in places] == list(found.values)
    if located is not None:
        assert located.place in places
        assert _at(output, located.place) is located.value


@given(OUTPUT, OUTPUT, RENDER)
def test_answers_differ_where_digests_do(before: Any, after: Any, render: dict[str, str]) -> None:
    drift = compare_outputs(before, after, preview_of(render))
    one, other = (canonical(encode_large_integers(each)) for each in (before, after))
    assert drift or one == other
    if json.dumps(before, sort_keys=True) == json.dumps(after, sort_keys=True):
        assert not drift
    assert len(drift.other_paths) == min(drift.other_count, 50)


@given(TEMPLATE, FILLED, st.one_of(FILLED, HOSTILE))
def test_a_template_that_passes_the_check_is_filled_or_misses_a_value(
    template: dict[str, Any], output: Any, argument: Any
) -> None:
    declared = ["x", "teamId"]
    assume(not list(template_problems(template, declared=declared, steps=["s"])))
    try:
        filled = interpolate(template, {"x": argument}, {"s": output}, declared=declared)
    except MissingValue:
        assert any(not reference.is_argument for reference in references(template))
        return
    assert filled.keys() <= template.keys()
    if not references(template):
        assert filled == template
