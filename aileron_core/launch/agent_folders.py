"""What a sandbox gets of the agent's own folders: settings as a copy, its own downloads read-only, and no more.

The agent's module names both (`AgentFolder`): what it does not name is not in the sandbox. No link
is followed but one directly in the home, where no agent could have put it.
"""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath

from aileron_core.containment.mounts import Mount
from aileron_core.containment.safe_paths import (
    open_beneath,
    open_folder,
    open_folder_beneath,
)
from aileron_core.errors import AileronError
from aileron_core.launch.plan import AgentFolder

_CHUNK = 1024 * 1024
_COPY_BYTES = 64 * 1024 * 1024
"""What is copied of one folder may be this large in all: it is copied at every launch."""
_CLONE = ".git"
"""Never shown: the address of a clone's remote may hold a login."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFiles:
    """What one sandbox gets of the agent's own folders, as found without changing anything."""

    home: Path
    """The person's."""
    folders: tuple[AgentFolder, ...]
    copied: tuple[PurePosixPath, ...]
    """Relative to the home."""
    mounts: tuple[Mount, ...]
    notices: tuple[str, ...]
    """What the agent does not get although its module names it, a sentence each, not yet escaped."""

    @classmethod
    def find(cls, home: Path, folders: Iterable[AgentFolder], title: str) -> "AgentFiles":
        """Look through the agent's *folders* in *home* and read what would be copied.

        Raises:
            AileronError: settings are too large to copy, unreadable, or behind a link.
        """
        folders = tuple(folders)
        copied: list[PurePosixPath] = []
        mounts: list[Mount] = []
        notices: list[str] = []

        def look(opened: _Opened) -> None:
            copied.extend(_copy_named(opened, None))
            mounts.extend(_mounts(opened, f"{title}'s own downloads"))
            notices.extend(_notices(opened))

        _for_each(home, folders, look)
        return cls(
            home=home,
            folders=folders,
            copied=tuple(copied),
            mounts=tuple(mounts),
            notices=tuple(notices),
        )

    def copy_to(self, own_home: Path) -> None:
        """Copy the settings into the agent's home in the sandbox.

        Raises:
            AileronError: as `find`.
        """
        with open_folder(own_home) as own:
            _for_each(self.home, self.folders, lambda opened: _copy_named(opened, own))


@dataclass(slots=True, kw_only=True)
class _Opened:
    """One of the agent's folders, open."""

    folder: AgentFolder
    source: int
    shown: Path
    by_link: bool
    left: int = _COPY_BYTES
    """How many bytes may still be copied of it."""
    links: dict[PurePosixPath, None] = field(default_factory=dict[PurePosixPath, None])
    """What the module names and is a link, in the order in which it was found."""

    def take(self, size: int) -> None:
        self.left -= size
        if self.left < 0:
            raise AileronError(
                f"The settings in {self.shown} are larger than {_COPY_BYTES >> 20} MiB, and every launch "
                "copies them into the sandbox. Remove what is not needed, or launch with --no-sandbox."
            )


def _for_each(
    home: Path, folders: Iterable[AgentFolder], work: Callable[[_Opened], object]
) -> None:
    """Call *work* with each of *folders* that exists in *home*.

    Raises:
        AileronError: one is behind a link, or something in it cannot be read.
    """
    if not home.is_dir():
        return
    real_home = home.resolve()
    with open_folder(home) as at:
        for folder in folders:
            shown = home / folder.path
            try:
                source, by_link = _open_source(at, folder.path, real_home)
            except (FileNotFoundError, NotADirectoryError):
                continue
            except OSError as error:
                raise AileronError(not_through(shown, error)) from None
            try:
                work(_Opened(folder=folder, source=source, shown=shown, by_link=by_link))
            except OSError as error:
                raise AileronError(not_through(shown, error)) from None
            finally:
                os.close(source)


def not_through(path: Path, error: OSError) -> str:
    """Return the error for *path*, which could not be reached without following a link or not be used."""
    if error.errno == errno.ELOOP:
        return (
            f"{path} is behind a link, and Aileron does not read or write through links. Replace the link "
            "with the folder itself, then launch again."
        )
    return f"{path} cannot be used ({error.strerror}). Fix that, then launch again."


def _open_source(home: int, path: PurePosixPath, real_home: Path) -> tuple[int, bool]:
    """Open one of the agent's folders or files; return also whether it was reached through a link."""
    try:
        return open_beneath(home, path, os.O_RDONLY | os.O_NONBLOCK), False
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        return _open_by_link(home, path, real_home, error), True


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


def _named(opened: _Opened, patterns: Iterable[str]) -> list[PurePosixPath]:
    """Return what *patterns* name in an open folder, each once."""
    return find_named(opened.source, patterns, opened.links)


def find_named(
    folder: int, patterns: Iterable[str], links: dict[PurePosixPath, None]
) -> list[PurePosixPath]:
    """Return what *patterns* (see `AgentFolder`) name below an open folder, each once, without following a link.

    Args:
        links: what they name and is a link is added to it.
    """
    found: dict[PurePosixPath, None] = {}
    for pattern in patterns:
        for path in _matching(folder, PurePosixPath(pattern).parts, (), links):
            found[path] = None
    return [*found]


