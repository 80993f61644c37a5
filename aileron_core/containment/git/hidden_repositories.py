"""Hiding, while an agent runs, the repositories that it makes: its own git finds them, nobody else's does.

In the place of each an empty stand-in is put that git passes by. In the sandbox the repository is
mounted on the stand-in first, so that the agent misses nothing; what it is on disk is kept in the
session's folder, below one that nobody can enter. At the end `restore_hidden` puts all of it back,
disabled. Whatever cannot be hidden is disabled at once.

Of a folder that is not called `.git` only `refs` or `commondir` is hidden, without which git takes it
for nothing: the rest may be the person's.
"""

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from aileron_core.containment.git.new_repositories import (
    SUFFIX,
    disable_entry,
    disable_head,
    disable_shape,
    entry_identity,
    entry_names,
    entry_notice,
    failure_notice,
    file_identity,
    free_name,
    is_known,
    open_project_folder,
    writable,
)
from aileron_core.containment.git.record import (
    HiddenFolder,
    HiddenRecord,
    SessionRecord,
    read_hidden,
    write_hidden,
)
from aileron_core.containment.git.repository import RepositoryScan, scan_project
from aileron_core.containment.git.session_repository import read_small_file
from aileron_core.containment.linux_syscalls import exchange_names
from aileron_core.containment.safe_paths import open_folder, restore_owner_rights
from aileron_core.containment.sandbox_mounts import (
    SandboxMount,
    mount_in_sandbox,
    sandbox_namespace,
)
from aileron_core.errors import AileronError
from aileron_core.text import escape

