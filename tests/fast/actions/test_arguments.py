"""A call's arguments against the declared inputs, and references in step inputs and preview arguments."""

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from aileron_core.actions.arguments import check_arguments, input_schema
from aileron_core.actions.interpolate import interpolate, number_text, op_arguments, references
from aileron_core.actions.model import Action, Step
from aileron_core.canonical import canonical
from aileron_core.errors import InvalidArguments, MissingValue

INPUTS = "".join(
    f'[[inputs]]\nname = "{name}"\ntype = "{type_}"\nrequired = {required}\ndescription = "d"\n{more}\n'
    for name, type_, required, more in [
        ("to", "string", "true", ""),
        ("count", "integer", "false", ""),
        ("ratio", "number", "false", ""),
        ("urgent", "boolean", "false", ""),
        ("tags", "array", "false", 'items_type = "integer"'),
        ("any_list", "array", "false", ""),
        ("meta", "object", "false", ""),
    ]
)


@pytest.fixture
def action(load: Callable[..., Action]) -> Action:
    return load(INPUTS)


def argument_problems(action: Action, args: Any) -> list[dict[str, str]]:
    with pytest.raises(InvalidArguments) as caught:
        check_arguments(action, args)
    problems = caught.value.details["problems"]
    assert all(set(problem) == {"argument", "problem"} for problem in problems)
    return problems


def test_the_schema_is_closed_and_arrays_have_items(action: Action) -> None:
    """What agents see is a valid JSON Schema that admits nothing else."""
    schema = input_schema(action)
    jsonschema.Draft202012Validator.check_schema(schema)
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["to"]
    properties: Any = schema["properties"]
    assert properties["to"] == {"type": "string", "description": "d"}
    assert properties["tags"]["items"] == {"type": "integer"}
    assert properties["any_list"]["items"] == {}


def test_arguments_that_fit_come_back_as_declared(action: Action) -> None:
    """Whole floats become integers, null optionals are absent, the rest is untouched."""
    kept = {"to": "é\u0000", "any_list": [None, {"a": [True, 1.5]}], "meta": {"k": None}}
    given = {**kept, "count": 5.0, "ratio": 5, "urgent": None, "tags": [1.0, 2]}
    taken = check_arguments(action, given)
    assert taken == {**kept, "count": 5, "ratio": 5, "tags": [1, 2]}
    assert type(taken["count"]) is int
    assert all(type(tag) is int for tag in taken["tags"])  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("argument", "value", "problem"),
    [
        ("to", 5, "must be a string, not an integer"),
        ("to", ["x"], "must be a string, not an array"),
        ("to", None, "is required"),
        ("to", "\ud800", "lone surrogate"),
        ("count", True, "must be an integer, not a boolean"),
        ("count", "5", "must be an integer, not a string"),
        ("count", 5.5, "must be an integer, not a number"),
        ("count", 2**53, "beyond 2^53"),
        ("count", 1e300, "beyond 2^53"),
        ("count", -(2**53), "beyond 2^53"),
        ("ratio", False, "must be a number, not a boolean"),
        ("ratio", 2**64, "beyond 2^53"),
        ("ratio", float("nan"), "not a number that JSON allows"),
        ("ratio", float("inf"), "not a number that JSON allows"),
        ("urgent", 1, "must be true or false, not an integer"),
        ("tags", "x", "must be an array, not a string"),
        ("tags", [1, "x"], 'at "[1]": must be an integer, not a string'),
        ("tags", [None], 'at "[0]": must be an integer, not null'),
        ("any_list", [{"a": [2**53]}], 'at "[0].a[0]": is an integer beyond'),
        ("any_list", [["\udc00"]], 'at "[0][0]": contains a lone surrogate'),
        ("meta", [], "must be an object, not an array"),
        ("meta", {"\ud800": 1}, "has a key with a lone surrogate"),
    ],
)
def test_a_wrong_argument_is_named(action: Action, argument: str, value: Any, problem: str) -> None:
    (found,) = argument_problems(action, {"to": "x", argument: value})
    assert found["argument"] == argument
    assert problem in found["problem"]


def test_all_problems_of_a_call_come_together(action: Action) -> None:
    problems = argument_problems(action, {"count": "1", "nope": 1, "urgent": 0})
    assert [problem["argument"] for problem in problems] == ["nope", "to", "count", "urgent"]
    assert "this action takes to, count, ratio" in problems[0]["problem"]


def test_arguments_must_be_an_object(action: Action) -> None:
    for args in (None, [], "x", 5, True):
        (problem,) = argument_problems(action, args)
        assert problem["argument"] == ""
        assert "must be an object" in problem["problem"]


def test_a_flood_of_unknown_arguments_is_counted(action: Action) -> None:
    problems = argument_problems(action, {f"x{number}": 1 for number in range(1000)})
    assert (len(problems), problems[-1]["problem"]) == (51, "and 951 more problems")


def test_an_argument_nested_without_end_is_refused(action: Action) -> None:
    """Depth is bounded before anything recurses over it."""
    value: Any = 1
    for _ in range(500):
        value = [value]
    (problem,) = argument_problems(action, {"to": "x", "any_list": value})
    assert "nested more than 64 levels deep" in problem["problem"]


def test_a_refusal_can_always_be_written_to_the_wire(action: Action) -> None:
    """Even of an argument whose name has no UTF-8 form."""
    with pytest.raises(InvalidArguments) as caught:
        check_arguments(action, {"to": "x", "\ud800\u202e": 1})
    canonical(caught.value.to_failure().to_json())
    assert "\u202e" not in caught.value.message


def test_an_action_without_inputs_takes_nothing(load: Callable[..., Action]) -> None:
    action = load()
    assert check_arguments(action, {}) == {}
    (problem,) = argument_problems(action, {"x": 1})
    assert problem["problem"] == "is unknown; this action takes no arguments"


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
    assert (found[1].head, found[1].path) == ("s", "y.z")
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
    assert op_arguments(Step(id="s", connector="c", op="o", inputs={}), args, {}, ("id",)) == {}


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
