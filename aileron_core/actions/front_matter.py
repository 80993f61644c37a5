"""The closed schema of the front matter: which keys there are, of which type; any other is an error."""

import math
from collections.abc import Mapping
from datetime import date, datetime
from typing import TypeVar, cast

from aileron_core.actions.model import (
    MAX_DEPTH,
    MAX_INTEGER,
    Action,
    ActionLimits,
    Approval,
    ConnectorRequirement,
    Input,
    Preview,
    Step,
)
from aileron_core.actions.problems import KeyPath, KeyProblem, quoted
from aileron_core.canonical import Json, JsonObject

_RESERVED = frozenset({("approval", "confirm"), ("execute", "irreversible")})
_T = TypeVar("_T")


def read_front_matter(
    document: Mapping[str, object], *, body: str, sha256: str, file: str
) -> tuple[Action, list[KeyProblem]]:
    """Return the action that *document* states, as far as it goes, and what is wrong with its form.

    What is absent or of the wrong type is left empty; `validate` then says what must be there.
    """
    findings: list[KeyProblem] = []
    top = _FrontMatterTable(document, (), findings)
    requires = top.table("requires")
    match = top.table("match")
    action = Action(
        name=top.text("name"),
        version=top.text("version"),
        source=top.text("source"),
        requires=tuple(_requirement(entry) for entry in requires.tables("connectors")),
        intent=match.text("intent"),
        inputs=tuple(_input(entry) for entry in top.tables("inputs")),
        steps=tuple(_step(entry) for entry in top.tables("execute")),
        approval=_approval(top.table("approval")),
        limits=_limits(top.table("limits")),
        body=body,
        sha256=sha256,
        file=file,
    )
    for table in (requires, match, top):
        table.close()
    return action, findings


def _requirement(table: "_FrontMatterTable") -> ConnectorRequirement:
    requirement = ConnectorRequirement(
        fqn=table.text("name"),
        version=table.text("version"),
        hash=table.text("hash"),
        capabilities=table.texts("capabilities"),
    )
    table.close()
    return requirement


def _input(table: "_FrontMatterTable") -> Input:
    if not table.has("description"):  # a blank one is taken leniently
        table.add_problem(
            "description", "is required: this is what the agent reads", validation=True
        )
    entry = Input(
        name=table.text("name"),
        type=table.text("type"),
        description=table.text("description"),
        required=table.flag("required", default=True),
        label=table.optional_text("label"),
        multiline=table.flag("multiline", default=False),
        items_type=table.optional_text("items_type"),
        format=table.optional_text("format"),
    )
    table.close()
    return entry


def _step(table: "_FrontMatterTable") -> Step:
    step = Step(
        id=table.text("id"),
        connector=table.text("connector"),
        op=table.text("op"),
        idempotent=table.optional_flag("idempotent"),
        inputs=table.json("inputs"),
    )
    table.close()
    return step


def _approval(table: "_FrontMatterTable") -> Approval:
    approval = Approval(
        required=table.flag("required", default=False),
        effect=table.optional_text("effect"),
        preview=_preview(table.table("preview")) if table.has("preview") else None,
        grants=table.flag("grants", default=True),
    )
    table.close()
    return approval


def read_preview(document: Mapping[str, object], path: KeyPath) -> tuple[Preview, list[KeyProblem]]:
    """Return the table *document* at *path* as `[approval.preview]` is read, and what is wrong with its form."""
    findings: list[KeyProblem] = []
    return _preview(_FrontMatterTable(document, path, findings)), findings


def _preview(table: "_FrontMatterTable") -> Preview:
    preview = Preview(
        op=table.text("op"),
        args=table.json("args") or {},
        render=table.labels("render"),
        multiline=frozenset(table.texts("multiline")),
        gist=table.optional_text("gist"),
        formats=table.labels("formats"),
        changes=table.labels("changes"),
        reach=table.texts("reach"),
        read_back=table.json("read_back"),
    )
    if table.flag("recheck", default=True) is False:
        message = "must be true: the preview is always fetched again before the action runs"
        table.add_problem("recheck", message, validation=True)
    table.close()
    return preview


def _limits(table: "_FrontMatterTable") -> ActionLimits:
    default = ActionLimits()
    limits = ActionLimits(
        wall_seconds=table.integer("wall_seconds", default=default.wall_seconds),
        memory_mib=table.integer("memory_mib", default=default.memory_mib),
        has_wall_seconds=table.has("wall_seconds"),
    )
    table.close()
    return limits


