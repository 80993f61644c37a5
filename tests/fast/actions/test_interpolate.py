"""References in step inputs and preview arguments."""

from typing import Any

import pytest

from aileron_core.actions.interpolate import (
    Reference,
    interpolate,
    number_text,
    op_arguments,
    references,
)
from aileron_core.actions.model import Step
from aileron_core.errors import MissingValue

DECLARED = ("title", "count", "tags", "flag", "meta", "absent")
ARGS = {"title": 'a "b"', "count": 5, "tags": ["x", 1.0], "flag": True, "meta": {"k": None}}
OUTPUTS = {
    "fetch": {
        "id": 7,
        "nothing": None,
        "message": {"headers": [{"name": "To", "value": "ana@x"}, {"name": "Empty"}]},
        "list": [{"id": 1}, {"id": 2}],
    },
    "fetch.more": {"id": "more"},
}


def filled(template: Any, outputs: Any = OUTPUTS) -> Any:
    return interpolate({"x": template}, ARGS, outputs, declared=DECLARED)


@pytest.mark.parametrize(
    ("template", "value"),
    [
        ("${args.title}", 'a "b"'),
        ("${args.count}", 5),
        ("${args.tags}", ["x", 1.0]),
        ("${args.flag}", True),
        ("${args.meta}", {"k": None}),
        ("${fetch.id}", 7),
        ("${fetch.message.headers.To}", "ana@x"),
        ("${fetch.list.1.id}", 2),
        ("${fetch.list.1}", {"id": 2}),
        ("${fetch.more.id}", "more"),
        ("n=${args.count}, ${args.tags} ${args.flag}", 'n=5, ["x",1] true'),
        ("${args.title}${args.title}", 'a "b"a "b"'),
        (" ${args.count}", " 5"),
        ("${args.meta}!", '{"k":null}!'),
        ("-${args.absent}-", "--"),
        ("$${args.count}", "$5"),
        ("$ {args.count} {args.count}", "$ {args.count} {args.count}"),
        (["${args.absent}", "${args.count}", ["${args.absent}"]], [5, []]),
        ({"a": "${args.absent}", "b": {"c": "${args.flag}"}}, {"b": {"c": True}}),
        (12.5, 12.5),
        (False, False),
    ],
)
def test_a_template_is_filled_in(template: Any, value: Any) -> None:
    """Alone a reference keeps its type, inside text it is JSON except strings."""
    result = filled(template)["x"]
    assert result == value
    assert type(result) is type(value)


def test_an_absent_optional_drops_its_key() -> None:
    """The connector never sees a literal `${args.x}` or a null that nobody wrote."""
    assert filled("${args.absent}") == {}


def test_a_miss_in_an_output_fails_before_the_step() -> None:
    """A step never runs with a hole in its arguments."""
    paths = ("nope", "nothing", "message.headers.to", "message.headers.Empty", "list.2", "list.-1")
    missing = [f"${{fetch.{path}}}" for path in (*paths, "id.x")]
    for template in (*missing, "text ${fetch.nope}", "${later.id}", "${args.undeclared}"):
        with pytest.raises(MissingValue) as caught:
            filled(template)
        assert template.removeprefix("text ") in caught.value.message
        assert caught.value.to_failure().boundary == "action"


def test_what_a_reference_brings_in_is_not_a_template() -> None:
    """An agent cannot read another step's output by writing a reference into an argument."""
    template = {"a": "${args.title}", "b": "x ${args.title} ${fetch.secret}"}
    outputs = {"fetch": {"secret": "${args.title}"}}
    result = interpolate(template, {"title": "${fetch.secret}"}, outputs, declared=["title"])
    assert result == {"a": "${fetch.secret}", "b": "x ${fetch.secret} ${args.title}"}


def test_before_any_step_has_run_outputs_stay_as_written() -> None:
    """The digest has arguments filled in and outputs as the action file names them."""
    template = {"a": "${args.count}", "b": "${fetch.id}", "c": "${args.count}/${fetch.id}"}
    result = interpolate(template, ARGS, None, declared=DECLARED)
    assert result == {"a": 5, "b": "${fetch.id}", "c": "5/${fetch.id}"}


def test_references_are_listed_in_order() -> None:
    """The gate asks which steps depend on what an earlier one returns."""
    found = references({"a": ["${args.x}", "${s.y.z} ${bad} ${args.x}"], "n": 1})
    assert [str(reference) for reference in found] == ["${args.x}", "${s.y.z}", "${args.x}"]
    assert found[1] == Reference(head="s", path="y.z")
    assert [reference.is_argument for reference in found] == [True, False, True]


def test_a_step_without_inputs_gets_the_declared_arguments() -> None:
    """Undeclared ones never reach a connector, though upstream passes them on."""
    step = Step(id="s", connector="c", op="o")
    taken = op_arguments(step, {"b": 1, "evil": 2, "a": [3]}, {}, ("a", "b", "c"))
    assert taken == {"a": [3], "b": 1}


def test_a_step_with_inputs_states_its_arguments_fully() -> None:
    """A call cannot overwrite or add to what the action file fixes."""
    step = Step(id="s", connector="c", op="o", inputs={"folder": "trash", "id": "${args.id}"})
    args = {"id": 1, "folder": "work", "force": True}
    assert op_arguments(step, args, {}, ("id", "folder", "force")) == {"folder": "trash", "id": 1}
    empty = Step(id="s", connector="c", op="o", inputs={})
    assert op_arguments(empty, args, {}, ("id",)) == {}


def test_a_number_shows_its_size() -> None:
    """No 1.234567e+06 where a person reads an amount."""
    for number, text in (
        *((0, "0"), (-5, "-5"), (2**70, "1180591620717411303424"), (-0.0, "0"), (1.5, "1.5")),
        *((1234567.0, "1234567"), (1e6, "1000000"), (1e20, "100000000000000000000")),
        *((1e-7, "0.0000001"), (-1.25e-5, "-0.0000125"), (1e300, "1e+300")),
    ):
        assert number_text(number) == text
        assert float(text) == number


def test_an_output_without_end_fails_the_step_and_not_the_program() -> None:
    """A connector cannot break the executor by nesting what it returns."""
    deep: Any = 1
    for _ in range(50_000):
        deep = [deep]
    with pytest.raises(MissingValue, match="nested too deeply"):
        interpolate({"x": "text ${s.a}"}, {}, {"s": {"a": deep}}, declared=[])
