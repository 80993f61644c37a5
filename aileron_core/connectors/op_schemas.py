"""`[provides.ops]` of a manifest: what each op does and takes, for agents that get it as a tool of its own."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from aileron_core.actions.model import Input
from aileron_core.actions.validate import input_problems

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_MAX_DESCRIPTION = 4000
_INPUT_KEYS: Mapping[str, type] = {
    "name": str, "type": str, "description": str, "required": bool, "label": str, "multiline": bool,
    "items_type": str, "format": str,
}  # fmt: skip
"""As `[[inputs]]` of an action file has them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpSchema:
    """One op, as its connector describes it."""

    description: str
    inputs: tuple[Input, ...] = ()
    """All arguments that it takes."""


def op_schemas(value: Any) -> str | None:
    """Return what is wrong with the table `[provides.ops]`, or None."""
    if not isinstance(value, dict):
        return "must be a table: an op, and what it does and takes"
    for name, table in cast("dict[str, Any]", value).items():
        if not _NAME.fullmatch(name):
            return f"{name[:80]!r} is not the name of an op: letters, digits, _ and -"
        if (problem := next(_op_problems(table), None)) is not None:
            return f"{name}: {problem}"
    return None


def read_op_schemas(table: Mapping[str, Any]) -> dict[str, OpSchema]:
    """Return the ops of a table in which `op_schemas` found nothing wrong."""
    return {
        name: OpSchema(
            description=op["description"].strip(),
            inputs=tuple(Input(**entry) for entry in op.get("inputs", ())),
        )
        for name, op in table.items()
    }


def _op_problems(table: Any) -> Iterator[str]:
    if not isinstance(table, dict):
        yield "must be a table with a description and, if it takes any, inputs"
        return
    op = cast("dict[str, Any]", table)
    if unknown := next((key for key in op if key not in ("description", "inputs")), None):
        yield f"{unknown[:80]!r} is not a key here; the keys are description and inputs"
    if not _is_description(op.get("description")):
        yield f"needs a description of at most {_MAX_DESCRIPTION:,} characters"
    entries: Any = op.get("inputs", [])
    if not isinstance(entries, list):
        yield "inputs must be a list of tables"
        return
    found: list[Input] = []
    for entry in cast("list[Any]", entries):
        if (problem := _input_problem(entry)) is not None:
            yield problem
            return
        found.append(Input(**entry))
    for path, problem in input_problems(tuple(found)):
        yield f"{'.'.join(map(str, path))}: {problem}"
    if len({each.name for each in found}) < len(found):
        yield "names an input twice"


def _input_problem(entry: Any) -> str | None:
    if not isinstance(entry, dict):
        return "each input must be a table"
    table = cast("dict[str, Any]", entry)
    for key, value in table.items():
        if key not in _INPUT_KEYS:
            return f"{key[:80]!r} is not a key of an input; the keys are {', '.join(_INPUT_KEYS)}"
        if not isinstance(value, _INPUT_KEYS[key]):
            return f"an input's {key} must be {'true or false' if _INPUT_KEYS[key] is bool else 'a string'}"
    if not {"name", "type"} <= table.keys() or not _is_description(table.get("description")):
        return f"each input needs a name, a type and a description of at most {_MAX_DESCRIPTION:,} characters"
    return None


def _is_description(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value.strip()) <= _MAX_DESCRIPTION
