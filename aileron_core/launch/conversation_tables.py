"""What of an agent's database is its conversations: tables by name, and columns by name that it takes as settings.

Such a database also has servers to start, permissions and logins. Rows of tables that are not named
here do not outlive a launch.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, cast

Rows = Mapping[str, Sequence[dict[str, Any]]]
"""Of one conversation, by table: what an agent wrote."""

IN_PROJECT = (
    "CASE WHEN instr({0}, :project || '/') = 1 AND NOT instr({0}, '/..') THEN {0} ELSE :project END"
)
"""An expression for a column with a folder: as it is if it is in the project, else the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationDatabase:
    """The SQLite database in which an agent has its conversations, in a folder of its own.

    The first of `tables` has one row for each conversation, with its `id`; others name it in
    `session_id`, or are common to all.
    """

    path: PurePosixPath
    """Relative to the agent's folder. The folder above it has nothing else."""
    tables: Mapping[str, Mapping[str, str]]
    """Their rows are kept, a column that is named with the value of its SQL expression."""
    versions: Collection[str]
    """The tables in which the agent counts its changes of all tables: kept too."""
    only: Mapping[str, str]
    """By table, which rows are kept: an SQL condition."""
    is_numbered: bool
    """Whether two launches at once use the same ids, so that one may be kept under another."""
    modified: str
    """The column of the first table that changes whenever the conversation does."""
    modified_at: Callable[[Any], float]
    """Epoch seconds of that column. Raises ValueError, TypeError for what the agent does not write there."""
    export: Callable[[Rows], object]
    """Returns the JSON that the agent imports. Raises ValueError, TypeError, LookupError for other rows."""


def json_object(text: object) -> dict[str, Any]:
    """Return the object in *text*.

    Raises:
        ValueError, TypeError: it is none.
    """
    found = json.loads(str(text))
    if not isinstance(found, dict):
        raise TypeError
    return cast("dict[str, Any]", found)
