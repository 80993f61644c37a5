"""A call's arguments against `[[inputs]]`: the schema that agents see, and the check that counts.

Which JSON fits which type is decided here: 5.0 is an integer, one beyond 2^53 is not, null may mean absent.
"""

import math
from collections.abc import Iterator, Mapping

from aileron_core.actions.json_paths import is_array
from aileron_core.actions.model import ANY, MAX_DEPTH, MAX_INTEGER, Action, Input, InputType
from aileron_core.actions.problems import quoted
from aileron_core.canonical import Json, JsonObject
from aileron_core.errors import InvalidArguments

MAX_PROBLEMS = 50

_EXPECTED = {
    "string": "a string",
    "integer": "an integer",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
    ANY: "any JSON",
}


def input_schema(action: Action) -> dict[str, Json]:
    """Return the JSON Schema of *action*'s arguments, as MCP tools state it."""
    if action.schema is not None:
        return dict(action.schema)
    return {
        "type": "object",
        "properties": {entry.name: _property(entry) for entry in action.inputs},
        "required": [entry.name for entry in action.inputs if entry.required],
        "additionalProperties": action.takes_any_arguments,
    }


def check_arguments(action: Action, args: Json) -> dict[str, Json]:
    """Return *args* as the action takes them: absent optionals left out, 5.0 as the integer 5.

    Raises:
        InvalidArguments: `details.problems` has every problem (the first 50, then how many more).
    """
    if not isinstance(args, Mapping):
        raise _invalid(action, [_problem("", f"must be an object, not {_kind(args)}")])
    declared = {entry.name: entry for entry in action.inputs}
    others = [name for name in args if name not in declared]
    inputs, problems = action.inputs, list[dict[str, str]]()
    if action.takes_any_arguments:
        inputs = (*inputs, *(Input(name=name, type=ANY, description="") for name in others))
    else:
        problems += (_problem(name, f"is unknown; {_known(action)}") for name in others)
    taken: dict[str, Json] = {}
    for entry in inputs:
        value = args.get(entry.name)
        if value is None and not (entry.required and entry.name in args and _takes_null(entry)):
            if entry.required:
                problems.append(_problem(entry.name, "is required"))
            continue
        taken[entry.name], found = _taken(value, entry.types)
        problems += (_problem(entry.name, text) for text in found)
    if problems:
        raise _invalid(action, problems)
    return taken


def _property(entry: Input) -> dict[str, Json]:
    if not entry.declarations:
        return _alternative(entry.types[0])
    return {
        "description": entry.description,
        "anyOf": [_alternative(each) for each in entry.declarations],
    }


def _alternative(stated: InputType) -> dict[str, Json]:
    described: dict[str, Json] = {"description": stated.description}
    if stated.type != ANY:  # a schema without a type accepts everything
        described["type"] = stated.type
    if stated.type == "array":
        described["items"] = {"type": stated.items_type} if stated.items_type else {}
    return described


def _takes_null(entry: Input) -> bool:
    return any(each.type == ANY for each in entry.types)


def _taken(value: Json, types: tuple[InputType, ...]) -> tuple[Json, list[str]]:
    """Return *value* as the first of *types* that it fits, else why it fits none."""
    closest: list[str] | None = None
    for stated in types:
        check = _Check()
        taken = check.value(value, stated.type, "", stated.items_type)
        if not check.problems:
            return taken, []
        if closest is None and (check.fits or len(types) == 1):
            closest = check.problems
    if closest is None:
        expected = dict.fromkeys(_EXPECTED[each.type] for each in types)
        closest = [f"must be {' or '.join(expected)}, not {_kind(value)}"]
    return None, closest


class _Check:
    """Checks one argument; *where* is the place inside it, empty for the argument itself."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.fits = True
        """Whether the argument itself is of the type, whatever is wrong inside it."""

    def value(self, value: Json, type_: str, where: str, items_type: str | None = None) -> Json:
        """Return *value* as *type_*; what does not fit is reported as a problem and becomes null."""
        value = _as_integer(value) if type_ == "integer" else value
        if not _fits(value, type_):
            self.fits = self.fits and bool(where)
            self._note(where, f"must be {_EXPECTED[type_]}, not {_kind(value)}")
            return None
        if items_type is not None and is_array(value):
            return [
                self.value(item, items_type, f"{where}[{index}]")
                for index, item in enumerate(value)
            ]
        return self.json(value, where, 1)

    def json(self, value: Json, where: str, depth: int) -> Json:
        """Return *value* if it is JSON that every reader takes alike."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            if _has_surrogate(value):
                self._note(where, "contains a lone surrogate, which UTF-8 cannot encode")
            return value
        if isinstance(value, int):
            if abs(value) > MAX_INTEGER:
                self._note(
                    where, "is an integer beyond 2^53, which not every JSON parser reads exactly"
                )
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                self._note(where, "is not a number that JSON allows")
            return value
        return self._nested(value, where, depth)

    def _nested(self, value: Json, where: str, depth: int) -> Json:
        if depth > MAX_DEPTH:
            self._note(where, f"is nested more than {MAX_DEPTH} levels deep")
        elif isinstance(value, Mapping):
            return dict(self._members(value, where, depth))
        elif is_array(value):
            return [
                self.json(item, f"{where}[{index}]", depth + 1) for index, item in enumerate(value)
            ]
        else:
            self._note(where, f"must be JSON, not {_kind(value)}")
        return None

    def _members(self, value: JsonObject, where: str, depth: int) -> Iterator[tuple[str, Json]]:
        for key, item in value.items():
            if _has_surrogate(key):
                self._note(where, "has a key with a lone surrogate, which UTF-8 cannot encode")
            yield key, self.json(item, f"{where}.{key[:100]}", depth + 1)

    def _note(self, where: str, text: str) -> None:
        self.problems.append(f"at {quoted(where)}: {text}" if where else text)


def _as_integer(value: Json) -> Json:
    """Return 5.0 as 5: to JSON Schema both are the integer."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _fits(value: Json, type_: str) -> bool:
    match type_:
        case "string":
            return isinstance(value, str)
        case "boolean":
            return isinstance(value, bool)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "number":
            return isinstance(value, int | float) and not isinstance(value, bool)
        case "array":
            return is_array(value)
        case "any":
            return True
        case _:
            return isinstance(value, Mapping)


def _kind(value: Json) -> str:
    """Return what JSON calls a value's type."""
    if value is None:
        return "null"
    for type_ in ("boolean", "string", "integer", "number", "array", "object"):
        if _fits(value, type_):
            return f"{'an' if type_[0] in 'aio' else 'a'} {type_}"
    return "something else"


def _has_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _known(action: Action) -> str:
    if not action.inputs:
        return "this action takes no arguments"
    return f"this action takes {', '.join(action.input_names)}"


def _problem(argument: str, problem: str) -> dict[str, str]:
    return {"argument": argument[:200].encode(errors="replace").decode(), "problem": problem}


def _invalid(action: Action, problems: list[dict[str, str]]) -> InvalidArguments:
    shown = problems[:MAX_PROBLEMS]
    if more := len(problems) - len(shown):
        shown.append(_problem("", f"and {more} more problems"))
    texts = (
        f"{quoted(entry['argument'])} {entry['problem']}" if entry["argument"] else entry["problem"]
        for entry in shown
    )
    return InvalidArguments(
        f"Invalid arguments for {action.name}: {'; '.join(texts)}. "
        "Nothing ran; correct them and call again.",
        details={"problems": shown},
    )