README = "README-aileron.txt"
_TEXT = """\
A repository was made here while an agent works in this project (session {session}).
Its git goes on working with it. Yours passes it by, since it would run the programs that the
repository names. When the session ends it is put here as .git.disarmed.
"""
_BATCH = 64
"""Hidden in one go."""
_MOST = 512
"""More in a session are disabled at once: an open descriptor is kept for each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """One that is about to be hidden."""

    hidden: HiddenFolder
    folder: int
    """The folder of the project that it lies in, open."""
    source: list[int]
    """Its device and inode."""
    kept: Path
    """Where its stand-in lies, and it will."""

    @property
    def name(self) -> str:
        return PurePosixPath(self.hidden.name).name


class RepositoryHider:
    """Hides what is new in the project of one session."""

    def __init__(self, folder: Path, session: SessionRecord, bwrap: int) -> None:
        """Begin with nothing hidden.

        Args:
            folder: the session's.
            bwrap: the process that started the sandbox.
        """
        self._folder, self._session, self._bwrap = folder, session, bwrap
        self._project = Path(session.project)
        self._record = HiddenRecord()
        self._open: dict[int, int] = {}
        """A descriptor of each hidden folder: no path leads there any more."""
        self._namespace = -1
        self._next = 0

    def close(self) -> None:
        """Let go of the sandbox, which has ended."""
        for handle in (*self._open.values(), self._namespace):
            with contextlib.suppress(OSError):
                os.close(handle)

    def hide(self, scan: RepositoryScan) -> None:
        """Hide what is new in *scan*, and clear away what the agent has emptied since."""
        self._forget_emptied(scan)
        for name in scan.unreadable:  # by the agent, perhaps: git finds there what no scan does
            with contextlib.suppress(OSError), open_project_folder(self._project, name) as handle:
                restore_owner_rights(handle)
        names: list[str] = []
        for name in scan.git_entries:
            if is_known(self._project, name, (self._session.entries.get(name),)):
                continue
            try:
                if self._holds_something(name):
                    names.append(name)
                elif _leads_to_repository(self._project, self._project / name):
                    self._disable(name, "what it leads to is not in the project")
            except OSError as error:
                self._disable(name, str(error.strerror))
        for name in scan.repository_shaped:
            if name not in self._session.shapes and self._is_armed(name):
                linked = os.path.lexists(self._project / name / "commondir")
                names.append(str(PurePosixPath(name, "commondir" if linked else "refs")))
        for at in range(0, len(names), _BATCH):
            self._hide(names[at : at + _BATCH])

    def _holds_something(self, name: str) -> bool:
        """Return whether *name* is a folder with anything in it that no stand-in has."""
        try:
            with open_project_folder(self._project, name) as folder:
                restore_owner_rights(folder)
                return not entry_names(folder) <= {README}
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _is_armed(self, name: str) -> bool:
        """Return whether git would take the folder *name* for a repository."""
        with contextlib.suppress(OSError), open_project_folder(self._project, name) as folder:
            return is_armed(_path_of(folder))
        return False

    def _hide(self, names: list[str]) -> None:
        with contextlib.ExitStack() as stack:
            candidates: list[_Candidate] = []
            for name in names:
                try:
                    candidates.append(self._candidate(name, stack))
                except OSError as error:
                    self._disable(name, str(error.strerror))
            self._record.hidden += [each.hidden for each in candidates]
            try:
                self._write()  # before anything in the project changes
            except OSError as error:
                for each in candidates:
                    self._give_up(each, str(error.strerror))
                return
            mounts: list[SandboxMount] = []
            shown: list[_Candidate] = []
            for each in candidates:
                try:
                    mounts.append(self._show(each))
                    shown.append(each)
                except OSError as error:
                    self._give_up(each, str(error.strerror))
            for each, why in zip(shown, self._mount(mounts), strict=True):
                try:
                    with writable(each.folder):
                        os.rename(
                            _shown_name(self._session, each.hidden),
                            each.kept,
                            src_dir_fd=each.folder,
                        )
                    if why is None:
                        self._exchange(each)
                except OSError as error:
                    why = str(error.strerror)
                if why is not None:
                    self._give_up(each, why)

    def _candidate(self, name: str, stack: contextlib.ExitStack) -> _Candidate:
        """Make a stand-in for *name* in the session's folder."""
        path = PurePosixPath(name)
        folder = stack.enter_context(open_project_folder(self._project, str(path.parent)))
        status = os.stat(path.name, dir_fd=folder, follow_symlinks=False)
        if len(self._record.hidden) >= _MOST:
            raise OSError(0, f"{_MOST} are hidden already")
        kept = self._folder / "hidden" / str(self._next) / "content"
        self._next += 1
        kept.parent.mkdir(mode=0o700, parents=True)
        if stat.S_ISDIR(status.st_mode):
            # Without the right to enter it `refs` is none to git, and can still be listed.
            kept.mkdir(mode=0o600 if path.name == "refs" else 0o700)
        elif path.name == "commondir" and stat.S_ISREG(status.st_mode):
            kept.touch(mode=0o600)  # empty, which ends every git
        else:
            raise OSError(0, "it is no folder")
        number = self._next - 1
        hidden = HiddenFolder(number=number, name=name, stand_in=file_identity(kept))
        source = [status.st_dev, status.st_ino]
        return _Candidate(hidden=hidden, folder=folder, source=source, kept=kept)

    def _show(self, candidate: _Candidate) -> SandboxMount:
        """Put the stand-in into the project for a moment, where the sandbox sees it."""
        shown = _shown_name(self._session, candidate.hidden)
        with writable(candidate.folder):
            os.rename(candidate.kept, shown, dst_dir_fd=candidate.folder)
        return SandboxMount(
            folder=str(self._project / PurePosixPath(candidate.hidden.name).parent),
            source=candidate.name,
            source_identity=candidate.source,
            target=shown,
            target_identity=candidate.hidden.stand_in,
        )

    def _mount(self, mounts: list[SandboxMount]) -> list[str | None]:
        try:
            if self._namespace < 0:
                self._namespace = sandbox_namespace(self._bwrap)
        except OSError as error:
            return [f"the sandbox cannot be joined ({error.strerror})"] * len(mounts)
        return mount_in_sandbox(self._namespace, mounts) if mounts else []

    def _exchange(self, candidate: _Candidate) -> None:
        """Exchange the stand-in with what is hidden, and close the way to where that is now."""
        kept, name = candidate.kept, candidate.name
        if name.lower() == ".git":
            text = _TEXT.format(session=self._session.session)
            (kept / README).write_text(text, encoding="utf-8")
        handle = -1
        with writable(candidate.folder):
            with (
                contextlib.suppress(NotADirectoryError),
                open_project_folder(_path_of(candidate.folder), name) as source,
            ):
                restore_owner_rights(source)  # a folder that moves has its own `..` written
                handle = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=source)
                self._open[candidate.hidden.number] = handle
            exchange_names(candidate.folder, name, str(kept))
            if file_identity(kept) != candidate.source and _is_empty(kept):
                # Another session was first: that is its stand-in.
                exchange_names(candidate.folder, name, str(kept))
                self._discard(candidate.hidden)
                return
        kept.parent.chmod(0)

    def _give_up(self, candidate: _Candidate, why: str) -> None:
        """Disable at once what could not be hidden, unless it is gone by now, or hidden by another session."""
        self._discard(candidate.hidden)
        name = candidate.hidden.name
        is_entry = candidate.name.lower() == ".git"
        above = str(PurePosixPath(name).parent)
        if self._holds_something(name) if is_entry else self._is_armed(above):
            self._disable(name, why)

    def _discard(self, hidden: HiddenFolder) -> None:
        """Remove a stand-in that came to no use; if it is in use after all, it stays until the end."""
        if hidden.number in self._open:
            os.close(self._open.pop(hidden.number))
        parent, shown = PurePosixPath(hidden.name).parent, _shown_name(self._session, hidden)
        with (
            contextlib.suppress(OSError),
            open_project_folder(self._project, str(parent)) as folder,
        ):
            _remove(folder, shown, hidden.stand_in)
        with contextlib.suppress(OSError), open_folder(_place(self._folder, hidden)) as folder:
            _remove(folder, "content", hidden.stand_in)
            _place(self._folder, hidden).rmdir()
            self._record.hidden.remove(hidden)
        self._update()

    def _disable(self, name: str, why: str) -> None:
        path = PurePosixPath(name)
        is_entry = path.name.lower() == ".git"
        disabled = name if is_entry else str(path.parent)
        try:
            sentences = (disable_entry if is_entry else disable_shape)(self._project, disabled)
        except FileNotFoundError:  # gone meanwhile
            return
        except OSError as error:
            sentences = [failure_notice(disabled, error)]
        for sentence in sentences:
            text = f"{sentence} This was done while the agent ran, whose git lost it ({why})."
            if text not in self._record.notices:
                self._record.notices.append(text)
        self._update()

    def _forget_emptied(self, scan: RepositoryScan) -> None:
        """Remove the stand-ins of what the agent has emptied: it cannot remove what is mounted there."""
        for hidden in [*self._record.hidden]:
            handle = self._open.get(hidden.number)
            if handle is None or os.listdir(handle):  # noqa: PTH208 - of the folder that is held
                continue
            where = PurePosixPath(_locate(self._project, scan, hidden))
            with (
                contextlib.suppress(OSError),
                open_project_folder(self._project, str(where.parent)) as folder,
            ):
                _remove(folder, where.name, hidden.stand_in)  # which ends the mount too
            place = _place(self._folder, hidden)
            place.chmod(0o700)
            try:
                (place / "content").rmdir()
                place.rmdir()
            except OSError:  # no longer empty
                place.chmod(0)
                continue
            os.close(self._open.pop(hidden.number))
            self._record.hidden.remove(hidden)
            self._update()

    def _write(self) -> None:
        write_hidden(self._folder, self._record)

    def _update(self) -> None:
        with contextlib.suppress(OSError):  # a full disk; what is on it only says too much then
            self._write()


