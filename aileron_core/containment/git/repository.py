"""Finding the git repositories of a project, and whatever else in it git would take for one.

A `.git` file is the project's claim, so it counts only if the repository names the work tree in
return: otherwise a project could have any folder of the person's shown to its agent.
"""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_MOST = 64 * 1024
_WORKTREE = re.compile(r"^[ \t]*worktree[ \t]*=(.*\S)", re.MULTILINE)
"""Reads nothing twice: an agent may have written the file."""
_ALTERNATES = 5
_REPOSITORY_NAMES = frozenset(("head", "objects", "refs", "commondir"))


@dataclass(frozen=True, slots=True, kw_only=True)
class GitDirs:
    """The git directory of a work tree and the common directory that holds its objects and refs."""

    git_dir: Path
    """HEAD and the index of this work tree."""
    common_dir: Path
    """Refs, objects and config; the same folder but for an additional work tree."""


def find_repository(worktree: Path) -> GitDirs | None:
    """Return the repository of *worktree*, None if there is none or it does not name *worktree* in return."""
    link = worktree / ".git"
    if link.is_symlink():
        return None
    if link.is_dir():
        ordinary = (link / "HEAD").is_file() and not os.path.lexists(link / "commondir")
        return GitDirs(git_dir=link, common_dir=link) if ordinary else None
    text = _read(link)
    if text is None or not text.startswith("gitdir:"):
        return None
    named = Path(worktree, text.removeprefix("gitdir:").strip()).resolve()
    if not (named / "HEAD").is_file():
        return None
    if (back := _read(named / "gitdir")) is not None:  # an additional work tree
        common = _read(named / "commondir")
        if common is None or Path(named, back.strip()).resolve() != link.resolve():
            return None
        common_dir = Path(named, common.strip()).resolve()
        return (
            GitDirs(git_dir=named, common_dir=common_dir)
            if named.parent == common_dir / "worktrees"
            else None
        )
    match = _WORKTREE.search(_read(named / "config") or "")  # a submodule
    if match is None or Path(named, match[1].strip().strip('"')).resolve() != worktree.resolve():
        return None
    above = any(_holds_module(each, named) for each in worktree.resolve().parents)
    return GitDirs(git_dir=named, common_dir=named) if above else None


def _holds_module(parent: Path, named: Path) -> bool:
    if not os.path.lexists(parent / ".git"):
        return False
    repository = find_repository(parent)
    return repository is not None and named.is_relative_to(repository.git_dir.resolve() / "modules")


def object_folders(common: Path) -> list[Path]:
    """Return the object stores of a repository: its own, then those listed as alternates.

    Only the `objects` folder of a repository counts, so that no other folder is ever exposed.
    """
    folders = [(common / "objects").resolve()]
    for _ in range(_ALTERNATES):
        named = [each for folder in folders for each in _alternates(folder)]
        new = [each for each in named if each not in folders and _holds_objects(each)]
        if not new:
            break
        folders += list(dict.fromkeys(new))
    return folders


def _alternates(folder: Path) -> Iterator[Path]:
    for line in (_read(folder / "info" / "alternates") or "").splitlines():
        if line and not line.startswith(("#", '"')):
            yield Path(folder, line).resolve()


def _holds_objects(folder: Path) -> bool:
    return folder.name == "objects" and is_repository_shaped(set(_names(folder.parent)))


def _names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208 - names alone
    except OSError:
        return []


def is_repository_shaped(names: set[str]) -> bool:
    """Return whether git would take a folder with the entries *names* for a repository, whatever its name."""
    low = {name.lower() for name in names}  # a file system may not tell them apart
    return "head" in low and ("commondir" in low or {"objects", "refs"} <= low)


@dataclass(frozen=True, slots=True, kw_only=True)
class RepositoryScan:
    """The folders and `.git` entries of a project that git would take for repositories; paths are relative."""

    git_entries: tuple[str, ...]
    """Everything called `.git`."""
    repository_shaped: tuple[str, ...]
    """Folders of a repository's shape under another name."""
    lone_heads: tuple[str, ...] = ()
    """Folders with a HEAD and not the rest of the shape, which a checkout could add."""
    unreadable: tuple[str, ...] = ()
    """Folders that could not be looked through."""


def scan_project(project: Path) -> RepositoryScan:
    """Search *project* for repositories, without following links or descending into anything called `.git`."""
    entries: list[str] = []
    shapes: list[str] = []
    heads: list[str] = []
    unread: list[str] = []
    waiting = [""]
    root = os.fspath(project)
    while waiting:
        folder = waiting.pop()
        names: set[str] = set()
        try:
            with os.scandir(f"{root}/{folder}") as listed:
                for entry in listed:
                    if (name := entry.name.lower()) in _REPOSITORY_NAMES:
                        names.add(name)
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    if name == ".git":
                        entries.append(path)
                    elif entry.is_dir(follow_symlinks=False):
                        waiting.append(path)
        except OSError:
            unread.append(folder or ".")
            continue
        if is_repository_shaped(names):
            shapes.append(folder or ".")
        elif folder and "head" in names:
            heads.append(folder)
    return RepositoryScan(
        git_entries=tuple(sorted(entries)),
        repository_shaped=tuple(sorted(shapes)),
        lone_heads=tuple(sorted(heads)),
        unreadable=tuple(sorted(unread)),
    )


def _read(path: Path) -> str | None:
    """Return the text of a small file that is not a link; a NUL is in no text, and no path can have one."""
    try:
        if path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as file:
            text = file.read(_MOST).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    return None if "\0" in text else text
