"""The git repositories of one session: prepared before it, imported from during and after it."""

import contextlib
import fcntl
import os
import stat
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aileron_core.containment.git.hidden_repositories import other_sessions, restore_hidden
from aileron_core.containment.git.import_changes import import_changes
from aileron_core.containment.git.new_repositories import disable_new_repositories
from aileron_core.containment.git.record import (
    SessionRecord,
    read_record,
    write_record,
)
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_report import (
    ALL_CHANGES,
    add_settings_notice,
    move_leftovers,
    repository_notices,
)
from aileron_core.containment.git.session_repository import SessionRepository
from aileron_core.containment.mounts import Mount
from aileron_core.containment.safe_paths import open_folder, remove_tree, restore_owner_rights
from aileron_core.errors import AileronError
from aileron_core.text import escape


@dataclass(slots=True, kw_only=True)
class SessionRepositories:
    """The repositories of one session; its folder stays locked while the session's launcher lives."""

    bwrap: str
    folder: Path
    leftovers: Path
    record: SessionRecord
    mounts: tuple[Mount, ...]
    """To follow the mount of the project."""
    notices: list[str] = field(default_factory=list[str])
    """What a person has to know before the agent starts."""
    lock_descriptor: int = -1

    def repositories(self) -> Iterator[SessionRepository]:
        """Yield each repository for which the session has its own git directory."""
        for record in self.record.repositories:
            yield SessionRepository(self.bwrap, self.folder, record)

    def import_changes(self) -> None:
        """Import what is new while the agent runs, from every repository even if some fail.

        Raises:
            GitFailed: names those that failed this time.
        """
        failures: dict[str, str] = {}
        for repository, others in self._inner_first():
            if any(Path(each).is_relative_to(repository.record.worktree) for each in failures):
                continue  # a commit of the one above may name one in there
            try:
                import_changes(repository, others, final=False)
            except (GitFailed, OSError, ValueError) as error:
                failures[repository.record.worktree] = str(error)
        write_record(self.folder, self.record)
        if failures:
            raise GitFailed("; ".join(f"{name}: {why}" for name, why in failures.items()))

    def _inner_first(self) -> Iterator[tuple[SessionRepository, dict[str, SessionRepository]]]:
        """Yield each repository, submodules before what they are in, with all of them by work tree."""
        found = {each.record.worktree: each for each in self.repositories()}
        for name in reversed(found):
            yield found[name], found

    def end(self) -> list[str]:
        """Import everything and disable new repositories in the project; return notices for the person."""
        notices: list[str] = []
        stays = False
        with contextlib.suppress(OSError), open_folder(Path(self.record.project)) as project_handle:
            restore_owner_rights(project_handle)  # the agent may have removed them
        for repository, others in self._inner_first():
            repository.record.refused.clear()  # all of it is tried again
            _restore_rights_below(repository.session_git_dir)
            try:
                import_changes(repository, others, final=True)
            except (GitFailed, OSError, ValueError) as error:
                repository.record.refused[ALL_CHANGES] = str(error)
            add_settings_notice(repository)
            kept_at: Path | None = None
            if repository.record.refused:
                try:
                    kept_at = move_leftovers(repository, self.leftovers)
                except OSError:  # it stays where it is, and the next launch tries again
                    kept_at, stays = repository.session_git_dir, True
            notices += repository_notices(repository.record, kept_at)
        project = Path(self.record.project)
        restored, complete = restore_hidden(self.record, self.folder, self.leftovers)
        notices, stays = notices + restored, stays or not complete
        if project.is_dir():
            others = [
                each.stand_in for _, other in other_sessions(self.folder) for each in other.hidden
            ]
            notices += disable_new_repositories(
                project, self.record.entries, self.record.shapes, self.record.heads, others
            )
        if not stays:
            remove_tree(self.folder)
        if self.record.has_empty_git_dir and not has_empty_git_dir(
            self.folder.parent, project, other_than=self.folder
        ):
            with contextlib.suppress(OSError):  # no longer empty, or gone with the project
                (project / ".git").rmdir()
        os.close(self.lock_descriptor)
        return notices


def has_empty_git_dir(parent: Path, project: Path, *, other_than: Path | None = None) -> bool:
    """Return whether an unfinished session, not *other_than*, put an empty `.git` into *project*."""
    for folder in parent.iterdir() if parent.is_dir() else ():
        with contextlib.suppress(AileronError, OSError):
            record = read_record(folder) if folder != other_than else None
            if record is not None and record.has_empty_git_dir and record.project == str(project):
                return True
    return False


def recover_sessions(*, bwrap: str, parent: Path, leftovers: Path) -> list[str]:
    """Import what is left of sessions whose launcher was killed; return notices for the person.

    Args:
        parent: the folder that holds the folders of all sessions.
        leftovers: where what cannot be imported is put, in a folder for each session.
    """
    notices: list[str] = []
    for folder in sorted(parent.iterdir()) if parent.is_dir() else []:
        if folder.name.startswith("."):
            continue
        with _lock_abandoned(folder) as handle:
            if handle is None:
                continue
            try:
                record = read_record(folder)
            except (AileronError, OSError) as error:
                notices.append(str(error))
                continue
            if record is None:
                remove_tree(folder)
                continue
            abandoned = SessionRepositories(
                bwrap=bwrap, folder=folder, leftovers=leftovers / folder.name, record=record,
                mounts=(), lock_descriptor=os.dup(handle),
            )  # fmt: skip
            where = escape(record.project)
            notices += [
                f"{where}, from a launch that was killed: {each}" for each in abandoned.end()
            ]
    return notices


@contextlib.contextmanager
def _lock_abandoned(folder: Path) -> Generator[int | None, None, None]:
    """Lock *folder* and yield it; None if its launcher, or another recovery, holds the lock."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield handle if folder.exists() else None
    except BlockingIOError:
        yield None
    finally:
        os.close(handle)


def _restore_rights_below(folder: Path) -> None:
    """Restore the owner's permissions that the agent removed; what is nested too deeply stays as it is."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        with contextlib.suppress(OSError):
            here.chmod(stat.S_IRWXU)
            with os.scandir(here) as entries:
                waiting += [Path(each) for each in entries if each.is_dir(follow_symlinks=False)]
