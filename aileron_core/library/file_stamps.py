"""Whether files in a home changed: cheap to ask, because their bytes are not read.

A program can set a file's size and its time of modification back, not the time of its last change
of status (ctime). Two changes within one tick of the file system's clock share even that: while
the newest is that young, stamps prove nothing and the bytes have to be read.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_SETTLED_NS = 1_000_000_000

_Stamp = tuple[str, int, int, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class FileStamps:
    """Size, times and identity of each file, at one moment."""

    stamps: tuple[_Stamp, ...]
    settled: bool
    """Whether every later change will show: the newest one is older than the clock's tick."""


def read_stamps(actions: Path, store: Path, suites: Path, *, now_ns: int) -> FileStamps:
    """Return what the file system says of the action files and of the store's entries.

    Args:
        actions: the folder of action files, flat.
        store: the folder with one folder for each connector.
        suites: the folder of lists of what was added together, flat.
        now_ns: the machine's wall clock, in nanoseconds.
    """
    seen = (*_folder(actions, depth=1), *_folder(store, depth=2), *_folder(suites, depth=1))
    stamps = tuple(sorted(seen))
    # One in the future, after the clock was set back, settles nothing either.
    settled = all(0 < stamp[-1] < now_ns - _SETTLED_NS for stamp in stamps)
    return FileStamps(stamps=stamps, settled=settled)


def _folder(folder: Path, *, depth: int) -> Iterator[_Stamp]:
    try:
        yield _stamp(str(folder), os.stat(folder))  # noqa: PTH116 - of what a link leads to
        with os.scandir(folder) as entries:
            for entry in entries:
                if depth > 1 and entry.is_dir(follow_symlinks=False):
                    yield from _folder(Path(entry.path), depth=depth - 1)
                else:
                    yield _stamp(entry.path, entry.stat(follow_symlinks=False))
    except OSError:
        return  # gone, or not to be read: what is missing here differs from what was seen before


def _stamp(path: str, found: os.stat_result) -> _Stamp:
    return (
        path,
        found.st_dev,
        found.st_ino,
        found.st_mode,
        found.st_size,
        found.st_mtime_ns,
        found.st_ctime_ns,
    )
