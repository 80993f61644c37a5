"""What a launch puts on the disk, and takes away again: its private folder, additions, copies."""

import contextlib
import json
import os
import secrets
import shutil
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from aileron_core.errors import AileronError, Forbidden
from aileron_core.launch.plan import Addition, AgentFolder

__all__ = ["Additions", "PrivateFolder", "copy_back", "copy_in", "private_parents", "sweep"]

_CREDENTIAL_BYTES = 1024 * 1024
_COPY_BYTES = 64 * 1024 * 1024
"""An agent's own folder may be this large in all; more is an accident (a cache, a history)."""


class PrivateFolder:
    """A folder of one launch alone, 0700, gone at the end whatever happened in it."""

    def __init__(self, parent: Path) -> None:
        # The name tells whose it is, so that a later launch knows which ones nobody uses any more.
        self.path = parent / f"{os.getpid()}-{secrets.token_hex(8)}"

    def __enter__(self) -> "PrivateFolder":
        """Make it; what an earlier launch that was killed left behind goes first."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        sweep([self.path.parent])
        self.path.mkdir(mode=0o700)
        return self

    def __exit__(self, *_: object) -> None:
        """Remove it."""
        shutil.rmtree(self.path, ignore_errors=True)

    def write(self, name: str, text: str, *, mode: int = 0o600) -> Path:
        """Write a file of ours into it."""
        path = self.path / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        return path


def private_parents(aileron_home: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return where private folders may lie, the one that a launch uses first."""
    runtime = Path(env.get("XDG_RUNTIME_DIR") or "/nonexistent")
    in_home = aileron_home / "run" / "launched"
    if runtime.is_dir() and runtime.stat().st_uid == os.getuid():
        return (runtime / "aileron", in_home)
    return (in_home,)


def sweep(parents: Iterable[Path]) -> None:
    """Remove folders of launches whose process is gone (killed: they could not do it themselves)."""
    for folder in [each for parent in parents if parent.is_dir() for each in parent.iterdir()]:
        try:
            os.kill(int(folder.name.partition("-")[0]), 0)
        except (OSError, ValueError) as error:
            if not isinstance(error, PermissionError):
                shutil.rmtree(folder, ignore_errors=True)


class Additions:
    """Files of ours in folders of the person's, there while the context is entered."""

    def __init__(self, home: Path, additions: Iterable[Addition]) -> None:
        self._home = home
        self._additions = tuple(additions)
        self._made: list[Path] = []

    def __enter__(self) -> "Additions":
        """Put them there; a folder of that name that is not ours is left alone, and refused.

        Raises:
            Forbidden: something else lies there.
        """
        for addition in self._additions:
            self._add(self._home / addition.path, addition.content)
        return self

    def _add(self, path: Path, content: str) -> None:
        folder = path.parent
        if folder.exists() and not _is_ours(folder, path.name):
            raise Forbidden(
                f"{folder} is there and holds more than Aileron's own file, so nothing was changed. "
                "Rename it, then launch again."
            )
        missing = [each for each in (folder, *folder.parents) if not each.exists()]
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._made += [*reversed(missing)]
        path.write_text(content, encoding="utf-8")
        if folder not in self._made:
            self._made.append(folder)

    def __exit__(self, *_: object) -> None:
        """Take them away, with the folders that were made for them and are empty again."""
        for addition in self._additions:
            (self._home / addition.path).unlink(missing_ok=True)
        for folder in reversed(self._made):
            with contextlib.suppress(OSError):  # something else lies in it now
                folder.rmdir()


def _is_ours(folder: Path, name: str) -> bool:
    """Tell whether *folder* is what an earlier launch that was killed left behind."""
    return folder.is_dir() and not folder.is_symlink() and set(os.listdir(folder)) <= {name}  # noqa: PTH208


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copied:
    source: Path
    copy: Path
    before: bytes


def copy_in(home: Path, own_home: Path, folders: Iterable[AgentFolder]) -> list[_Copied]:
    """Copy an agent's own files into the home it will see; return its credentials as they were.

    Raises:
        AileronError: they are too large to be copied.
    """
    credentials: list[_Copied] = []
    for folder in folders:
        source, copy = home / folder.path, own_home / folder.path
        if source.is_file():
            copy.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            shutil.copy2(source, copy)
        elif source.is_dir():
            _copy_tree(source, copy, folder.leave_out)
        for name in folder.credentials:
            before = _small(source / name)
            credentials.append(
                _Copied(source=source / name, copy=copy / name, before=before or b"")
            )
    return credentials


def _copy_tree(source: Path, copy: Path, leave_out: tuple[str, ...]) -> None:
    copied = 0

    def ignored(folder: str, names: list[str]) -> set[str]:
        top = Path(folder) == source
        unfit = {name for name in names if not _fit(Path(folder, name))}
        return unfit | ({*leave_out} & {*names} if top else set())

    def counted(here: str, there: str) -> str:
        nonlocal copied
        copied += Path(here).stat().st_size
        if copied > _COPY_BYTES:
            raise AileronError(
                f"{source} holds more than {_COPY_BYTES >> 20} MiB that the sandbox would get a "
                "copy of. Clear out what is not settings, or start with --no-sandbox."
            )
        return shutil.copy2(here, there)

    shutil.copytree(source, copy, symlinks=True, ignore=ignored, copy_function=counted)


def _fit(path: Path) -> bool:
    mode = path.lstat().st_mode
    return stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)


def _small(path: Path) -> bytes | None:
    """Return a small regular file's bytes, without following a link or waiting for a pipe."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _CREDENTIAL_BYTES:
            return None
        return file.read(_CREDENTIAL_BYTES)


def copy_back(copied: Iterable[_Copied]) -> list[Path]:
    """Carry refreshed credentials back to the person's files; return those that were written.

    Only pure credentials that still are what they were: a JSON object with the same keys at most
    refreshed values (THREATS H5: nothing else of a sandboxed session outlives it).
    """
    written: list[Path] = []
    for each in copied:
        after = _small(each.copy)
        if after is None or after == each.before or not each.before:
            continue
        if _small(each.source) != each.before or not _same_shape(each.before, after):
            continue
        temporary = each.source.with_name(f".{each.source.name}.aileron")
        temporary.unlink(missing_ok=True)
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(after)
        temporary.replace(each.source)
        written.append(each.source)
    return written


def _same_shape(before: bytes, after: bytes) -> bool:
    """Tell whether both are JSON objects whose values have the same types under the same names."""
    try:
        return _shape(json.loads(before)) == _shape(json.loads(after))
    except (ValueError, RecursionError):
        return False


def _shape(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _shape(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return type(value).__name__
