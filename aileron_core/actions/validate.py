"""The rules of an action file (docs/action-files.md#keys): which values a key may have. Every problem is reported."""

import re
from collections.abc import Collection, Iterator

from aileron_core.actions.interpolate import argument_problems, references, template_problems
from aileron_core.actions.model import (
    ANY,
    BUILT_IN_TOOLS,
    EFFECTS,
    FORMATS,
    INPUT_TYPES,
    ITEM_TYPES,
    Action,
    ActionLimits,
    ConnectorRequirement,
    Input,
    Preview,
    Step,
    fqn_problem,
    is_semver,
    source_problem,
)
from aileron_core.actions.problems import KeyPath, KeyProblem, quoted
from aileron_core.canonical import Json

MAX_WALL_SECONDS = 300
MAX_MEMORY_MIB = 1024

_ACTION_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*")
_INPUT_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL_REFERENCE = re.compile(r"\$\{([^{}]*)\}")
# What other languages call a type; only for the message.
_MEANT = {
    "str": "string",
    "text": "string",
    "int": "integer",
    "float": "number",
    "double": "number",
    "bool": "boolean",
    "list": "array",
    "dict": "object",
    "map": "object",
}
_SEMVER_RULE = "must be strict SemVer (e.g. 1.2.3)"


def validate(action: Action) -> tuple[KeyProblem, ...]:
    """Return everything that is wrong with *action*, in the order of the keys in its file.

    *action* went through `compat.normalize`: other spellings that are understood are no problem here.
    """
    return tuple(KeyProblem(path=path, message=message) for path, message in _all_problems(action))


_Problems = Iterator[tuple[KeyPath, str]]


def _all_problems(action: Action) -> _Problems:
    yield from _head(action)
    yield from _requirements(action.requires)
    if not action.intent.strip():
        yield ("match", "intent"), "is required: one line that says what the action is for"
    yield from input_problems(action.inputs)
    if not action.steps:
        yield ("execute",), "is required: at least one [[execute]] step"
    declared = dict.fromkeys(action.input_names)  # in their order, and found at once in a long list
    if action.approval.preview is not None:
        yield from _preview(action.approval.preview, declared)
        yield from _changes(action)
    yield from _steps(action, declared)
    effect = action.approval.effect
    if effect is not None and effect not in EFFECTS:
        yield ("approval", "effect"), f"{quoted(effect)} must be one of {'|'.join(EFFECTS)}"
    yield from _limits(action.limits)


def _head(action: Action) -> _Problems:
    if not action.name:
        yield ("name",), "is required"
    elif not _ACTION_NAME.fullmatch(action.name):
        yield ("name",), f"{quoted(action.name)} must match {_ACTION_NAME.pattern}"
    elif action.tool_name in BUILT_IN_TOOLS:
        yield (
            ("name",),
            f"its tool name {action.tool_name} is the name of one of Aileron's own tools",
        )
    yield from _version(action.version, ("version",))
    if not action.source:
        yield ("source",), "is required"
    elif problem := source_problem(action.source):
        yield ("source",), f"invalid source: {problem}"


def _version(version: str, path: KeyPath) -> _Problems:
    if not version:
        yield path, "is required"
    elif not is_semver(version):
        yield path, f"{quoted(version)} {_SEMVER_RULE}"


def _requirements(requires: tuple[ConnectorRequirement, ...]) -> _Problems:
    top = ("requires", "connectors")
    if not requires:
        yield top, "is required: at least one [[requires.connectors]] block"
    seen: set[str] = set()
    for index, entry in enumerate(requires):
        path = (*top, index)
        if not entry.fqn:
            yield (*path, "name"), "is required"
        elif problem := fqn_problem(entry.fqn):
            yield (*path, "name"), problem
        elif entry.fqn in seen:
            # Two pins of one connector would leave open which bytes a step runs.
            yield (*path, "name"), "is duplicated: list each connector once, with one exact version"
        seen.add(entry.fqn)
        yield from _version(entry.version, (*path, "version"))
        if not entry.hash:
            yield (*path, "hash"), "is required"
        elif not entry.hash.startswith("sha256:") or entry.hash == "sha256:":
            yield (*path, "hash"), "must be sha256: followed by a digest"
        if not entry.capabilities:
            yield (*path, "capabilities"), "is required: list the ops that the action uses"
        for place, capability in enumerate(entry.capabilities):
            if not capability.strip():
                yield (*path, "capabilities", place), "is empty"


def input_problems(inputs: tuple[Input, ...]) -> _Problems:
    """Yield what is wrong with single inputs, with its place."""
    for index, entry in enumerate(inputs):
        path = ("inputs", index)
        if not entry.name:
            yield (*path, "name"), "is required"
        elif not _INPUT_NAME.fullmatch(entry.name):
            yield (*path, "name"), f"{quoted(entry.name)} must match {_INPUT_NAME.pattern}"
        if entry.type not in INPUT_TYPES or entry.items_type is not None:
            yield from _input_type(entry, path)
        if entry.label is not None and not entry.label.strip():
            yield (*path, "label"), "must not be blank"
        if entry.multiline and entry.type != "string":
            yield (*path, "multiline"), 'is allowed only with type = "string"'
        if entry.format is not None:
            if entry.type != "string":
                yield (*path, "format"), 'is allowed only with type = "string"'
            yield from _format(entry.format, (*path, "format"))