def _path_of(handle: int) -> Path:
    """Return a path that leads to an open folder, however deep it lies."""
    return Path(f"/proc/self/fd/{handle}")


def _place(folder: Path, hidden: HiddenFolder) -> Path:
    return folder / "hidden" / str(hidden.number)


def _shown_name(session: SessionRecord, hidden: HiddenFolder) -> str:
    """Return the name that a stand-in has in the project while it is mounted on."""
    return f"{PurePosixPath(hidden.name).name}.{session.session}-{hidden.number}"


def _is_empty(path: Path) -> bool:
    """Return whether *path* holds nothing but what a stand-in does."""
    if path.is_dir() and not path.is_symlink():
        return {each.name for each in path.iterdir()} <= {README}
    return path.lstat().st_size == 0


def _remove(folder: int, name: str, stand_in: list[int]) -> None:
    """Remove *name* in an open folder if it is *stand_in*.

    Raises:
        OSError: it cannot be removed; somebody put something into it, for one.
    """
    try:
        status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return
    if [status.st_dev, status.st_ino] != stand_in:
        return
    with writable(folder):
        if not stat.S_ISDIR(status.st_mode):
            os.unlink(name, dir_fd=folder)
            return
        with contextlib.suppress(OSError):
            os.unlink(f"{name}/{README}", dir_fd=folder)
        os.rmdir(name, dir_fd=folder)


def is_armed(folder: Path) -> bool:
    """Return whether git would take *folder* for a repository now (its `is_git_directory`)."""
    if not os.path.lexists(folder / "HEAD"):
        return False
    common = folder
    if os.path.lexists(folder / "commondir"):
        data = read_small_file(folder / "commondir")
        if data is None:  # a link, say
            return True
        if not data:
            return False
        common = folder / os.fsdecode(data.split(b"\0")[0].rstrip(b"\r\n"))
    return os.access(common / "objects", os.X_OK) and os.access(common / "refs", os.X_OK)


