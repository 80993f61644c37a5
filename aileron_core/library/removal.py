"""Ends the acceptance of files that were removed, even if the same bytes come back.

The console checks which accepted files are gone. It cannot see one that was back before it checked;
so the commands that remove something leave a note,

    <home>/store/removed/<random>.json      {"kind": "action", "name": "send-draft.md"}

an action by its file's name, a connector by its hash.
"""

import json
import os
import secrets
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from aileron_core.library.acceptance import AcceptanceRecord
from aileron_core.library.preview_reads import KIND

_AGAIN_SECONDS = 0.25
"""An editor may just have taken the old file away and be about to put the new one in its place."""
_LONGEST = 4096

RemovalNotes = Mapping[Path, tuple[str, str]]
"""The note's file -> kind and name."""


def note_removed(home: Path, kind: str, name: str) -> None:
    """Leave a note of a removal, before the removal itself.

    Raises:
        OSError: it cannot be written.
    """
    folder = _folder(home)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{secrets.token_hex(16)}.json"
    unfinished = path.with_suffix(".new")
    descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"kind": kind, "name": name}, file)
    unfinished.rename(path)


def read_notes(home: Path) -> RemovalNotes:
    """Return all notes, unreadable ones included, so that those are cleared too."""
    return {path: _read(path) for path in _folder(home).glob("*.json")}


def clear_notes(notes: RemovalNotes) -> None:
    """Remove notes whose removals are in the audit."""
    for path in notes:
        path.unlink(missing_ok=True)


def removed_by_note(
    accepted: Iterable[AcceptanceRecord], notes: RemovalNotes
) -> Sequence[AcceptanceRecord]:
    """Return those of *accepted* that a note says were removed."""
    noted = set(notes.values())
    return [
        each
        for each in accepted
        if noted & {(each.kind, each.name), (_kind_on_disk(each), each.digest)}
    ]


def _kind_on_disk(record: AcceptanceRecord) -> str:
    """Return the kind of file that *record* depends on: reads by POST go with their connector."""
    return "connector" if record.kind == KIND else record.kind


def find_removed(
    home: Path, accepted: Sequence[AcceptanceRecord], notes: RemovalNotes
) -> Sequence[AcceptanceRecord]:
    """Return those of *accepted* that a note says were removed, or whose files are gone. It may take a quarter of a second.

    A file or folder that cannot be accessed is not gone.
    """
    found = removed_by_note(accepted, notes)
    gone = [each for each in accepted if each not in found and _is_gone(home, each)]
    if gone:
        time.sleep(_AGAIN_SECONDS)
    return [*found, *(each for each in gone if _is_gone(home, each))]


def _folder(home: Path) -> Path:
    return home / "store" / "removed"


def _read(path: Path) -> tuple[str, str]:
    try:
        with path.open(encoding="utf-8") as file:
            parsed: Any = json.loads(file.read(_LONGEST))
    except (OSError, ValueError, RecursionError):
        return "", ""
    note = cast("dict[str, Any]", parsed) if isinstance(parsed, dict) else {}
    return str(note.get("kind")), str(note.get("name"))


def _is_gone(home: Path, record: AcceptanceRecord) -> bool:
    if record.kind == "action":
        paths = [home / "actions" / record.name]
    elif _kind_on_disk(record) == "connector":
        folder = home / "store" / "connectors" / record.digest.replace(":", "/", 1)
        paths = [folder / "connector.wasm", folder / "manifest.toml"]
    else:  # a project's settings count for a folder, not for a file of the home
        return False
    return any(_is_missing(path) for path in paths)


def _is_missing(path: Path) -> bool:
    try:
        path.lstat()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return False