class _FrontMatterTable:
    """One TOML table: hands out its keys as values, and notes those of another type or name."""

    def __init__(
        self, values: Mapping[str, object], path: KeyPath, findings: list[KeyProblem]
    ) -> None:
        self._values = values
        self._path = path
        self._findings = findings
        self._known: dict[str, None] = {}

    def add_problem(self, key: str, message: str, *, validation: bool = False) -> None:
        class_ = "validation_error" if validation else "parse_error"
        self._findings.append(KeyProblem(path=(*self._path, key), message=message, class_=class_))

    def has(self, key: str) -> bool:
        self._known[key] = None
        return key in self._values

    def stated_keys(self) -> tuple[str, ...]:
        """Return the keys that the file states, in its order."""
        return tuple(self._values)

    def text(self, key: str) -> str:
        """Return the string under *key*, or "" where there is none."""
        return self._typed(key, str, "a string") or ""

    def optional_text(self, key: str) -> str | None:
        return self._typed(key, str, "a string")

    def flag(self, key: str, *, default: bool) -> bool:
        value = self._typed(key, bool, "true or false")
        return default if value is None else value

    def optional_flag(self, key: str) -> bool | None:
        return self._typed(key, bool, "true or false")

    def integer(self, key: str, *, default: int) -> int:
        """Return the integer under *key*; to TOML, unlike to Python, a boolean is none."""
        if isinstance(self._values.get(key), bool):
            self._known[key] = None
            self.add_problem(key, "must be an integer, not a boolean")
            return default
        value = self._typed(key, int, "an integer")
        return default if value is None else value

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the array of strings under *key*; elements of another type become ""."""
        items = cast("list[object]", self._typed(key, list, "an array of strings") or [])
        for index, item in enumerate(items):
            if not isinstance(item, str):
                self._note_at((key, index), f"must be a string, not {_kind(item)}")
        return tuple(item if isinstance(item, str) else "" for item in items)

    def table(self, key: str) -> "_FrontMatterTable":
        """Return the table under *key*, an empty one where there is none."""
        values = cast("Mapping[str, object]", self._typed(key, dict, "a table") or {})
        return _FrontMatterTable(values, (*self._path, key), self._findings)

    def tables(self, key: str) -> "list[_FrontMatterTable]":
        """Return the array of tables under *key*; elements of another type are empty ones."""
        items = cast("list[object]", self._typed(key, list, "an array of tables") or [])
        found: list[_FrontMatterTable] = []
        for index, item in enumerate(items):
            path = (*self._path, key, index)
            if not isinstance(item, dict):
                self._note_at((key, index), f"must be a table, not {_kind(item)}")
                item = {}
            found.append(
                _FrontMatterTable(cast("Mapping[str, object]", item), path, self._findings)
            )
        return found

    def labels(self, key: str) -> tuple[tuple[str, str], ...]:
        """Return the table of strings under *key* as pairs, in the file's order."""
        table = self.table(key)
        return tuple((label, table.text(label)) for label in table.stated_keys())

    def json(self, key: str) -> JsonObject | None:
        values = cast("object", self._typed(key, dict, "a table"))
        return None if values is None else cast("JsonObject", self._to_json(values, (key,)))

    def close(self) -> None:
        """Note every key that nothing asked for: the schema is closed."""
        for key in self._values:
            if key in self._known:
                continue
            if (next(iter(self._path), ""), key) in _RESERVED:
                self.add_problem(key, "unknown front matter key: reserved for a later version")
            else:
                allowed = ", ".join(self._known)
                self.add_problem(
                    key, f"unknown front matter key {quoted(key)}; expected one of {allowed}"
                )

    def _typed(self, key: str, type_: type[_T], expected: str) -> _T | None:
        self._known[key] = None
        value = self._values.get(key)
        if value is None or isinstance(value, type_):
            return value
        self.add_problem(key, f"must be {expected}, not {_kind(value)}")
        return None

    def _note_at(self, place: KeyPath, message: str) -> None:
        path = (*self._path, *place)
        self._findings.append(KeyProblem(path=path, message=message, class_="parse_error"))

    def _to_json(self, value: object, place: KeyPath) -> Json:
        if len(place) > MAX_DEPTH:
            self._note_at(place, f"is nested more than {MAX_DEPTH} levels deep")
            return None
        if isinstance(value, dict):
            table = cast("dict[str, object]", value)
            return {key: self._to_json(item, (*place, key)) for key, item in table.items()}
        if isinstance(value, list):
            items = cast("list[object]", value)
            return [self._to_json(item, (*place, index)) for index, item in enumerate(items)]
        problem = _leaf_problem(value)
        if problem is not None:
            self._note_at(place, problem)
            return None
        if isinstance(value, date):  # a datetime is one too
            return value.isoformat()
        return cast("Json", value)


def _leaf_problem(value: object) -> str | None:
    """Return why a TOML value has no JSON form that every reader takes alike."""
    if isinstance(value, bool | str):
        return None
    if isinstance(value, int):
        return (
            None if abs(value) <= MAX_INTEGER else "is an integer beyond 2^53: write it as a string"
        )
    if isinstance(value, float):
        return None if math.isfinite(value) else "is not a number that JSON allows"
    if isinstance(value, datetime):
        return (
            None
            if value.tzinfo
            else "is a time without an offset: add one, or write it as a string"
        )
    return None if isinstance(value, date) else "is a time without a date: write it as a string"


def _kind(value: object) -> str:
    """Return what TOML calls a value's type."""
    names = (
        (bool, "a boolean"),  # before int, of which it is a kind to Python
        (str, "a string"),
        (int, "an integer"),
        (float, "a float"),
        (list, "an array"),
        (dict, "a table"),
    )
    return next((name for type_, name in names if isinstance(value, type_)), "a date or time")
