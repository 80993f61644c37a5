"""The git repositories of one session: prepared before it, imported from during and after it."""

import contextlib
import fcntl
import os
import secrets
import stat
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from aileron_core.containment.git.hidden_repositories import other_sessions, restore_hidden
from aileron_core.containment.git.import_changes import import_changes
from aileron_core.containment.git.new_repositories import disable_new_repositories
from aileron_core.containment.git.record import (
    RepositoryRecord,
    SessionRecord,
    read_record,
    write_record,
)
from aileron_core.containment.git.refs import IMPORTED
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session_repository import SessionRepository, read_small_file
from aileron_core.containment.mounts import Mount
from aileron_core.containment.safe_paths import open_folder, remove_tree, restore_owner_rights
from aileron_core.errors import AileronError
from aileron_core.text import escape

_NAMED = 8
ALL_CHANGES = ""
"""In place of a ref's name: everything that was not imported yet."""


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


def add_settings_notice(repository: SessionRepository) -> None:
    """Record which settings and hooks the agent made; they end with the session."""
    try:
        names = _settings(repository)
    except GitFailed as error:
        repository.record.add_notice(
            f"The agent's git settings cannot be read ({error}). None was copied to your "
            "repository."
        )
        names = []
    hooks = repository.session_git_dir / "hooks"
    if hooks.is_dir() and not hooks.is_symlink():
        try:
            names += [f"hooks/{name}" for name in os.listdir(hooks)]  # noqa: PTH208 - names alone
        except OSError:  # closed by the agent
            names.append("hooks")
    if names:
        repository.record.add_notice(
            "The agent's git settings and hooks were not copied to your repository: "
            f"{_listed(names)}."
        )


def _settings(repository: SessionRepository) -> list[str]:
    if read_small_file(repository.session_git_dir / "config") == read_small_file(
        repository.folder / "config"
    ):
        return []
    git = repository.agent_git()
    words = ("config", "--file", "/s/config", "--no-includes", "--list", "--name-only", "-z")
    listed = git.run(*words).decode("utf-8", "replace").split("\0")[:-1]
    own = {
        *repository.record.settings,
        "core.repositoryformatversion",
        "core.bare",
        "core.logallrefupdates",
    }
    return [name for name in dict.fromkeys(listed) if name not in own]


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(escape(name) for name in names[:_NAMED]) + more


def repository_notices(record: RepositoryRecord, leftovers: Path | None) -> list[str]:
    """Return the notices about one repository for the person.

    Args:
        leftovers: where the session's git directory was moved if something in it could not be imported.
    """
    notices: list[str] = []
    if record.updated_refs:
        names = ", ".join(escape(name) for name in sorted(record.updated_refs))
        if len(record.updated_refs) > _NAMED:
            where = " ".join(each.rstrip("/") for each in IMPORTED)
            names = (
                f"{len(record.updated_refs)} branches and tags, which `git for-each-ref {where}` "
                "lists among yours"
            )
        notices.append(f"The agent's commits are in your repository: {names}.")
    notices += record.notices
    for name, why in record.refused.items():
        what = "The agent's last changes in git" if name == ALL_CHANGES else escape(name)
        notices.append(
            f"{what} could not be copied to your repository ({why.rstrip('.')}). You find them in "
            f"{leftovers}."
        )
    where = "" if record.worktree == "." else f"In {escape(record.worktree)}: "
    return [f"{where}{sentence}" for sentence in notices]


def move_leftovers(repository: SessionRepository, folder: Path) -> Path:
    """Move the session's git directory to *folder*, with safe settings and without hooks; return its path.

    Raises:
        OSError: it cannot be moved.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    target = folder / f"git-{repository.record.number}"
    number = 1
    while target.exists():
        number += 1
        target = folder / f"git-{repository.record.number}-{number}"
    token = secrets.token_hex(4)  # so that nothing of the agent's has that name
    for name in ("config", "config.worktree", "commondir", "hooks"):
        _rename(repository.session_git_dir / name, token)
    (repository.session_git_dir / "config").write_bytes((repository.folder / "config").read_bytes())
    objects = repository.session_git_dir / "objects"
    if objects.is_dir() and not objects.is_symlink():
        objects.chmod(stat.S_IRWXU)
        _rename(objects / "info", token)
        (objects / "info").mkdir()
        text = "\n".join([*repository.record.objects, ""])
        (objects / "info" / "alternates").write_text(text, encoding="utf-8")
    return repository.session_git_dir.rename(target)


def _rename(path: Path, token: str) -> None:
    if os.path.lexists(path):
        path.rename(path.with_name(f"{path.name}.of-the-agent-{token}"))
