"""Which op a preview asks; what a person is shown of its answer, of a call's arguments, and of what changed.

Pure: values in, values out. The texts are as the service and the agent wrote them; who draws them
passes them through `aileron_core.text`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from aileron_core.actions.interpolate import (
    interpolate,
    json_text,
    number_text,
    op_arguments,
    whole_argument,
)
from aileron_core.actions.json_paths import JsonPath, Matches, find, is_array
from aileron_core.actions.model import ANY, Action, ConnectorRequirement, Input, Preview
from aileron_core.canonical import Json, JsonObject
from aileron_core.console_port.field_views import FieldView, ValueShape


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewPlan:
    """One read-only call that shows what an action will really touch."""

    connector: ConnectorRequirement
    op: str
    args: dict[str, Json]


def plan_preview(
    action: Action, args: JsonObject, outputs: JsonObject | None = None
) -> PreviewPlan | None:
    """Return what to ask of the service about *action* with *args* (checked), or None without a preview.

    The connector is the one of the first step. Before the run, the op's arguments come from the call
    alone; after it also from the steps' *outputs*, where the action file has `read_back`.

    Raises:
        MissingValue: a step's output has no value at the path that `read_back` names.
    """
    preview = action.approval.preview
    if preview is None or not action.steps:
        return None
    requirement = action.requirement(action.steps[0].connector)
    if requirement is None:
        return None
    if preview.is_rehearsal:
        filled = op_arguments(action.steps[0], args, {}, action.input_names)
        return PreviewPlan(connector=requirement, op=preview.op, args=filled)
    template = preview.args if outputs is None or preview.read_back is None else preview.read_back
    filled = interpolate(template, args, outputs or {}, declared=action.input_names)
    return PreviewPlan(connector=requirement, op=preview.op, args=filled)


MAX_OTHER_PATHS = 50
NOT_AVAILABLE = "n/a"

_MADE_ANEW: Mapping[str, str] = {"gmail.googleapis.com:443": "attachmentId"}
"""By host, a member that the service makes anew for every answer, and that says nothing about its state."""
_LABEL = re.compile(r"\$\{([^{}]*)\}")
_MAX_EXACT_INTEGER = 2**53


def without_made_anew(output: Json, hosts: Iterable[str]) -> Json:
    """Return a preview's *output* without what the one of *hosts* that answered it makes anew for every answer.

    Where several answered, nobody can tell whose a member is, and all are kept. Otherwise two answers would never be the same, and nothing could be approved: Gmail's message
    with an attachment, whose bytes cannot change without another id of the message.
    """
    asked = set(hosts)
    name = _MADE_ANEW.get(asked.pop(), "") if len(asked) == 1 else ""
    return _without(output, name) if name else output


def _without(value: Json, name: str) -> Json:
    if isinstance(value, Mapping):
        return {
            key: _without(each, name)
            for key, each in value.items()
            if key != name or not isinstance(each, str)
        }
    if is_array(value):
        return [_without(each, name) for each in value]
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedField:
    """A shown field whose value is another one now."""

    before: FieldView
    after: FieldView


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputDifference:
    """How a preview's answer differs from the one that a person saw."""

    changed: tuple[ChangedField, ...] = ()
    other_paths: tuple[str, ...] = ()
    """Dotted paths of what differs outside the shown fields, the first 50."""
    other_count: int = 0
    """How many there are in all."""

    def __bool__(self) -> bool:
        return bool(self.changed or self.other_count)


def resolve_fields(preview: Preview, output: Json) -> tuple[FieldView, ...]:
    """Return the fields of *preview* as *output* has them, in the order of the action file."""
    fields = (_shown(preview, label, find(output, path)) for label, path in preview.render)
    return tuple(each for each in fields if not (preview.omits_missing and each.missing))