def _leads_to_repository(project: Path, path: Path) -> bool:
    """Return whether a link or `.git` file leads to a repository outside the project: an agent may have written that.

    What it leads to inside is hidden itself, or was there before.
    """
    real = Path(os.path.realpath(path))
    if not real.is_dir():
        data = read_small_file(real) or b""
        if not data.startswith(b"gitdir: "):
            return False
        named = os.fsdecode(data[8:].split(b"\0")[0].rstrip(b"\r\n"))
        real = Path(os.path.realpath(path.parent / named))
    return not real.is_relative_to(os.path.realpath(project)) and is_armed(real)


def _locate(project: Path, scan: RepositoryScan, hidden: HiddenFolder) -> str:
    """Return where in the project a stand-in is now: the agent may have moved a folder above it."""
    shapes = (
        str(PurePosixPath(each, PurePosixPath(hidden.name).name)) for each in scan.repository_shaped
    )
    for name in (hidden.name, *scan.git_entries, *shapes):
        with contextlib.suppress(OSError):
            if entry_identity(project, name) == hidden.stand_in:
                return name
    return hidden.name


def stand_ins(parent: Path, *, other_than: Path) -> list[list[int]]:
    """Return the identities of all stand-ins of the sessions below *parent*."""
    found: list[list[int]] = []
    for folder in parent.iterdir():
        with contextlib.suppress(AileronError, OSError):
            if folder != other_than:
                found += [each.stand_in for each in read_hidden(folder).hidden]
    return found


def restore_hidden(session: SessionRecord, folder: Path, leftovers: Path) -> tuple[list[str], bool]:
    """Put all that a session has hidden back into its project, disabled.

    Args:
        folder: the session's.
        leftovers: where that is put whose folder is gone.

    Returns:
        Sentences for the person, and whether nothing stayed where it was.
    """
    try:
        record = read_hidden(folder)
    except AileronError as error:
        return [str(error)], False
    project = Path(session.project)
    scan = scan_project(project) if record.hidden else None
    notices, complete = [*record.notices], True
    for each in record.hidden:
        try:
            _place(folder, each).chmod(0o700)
            assert scan is not None
            notices += _restore(session, scan, each, _place(folder, each) / "content", leftovers)
        except FileNotFoundError:
            continue
        except OSError as error:  # the next launch tries again
            complete = False
            notices.append(
                f"{escape(each.name)} was hidden while the agent ran, and could not be put back "
                f"({error.strerror}). It is in {_place(folder, each)}."
            )
    return notices, complete


def _restore(
    session: SessionRecord, scan: RepositoryScan, hidden: HiddenFolder, kept: Path, leftovers: Path
) -> list[str]:
    project = Path(session.project)
    where = PurePosixPath(_locate(project, scan, hidden))
    try:
        with open_project_folder(project, str(where.parent)) as folder:
            if not os.path.lexists(kept) or file_identity(kept) == hidden.stand_in:  # killed before
                _remove(folder, _shown_name(session, hidden), hidden.stand_in)
                return []
            if where.name.lower() == ".git":
                return [_restore_entry(folder, where, hidden, kept)]
            sentences = disable_shape(project, str(where.parent))
            _remove(folder, where.name, hidden.stand_in)
            with writable(folder):
                os.rename(kept, free_name(folder, where.name), dst_dir_fd=folder)
            return sentences
    except (FileNotFoundError, NotADirectoryError):
        return [_move_to_leftovers(hidden, kept, leftovers)]


def _restore_entry(folder: int, where: PurePosixPath, hidden: HiddenFolder, kept: Path) -> str:
    with open_folder(kept) as inside:
        head = disable_head(inside)
    target = free_name(folder, f"{where.name}.{SUFFIX}")
    with writable(folder):
        os.rename(kept, target, dst_dir_fd=folder)
    with contextlib.suppress(OSError):  # no longer a stand-in: it is disabled as everything new
        _remove(folder, where.name, hidden.stand_in)
    return entry_notice(where, target, head)


def _move_to_leftovers(hidden: HiddenFolder, kept: Path, leftovers: Path) -> str:
    if kept.is_dir():
        with open_folder(kept) as inside:
            disable_head(inside)
    leftovers.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = kept.rename(leftovers / f"hidden-{hidden.number}")
    return (
        f"{escape(hidden.name)} was a new repository, and the folder that it was in is gone. "
        f"It is {target} now; look at its config, hooks and objects/info/alternates before you use it."
    )
