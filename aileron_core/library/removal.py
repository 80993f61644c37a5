"""Removes files of a home, and finds those that were removed: their acceptance ends, even if the same bytes come back.

The console looks twice a second, and cannot see a file that was back before it looked; so a command has
the console remove it, or does so itself where none runs. Its acceptance ends first in both cases.
"""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, Literal, TypeAlias

from aileron_core.connectors.store import (
    DEFINITIONS_FILE,
    MANIFEST_FILE,
    MODULE_FILE,
    OFFERED_KEYS,
    ConnectorStore,
)
from aileron_core.errors import HomeError, NotFound
from aileron_core.library.acceptance import AcceptanceRecord

FileKind: TypeAlias = Literal["action", "connector", "publisher"]
_FOLDERS: Final = {"action": ("actions", ".md"), "publisher": (OFFERED_KEYS, ".tar.gz")}
"""Where files lie that are found by their names, and how these end."""
_AGAIN_SECONDS = 0.25
"""An editor may just have taken the old file away and be about to put the new one in its place."""


def remove(home: Path, kind: FileKind, name: str) -> None:
    """Remove an action's or an offered key's file *name*, or the connector with that hash.

    Errors as of `HomeLibrary.remove`.
    """
    if kind == "connector":
        if not ConnectorStore(home).remove(name):
            raise NotFound(f"No connector {name} is installed in {home}.")
        return
    place, ending = _FOLDERS[kind]
    folder = home / place
    missing = NotFound(f"There is no file {name[:200]!r} in {folder}.")
    try:
        # Found by its name in the folder, so that a name leads nowhere else.
        if not name.endswith(ending) or name not in {each.name for each in folder.iterdir()}:
            raise missing
        (folder / name).unlink(missing_ok=True)
    except FileNotFoundError:
        raise missing from None
    except OSError as error:
        raise HomeError(f"{folder / name} could not be removed: {error.strerror}.") from error


def find_removed(home: Path, accepted: Iterable[AcceptanceRecord]) -> Sequence[AcceptanceRecord]:
    """Return those of *accepted* whose files are gone. It may take a quarter of a second.

    A file or folder that cannot be accessed is not gone.
    """
    gone = [each for each in accepted if _is_gone(home, each)]
    if gone:
        time.sleep(_AGAIN_SECONDS)
    return [each for each in gone if _is_gone(home, each)]


def _is_gone(home: Path, record: AcceptanceRecord) -> bool:
    if record.kind == "action":
        paths = [home / "actions" / record.name]
    elif record.kind == "connector":
        folder = home / "store" / "connectors" / record.digest.replace(":", "/", 1)
        module, tools = folder / MODULE_FILE, folder / DEFINITIONS_FILE
        paths = [tools if _is_missing(module) else module, folder / MANIFEST_FILE]
    else:  # what goes with a file ends with it
        return False
    return any(_is_missing(path) for path in paths)


def _is_missing(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except (OSError, ValueError):  # or no name that a file could have
        return False
    return False