def _format(name: str, path: KeyPath) -> _Problems:
    if name not in FORMATS:
        yield path, f"{quoted(name)} must be one of {'|'.join(FORMATS)}"


def _input_type(entry: Input, path: KeyPath) -> _Problems:
    if not entry.type:
        yield (*path, "type"), "is required"
    elif entry.type not in INPUT_TYPES and entry.type != ANY:
        meant = _MEANT.get(entry.type.lower())
        hint = f"; write {meant}" if meant else ""
        yield (*path, "type"), f"{quoted(entry.type)} must be one of {'|'.join(INPUT_TYPES)}{hint}"
    if entry.items_type is None:
        return
    if entry.type != "array":
        yield (*path, "items_type"), 'is allowed only with type = "array"'
    elif entry.items_type not in ITEM_TYPES:
        allowed = "|".join(ITEM_TYPES)
        yield (*path, "items_type"), f"{quoted(entry.items_type)} must be one of {allowed}"


def _preview(preview: Preview, declared: Collection[str]) -> _Problems:
    path = ("approval", "preview")
    if not preview.op.strip():
        yield (*path, "op"), "is required"
    if not preview.render:
        yield (*path, "render"), "must declare at least one field"
    yield from _template(preview.args, (*path, "args"), declared, steps=())
    for label, place in preview.render:
        if not label.strip():
            yield (*path, "render", label), "has an empty label"
        if not place:
            yield (*path, "render", label), "has an empty path"
    labels = {label for label, _ in preview.render}
    for label in sorted(preview.multiline - labels):
        yield (*path, "multiline"), f"names {quoted(label)}, which is not a label of render"
    for label in sorted({*preview.reach} - labels):
        yield (*path, "reach"), f"names {quoted(label)}, which is not a label of render"
    yield from _formats(preview)
    if preview.gist is None:
        return
    for match in _LABEL_REFERENCE.finditer(preview.gist):
        if match[1] not in labels:
            yield (*path, "gist"), f"names {quoted(match[1])}, which is not a label of render"
    if "${" in _LABEL_REFERENCE.sub("", preview.gist):
        yield (*path, "gist"), "a `${` is not closed: write ${Label}"


def _formats(preview: Preview) -> _Problems:
    path: KeyPath = ("approval", "preview", "formats")
    labels = {label for label, _ in preview.render}
    for label, name in preview.formats:
        if label not in labels:
            yield (*path, label), f"names {quoted(label)}, which is not a label of render"
        yield from _format(name, (*path, label))


def _changes(action: Action) -> _Problems:
    """Yield what is wrong with the new values that a person would be shown."""
    preview = action.approval.preview
    if preview is None:
        return
    may_be_read_back = action.approval.effect in ("change", "create")
    if preview.read_back is not None:
        path: KeyPath = ("approval", "preview", "read_back")
        if not may_be_read_back:
            yield path, 'is allowed only with effect = "change" or "create"'
        steps = [step.id for step in action.steps]
        declared_names = dict.fromkeys(action.input_names)
        yield from _template(preview.read_back, path, declared_names, steps=steps)
    if not preview.changes:
        return
    path = ("approval", "preview", "changes")
    if not may_be_read_back:
        yield path, 'is allowed only with effect = "change" or "create"'
    labels, declared = {label for label, _ in preview.render}, frozenset(action.input_names)
    passed_on = {
        reference.path
        for step in action.steps
        for reference in references(dict(step.inputs or {}))
        if reference.is_argument
    }
    if any(step.inputs is None for step in action.steps):
        passed_on.update(action.input_names)
    for label, template in preview.changes:
        if label not in labels:
            yield (*path, label), f"names {quoted(label)}, which is not a label of render"
        for message in argument_problems(template, declared):
            yield (*path, label), message
        for reference in references(template):
            if reference.is_argument and reference.path in declared - passed_on:
                yield (*path, label), f"{quoted(str(reference))} is not an input of any step"


def _steps(action: Action, declared: Collection[str]) -> _Problems:
    connectors = {entry.fqn for entry in action.requires}
    earlier: set[str] = set()
    for index, step in enumerate(action.steps):
        path = ("execute", index)
        if not step.id.strip():
            yield (*path, "id"), "is required"
        elif step.id in earlier:
            yield (*path, "id"), f"{quoted(step.id)} is duplicated"
        yield from _step_connector(step, path, connectors)
        if not step.op.strip():
            yield (*path, "op"), "is required"
        if step.inputs is not None:
            yield from _template(step.inputs, (*path, "inputs"), declared, steps=earlier)
        earlier.add(step.id)


def _step_connector(step: Step, path: KeyPath, connectors: set[str]) -> _Problems:
    if not step.connector:
        yield (*path, "connector"), "is required"
    elif step.connector not in connectors:
        message = f"{quoted(step.connector)} is not declared under [[requires.connectors]]"
        yield (*path, "connector"), message


def _template(
    template: Json, path: KeyPath, declared: Collection[str], *, steps: Collection[str]
) -> _Problems:
    for place, message in template_problems(template, declared=declared, steps=steps):
        yield (*path, *place), message


def _limits(limits: ActionLimits) -> _Problems:
    if not 1 <= limits.wall_seconds <= MAX_WALL_SECONDS:
        yield ("limits", "wall_seconds"), f"must be from 1 to {MAX_WALL_SECONDS}"
    if not 1 <= limits.memory_mib <= MAX_MEMORY_MIB:
        yield ("limits", "memory_mib"), f"must be from 1 to {MAX_MEMORY_MIB}"
