"""Where the repository of a git worktree or submodule lies: outside the project, behind a `.git` file.

The file is the project's word, so it counts only where the repository says the same back: else a
project could have any folder of the person's shown to its agent.
"""

import re
from pathlib import Path

__all__ = ["repository_of"]

_MOST = 64 * 1024
_WORKTREE = re.compile(r"^\s*worktree\s*=\s*(.+?)\s*$", re.MULTILINE)


def repository_of(project: Path) -> Path | None:
    """Return the git folder outside *project* that its `.git` file names and that names it back, or None."""
    text = _read(project / ".git")
    if text is None or not text.startswith("gitdir:"):
        return None
    named = Path(project, text.removeprefix("gitdir:").strip()).resolve()
    if named.is_relative_to(project) or not (named / "HEAD").is_file():
        return None
    if (back := _read(named / "gitdir")) is not None:  # a worktree
        common = _read(named / "commondir")
        if common is None or Path(named, back.strip()).resolve() != (project / ".git").resolve():
            return None
        found = Path(named, common.strip()).resolve()
        return found if named.parent == found / "worktrees" else None
    match = _WORKTREE.search(_read(named / "config") or "")  # a submodule
    if match is None or Path(named, match[1].strip('"')).resolve() != project:
        return None
    above = any(named.is_relative_to(each / ".git" / "modules") for each in project.parents)
    return named if above else None


def _read(path: Path) -> str | None:
    """Return a small text file that is no link."""
    try:
        if path.is_symlink() or not path.is_file():
            return None
        with path.open("rb") as file:
            return file.read(_MOST).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
