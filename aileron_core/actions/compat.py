"""Lenient spellings (`ID`, `Int`, `teamId`): what generated suites write, and what it is taken as.

One warning per file and kind: which spelling, how it was read, and where it first occurs. The strict
spellings stay as they are; `aileron_core.actions.load` names what upstream would refuse.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from aileron_core.actions.model import ANY, INPUT_TYPES, Action, Input, InputType
from aileron_core.actions.problems import KeyPath, KeyProblem, quoted

NO_DESCRIPTION = "(no description)"
STRICT_NAME = re.compile(r"[a-z][a-z0-9_]*")

_SPELLINGS = {
    "String": "string",
    "ID": "string",
    "DateTime": "string",
    "TimelessDate": "string",
    "Duration": "string",
    "Int": "integer",
    "Float": "number",
    "Boolean": "boolean",
}
_ANY_NAME = re.compile(r"[A-Z][A-Za-z0-9_]*")
_LENIENT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SHOWN = 5


def is_compat_type(spelling: str) -> bool:
    """Return whether *spelling* is a type that is taken, but none of the strict ones."""
    return spelling in _SPELLINGS or _ANY_NAME.fullmatch(spelling) is not None


def normalize(action: Action) -> tuple[Action, list[KeyProblem]]:
    """Return *action* with its lenient spellings made strict, and a warning for each kind of them.

    A finding with the severity `error` is a type that no spelling allows.
    An input that is declared more than once still stands more than once (see `merge_declarations`),
    so that indexes are those of the file.
    """
    inputs = tuple(map(_softened, action.inputs))
    findings = [
        *_findings_of_inputs(action.inputs, inputs),
        *_warning(
            _uncovered_ops(action),
            "is not among the capabilities that this file lists for its connector, so the action "
            f"cannot run (capability_denied); {_meant(action)}add it under [[requires.connectors]]",
        ),
    ]
    return replace(action, inputs=inputs), findings


def merge_declarations(action: Action) -> Action:
    """Return *action* with each input once: its types joined, required if one declaration is."""
    by_name: dict[str, list[Input]] = {}
    for entry in action.inputs:
        by_name.setdefault(entry.name, []).append(entry)
    if len(by_name) == len(action.inputs):
        return action
    return replace(action, inputs=tuple(map(_joined, by_name.values())))


def _softened(entry: Input) -> Input:
    type_ = entry.type
    if type_ not in INPUT_TYPES:
        type_ = _SPELLINGS.get(type_) or (ANY if _ANY_NAME.fullmatch(type_) else type_)
    description = entry.description
    if not description.strip():
        description = NO_DESCRIPTION
    if type_ == entry.type and description == entry.description:
        return entry
    return Input(  # `replace` takes three times as long, and generated suites have many inputs
        name=entry.name,
        type=type_,
        description=description,
        required=entry.required,
        label=entry.label,
        multiline=entry.multiline,
        items_type=entry.items_type,
        format=entry.format,
    )


def _findings_of_inputs(stated: Sequence[Input], softened: Sequence[Input]) -> Iterable[KeyProblem]:
    names: list[tuple[KeyPath, str]] = []
    spellings: list[tuple[KeyPath, str]] = []
    any_json: list[tuple[KeyPath, str]] = []
    blank: list[tuple[KeyPath, str]] = []
    again: list[tuple[KeyPath, str]] = []
    seen: set[str] = set()
    for index, (entry, taken) in enumerate(zip(stated, softened, strict=True)):
        path = ("inputs", index)
        name = entry.name
        if not STRICT_NAME.fullmatch(name) and _LENIENT_NAME.fullmatch(name):
            names.append(((*path, "name"), name))
        if taken is not entry:
            if taken.type == ANY:
                any_json.append(((*path, "type"), entry.type))
            elif taken.type != entry.type and taken.type in INPUT_TYPES:
                spellings.append(((*path, "type"), entry.type))
            if taken.description is not entry.description:
                blank.append(((*path, "description"), name))
        if name and name in seen:
            again.append(((*path, "name"), name))
        seen.add(name)
        if entry.type == ANY:  # Aileron's own name for it, which no file may use
            message = f"{quoted(ANY)} must be one of {'|'.join(INPUT_TYPES)}, or JSON for any JSON"
            yield KeyProblem(path=(*path, "type"), message=message)
    read_as = "; ".join(
        f"{spelling} is accepted and read as {_SPELLINGS[spelling]}"
        for spelling in dict.fromkeys(spelling for _, spelling in spellings)
    )
    yield from _warning(names, f"is accepted, but a strict name matches {STRICT_NAME.pattern}")
    if spellings:
        yield _leniency(spellings[0][0], read_as)
    yield from _warning(
        any_json,
        f"is not a type that can be checked ({'|'.join(INPUT_TYPES)}): any JSON is accepted",
    )
    yield from _warning(
        blank, f"has a blank description: agents read {NO_DESCRIPTION} and must guess"
    )
    yield from _warning(
        again, "is declared more than once: an argument may match any of the declarations"
    )


def _uncovered_ops(action: Action) -> list[tuple[KeyPath, str]]:
    required = {entry.fqn for entry in action.requires}
    uncovered = {(step.connector, step.op) for step in action.steps_without_capability}
    return [
        (("execute", index, "op"), step.op)
        for index, step in enumerate(action.steps)
        if step.op and step.connector in required and (step.connector, step.op) in uncovered
    ]


def _meant(action: Action) -> str:
    """Return the question whether the first op that is not listed is one that is, misspelt; or nothing."""
    from difflib import get_close_matches

    listed = {entry.fqn: entry.capabilities for entry in action.requires}
    for path, op in _uncovered_ops(action)[:1]:
        step = action.steps[cast("int", path[1])]
        for near in get_close_matches(op, listed[step.connector], n=1):
            return f"did you mean {quoted(near)}? Otherwise "
    return ""


def _warning(places: Sequence[tuple[KeyPath, str]], message: str) -> Iterable[KeyProblem]:
    """Yield one warning for all of *places*, at the first of them, with some of the others."""
    if not places:
        return
    path, first = places[0]
    more = list(dict.fromkeys(text for _, text in places if text != first))
    text = f"{quoted(first)} {message}"
    if more:
        shown = ", ".join(quoted(each) for each in more[:_SHOWN])
        left = f" and {len(more) - _SHOWN} more" if len(more) > _SHOWN else ""
        text += f" (also {shown}{left})"
    yield _leniency(path, text)


def _leniency(path: KeyPath, message: str) -> KeyProblem:
    return KeyProblem(path=path, message=message, class_="leniency", severity="warning")


def _joined(entries: Sequence[Input]) -> Input:
    first = entries[0]
    if len(entries) == 1:
        return first
    descriptions = (entry.description for entry in entries if entry.description != NO_DESCRIPTION)
    return replace(
        first,
        description=next(descriptions, NO_DESCRIPTION),
        required=any(entry.required for entry in entries),
        label=next((entry.label for entry in entries if entry.label is not None), None),
        multiline=any(entry.multiline for entry in entries),
        declarations=tuple(
            InputType(type=entry.type, items_type=entry.items_type, description=entry.description)
            for entry in entries
        ),
    )