def render_gist(preview: Preview, fields: Sequence[FieldView]) -> str:
    """Return the one line that says what it is about, or "" where the action file has no gist."""
    if preview.gist is None:
        return ""
    by_label = {shown.label: shown for shown in fields}

    def fill(match: re.Match[str]) -> str:
        shown = by_label.get(match[1])
        if shown is None or shown.missing:
            return NOT_AVAILABLE
        # A gist is one line; where each value has a line of its own in the document, here it has none.
        apart = shown.count > 1 or shown.shape == "lines"
        return ", ".join(shown.value.split("\n")) if apart else shown.value

    return _LABEL.sub(fill, preview.gist)


def compare_outputs(before: Json, after: Json, preview: Preview) -> OutputDifference:
    """Return how *after* differs from *before*: shown fields with both values, the rest by path."""
    changed: list[ChangedField] = []
    shown: set[JsonPath] = set()
    for label, path in preview.render:
        old, new = find(before, path), find(after, path)
        change = ChangedField(before=_shown(preview, label, old), after=_shown(preview, label, new))
        if _visible_content(change.before) == _visible_content(change.after):
            continue
        changed.append(change)
        # What differs at these places is shown by the change, unless the field has moved.
        places = {matches.places for matches in (old, new) if matches is not None}
        if len(places) == 1:
            shown.update(*places)
    paths: list[str] = []
    count = 0
    for place in _differing(before, after, shown):
        count += 1
        if count <= MAX_OTHER_PATHS:
            paths.append(".".join(map(str, place)) or "(the whole answer)")
    return OutputDifference(changed=tuple(changed), other_paths=tuple(paths), other_count=count)


def argument_fields(action: Action, args: JsonObject) -> tuple[FieldView, ...]:
    """Return what the agent sent: declared inputs in the file's order, then any others by name."""
    return tuple(field for _, field in _named_arguments(action, args))


def _named_arguments(action: Action, args: JsonObject) -> Iterator[tuple[str, FieldView]]:
    """Yield the fields of `argument_fields`, each with its argument's name."""
    for entry in action.inputs:
        value = args.get(entry.name)
        if value is None and not entry.required:
            continue
        label = entry.label or entry.name
        written = entry.format or ""
        field = _field(label, _matches(value), multiline=entry.multiline, written=written)
        yield entry.name, field
    declared = frozenset(action.input_names)
    for name in sorted(args.keys() - declared):
        value = args[name]
        if value is not None:
            yield name, _field(name, _matches(value), multiline=False)


def editable_arguments(action: Action, args: JsonObject) -> tuple[FieldView, ...]:
    """Return declared inputs in the file's order, also absent ones, then other arguments by name.

    A text is written as it is, a list of texts that can be with one a line, everything else as JSON.
    """
    others = sorted(args.keys() - frozenset(action.input_names))
    entries = (Input(name=name, type=ANY, description="", required=False) for name in others)
    return tuple(_editable(each, args.get(each.name)) for each in (*action.inputs, *entries))


def _editable(entry: Input, value: Json) -> FieldView:
    (stated, *others), (text, shape) = entry.types, value_text(value)
    if not others and stated.type == "string":
        shape = "text"
    elif not others and stated.items_type == "string" and (not value or shape == "lines"):
        shape, text = "lines", text if value else ""
    else:
        shape, text = "json", json_text(value, indent=2)
    return FieldView(
        label=entry.label or entry.name,
        value="" if value is None else text,
        missing=value is None,
        multiline=entry.multiline or "\n" in text or stated.type in ("array", "object", ANY),
        shape=shape,
        name=entry.name,
    )


def new_values(action: Action, args: JsonObject, output: Json = None) -> tuple[FieldView, ...]:
    """Return what *args* make of the shown fields, as the action file's `changes` say.

    Filled in as the inputs of a step are; a field whose argument was not given stays as it is.

    Args:
        output: the preview's answer, once there is one.
    """
    preview = action.approval.preview
    if preview is None:
        return ()
    templates = dict(_shown_changes(preview, output))
    filled = interpolate(templates, args, {}, declared=action.input_names)
    return tuple(
        _shown(preview, label, _matches(filled[label]))
        for label, _ in preview.render
        if label in filled
    )


