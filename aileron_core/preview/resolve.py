"""What a person is shown of a preview's answer, of a call's arguments, and of what changed (FACTS A.6).

Pure: values in, values out. The texts are as the service and the agent wrote them; who draws them
passes them through `aileron_core.text`.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from aileron_core.actions.interpolate import json_text, number_text
from aileron_core.actions.model import Action, Preview
from aileron_core.actions.paths import Located, Place, is_array, lookup
from aileron_core.canonical import Json, JsonObject

__all__ = [
    "MAX_OTHER_PATHS",
    "NOT_AVAILABLE",
    "Drift",
    "FieldChange",
    "PreviewField",
    "argument_fields",
    "differences",
    "gist",
    "resolve",
]

MAX_OTHER_PATHS = 50
NOT_AVAILABLE = "n/a"

_LABEL = re.compile(r"\$\{([^{}]*)\}")
_SAFE = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewField:
    """One labelled value; `path` is the render path, for an argument its name."""

    label: str
    path: str
    value: str = ""
    missing: bool = False
    multiline: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """A shown field whose value is another one now."""

    before: PreviewField
    after: PreviewField


@dataclass(frozen=True, slots=True, kw_only=True)
class Drift:
    """How a preview's answer differs from the one that a person saw."""

    changed: tuple[FieldChange, ...] = ()
    other_paths: tuple[str, ...] = ()
    """Dotted paths of what differs outside the shown fields, the first 50."""
    other_count: int = 0
    """How many there are in all."""

    def __bool__(self) -> bool:
        return bool(self.changed or self.other_count)


def resolve(preview: Preview, output: Json) -> tuple[PreviewField, ...]:
    """Return the fields of *preview* as *output* has them, in the order of the action file."""
    return tuple(
        _field(label, path, lookup(output, path), multiline=label in preview.multiline)
        for label, path in preview.render
    )


def gist(preview: Preview, fields: Sequence[PreviewField]) -> str:
    """Return the one line that says what it is about, or "" where the action file has no gist."""
    if preview.gist is None:
        return ""
    by_label = {shown.label: shown for shown in fields}

    def fill(match: re.Match[str]) -> str:
        shown = by_label.get(match[1])
        return NOT_AVAILABLE if shown is None or shown.missing else shown.value

    return _LABEL.sub(fill, preview.gist)


def differences(before: Json, after: Json, preview: Preview) -> Drift:
    """Return how *after* differs from *before*: shown fields with both values, the rest by path."""
    changed: list[FieldChange] = []
    shown: set[Place] = set()
    for label, path in preview.render:
        old, new = lookup(before, path), lookup(after, path)
        multiline = label in preview.multiline
        change = FieldChange(
            before=_field(label, path, old, multiline=multiline),
            after=_field(label, path, new, multiline=multiline),
        )
        if change.before == change.after:
            continue
        changed.append(change)
        # What differs at this place is shown by the change, unless the field has moved.
        places = {located.place for located in (old, new) if located is not None}
        if len(places) == 1:
            shown |= places
    paths: list[str] = []
    count = 0
    for place in _differing(before, after, shown):
        count += 1
        if count <= MAX_OTHER_PATHS:
            paths.append(_dotted(place))
    return Drift(changed=tuple(changed), other_paths=tuple(paths), other_count=count)


def argument_fields(action: Action, args: JsonObject) -> tuple[PreviewField, ...]:
    """Return what the agent sent: declared inputs in the file's order, then any others by name."""
    fields: list[PreviewField] = []
    for entry in action.inputs:
        value = args.get(entry.name)
        if value is None and not entry.required:
            continue
        located = None if value is None else Located(value=value, place=())
        label = entry.label or entry.name
        fields.append(_field(label, entry.name, located, multiline=entry.multiline))
    declared = frozenset(action.declared)
    for name in sorted(args.keys() - declared):
        value = args[name]
        if value is not None:
            fields.append(_field(name, name, Located(value=value, place=()), multiline=False))
    return tuple(fields)


def _field(label: str, path: str, located: Located | None, *, multiline: bool) -> PreviewField:
    if located is None:
        return PreviewField(label=label, path=path, missing=True, multiline=multiline)
    value, structured = _shown(located.value)
    return PreviewField(label=label, path=path, value=value, multiline=multiline or structured)


def _shown(value: Json) -> tuple[str, bool]:
    """Return *value* as text, and whether it takes several lines by its nature."""
    if not isinstance(value, Mapping) and not is_array(value):
        return _scalar(value), False
    if is_array(value) and _one_per_line(value):
        return "\n".join(_scalar(item) for item in value), True
    try:
        return json_text(value, indent=2), True
    except RecursionError:
        return "nested too deeply to show", True


def _one_per_line(items: Sequence[Json]) -> bool:
    """Tell whether a list can be shown one per line without two lists looking the same."""
    if not items or any(
        item is None or isinstance(item, Mapping) or is_array(item) for item in items
    ):
        return False
    texts = [item for item in items if isinstance(item, str)]
    if texts and len(texts) < len(items):
        return False  # 5 and "5" would look the same
    return all(text.strip() and "\n" not in text for text in texts)


def _scalar(value: Json) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value)
    return "null"


def _differing(before: Json, after: Json, shown: set[Place]) -> Iterator[Place]:
    """Yield the places where two JSON values differ; a value that came or went is one place."""
    waiting: list[tuple[Json, Json, Place]] = [(before, after, ())]
    while waiting:
        old, new, place = waiting.pop()
        if place in shown:
            continue
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            keys = list(dict.fromkeys([*old, *new]))
            for key in reversed(keys):
                if key not in old or key not in new:
                    waiting.append((_GONE, _HERE, (*place, key)))
                else:
                    waiting.append((old[key], new[key], (*place, key)))
        elif is_array(old) and is_array(new):
            for index in reversed(range(max(len(old), len(new)))):
                if index >= len(old) or index >= len(new):
                    waiting.append((_GONE, _HERE, (*place, index)))
                else:
                    waiting.append((old[index], new[index], (*place, index)))
        elif not _same(old, new):
            yield place


_GONE = False
_HERE = True


def _same(old: Json, new: Json) -> bool:
    """Compare scalars as the digest does: 1 is 1.0, but true is not 1 and "1" is not 1."""
    if isinstance(old, bool) or isinstance(new, bool):
        return old is new
    if isinstance(old, int | float) and isinstance(new, int | float):
        return old == new and (type(old) is type(new) or abs(old) < _SAFE)
    return type(old) is type(new) and old == new


def _dotted(place: Place) -> str:
    return ".".join(map(str, place)) or "(the whole answer)"
