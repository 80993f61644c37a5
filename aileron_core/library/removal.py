"""Finds accepted files that were removed: their acceptance ends, even if the same bytes come back.

The console looks twice a second, and cannot see a file that was back before it looked; so the commands
that remove something tell it, or record it themselves where no console runs.
"""

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from aileron_core.library.acceptance import AcceptanceRecord

_AGAIN_SECONDS = 0.25
"""An editor may just have taken the old file away and be about to put the new one in its place."""


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
        paths = [folder / "connector.wasm", folder / "manifest.toml"]
    else:  # what goes with a file ends with it
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