def other_arguments(action: Action, args: JsonObject, output: Json = None) -> tuple[FieldView, ...]:
    """Return what the agent sent that is not, whole and alone, the new value of a shown field."""
    preview = action.approval.preview
    templates = _shown_changes(preview, output) if preview is not None else ()
    covered = {whole_argument(template) for _, template in templates}
    return tuple(field for name, field in _named_arguments(action, args) if name not in covered)


def _shown_changes(preview: Preview, output: Json) -> Iterator[tuple[str, str]]:
    """Yield the `changes` of fields that are shown of *output*; all of them while there is none."""
    paths = dict(preview.render)
    for label, template in preview.changes:
        if output is None or not preview.omits_missing or find(output, paths[label]):
            yield label, template


def _matches(value: Json) -> Matches | None:
    return None if value is None else Matches(values=(value,), places=((),))


def _visible_content(field: FieldView) -> tuple[object, ...]:
    """Return what a person reads of *field*; the names that it has in the output are compared apart."""
    return field.missing, field.value, field.count, field.shape


def _shown(preview: Preview, label: str, matches: Matches | None) -> FieldView:
    """Return the field *label* of *preview*."""
    written = dict(preview.formats).get(label, "")
    return _field(label, matches, multiline=label in preview.multiline, written=written)


def _field(label: str, matches: Matches | None, *, multiline: bool, written: str = "") -> FieldView:
    if matches is None:
        return FieldView(label=label, missing=True, multiline=multiline)
    count = len(matches.values)
    value, shape = value_text(matches.values[0] if count == 1 else matches.values)
    several = shape != "text"
    if count > 1 and shape == "lines":
        shape = "text"  # the path has several values, none of which is a list
    return FieldView(
        label=label,
        value=value,
        multiline=multiline or several,
        shape=shape,
        count=count,
        format=written if shape == "text" and count == 1 else "",
        spellings=matches.spellings,
    )


def value_text(value: Json) -> tuple[str, ValueShape]:
    """Return *value* as a person is shown it, and what kind of value it is."""
    if not isinstance(value, Mapping) and not is_array(value):
        return _scalar(value), "text"
    if is_array(value) and _one_per_line(value):
        return "\n".join(_scalar(item) for item in value), "lines"
    try:
        return json_text(value, indent=2), "json"
    except RecursionError:
        return "nested too deeply to show", "json"


def _one_per_line(items: Sequence[Json]) -> bool:
    """Return whether a list can be shown one per line without two lists looking the same."""
    if not items or any(
        item is None or isinstance(item, Mapping) or is_array(item) for item in items
    ):
        return False
    texts = [item for item in items if isinstance(item, str)]
    if texts and len(texts) < len(items):
        return False  # 5 and "5" would look the same
    return all(text and text == text.strip() and "\n" not in text for text in texts)


def _scalar(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    return "null"


def _differing(before: Json, after: Json, shown: set[JsonPath]) -> Iterator[JsonPath]:
    """Yield the places where two JSON values differ; a value that came or went is one place."""
    waiting: list[tuple[Json, Json, JsonPath]] = [(before, after, ())]
    while waiting:
        old, new, place = waiting.pop()
        if place in shown:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            keys = list(dict.fromkeys([*old, *new]))
            for key in reversed(keys):
                if key not in old or key not in new:
                    waiting.append((_ABSENT, _PRESENT, (*place, key)))
                else:
                    waiting.append((old[key], new[key], (*place, key)))
        elif is_array(old) and is_array(new):
            for index in reversed(range(max(len(old), len(new)))):
                if index >= len(old) or index >= len(new):
                    waiting.append((_ABSENT, _PRESENT, (*place, index)))
                else:
                    waiting.append((old[index], new[index], (*place, index)))
        elif not _same(old, new):
            yield place


_ABSENT = False
_PRESENT = True


def _same(old: Json, new: Json) -> bool:
    """Compare scalars as the digest does: 1 is 1.0, but true is not 1 and "1" is not 1."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, int | float) and isinstance(new, int | float):
        return old == new and (type(old) is type(new) or abs(old) < _MAX_EXACT_INTEGER)
    return type(old) is type(new) and old == new
