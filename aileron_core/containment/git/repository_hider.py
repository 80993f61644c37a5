"""Hiding, while an agent runs, the repositories that it makes: its own git finds them, nobody else's does.

In the place of each an empty stand-in is put that git passes by. In the sandbox the repository is
mounted on the stand-in first, so that the agent misses nothing; itself it goes to the session's
folder, into one that nobody can enter. At the end `restore_hidden` puts it back, disabled. What cannot
be hidden is disabled at once.

Of a repository that is not called `.git` only `refs` or `commondir` is hidden, without which git takes
it for none: the rest may be the person's.

An agent may change anything in the project at any moment. So everything is done from open folders,
without following links, and looked at again when it is where no agent reaches it.
"""

import contextlib
import functools
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath

from aileron_core.containment.git.hidden_repositories import (
    README,
    find_stand_in,
    kept_path,
    other_sessions,
    remove_stand_in,
    temporary_path,
)
from aileron_core.containment.git.new_repositories import (
    disable_entry,
    disable_shape,
    entry_names,
    failure_notice,
    file_identity,
    is_known,
    open_project_folder,
    writable,
)
from aileron_core.containment.git.record import (
    HiddenFolder,
    HiddenRecord,
    SessionRecord,
    write_hidden,
)
from aileron_core.containment.git.repository import RepositoryScan
from aileron_core.containment.git.session_repository import read_small_file
from aileron_core.containment.linux_syscalls import exchange_names
from aileron_core.containment.safe_paths import open_folder, restore_owner_rights
from aileron_core.containment.sandbox_mounts import (
    SandboxMount,
    mount_in_sandbox,
    sandbox_namespace,
)

_TEXT = """\
A repository was made here while an agent works in this project (session {session}).
Its git goes on working with it. Yours passes it by, since it would run the programs that the
repository names. When the session ends it is put here as .git.disarmed.
"""
_ANOTHER = "there was another one in its place"
_BATCH = 64
"""Hidden in one go."""
_MOST = 256
"""More in a session are disabled at once: two open descriptors are kept for each."""
_PATH = os.O_RDONLY | getattr(os, "O_PATH", 0) | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, slots=True, kw_only=True)
class _Candidate:
    """One that is about to be hidden."""

    hidden: HiddenFolder
    name: str
    folder: int
    """The folder of the project that *name* lies in, open."""
    identity: list[int]
    kept: Path
    """Where its stand-in lies, and later it."""


