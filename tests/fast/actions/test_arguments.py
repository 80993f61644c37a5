"""A call's arguments against the declared inputs."""

from collections.abc import Callable
from typing import Any

import jsonschema
import pytest

from aileron_core.actions.arguments import check_arguments, input_schema
from aileron_core.actions.model import Action
from aileron_core.canonical import canonical
from aileron_core.errors import InvalidArguments

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
    assert len(problems) == 51
    assert problems[-1]["problem"] == "and 951 more problems"


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
