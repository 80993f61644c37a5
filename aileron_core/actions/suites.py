"""Which action files one `aileron action add` brought, so that a person is shown them together.

A suite is a list in a file of the home: it accepts nothing, and a file of the folder belongs to it
only in the very bytes that were added. What counts is what a person accepts of what is shown.
"""

import json
import logging
import os
import re
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from aileron_core.actions.catalog import read_handle
from aileron_core.console_port.view_models import SuiteView

WRITTEN = ".added-"
"""Begins the name of a folder, among the action files, of those that one `action add` has written, all of them."""
_log = logging.getLogger(__name__)
MAX_SUITES = 100
"""Lists that are kept; the oldest go first."""
_MOST = 1000
_LONGEST = 1000
"""Sentences of a list, and characters of one."""
_NAME = re.compile(r"[0-9]{10}-[0-9a-f]{8}")
_DIGEST = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """What one `aileron action add` or `update` brought."""

    view: SuiteView
    files: Mapping[str, str]
    """Lower-case hex SHA-256 by the name of an action's file, or by a connector's folder in the home."""

    @property
    def suite_id(self) -> str:
        return self.view.suite_id


def write_suite(
    folder: Path,
    source: str,
    files: Mapping[str, str],
    *,
    now: float,
    refused: Sequence[str] = (),
    gone: Sequence[str] = (),
) -> None:
    """Write down that *files* were added together; lists of the same files, or fewer, go.

    Args:
        folder: where the lists lie; made if it is missing.
        source, refused, gone: as in `SuiteView`.
        files: as in `Suite`.
        now: epoch seconds.

    Raises:
        OSError: it cannot be written.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    older = read_suites(folder)
    suite_id = f"{int(now):010}-{secrets.token_hex(4)}"
    content = {
        "source": source,
        "files": dict(files),
        "refused": [each[:_LONGEST] for each in refused[:_MOST]],
        "gone": list(gone[:_MOST]),
    }
    temporary = folder / f".{suite_id}"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as opened:
            json.dump(content, opened)
        temporary.replace(folder / f"{suite_id}.json")
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    for place, each in enumerate(older):
        if place >= MAX_SUITES - 1 or each.files.keys() <= files.keys():
            delete_suite(folder, each.suite_id)


def finish_adding(actions: Path) -> None:
    """Move the files of each `action add` that had written all of them into *actions*, where it could not itself.

    Together they arrive, however often that command, or this, is killed. A file that was changed since stays.
    """
    for folder in sorted(each for each in actions.glob(f"{WRITTEN}*") if not each.is_symlink()):
        with suppress(OSError):  # another process moves them too
            for staged in sorted(folder.iterdir()):
                target = actions / staged.name
                with suppress(OSError):
                    if target.exists() and target.stat().st_mtime_ns > staged.stat().st_mtime_ns:
                        _log.warning("%s was changed since it was added, and stays", target.name)
                        staged.unlink()
                    else:
                        staged.replace(target)
            folder.rmdir()


def read_suites(folder: Path) -> tuple[Suite, ...]:
    """Return the lists of *folder*, the newest first; what is no such list brings nothing together."""
    try:
        names = sorted((path.stem for path in folder.glob("*.json")), reverse=True)
    except OSError:
        return ()
    found = (_read(folder, name) for name in names if _NAME.fullmatch(name))
    return tuple(suite for suite in found if suite is not None)


def delete_suite(folder: Path, suite_id: str) -> None:
    """Drop one list; its files stand alone from then on.

    Raises:
        OSError: it cannot be removed.
    """
    if _NAME.fullmatch(suite_id):
        (folder / f"{suite_id}.json").unlink(missing_ok=True)


def _read(folder: Path, suite_id: str) -> Suite | None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        parsed: Any = json.loads(read_handle(os.open(folder / f"{suite_id}.json", flags)))
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(parsed, dict):
        return None
    content = cast("dict[str, Any]", parsed)
    source, files = content.get("source"), content.get("files")
    if not isinstance(source, str) or not isinstance(files, dict):
        return None
    listed = cast("dict[str, Any]", files)
    if not all(isinstance(each, str) and _DIGEST.fullmatch(each) for each in listed.values()):
        return None
    refused, gone = (_texts(content.get(name)) for name in ("refused", "gone"))
    view = SuiteView(
        suite_id=suite_id,
        source=source,
        added_at=float(suite_id[:10]),
        refused=refused,
        gone=gone,
    )
    return Suite(view=view, files=listed)


def _texts(value: object) -> tuple[str, ...]:
    found = cast("list[object]", value) if isinstance(value, list) else []
    return tuple(each[:_LONGEST] for each in found[:_MOST] if isinstance(each, str))