def _matching(
    folder: int,
    pattern: tuple[str, ...],
    above: tuple[str, ...],
    links: dict[PurePosixPath, None],
) -> Iterator[PurePosixPath]:
    first, *rest = pattern
    for name in sorted(_names(folder)):
        if not fnmatchcase(name, first) or name.startswith(".") > first.startswith("."):
            continue
        path = PurePosixPath(*above, name)
        if stat.S_ISLNK(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
            links[path] = None
        if not rest:
            yield path
        elif path not in links:
            with (
                contextlib.suppress(NotADirectoryError),
                open_folder_beneath(folder, PurePosixPath(name)) as inner,
            ):
                yield from _matching(inner, tuple(rest), path.parts, links)


def _names(folder: int) -> list[str]:
    return os.listdir(folder)


def _notices(opened: _Opened) -> Iterator[str]:
    if opened.by_link and opened.folder.credentials:
        yield (
            f"{opened.shown} is a link. The agent gets a copy of its target, and a login that the agent "
            "renews is not copied back."
        )
    if opened.links:
        names = ", ".join(str(opened.shown / path) for path in opened.links)
        yield f"Aileron does not follow links, so the agent does not get what these lead to: {names}."


def _mounts(opened: _Opened, why: str) -> Iterator[Mount]:
    """Yield what of an open folder is mounted read-only: of a clone all but its git folder."""
    if not opened.folder.read_only:
        return
    real = Path(f"/proc/self/fd/{opened.source}").readlink()
    for path in _named(opened, opened.folder.read_only):
        if path in opened.links:
            continue
        handle = open_beneath(opened.source, path, os.O_RDONLY | os.O_NONBLOCK)
        try:
            mode = os.fstat(handle).st_mode
            names = sorted(_names(handle)) if stat.S_ISDIR(mode) else []
        finally:
            os.close(handle)
        if stat.S_ISDIR(mode) or stat.S_ISREG(mode):
            inside = [path / name for name in names if name != _CLONE]
            for each in inside if _CLONE in names else [path]:
                yield Mount(path=opened.shown / each, how="read-only", why=why, source=real / each)


def _copy_named(opened: _Opened, own: int | None) -> list[PurePosixPath]:
    """Copy what the module names of a folder to *own*, or with None only read how much it is; return what."""
    path = opened.folder.path
    if stat.S_ISREG(os.fstat(opened.source).st_mode):
        with _target(own, path.parent) as above:
            _copy_file(opened.source, above, path.name, opened)
        return [path]
    if not stat.S_ISDIR(os.fstat(opened.source).st_mode):
        return []
    with _target(own, path):
        pass  # an empty one is there too
    found = _named(opened, (*opened.folder.settings, *opened.folder.credentials))
    for each in found:
        with (
            contextlib.suppress(FileNotFoundError),  # removed meanwhile
            open_folder_beneath(opened.source, each.parent) as folder,
            _target(own, path / each.parent) as above,
        ):
            _copy_entry(folder, above, each.name, opened)
    return [path / each for each in found]


@contextlib.contextmanager
def _target(own: int | None, path: PurePosixPath) -> Generator[int | None, None, None]:
    """Make and open the folder *path* below *own*; nothing for None."""
    if own is None:
        yield None
        return
    with open_folder_beneath(own, path, created=[]) as folder:
        yield folder


def _copy_tree(source: int, above: int | None, name: str, opened: _Opened) -> None:
    """Copy the open folder *source* to *name* in *above*; links are copied as links."""
    if above is not None:
        os.mkdir(name, 0o700, dir_fd=above)
    with _target(above, PurePosixPath(name)) as target:
        for inner in sorted({*_names(source)} - {_CLONE}):
            with contextlib.suppress(FileNotFoundError):  # removed meanwhile
                _copy_entry(source, target, inner, opened)
        if target is not None:
            os.fchmod(target, stat.S_IMODE(os.fstat(source).st_mode) | stat.S_IRWXU)


def _copy_entry(source: int, target: int | None, name: str, opened: _Opened) -> None:
    mode = os.stat(name, dir_fd=source, follow_symlinks=False).st_mode
    if stat.S_ISLNK(mode) and target is not None:
        os.symlink(os.readlink(name, dir_fd=source), name, dir_fd=target)
    if not (stat.S_ISDIR(mode) or stat.S_ISREG(mode)):
        return
    inner = open_beneath(source, name, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if stat.S_ISDIR(mode):
            _copy_tree(inner, target, name, opened)
        else:
            _copy_file(inner, target, name, opened)
    finally:
        os.close(inner)


def _copy_file(source: int, above: int | None, name: str, opened: _Opened) -> None:
    status = os.fstat(source)
    if above is None:
        opened.take(status.st_size)
        return
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    target = open_beneath(above, name, flags, stat.S_IMODE(status.st_mode) | stat.S_IWUSR)
    with os.fdopen(target, "wb") as file:
        while data := os.read(source, _CHUNK):
            opened.take(len(data))
            file.write(data)
        file.flush()
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
