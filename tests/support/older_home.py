"""A home that an earlier version left: a vault, accepted files, calls that wait, calls that ended.

`tests/process/homes/schema-5/home` is its folder and `aileron.sql` its database, written by real programs at
commit 1badba7c (the example's files, a connector with an account, four calls that wait, four that ended and
were sealed); `expected.json` is what that version's own commands said of it.
"""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

_OLD = Path(__file__).parents[1] / "process" / "homes" / "schema-5"
EXPECTED: dict[str, Any] = json.loads((_OLD / "expected.json").read_text())


def write_older_home(path: Path) -> Path:
    """Put a copy of it at *path*, with the modes that it had."""
    shutil.copytree(_OLD / "home", path)
    with closing(sqlite3.connect(path / "aileron.db")) as database:
        database.executescript((_OLD / "aileron.sql").read_text(encoding="utf-8"))
    for each in (path, *path.rglob("*")):
        each.chmod(0o700 if each.is_dir() else 0o600)
    return path