class RepositoryHider:
    """Hides what is new in the project of one session."""

    def __init__(
        self, folder: Path, session: SessionRecord, bwrap: int, tools: Sequence[int] = ()
    ) -> None:
        """Begin with nothing hidden.

        Args:
            folder: the session's.
            bwrap: the process that started the sandbox.
            tools: those that started other sandboxes of the session.
        """
        self._folder, self._session = folder, session
        self._project = Path(session.project)
        self._record = HiddenRecord(bwrap=bwrap, tools=[*tools])
        self._written: dict[str, object] = {}
        self._open: dict[int, int] = {}
        """A descriptor of each hidden folder: no path leads there any more."""
        self._stand_ins: dict[int, int] = {}
        """A descriptor of each stand-in, so that nothing else is given its inode's number."""
        self._namespace = -1
        self._made = 0

    def close(self) -> None:
        """Let go of the sandbox, which has ended."""
        for handle in (*self._open.values(), *self._stand_ins.values(), self._namespace):
            with contextlib.suppress(OSError):
                os.close(handle)

    def hide(self, scan: RepositoryScan) -> None:
        """Hide what is new in *scan*, and clear away what the agent has emptied since.

        Raises:
            OSError: the record cannot be written. What is new is disabled nevertheless.
        """
        for hidden in [*self._record.hidden]:
            handle = self._open.get(hidden.number)
            if handle is not None and not os.listdir(handle):  # noqa: PTH208 - of the open folder
                # The agent cannot remove what is mounted there; it meant to.
                self._discard(hidden, find_stand_in(self._project, scan, hidden))
        for name in scan.unreadable:  # git may find there what no scan does
            with contextlib.suppress(OSError), open_project_folder(self._project, name) as folder:
                restore_owner_rights(folder)
        names: list[str] = []
        for name in scan.git_entries:
            if is_known(self._project, name, (self._session.entries.get(name),)):
                continue
            if self._is_open(name):
                names.append(name)
            elif _leads_to_repository(self._project, name):
                self._disable(name, "it leads outside the project")
        for name in scan.repository_shaped:
            linked = os.path.lexists(self._project / name / "commondir")
            path = str(PurePosixPath(name, "commondir" if linked else "refs"))
            if name not in self._session.shapes and self._is_open(path):
                names.append(path)
        for at in range(0, len(names), _BATCH):
            self._hide(names[at : at + _BATCH])
        if asdict(self._record) != self._written:
            self._write()

    def _write(self) -> None:
        write_hidden(self._folder, self._record)
        self._written = asdict(self._record)

    def _is_open(self, name: str) -> bool:
        """Return whether a git that is started there would look into *name*, or could be led into it."""
        path = PurePosixPath(name)
        is_entry = path.name.lower() == ".git"
        try:
            with open_project_folder(
                self._project, name if is_entry else str(path.parent)
            ) as folder:
                if not is_entry:
                    return is_git_directory(_path_of(folder))
                restore_owner_rights(folder)
                return not _is_empty(folder)
        except (FileNotFoundError, NotADirectoryError):  # gone; a file, a link
            return False
        except OSError:
            return True

    def _hide(self, names: list[str]) -> None:
        with contextlib.ExitStack() as stack:
            candidates: list[_Candidate] = []
            for name in names:
                try:
                    candidates.append(self._candidate(name, stack))
                except OSError as error:
                    self._disable(name, str(error.strerror))
            self._record.hidden += [each.hidden for each in candidates]
            try:  # before anything in the project changes: whoever comes after a kill puts it right
                self._write()
            except OSError as error:
                for each in candidates:
                    self._give_up(each, str(error.strerror))
                raise
            shown = [each for each in candidates if self._attempt(each, self._show)]
            for each, why in zip(shown, self._mount(shown), strict=True):
                self._attempt(each, functools.partial(self._exchange, why=why))

    def _candidate(self, name: str, stack: contextlib.ExitStack) -> _Candidate:
        """Make a stand-in for *name* in the session's folder."""
        path = PurePosixPath(name)
        folder = stack.enter_context(open_project_folder(self._project, str(path.parent)))
        source = os.open(path.name, _PATH, dir_fd=folder)
        stack.callback(os.close, source)  # not before the end: its inode's number must stay its own
        status = os.fstat(source)
        is_folder = stat.S_ISDIR(status.st_mode)
        if len(self._record.hidden) >= _MOST:
            raise OSError(0, f"{_MOST} repositories are hidden already")
        if not is_folder and not (path.name == "commondir" and stat.S_ISREG(status.st_mode)):
            raise OSError(0, "it is not a folder")
        hidden = HiddenFolder(number=self._made, name=name, stand_in=[])
        self._made += 1
        kept = kept_path(self._folder, hidden)
        kept.parent.mkdir(mode=0o700, parents=True)
        if is_folder:
            # Without the right to enter it `refs` is none to git, and can still be listed.
            kept.mkdir(mode=0o600 if path.name == "refs" else 0o700)
        else:
            kept.touch(mode=0o600)  # an empty `commondir` ends every git
        hidden.stand_in = file_identity(kept)
        self._stand_ins[hidden.number] = os.open(kept, _PATH)
        return _Candidate(
            hidden=hidden,
            name=path.name,
            folder=folder,
            identity=[status.st_dev, status.st_ino],
            kept=kept,
        )

    def _attempt(self, candidate: _Candidate, step: Callable[[_Candidate], None]) -> bool:
        """Take one *step* of hiding *candidate*; where it fails, disable it at once, and return False."""
        try:
            step(candidate)
        except OSError as error:
            self._give_up(candidate, str(error.strerror))
            return False
        return True

    def _show(self, candidate: _Candidate) -> None:
        """Put the stand-in into the project for a moment, where the sandbox sees it."""
        name = temporary_path(self._session, candidate.hidden).name
        with writable(candidate.folder):
            os.rename(candidate.kept, name, dst_dir_fd=candidate.folder)

    def _mount(self, candidates: list[_Candidate]) -> list[str | None]:
        """Mount each on its stand-in in the sandbox; return for each why that failed."""
        mounts = [
            SandboxMount(
                folder=str(self._project / PurePosixPath(each.hidden.name).parent),
                source=each.name,
                source_identity=each.identity,
                target=temporary_path(self._session, each.hidden).name,
                target_identity=each.hidden.stand_in,
            )
            for each in candidates
        ]
        try:
            if self._namespace < 0:
                self._namespace = sandbox_namespace(self._record.bwrap)
        except OSError as error:
            return [f"the sandbox cannot be joined ({error.strerror})"] * len(mounts)
        if not mounts:
            return []
        for project, other in other_sessions(self._folder):  # its agent may be who made them
            if project.is_relative_to(self._project) or self._project.is_relative_to(project):
                _mount_in((other.bwrap, *other.tools), mounts)
        _mount_in(self._record.tools, mounts)
        return mount_in_sandbox(self._namespace, mounts)

    def _exchange(self, candidate: _Candidate, why: str | None) -> None:
        """Take the stand-in back and, unless there is a *why* not, exchange it with what is to be hidden."""
        kept, name, folder = candidate.kept, candidate.name, candidate.folder
        temporary = temporary_path(self._session, candidate.hidden).name
        with writable(folder), contextlib.ExitStack() as stack:
            os.rename(temporary, kept, src_dir_fd=folder)
            if file_identity(kept) != candidate.hidden.stand_in:
                os.rename(kept, temporary, dst_dir_fd=folder)
                raise OSError(0, _ANOTHER)
            if why is not None:
                raise OSError(0, why)
            if kept.is_dir():
                source = stack.enter_context(open_project_folder(_path_of(folder), name))
                restore_owner_rights(source)  # a folder that moves has its own `..` written
                flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
                self._open[candidate.hidden.number] = os.open(".", flags, dir_fd=source)
            if name.lower() == ".git":
                with (kept / README).open("x", encoding="utf-8") as file:
                    file.write(_TEXT.format(session=self._session.session))
            exchange_names(folder, name, str(kept))
            if file_identity(kept) != candidate.identity:
                exchange_names(folder, name, str(kept))
                raise OSError(0, _ANOTHER)
        kept.parent.chmod(0)

    def _give_up(self, candidate: _Candidate, why: str) -> None:
        """Disable at once what could not be hidden, unless it is gone by now, or hidden by another session."""
        self._discard(candidate.hidden, temporary_path(self._session, candidate.hidden))
        if self._is_open(candidate.hidden.name):
            self._disable(candidate.hidden.name, why)

    def _discard(self, hidden: HiddenFolder, stand_in: PurePosixPath) -> None:
        """Remove a stand-in from the project, and the place for what it hides if there is nothing in that."""
        with (
            contextlib.suppress(OSError),
            open_project_folder(self._project, str(stand_in.parent)) as folder,
        ):
            remove_stand_in(folder, stand_in.name, hidden)
        kept = kept_path(self._folder, hidden)
        kept.parent.chmod(0o700)
        try:
            with open_folder(kept.parent) as place:
                remove_stand_in(place, kept.name, hidden)
            if os.path.lexists(kept):
                kept.rmdir()
            kept.parent.rmdir()
        except OSError:  # it is in use after all, and put back at the end
            kept.parent.chmod(0)
            return
        self._record.hidden.remove(hidden)
        for handles in (self._open, self._stand_ins):
            if hidden.number in handles:
                os.close(handles.pop(hidden.number))

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
            text = f"{sentence} It was renamed while the agent ran, so the agent's git lost it ({why})."
            if len(self._record.notices) >= _MOST:
                text = (
                    "More repositories were renamed while the agent ran. Look for names that end in "
                    ".disarmed."
                )
            if text not in self._record.notices:
                self._record.notices.append(text)


