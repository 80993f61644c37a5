"""The package caches of contained agents: one set for each project, kept between launches, never used outside.

They begin as copies of the person's own: what an agent edits in a cache would run wherever the
person's tools take it from there.
"""

import hashlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from aileron_core.clock import SystemClock
from aileron_core.containment.mounts import Mount
from aileron_core.containment.safe_paths import open_folder, open_folder_beneath, remove_tree
from aileron_core.text import escape

CACHES = {
    "uv": (".cache/uv",),
    "pip": (".cache/pip",),
    "npm": (".npm",),
    "cargo": (".cargo/registry", ".cargo/git"),
    "Go": (".cache/go-build", "go/pkg/mod"),
}
"""Tool -> its caches, relative to the home; docs/launch.md#caches."""
CACHE_ENVIRONMENT = {"UV_LINK_MODE": "copy"}
"""A cache is a mount of its own, over which nothing can be linked; without this uv says so each time."""
_KEEP_SECONDS = 30 * 86400.0
_COPIED_PARTS = {".npm": "_cacache"}
"""What is copied of a cache, where that is not all of it: npm's has logs and programs beside the packages."""
_COPY_BYTES = 512 << 20
"""A larger cache begins empty: it would be copied again for each project."""


def cache_mounts(aileron_home: Path, home: Path, project: Path) -> tuple[Mount, ...]:
    """Return the mounts of the caches of *project*; `prepare_caches` makes them."""
    folder = _folder(aileron_home, project)
    return tuple(
        Mount(
            path=home / path,
            how="copy",
            why=f"{name}'s cache, for contained launches in this project",
            source=folder / path.replace("/", "_").lstrip("."),
        )
        for name, paths in CACHES.items()
        for path in paths
    )


def prepare_caches(
    aileron_home: Path, home: Path, project: Path, say: Callable[[str], None]
) -> None:
    """Make the caches of *project*, and remove those that no launch used for 30 days.

    Args:
        say: is told what is copied, or why something is not.
    """
    folder = _folder(aileron_home, project)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for mount in cache_mounts(aileron_home, home, project):
        assert mount.source is not None
        if not mount.source.exists():
            _begin(mount.source, home, PurePosixPath(mount.path.relative_to(home)), say)
    now = SystemClock().now()
    os.utime(folder, (now, now))
    for each in folder.parent.iterdir():
        if each.lstat().st_mtime < now - _KEEP_SECONDS:
            remove_tree(each)


def _begin(target: Path, home: Path, path: PurePosixPath, say: Callable[[str], None]) -> None:
    """Make *target* a copy of the cache *path* in *home*; empty if there is none, or it cannot be copied."""
    partial = target.with_name(f"{target.name}.partial-{secrets.token_hex(8)}")
    part = _COPIED_PARTS.get(str(path), ".")
    inside = partial / part
    inside.mkdir(mode=0o700, parents=True)
    try:
        with open_folder(home) as at, open_folder_beneath(at, path / part) as source:
            if (size := _bytes_of(source)) > _COPY_BYTES:
                say(
                    f"{escape(str(home / path))} contains more than {_COPY_BYTES >> 20} MiB. The cache for this project's "
                    "contained launches begins empty."
                )
            elif size:
                say(f"Copying {escape(str(home / path))}, once for this project.")
                _copy(source, inside)
    except FileNotFoundError:
        pass
    except (OSError, subprocess.CalledProcessError) as error:
        why = error.strerror if isinstance(error, OSError) else "cp failed"
        say(
            f"{escape(str(home / path))} was not copied ({why}). The cache for this project's contained launches "
            "begins empty."
        )
        remove_tree(partial)
        partial.mkdir(mode=0o700)
    try:
        partial.rename(target)
    except OSError:  # another launch was first
        remove_tree(partial)


def _bytes_of(folder: int) -> int:
    """Return the sizes of the files in *folder*, at least as far as the limit; a hard link counts once."""
    seen: set[int] = set()
    size = 0
    for _, _, names, at in os.fwalk(".", dir_fd=folder, follow_symlinks=False):
        for name in names:
            status = os.stat(name, dir_fd=at, follow_symlinks=False)
            if status.st_ino not in seen:
                seen.add(status.st_ino)
                size += status.st_size
        if size > _COPY_BYTES:
            break
    return size


def _copy(source: int, target: Path) -> None:
    program = shutil.which("cp", path=os.defpath) or "cp"
    command = [program, "-a", "--reflink=auto", f"/proc/self/fd/{source}/.", str(target)]
    subprocess.run(command, pass_fds=(source,), check=True, capture_output=True)


def _folder(aileron_home: Path, project: Path) -> Path:
    return aileron_home / "caches" / hashlib.sha256(os.fsencode(project)).hexdigest()[:32]
