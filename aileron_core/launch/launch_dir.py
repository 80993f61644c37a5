"""The files of one launch: its private folder, the copy of the agent's own folder, which credentials come back.

Also the files that Aileron puts into the agent's folders, and takes out again.
"""

import contextlib
import errno
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from aileron_core.containment.safe_paths import (
    open_beneath,
    open_folder,
    open_folder_beneath,
    read_small_file,
    remove_tree,
)
from aileron_core.errors import AileronError, Forbidden
from aileron_core.launch.plan import AgentFolder, InjectedFile

_CREDENTIAL_BYTES = 1024 * 1024
_CHUNK = 1024 * 1024
_COPY_BYTES = 64 * 1024 * 1024
"""An agent's own folder may be this large in all; more is an accident (a cache, a history)."""


class LaunchDir:
    """A private folder (0700) of one launch, removed at the end whatever happened."""

    def __init__(self, parent: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        # The name tells whose it is, so that a later launch knows which ones nobody uses any more.
        self.path = parent / f"{os.getpid()}-{secrets.token_hex(8)}"

    def __enter__(self) -> "LaunchDir":
        """Create the folder, after removing those of launches that were killed."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        remove_stale([self.path.parent])
        self.path.mkdir(mode=0o700)
        return self

    def __exit__(self, *_: object) -> None:
        if not remove_tree(self.path):
            self._say(
                f"{self.path} could not be removed completely. It is no longer needed; remove it "
                "yourself."
            )

    def write(self, name: str, content: str | bytes, *, mode: int = 0o600) -> Path:
        """Write a new file at the relative path *name*; return its path."""
        path = self.path / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
        return path


def launch_dir_parents(aileron_home: Path, env: Mapping[str, str]) -> tuple[Path, ...]:
    """Return the folders in which launch folders may lie; a new launch uses the first."""
    runtime = Path(env.get("XDG_RUNTIME_DIR") or "/nonexistent")
    in_home = aileron_home / "run" / "launched"
    if runtime.is_dir() and runtime.stat().st_uid == os.getuid():
        return (runtime / "aileron", in_home)
    return (in_home,)


def remove_stale(parents: Iterable[Path]) -> None:
    """Remove the folders of launches whose process is gone (a killed one could not do it itself)."""
    for folder in [each for parent in parents if parent.is_dir() for each in parent.iterdir()]:
        try:
            os.kill(int(folder.name.partition("-")[0]), 0)
        except (OSError, ValueError) as error:
            if not isinstance(error, PermissionError):
                remove_tree(folder)


class InjectedFiles:
    """Context manager that puts Aileron's files into folders of the person's and removes them at the end."""

    def __init__(self, home: Path, injected: Iterable[InjectedFile]) -> None:
        self._home = home
        self._files = tuple(injected)
        self._made: list[PurePosixPath] = []

    def __enter__(self) -> "InjectedFiles":
        """Write the files; a folder of that name that Aileron did not make is left alone.

        Raises:
            Forbidden: something else is at that path, or a link is on the way.
        """
        with open_folder(self._home) as home:
            for injected in self._files:
                try:
                    self._add(home, injected)
                except OSError as error:
                    raise Forbidden(_not_through(self._home / injected.path, error)) from None
        return self

    def _add(self, home: int, injected: InjectedFile) -> None:
        path = injected.path
        with open_folder_beneath(home, path.parent, created=self._made) as folder:
            if path.parent not in self._made:
                if not {*os.listdir(folder)} <= {path.name}:  # noqa: PTH208 - a handle is not a path
                    raise Forbidden(
                        f"{self._home / path.parent} already exists and contains files that are not "
                        "Aileron's, so nothing was changed. Rename it, then launch again."
                    )
                self._made.append(path.parent)  # an earlier launch that was killed left it behind
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            handle = open_beneath(folder, path.name, flags, 0o600)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(injected.content)

    def __exit__(self, *_: object) -> None:
        """Remove the files, and the folders that were made for them if they are empty again."""
        with contextlib.suppress(OSError), open_folder(self._home) as home:
            for injected in self._files:
                with (
                    contextlib.suppress(OSError),
                    open_folder_beneath(home, injected.path.parent) as at,
                ):
                    os.unlink(injected.path.name, dir_fd=at)
            for path in reversed(self._made):
                # Something else lies in it now, or a link stands there: it is not ours any more.
                with contextlib.suppress(OSError), open_folder_beneath(home, path.parent) as above:
                    os.rmdir(path.name, dir_fd=above)


def _not_through(path: Path, error: OSError) -> str:
    """Return the error for *path*, which could not be reached without following a link or not be used."""
    if error.errno == errno.ELOOP:
        return (
            f"{path} is behind a link, and Aileron does not read or write through links. Replace the link "
            "with the folder itself, then launch again."
        )
    return f"{path} cannot be used ({error.strerror}). Fix that, then launch again."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Copied:
    home: Path
    own_home: Path
    path: PurePosixPath
    """Relative to both."""
    before: bytes


def copy_in(
    home: Path,
    own_home: Path,
    folders: Iterable[AgentFolder],
    say: Callable[[str], None] = lambda _: None,
) -> list[_Copied]:
    """Copy the agent's own settings into its sandboxed home; return its credentials as they were.

    The person may keep such a folder elsewhere, behind a link directly in the home, where no agent
    could have put it. Nothing is written back there.

    Raises:
        AileronError: they are too large to copy, unreadable, or behind another link.
    """
    credentials: list[_Copied] = []
    if not home.is_dir():
        return credentials
    with open_folder(home) as there, open_folder(own_home) as own:
        for folder in folders:
            try:
                by_link = _copy_folder(there, own, folder, home.resolve())
            except OSError as error:
                raise AileronError(_not_through(home / folder.path, error)) from None
            if by_link and folder.credentials:
                say(
                    f"{home / folder.path} is a link. The agent gets a copy of its target, and a login "
                    "that the agent renews is not copied back."
                )
            for name in folder.credentials:
                path = folder.path / name
                before = _small(there, path) or b""
                credentials.append(_Copied(home=home, own_home=own_home, path=path, before=before))
    return credentials


def _copy_folder(home: int, own: int, folder: AgentFolder, real_home: Path) -> bool:
    """Copy one file or folder if it exists; return whether it was reached through a link."""
    by_link = False
    try:
        source = open_beneath(home, folder.path, os.O_RDONLY | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        source = _open_by_link(home, folder.path, real_home, error)
        by_link = True
    budget = _CopyBudget(real_home / folder.path, _COPY_BYTES)
    try:
        with open_folder_beneath(own, folder.path.parent, created=[]) as above:
            if stat.S_ISDIR(os.fstat(source).st_mode):
                _copy_tree(source, above, folder.path.name, budget, folder.leave_out)
            elif stat.S_ISREG(os.fstat(source).st_mode):
                _copy_file(source, above, folder.path.name, budget)
    finally:
        os.close(source)
    return by_link


def _open_by_link(home: int, path: PurePosixPath, real_home: Path, refused: OSError) -> int:
    """Open *path* if its first part is a link in the home itself and no later part is one."""
    first, *rest = path.parts
    try:
        link_target = os.readlink(first, dir_fd=home)
    except OSError:  # it is another part that is the link
        raise refused from None
    target = Path(os.path.normpath(real_home.joinpath(link_target, *rest)))
    with open_folder(Path("/")) as root:
        return open_beneath(root, str(target.relative_to("/")), os.O_RDONLY | os.O_NONBLOCK)


@dataclass(slots=True)
class _CopyBudget:
    """How many bytes may still be copied."""

    shown: Path
    left: int

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise AileronError(
                f"{self.shown} contains more than {_COPY_BYTES >> 20} MiB that would be copied into "
                "the sandbox. Remove files that are not settings, or launch with --no-sandbox."
            )


def _copy_tree(
    source: int, above: int, name: str, budget: _CopyBudget, leave_out: tuple[str, ...] = ()
) -> None:
    """Copy the open folder *source* to *name* in *above*; links are copied as links."""
    os.mkdir(name, 0o700, dir_fd=above)
    with open_folder_beneath(above, PurePosixPath(name)) as target:
        for inner in sorted({*os.listdir(source)} - {*leave_out}):
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                _copy_entry(source, target, inner, budget)
        os.fchmod(target, stat.S_IMODE(os.fstat(source).st_mode) | stat.S_IRWXU)


def _copy_entry(source: int, target: int, name: str, budget: _CopyBudget) -> None:
    mode = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode):
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        return
    inner = open_beneath(source, name, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if stat.S_ISDIR(mode):
            _copy_tree(inner, target, name, budget)
        else:
            _copy_file(inner, target, name, budget)
    finally:
        os.close(inner)


def _copy_file(source: int, above: int, name: str, budget: _CopyBudget) -> None:
    status = os.fstat(source)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    target = open_beneath(above, name, flags, stat.S_IMODE(status.st_mode) | stat.S_IWUSR)
    with os.fdopen(target, "wb") as file:
        while data := os.read(source, _CHUNK):
            budget.take(len(data))
            file.write(data)
        file.flush()
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


def _small(root: int, path: PurePosixPath) -> bytes | None:
    """Return the bytes of a small regular file, without following a link or blocking on a FIFO."""
    try:
        descriptor = open_beneath(root, path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    return read_small_file(descriptor, _CREDENTIAL_BYTES)


def copy_back(copied: Iterable[_Copied], say: Callable[[str], None] = lambda _: None) -> list[Path]:
    """Write refreshed credentials back to the person's files; return the files that were written.

    Nothing else of a sandboxed session outlives it. A file is written only if it is a JSON object
    that kept its keys and value types, if the person's file has not changed meanwhile, and if there
    is not a link on either path.
    """
    written: list[Path] = []
    for each in copied:
        with open_folder(each.own_home) as own, open_folder(each.home) as home:
            after = _small(own, each.path)
            if after is None or after == each.before or not each.before:
                continue
            if _small(home, each.path) == each.before and _same_shape(each.before, after):
                try:
                    _replace(home, each.path, after)
                except OSError as error:
                    shown = each.home / each.path
                    say(
                        f"The agent's renewed login could not be written to {shown} ({error.strerror}). You "
                        "may have to sign in again."
                    )
                    continue
                written.append(each.home / each.path)
    return written


def _replace(home: int, path: PurePosixPath, content: bytes) -> None:
    with open_folder_beneath(home, path.parent) as folder:
        temporary = f".{path.name}.{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            with os.fdopen(open_beneath(folder, temporary, flags, 0o600), "wb") as file:
                file.write(content)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def _same_shape(before: bytes, after: bytes) -> bool:
    """Return whether both are JSON objects with the same keys and value types."""
    try:
        return _shape(json.loads(before)) == _shape(json.loads(after))
    except (ValueError, RecursionError):
        return False


def _shape(value: object) -> object:
    if isinstance(value, Mapping):
        return {key: _shape(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return type(value).__name__
