"""What of an agent's database is its conversations: an allow-list of tables, columns and their contents.

Such a database also has settings: servers to start, permissions, logins. What is not named here does
not outlive a launch.
"""

import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal, cast

Value = str | int | float | None
Row = dict[str, Value]
Kind = Literal["text", "text?", "integer", "integer?", "number", "number?"]
"""The type of a column's values; with `?` it may be NULL."""
_TYPES: Mapping[str, tuple[type, ...]] = {"text": (str,), "integer": (int,), "number": (int, float)}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationTable:
    """One table with rows of conversations."""

    name: str
    conversation: str
    """The column with the id of the conversation."""
    columns: Mapping[str, Kind]
    """What is read and written; the other columns get the default of the table."""
    others: Collection[str] = ()
    """The other columns that this table is known to have."""
    clean: Callable[[Row, Path], Row | None]
    """Returns a row that may be kept, given the project, or None for one that is none of a conversation.

    It raises ValueError, TypeError or LookupError for something that the agent does not write.
    """

    def checked(self, values: object, project: Path) -> Row | None:
        """Return the row of *values*, one for each of `columns`, as it may be kept, None if it is not kept.

        Raises:
            ValueError, TypeError, LookupError: it is not what the agent writes.
        """
        found = cast("list[Any]", values)
        if not isinstance(values, list) or len(found) != len(self.columns):
            raise ValueError(self.name)
        for value, (column, kind) in zip(found, self.columns.items(), strict=True):
            absent = value is None and kind.endswith("?")
            if not absent and type(value) not in _TYPES[kind.rstrip("?")]:
                raise TypeError(column)
            if isinstance(value, float) and not math.isfinite(value):
                raise ValueError(column)
        return self.clean(dict(zip(self.columns, found, strict=True)), project)


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """The rows of one conversation, as they may be kept."""

    rows: Mapping[str, Sequence[Row]]
    """By table; the first table has one."""

    def under(self, name: str, tables: Sequence[ConversationTable]) -> "Conversation":
        """Return it under another id, the column of which is all that names it."""
        rows = {
            table.name: [{**row, table.conversation: name} for row in self.rows[table.name]]
            for table in tables
        }
        return Conversation(rows=rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationDatabase:
    """The SQLite database in which an agent has its conversations, in a folder of its own."""

    path: PurePosixPath
    """Relative to the agent's folder. The folder above it has nothing else."""
    schema: str
    """A file of this package: the statements that make the agent's tables, empty."""
    tables: Sequence[ConversationTable]
    """The first has one row for each conversation."""
    modified: str
    """The column of the first table that changes whenever the conversation does."""
    modified_at: Callable[[Value], float]
    """Epoch seconds of that column."""
    before: str = ""
    """A statement to be executed before a row of the first table is added, with the row's values as parameters."""
    another_id: Callable[[str, Collection[str]], str] | None = None
    """Returns another id for a conversation, given those in use; None where ids are never used twice."""
    account: str = ""
    """`TABLE.COLUMN`, a value in which is an account with settings of its own, which the sandbox lacks."""
    export: Callable[[Conversation], object]
    """Returns the JSON that the agent imports."""


def in_project(value: Value, project: Path) -> str:
    """Return the folder *value* if it is the project or in it, else the project."""
    path = PurePosixPath(str(value))
    inside = ".." not in path.parts and path.is_relative_to(project)
    return str(path if inside else project)


def json_object(text: Value) -> dict[str, Any]:
    """Return the object in *text*.

    Raises:
        ValueError: it is none.
    """
    return object_in(_json(text))


def json_objects(text: Value) -> list[dict[str, Any]]:
    """Return the list of objects in *text*.

    Raises:
        ValueError: it is none.
    """
    found = _json(text)
    if not isinstance(found, list):
        raise TypeError
    return [object_in(each) for each in cast("list[object]", found)]


def object_in(value: object) -> dict[str, Any]:
    """Return *value*, which has to be an object of JSON.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(value, dict):
        raise TypeError
    return cast("dict[str, Any]", value)


def only(table: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the entries of *table* with these names."""
    return {name: table[name] for name in names if name in table}


def compact(value: object) -> str:
    return json.dumps(value, allow_nan=False, separators=(",", ":"))


def _json(text: Value) -> object:
    try:
        return json.loads(str(text))
    except RecursionError:
        raise ValueError from None
