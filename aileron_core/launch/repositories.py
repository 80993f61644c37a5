"""The project's git repositories during a launch: prepared before it, imported from during and after it."""

import contextlib
import os
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from aileron_core.connectors.builtin.commit_recovery import outcomes, recover_commits
from aileron_core.containment.git.prepare import prepare_repositories
from aileron_core.containment.git.repository import find_repository, scan_project
from aileron_core.containment.git.repository_hider import RepositoryHider
from aileron_core.containment.git.sandboxed_git import GitFailed, find_git
from aileron_core.containment.git.session import SessionRepositories, recover_sessions
from aileron_core.containment.git.settings import HomeConfig, home_config
from aileron_core.containment.mounts import Mount
from aileron_core.containment.protected_paths import finish_sessions
from aileron_core.containment.support import find_bwrap
from aileron_core.launch.launch_dir import launch_dir_parents, remove_stale

_POLL_SECONDS = 0.25
"""Seconds between two looks at the agent's refs, or through the project."""
_BACKOFF = 10
"""After an import that failed, or a look through a large project, the pause is this many times as long as it took."""
_NOTICES = ".told.txt"


class Repositories:
    """The repositories of one contained launch; entered before the agent starts, exited after it ended."""

    def __init__(
        self,
        *,
        bwrap: str,
        aileron_home: Path,
        session: str,
        project: Path,
        env: Mapping[str, str],
        say: Callable[[str], None],
    ) -> None:
        self._say = say
        self._ended = threading.Event()
        self._importing, self._hiding = threading.Lock(), threading.Lock()
        self._threads: list[threading.Thread] = []
        self._hider: RepositoryHider | None = None
        self._prepare: Callable[[], SessionRepositories] = lambda: prepare_repositories(
            bwrap=bwrap,
            parent=aileron_home / "git",
            leftovers=aileron_home / "aside" / session,
            session=session,
            project=project,
            env=env,
        )
        self._session: SessionRepositories | None = None
        self._imported: list[tuple[str, int, int, int]] = []
        """The agent's ref files as they were at the last import."""

    def __enter__(self) -> "Repositories":
        """Make git directories for the session.

        Raises:
            Forbidden: the project has something that nothing can be mounted over.
        """
        self._session = self._prepare()
        for sentence in self._session.notices:
            self._say(sentence)
        return self

    @property
    def mounts(self) -> tuple[Mount, ...]:
        """The mounts that have to follow that of the project."""
        return self._session.mounts if self._session else ()

    def follow(self, bwrap: int, tools: Sequence[int] = ()) -> None:
        """Start what goes on until the end: new commits are imported, and new repositories hidden.

        Args:
            bwrap: the process that started the sandbox.
            tools: those that started other sandboxes of the session, in which git is used too.
        """
        assert self._session is not None
        self._hider = RepositoryHider(self._session.folder, self._session.record, bwrap, tools)
        self._imported = list(_ref_files(self._session))
        for target in (self._follow_refs, self._follow_project):  # an import may take minutes
            thread = threading.Thread(target=target, name="aileron-git", daemon=True)
            self._threads.append(thread)
            thread.start()

    @contextlib.contextmanager
    def paused(self) -> Generator[None, None, None]:
        """Import and hide what is new, then leave the person's repositories alone until this is left.

        For as long as nothing runs in the sandbox: nobody follows the agent meanwhile.
        """
        with self._importing, self._hiding:
            self._import_new()
            self._hide_new()
            yield

    def _follow_refs(self) -> None:
        """Import new commits whenever a ref changes."""
        pause = _POLL_SECONDS
        while not self._ended.wait(pause):
            began = time.monotonic()
            with self._importing:
                imported = self._import_new()
            pause = (
                _POLL_SECONDS
                if imported
                else max(_POLL_SECONDS, _BACKOFF * (time.monotonic() - began))
            )

    def _import_new(self) -> bool:
        """Import what the agent has committed since the last time; return False if that failed."""
        assert self._session is not None
        now = list(_ref_files(self._session))
        if now != self._imported:
            try:
                self._session.import_changes()
            except (GitFailed, OSError):  # reported at the end, if it still fails then
                return False
            self._imported = now
        return True

    def _follow_project(self) -> None:
        """Hide new repositories as soon as they are there."""
        pause = _POLL_SECONDS
        while not self._ended.wait(pause):
            began = time.monotonic()
            with self._hiding:
                scanned = self._hide_new()
            pause = max(_POLL_SECONDS, _BACKOFF * (scanned - began))

    def _hide_new(self) -> float:
        """Hide new repositories; return the moment at which the project was searched (monotonic seconds)."""
        assert self._session is not None
        assert self._hider is not None
        scan = scan_project(Path(self._session.record.project))
        scanned = time.monotonic()
        with contextlib.suppress(
            OSError
        ):  # a full disk, say: whatever is left is disabled at the end
            self._hider.hide(scan)
        return scanned

    def __exit__(self, *_: object) -> None:
        """Import everything, and show the person the notices."""
        self._ended.set()
        for thread in self._threads:
            thread.join()
        if self._hider is not None:
            self._hider.close()
        if self._session is not None:
            for sentence in self._session.end():
                self._say(sentence)