def _mount_in(sandboxes: Iterable[int], mounts: Sequence[SandboxMount]) -> None:
    """Make *mounts* in the sandboxes that these processes started, as far as they are there."""
    for bwrap in sandboxes:
        with contextlib.suppress(OSError):
            namespace = sandbox_namespace(bwrap)
            mount_in_sandbox(namespace, mounts)
            os.close(namespace)


def _is_empty(folder: int) -> bool:
    """Return whether an open folder has nothing in it but the file of a stand-in."""
    if entry_names(folder) != {README}:
        return not entry_names(folder)
    status = os.stat(README, dir_fd=folder, follow_symlinks=False)
    return stat.S_ISREG(status.st_mode)


def _path_of(handle: int) -> Path:
    """Return a path that leads to an open folder, however deep it lies."""
    return Path(f"/proc/self/fd/{handle}")


def is_git_directory(folder: Path) -> bool:
    """Return whether git would take *folder* for a repository now, by what its function of this name looks at."""
    if not os.path.lexists(folder / "HEAD"):
        return False
    common = folder
    if os.path.lexists(folder / "commondir"):
        data = read_small_file(folder / "commondir")
        if not data:  # empty, which ends git; or a link, which may be anything
            return data is None
        common = folder / os.fsdecode(data.split(b"\0")[0].rstrip(b"\r\n"))
    return os.access(common / "objects", os.X_OK) and os.access(common / "refs", os.X_OK)


def _leads_to_repository(project: Path, name: str) -> bool:
    """Return whether a link or `.git` file leads to a repository outside the project: an agent may write to that.

    What it leads to in the project is hidden itself, or was there before.
    """
    path = project / name
    real = Path(os.path.realpath(path))
    if not real.is_dir():
        data = read_small_file(real) or b""
        if not data.startswith(b"gitdir: "):
            return False
        named = os.fsdecode(data[8:].split(b"\0")[0].rstrip(b"\r\n"))
        real = Path(os.path.realpath(path.parent / named))
    return not real.is_relative_to(os.path.realpath(project)) and is_git_directory(real)
