"""Who can change Aileron's own code, which of its files have other names, and who can read its home."""

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from aileron_core.containment.hard_links import hard_linked_files, reinstall_hint
from aileron_core.errors import FileProblems
from aileron_core.home.layout import Home
from aileron_core.launch.doctor import Finding
from aileron_core.library.accepted_settings import load_policy
from aileron_core.settings import load_settings


def check_code(packages: Iterable[Path], *, uid: int) -> Finding:
    """Report whether a program of the user *uid* can change a file of Aileron's code."""
    files, open_ = 0, 0
    first: Path | None = None
    for path in _all_of(packages):
        files += 1
        if _can_change(path, uid):
            open_ += 1
            first = first or path
    if first is None:
        text = (
            f"Aileron's code ({files} files) belongs to another user, so programs that you run "
            "cannot change it."
        )
        return Finding(level="ok", topic="code", text=text)
    text = (
        f"Any program that you run outside a sandbox can change Aileron's code ({open_} of "
        f"{files} files and folders, for example {first}). To prevent that, install Aileron "
        "as root."
    )
    return Finding(level="note", topic="code", text=text)


def check_hard_links(folders: Iterable[Path]) -> Finding | None:
    """Warn of Aileron's files that are hard links shared with other environments."""
    shared = hard_linked_files(folders)
    if not shared:
        return None
    text = (
        f"{len(shared)} of Aileron's files are hard links that share their content with an "
        f"installer's cache (for example {shared[0]}). Whoever can write to the other names "
        "can change Aileron, including an agent in an environment made from that cache. The "
        f"next launch replaces them with copies. {reinstall_hint()}"
    )
    return Finding(level="warning", topic="code", text=text)


def _all_of(packages: Iterable[Path]) -> Iterator[Path]:
    parents: set[Path] = set()
    for package in packages:
        real = package.resolve()
        parents |= {*real.parents}
        for folder, folders, names in os.walk(real):
            folders[:] = [name for name in folders if name != "__pycache__"]
            yield Path(folder)
            yield from (Path(folder, name) for name in names)
    yield from sorted(parents)


def _can_change(path: Path, uid: int) -> bool:
    """Return whether *uid* owns or may write to *path*; a folder's sticky bit protects files of others."""
    try:
        status = path.lstat()
    except OSError:
        return False
    if status.st_uid == uid:
        return True
    if stat.S_ISLNK(status.st_mode):
        return False
    if stat.S_ISDIR(status.st_mode) and status.st_mode & stat.S_ISVTX:
        return False
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def check_home(home: Home, *, uid: int) -> Iterator[Finding]:
    """Report who owns the home, which of its files others can open, and whether its settings are valid."""
    try:
        status = home.path.stat()
    except FileNotFoundError:
        text = f"{home.path} does not exist yet; the first console creates it."
        yield Finding(level="note", topic="home", text=text)
        return
    if status.st_uid != uid:
        text = f"{home.path} belongs to another user. Set AILERON_HOME to a folder of your own."
        yield Finding(level="broken", topic="home", text=text)
        return
    loose = [path for path in _kept(home) if _is_loose(path)]
    for path in loose:
        text = f"Other users can open {path}. Run `chmod go= {path}`."
        yield Finding(level="broken", topic="home", text=text)
    if not loose:
        yield Finding(level="ok", topic="home", text=f"{home.path} is ready; only you can read it.")
    for load, path in ((load_settings, home.config), (load_policy, home.policy)):
        try:
            load(path)
        except FileProblems as error:
            yield Finding(level="broken", topic="settings", text=error.message)


def _kept(home: Home) -> Iterator[Path]:
    yield home.path
    for name in ("run", "log", "store", "actions", "aileron.db", "vault.json", "daemon.json"):
        if (path := home.path / name).exists():
            yield path


def _is_loose(path: Path) -> bool:
    try:
        return bool(stat.S_IMODE(path.stat().st_mode) & 0o077) and not _closed_above(path)
    except OSError:
        return False


def _closed_above(path: Path) -> bool:
    """Return whether a folder above keeps others out, so that the path's own mode does not matter."""
    above = path.resolve().parents
    return any(not stat.S_IMODE(each.stat().st_mode) & 0o011 for each in above)
