"""The project's git repositories during a launch: prepared before it, imported from during and after it."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from aileron_core.containment.git.prepare import prepare_repositories
from aileron_core.containment.git.repository import scan_project
from aileron_core.containment.git.repository_hider import RepositoryHider
from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session import SessionRepositories, recover_sessions
from aileron_core.containment.support import find_bwrap

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
    def mounts(self) -> tuple[str, ...]:
        """Arguments for bubblewrap that have to follow the mount of the project."""
        return self._session.mounts if self._session else ()

    def follow(self, bwrap: int) -> None:
        """Start what goes on until the end: new commits are imported, and new repositories hidden.

        Args:
            bwrap: the process that started the sandbox.
        """
        assert self._session is not None
        self._hider = RepositoryHider(self._session.folder, self._session.record, bwrap)
        for target in (self._follow_refs, self._follow_project):  # an import may take minutes
            thread = threading.Thread(target=target, name="aileron-git", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _follow_refs(self) -> None:
        """Import new commits whenever a ref changes."""
        assert self._session is not None
        seen = list(_ref_files(self._session))
        pause = _POLL_SECONDS
        while not self._ended.wait(pause):
            now = list(_ref_files(self._session))
            pause = _POLL_SECONDS
            if now == seen:
                continue
            began = time.monotonic()
            try:
                self._session.import_changes()
                seen = now
            except (GitFailed, OSError):  # reported at the end, if it still fails then
                pause = max(_POLL_SECONDS, _BACKOFF * (time.monotonic() - began))

    def _follow_project(self) -> None:
        """Hide new repositories as soon as they are there."""
        assert self._session is not None
        assert self._hider is not None
        project = Path(self._session.record.project)
        pause = _POLL_SECONDS
        while not self._ended.wait(pause):
            began = time.monotonic()
            scan = scan_project(project)
            pause = max(_POLL_SECONDS, _BACKOFF * (time.monotonic() - began))
            with contextlib.suppress(
                OSError
            ):  # a full disk, say: whatever is left is disabled at the end
                self._hider.hide(scan)

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
