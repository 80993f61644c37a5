"""Files with two names: hard links of Aileron's own files are broken, those of a project's files counted.

Installers link files from a cache into many environments (uv and conda by default, pnpm for
JavaScript). A sandbox is defined by paths: the same inode under another path, inside the agent's
project, is not protected.
"""

import os
import secrets
import shutil
import stat
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from aileron_core.containment.programs import own_code_folders, own_interpreter
from aileron_core.errors import Forbidden
from aileron_core.text import escape

_INSTALLED = frozenset(("site-packages", "dist-packages"))
_MAX_ENTRIES = 400_000
"""Entries of a project that are looked at; a second or two."""


def own_folders() -> tuple[Path, ...]:
    """Return the folders of the code that this process runs: its packages, their dependencies, the interpreter."""
    standard = {Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")}
    installed = (Path(entry) for entry in sys.path)
    folders = {*standard, *(each for each in installed if each.name in _INSTALLED)}
    folders |= {path for path in own_code_folders() if path != Path(sys.base_prefix).resolve()}
    return tuple(sorted({folder.resolve() for folder in folders if folder.is_dir()}))


def hard_linked_files(folders: Iterable[Path]) -> list[Path]:
    """Return the files below *folders*, and the interpreter with its libraries, that have more than one link.

    Only those that this user may change: an agent, which runs as the same user, can write to no
    others.
    """
    # What is installed beside the standard library is for other programs, unless it is on our path.
    entries = (each for folder in folders for each in _entries(folder, _INSTALLED))
    paths = (Path(each) for each in entries if _is_shared(each, each.stat(follow_symlinks=False)))
    libraries = Path(sys.base_prefix, "lib").glob("*.so*")
    programs = (each for each in (own_interpreter(), *libraries) if not each.is_symlink())
    return sorted({*paths, *(each for each in programs if _is_shared(each, each.stat()))})


def _is_shared(path: "os.PathLike[str]", status: os.stat_result) -> bool:
    if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
        return False
    return status.st_uid == os.geteuid() or os.access(path, os.W_OK)


def _entries(folder: Path, leave_out: frozenset[str] = frozenset()) -> Iterator["os.DirEntry[str]"]:
    """Yield every entry below *folder* that is not a folder; what cannot be read is skipped."""
    waiting = [str(folder)]
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if not entry.is_dir(follow_symlinks=False):
                        yield entry
                    elif entry.name not in leave_out:
                        waiting.append(entry.path)
        except OSError:
            continue


def break_hard_links(paths: Iterable[Path]) -> None:
    """Replace each file by a copy of itself, so that its other hard links become a different file.

    A process that has the old one open or mapped keeps it.

    Raises:
        Forbidden: one cannot be copied; the message says how to fix that.
    """
    for path in paths:
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            status = path.lstat()
            shutil.copy2(path, temporary, follow_symlinks=False)
            if (status.st_uid, status.st_gid) != (os.geteuid(), os.getegid()):
                os.chown(temporary, status.st_uid, status.st_gid)
                temporary.chmod(stat.S_IMODE(status.st_mode))
            temporary.replace(path)
        except OSError as error:
            temporary.unlink(missing_ok=True)
            raise Forbidden(
                f"Aileron's file {path} is a hard link, so an agent could change it through its "
                f"project, and it could not be replaced with a copy ({error.strerror}). "
                f"{reinstall_hint()}"
            ) from None


def reinstall_hint() -> str:
    """Return the sentence with the command that installs Aileron without hard links."""
    if Path(sys.prefix, "uv-receipt.toml").is_file():
        return "Run `UV_LINK_MODE=copy uv tool upgrade --reinstall aileron`."
    return (
        "Reinstall Aileron without hard links: `UV_LINK_MODE=copy uv pip install --python "
        f"{sys.prefix} --reinstall ...`, or use pip, which copies files."
    )


def break_own_hard_links() -> str | None:
    """Break the hard links of Aileron's own files; return a sentence for the person if there were any.

    Raises:
        Forbidden: see `break_hard_links`.
    """
    shared = hard_linked_files(own_folders())
    break_hard_links(shared)
    if not shared:
        return None
    return (
        f"{len(shared)} of Aileron's own files were hard links to an installer's cache, "
        "shared with other environments, where an agent could have changed them. They have "
        "been replaced with copies. If an agent has run in such an environment: "
        f"{reinstall_hint()}"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class OutsideLinks:
    """Files of a project that have hard links outside it."""

    count: int
    first: Path | None
    is_complete: bool
    """Whether all of the project was looked at."""

    def warning(self) -> str | None:
        if self.first is None:
            return None
        count = f"{self.count:,}" if self.is_complete else f"at least {self.count:,}"
        return (
            f"Files of this project that are hard links to files outside it: {count}, for example "
            f"{escape(str(self.first))}. If the agent writes to them, it changes an installer's "
            "cache and the environments made from it. Recreate the project's environment with "
            "UV_LINK_MODE=copy (pnpm: package-import-method=copy)."
        )


def find_outside_links(project: Path) -> OutsideLinks:
    """Count the files of *project* that have more hard links than are found in it, outside its `.git`.

    Objects of git are left out: git notices by itself when their content does not match their name.
    """
    names: dict[tuple[int, int], list[int]] = {}
    firsts: dict[tuple[int, int], str] = {}
    seen = 0
    for entry in _entries(project, frozenset((".git",))):
        seen += 1
        if seen > _MAX_ENTRIES:
            break
        try:
            status = entry.stat(follow_symlinks=False)
        except OSError:  # removed meanwhile
            continue
        if status.st_nlink < 2 or not stat.S_ISREG(status.st_mode):
            continue
        key = (status.st_dev, status.st_ino)
        names.setdefault(key, [0, status.st_nlink])[0] += 1
        firsts.setdefault(key, entry.path)
    outside = [key for key, (here, all_) in names.items() if here < all_]
    first = min((firsts[key] for key in outside), default=None)
    return OutsideLinks(
        count=len(outside), first=Path(first) if first else None, is_complete=seen <= _MAX_ENTRIES
    )
