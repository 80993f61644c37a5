"""`action check --portable`: what upstream would refuse (docs/action-files.md#portable-files)."""

from collections.abc import Iterator, Mapping
from typing import cast

from aileron_core.actions.compat import STRICT_NAME, is_compat_type
from aileron_core.actions.interpolate import placed_references
from aileron_core.actions.model import INPUT_TYPES, Action
from aileron_core.actions.problems import KeyPath, KeyProblem, quoted

# Keys of Aileron's own: upstream's schema is closed and does not know them.
_OUR_KEYS: tuple[tuple[str, ...], ...] = (
    ("limits", "wall_seconds"),
    ("limits", "memory_mib"),
    ("approval", "effect"),
    ("approval", "preview", "gist"),
    ("approval", "preview", "formats"),
    ("approval", "preview", "changes"),
    ("approval", "preview", "read_back"),
    ("approval", "preview", "recheck"),
)


def portability_problems(document: Mapping[str, object], action: Action) -> Iterator[KeyProblem]:
    """Yield what upstream refuses (errors) or runs otherwise (warnings).

    Args:
        document: the front matter as parsed.
        action: what it states, as written, without any leniency.
    """
    for path in _OUR_KEYS:
        if _states(document, path):
            yield _refused(
                path, "is an extension: the schema of upstream Aileron does not have this key"
            )
    if document.get("limits") == {}:
        yield _refused(
            ("limits",), "is an extension: the schema of upstream Aileron does not have this table"
        )
    yield from _inputs(action)
    for index, step in enumerate(action.steps):
        for place, reference in placed_references(step.inputs or {}):
            if not reference.is_argument:
                yield KeyProblem(
                    path=("execute", index, "inputs", *place),
                    message=f"{quoted(str(reference))} reaches the op as this literal text upstream",
                    class_="portability",
                    severity="warning",
                )


def _inputs(action: Action) -> Iterator[KeyProblem]:
    seen: set[str] = set()
    for index, entry in enumerate(action.inputs):
        path = ("inputs", index)
        if entry.format is not None:
            yield _refused((*path, "format"), "is an extension")
        if entry.name and not STRICT_NAME.fullmatch(entry.name):
            yield _refused(
                (*path, "name"), f"{quoted(entry.name)} must match {STRICT_NAME.pattern}"
            )
        if entry.name and entry.name in seen:
            yield _refused((*path, "name"), f"{quoted(entry.name)} is duplicated")
        seen.add(entry.name)
        if is_compat_type(entry.type):
            yield _refused(
                (*path, "type"), f"{quoted(entry.type)} must be one of {'|'.join(INPUT_TYPES)}"
            )
        if not entry.description.strip():
            yield _refused((*path, "description"), "must not be blank: it is what the agent reads")


def _states(document: Mapping[str, object], path: tuple[str, ...]) -> bool:
    first, *rest = path
    value = document.get(first)
    if not rest:
        return value is not None
    return isinstance(value, dict) and _states(cast("dict[str, object]", value), tuple(rest))


def _refused(path: KeyPath, message: str) -> KeyProblem:
    return KeyProblem(
        path=path, message=f"{message} (upstream refuses the file)", class_="portability"
    )
