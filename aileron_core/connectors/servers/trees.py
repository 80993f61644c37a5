"""The installed packages of MCP servers, each kept by the hash of its files.

    <home>/store/servers/sha256/<hex>/     a package with all that it depends on; its files are read-only
    <home>/store/servers/tmp/install-*/    staging

Everything here blocks on the disk; call it from a thread, not from the event loop.
"""

import hashlib
import os
import stat
from collections.abc import Container
from pathlib import Path
from typing import Final

from aileron_core.clock import SystemClock
from aileron_core.connectors.store import remove_entry, replace_entry, writing
from aileron_core.errors import HashMismatch, NotFound

MAX_ENTRIES: Final = 200_000
MAX_BYTES: Final = 2 * 1024**3
_SETTLED_SECONDS = 2.0
_verified: dict[Path, bytes] = {}
"""By folder: what its entries' stat data were when their content was last verified."""


class BadTree(ValueError):
    """A folder that is no package to keep; the message says why, as the end of a sentence."""


def tree_folder(home: Path, tree: str) -> Path:
    """Return where the package with the hash *tree* is kept."""
    return packages_root(home) / "sha256" / tree.removeprefix("sha256:")


def packages_root(home: Path) -> Path:
    return home / "store" / "servers"


def keep_tree(home: Path, folder: Path) -> str:
    """Move the package in *folder*, which `staging` gave, to its place; return its hash.

    Raises:
        BadTree: it is too large, or has a link that leads out of it, or a device.
        HomeError: the store cannot be written.
    """
    with writing(packages_root(home)):
        tree = tree_hash(folder)
        for path, status in _entries(folder):
            if stat.S_ISDIR(status.st_mode):
                (folder / path).chmod(0o700)
            elif stat.S_ISREG(status.st_mode):
                (folder / path).chmod(0o400 | status.st_mode & stat.S_IXUSR)
        final = tree_folder(home, tree)
        try:
            verify_tree(home, tree)  # it is there, and may be in use
        except (HashMismatch, NotFound):
            replace_entry(final, folder)
    return tree


def verify_tree(home: Path, tree: str) -> Path:
    """Verify that a package is what its hash says; its files are read only if one changed. Return its folder.

    Raises:
        NotFound: it is not there.
        HashMismatch: a file was changed, added or removed.
    """
    folder, before, newest = tree_folder(home, tree), b"", 0
    try:
        before, newest = _signature(folder)
        if _verified.get(folder) == before:
            return folder
        _verified.pop(folder, None)
        computed = tree_hash(folder)
    except FileNotFoundError:
        raise NotFound(
            f"The server's package {tree} is not installed. `aileron server update` installs it."
        ) from None
    except (BadTree, OSError) as error:
        computed = f"none: it {error}"
    if computed != tree:
        raise HashMismatch(
            f"The files of the server's package changed on disk: {folder} has the hash {computed}. "
            "Nothing was started. Remove that folder, and `aileron server update` installs it again.",
            details={"expected": tree, "computed": computed},
        )
    # Two changes within one tick of the file system's clock look like one.
    if newest < (SystemClock().now() - _SETTLED_SECONDS) * 1e9:
        _verified[folder] = before
    return folder


def collect(home: Path, wanted: Container[str]) -> None:
    """Remove the packages whose hash is not in *wanted*: those that no installed server names.

    Raises:
        HomeError: the store cannot be written.
    """
    kept = tree_folder(home, "")
    with writing(kept.parent):
        for each in sorted(kept.iterdir()) if kept.is_dir() else ():
            if f"sha256:{each.name}" not in wanted:
                remove_entry(each)


def tree_hash(folder: Path) -> str:
    """Return `sha256:` and the hex hash over what is in *folder*: paths, kinds, executable bits, links' targets, content.

    Raises:
        BadTree: it is too large, or has a link that leads out of it, or a device.
        OSError: it cannot be read.
    """
    digest = hashlib.sha256()
    root = os.path.realpath(folder)
    for path, status in _entries(folder):
        full = os.path.join(folder, path)  # noqa: PTH118 - a Path costs more than the call
        if stat.S_ISDIR(status.st_mode):
            what = ("folder",)
        elif stat.S_ISLNK(status.st_mode):
            real = os.path.realpath(full)
            what = ("link", target := os.readlink(full))  # noqa: PTH115
            if target.startswith("/") or not real.startswith(root + "/"):
                raise BadTree(f"has a link that leads out of it: {path!r}")
        elif stat.S_ISREG(status.st_mode):
            handle = os.open(full, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(handle, "rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            what = ("file", bool(status.st_mode & stat.S_IXUSR), content)
        else:
            raise BadTree(f"has neither a file nor a folder at {path!r}")
        digest.update(ascii((path, what)).encode() + b"\n")
    return "sha256:" + digest.hexdigest()


def _entries(folder: Path) -> list[tuple[str, os.stat_result]]:
    """Return what is in *folder*, by its path there, sorted.

    Raises:
        BadTree: it is too much.
        OSError: it cannot be looked through.
    """
    found: list[tuple[str, os.stat_result]] = []
    size, folders = 0, [""]
    while folders:
        here = folders.pop()
        with os.scandir(folder / here) as entries:
            for entry in entries:
                status = entry.stat(follow_symlinks=False)
                found.append((here + entry.name, status))
                size += status.st_size
                if len(found) > MAX_ENTRIES or size > MAX_BYTES:
                    raise BadTree(f"has over {MAX_ENTRIES} files, or over {MAX_BYTES >> 30} GiB")
                if entry.is_dir(follow_symlinks=False):
                    folders.append(f"{here}{entry.name}/")
    return sorted(found, key=lambda each: each[0])


def _signature(folder: Path) -> tuple[bytes, int]:
    """Return a digest of the stat data of all that is in *folder*, and the newest time in it, in nanoseconds."""
    digest, newest = hashlib.sha256(), 0
    for path, s in [*_entries(folder), ("", folder.lstat())]:
        times = (s.st_dev, s.st_ino, s.st_mode, s.st_size, s.st_mtime_ns, s.st_ctime_ns)
        digest.update(ascii((path, times)).encode())
        newest = max(newest, s.st_ctime_ns)
    return digest.digest(), newest
