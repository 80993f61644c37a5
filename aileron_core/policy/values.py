"""The values of a call as tests read them: those on the screen, whole, or nothing at all."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from aileron_core.actions.model import Action
from aileron_core.console_port.field_views import FieldView, PreviewView

ARGUMENT: Final = "args."
FETCHED: Final = "fetched."
HOST: Final = re.compile(r"(?=.{1,253}\Z)(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.(?!\Z)|\Z))+")
_ADDRESS: Final = re.compile(r"([A-Za-z0-9!#$%&'*+/=?^_`{|}~.-]{1,64})@([A-Za-z0-9.-]{1,253})")
_MAILBOX: Final = re.compile(
    # No blank can be matched in two ways: a hostile list would take for ever.
    r'(?: *(?:"[^"\\]*" *)?<([^\s<>]+)>|[^"<>@,;:()\[\]\\]*<([^\s<>]+)>| *([^\s,<>]+)) *(?:,(?=.)|\Z)'
)
_MAX_ADDRESSES: Final = 65_536
"""Characters of a list of addresses."""
_MAX_ITEMS: Final = 1000


@dataclass(frozen=True, slots=True)
class Value:
    """What one field of a call holds."""

    status: Literal["given", "none", "n/a", "unreadable"]
    """`none`: an argument that was not given. `n/a`: not in what was fetched. `unreadable`: it does not parse, stands
    there twice, or could not be fetched."""
    items: tuple[str, ...] = ()
    """Each value whole; of mail addresses the bare ones, with the domain in lower case."""
    is_json: bool = False


Values: TypeAlias = Mapping[str, Value]
"""By `args.NAME` and `fetched.LABEL`: each declared input, each argument, and each field that the preview names."""
_UNREADABLE: Final = Value("unreadable")


def field_keys(action: Action) -> tuple[str, ...]:
    """Return the names of all that tests can be of, as far as the file of *action* declares it."""
    preview = action.approval.preview
    labels = [label for label, _ in preview.render] if preview is not None else []
    return (
        *(f"{ARGUMENT}{name}" for name in action.input_names),
        *(f"{FETCHED}{each}" for each in labels),
    )


def declared_keys(action: Action, keys: Iterable[str]) -> tuple[str, ...]:
    """Return *keys* for a record: an agent named what the file of *action* does not declare, and may hide a text there."""
    known = field_keys(action)
    return tuple(dict.fromkeys(key if key in known else "another argument" for key in keys))


def argument_values(action: Action, arguments: Sequence[FieldView]) -> dict[str, Value]:
    """Return the values of a call's arguments.

    Args:
        action: that is called, as it is accepted.
        arguments: what a person is shown of them.
    """
    values = {f"{ARGUMENT}{entry.name}": Value("none") for entry in action.inputs}
    labels = [entry.label or entry.name for entry in action.inputs]
    by_label = dict(zip(labels, action.inputs, strict=True))
    for field in arguments:
        entry = by_label.get(field.label)
        key = f"{ARGUMENT}{entry.name if entry else field.label}"
        twice = key in values and values[key].status != "none"
        values[key] = _UNREADABLE if twice else _value(field, entry.format if entry else None)
    for entry, label in zip(action.inputs, labels, strict=True):
        if labels.count(label) > 1:  # nobody can tell whose value is shown
            values[f"{ARGUMENT}{entry.name}"] = _UNREADABLE
    return values


def values_of(action: Action, arguments: Sequence[FieldView], preview: PreviewView) -> Values:
    """Return the values of a call's arguments, and of what was fetched; *preview*: what a person is shown of that."""
    values = argument_values(action, arguments)
    declared = action.approval.preview
    if declared is None:
        return values
    formats, ready = dict(declared.formats), preview.status == "ready"
    for label, _ in declared.render:
        values[f"{FETCHED}{label}"] = Value("n/a") if ready else _UNREADABLE
    for field in preview.fields if ready else ():
        if not field.missing:
            values[f"{FETCHED}{field.label}"] = _value(field, formats.get(field.label))
    return values


def _value(field: FieldView, written: str | None) -> Value:
    if field.count > 1 or len(field.spellings) > 1:
        return _UNREADABLE
    if field.shape == "json":
        if not field.value.startswith(("{", "[")):
            return _UNREADABLE  # nested too deeply to show
        return Value("given", () if field.value == "[]" else (field.value,), field.value != "[]")
    items = tuple(field.value.split("\n")) if field.shape == "lines" else (field.value,)
    if len(items) > _MAX_ITEMS:
        return _UNREADABLE
    if written == "addresses":
        found = [addresses(item) for item in items if item]
        if not all(found):
            return _UNREADABLE
        return Value("given", tuple(address for each in found for address in each))
    return Value("given", items)


def addresses(text: str) -> tuple[str, ...]:
    """Return the mail addresses of a list as in a message's `To`, without names; none where it is no such list."""
    if len(text) > _MAX_ADDRESSES or not text.isprintable():
        return ()
    found: list[str] = []
    at = 0
    while at < len(text):
        match = _MAILBOX.match(text, at)
        mailbox = address(match[1] or match[2] or match[3]) if match is not None else ""
        if match is None or not mailbox:
            return ()
        found.append(mailbox)
        at = match.end()
    return tuple(found)


def address(text: str) -> str:
    """Return one bare mail address with its domain in lower case; empty where *text* is none."""
    match = _ADDRESS.fullmatch(text)
    if match is None or HOST.fullmatch(match[2].lower()) is None:
        return ""
    return f"{match[1]}@{match[2].lower()}"
