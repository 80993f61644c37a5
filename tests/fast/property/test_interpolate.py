"""For any template and any values: filled once, whole, and never again."""

from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from aileron_core.actions.interpolate import interpolate, references, template_problems
from aileron_core.errors import MissingValue

LEAF = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5)
)
VALUE = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["a", "b", "name", "value"]), inner),
    ),
)
REFERENCES = ["${args.x}", "${args.teamId}", "${s.a}", "${s.a.0}", "${s.b.name}", "${q.a}"]
PIECE = st.sampled_from([*REFERENCES, "text ", "$", "{", "}", "${", ""])
STRING = st.lists(PIECE, max_size=4).map("".join)
TEMPLATE = st.dictionaries(
    st.text(max_size=3),
    st.recursive(st.one_of(STRING, LEAF), lambda inner: st.lists(inner, max_size=3)),
)
HOSTILE = st.sampled_from(["${args.teamId}", "${s.a}", "${", "$${args.x}", "}"])


@given(TEMPLATE, VALUE, st.one_of(VALUE, HOSTILE))
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