def git_home_config(
    bwrap: str, project: Path, writable: Iterable[Path], env: Mapping[str, str]
) -> HomeConfig:
    """Return the git settings for the private home of a launch in *project*; empty without git."""
    if find_git() is None:
        return HomeConfig()
    repository = find_repository(project)
    git_dir = None if repository is None else repository.git_dir
    return home_config(bwrap, env, git_dir, (project, *writable))


def _ref_files(session: SessionRepositories) -> Iterator[tuple[str, int, int, int]]:
    """Yield the stat data of the agent's ref files, which changes when a ref does."""
    for repository in session.repositories():
        waiting = [
            repository.session_git_dir / "HEAD",
            repository.session_git_dir / "packed-refs",
            repository.session_git_dir / "refs",
        ]
        while waiting:
            path = waiting.pop()
            try:
                status = path.lstat()
                yield str(path), status.st_mtime_ns, status.st_ino, status.st_size
                if path.is_dir() and not path.is_symlink():
                    waiting += sorted(path.iterdir())
            except OSError:  # gone meanwhile
                continue


def import_from_killed_launches(aileron_home: Path) -> list[str]:
    """Import what killed launches left behind; return notices for the person."""
    bwrap = find_bwrap()
    if bwrap is None or not (aileron_home / "git").is_dir():
        return []
    return recover_sessions(
        bwrap=bwrap, parent=aileron_home / "git", leftovers=aileron_home / "aside"
    )


def save_notices(aileron_home: Path, sentences: list[str]) -> None:
    """Store *sentences*, each once, for the next launch: a console that imports has no terminal to show them on."""
    if sentences:
        path = aileron_home / "git" / _NOTICES
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("a+", encoding="utf-8") as file:
            file.seek(0)
            known = {*file.read().splitlines()}
            new = [sentence for sentence in sentences if sentence not in known]
            file.write("".join(f"{sentence}\n" for sentence in new))


def take_notices(aileron_home: Path) -> list[str]:
    """Return and delete the notices that `save_notices` stored."""
    path = aileron_home / "git" / _NOTICES
    claimed = path.with_name(f"{_NOTICES}.taken")
    try:
        path.replace(claimed)
        return claimed.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    finally:
        claimed.unlink(missing_ok=True)


def clear_leftovers(aileron_home: Path) -> list[tuple[str, str]]:
    """Remove what killed launches left behind, and store the notices for the person.

    Returns:
        Session and sentence of each commit that was taken back or finished.
    """
    save_notices(
        aileron_home,
        [
            *recover_commits(aileron_home),  # before what they are made of is imported or removed
            *remove_stale(launch_dir_parents(aileron_home, os.environ)),
            *import_from_killed_launches(aileron_home),
            *finish_sessions(aileron_home),
        ],
    )
    return list(outcomes(aileron_home))
