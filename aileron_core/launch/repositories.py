"""The project's repositories during a launch: stand-ins before it, followed while it runs, brought back after."""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from aileron_core.containment.git.sandboxed_git import GitFailed
from aileron_core.containment.git.session import GitFolders, begin, recover
from aileron_core.containment.support import find_bwrap

_LOOK = 0.25
"""Seconds between two looks at the agent's refs."""
_REST = 10
"""After a look that failed, so many times as long as it took is waited."""
_LATER = "told.txt"


class Repositories:
    """Those of one contained launch; entered before the agent starts, left after it ended."""

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
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._begin: Callable[[], GitFolders] = lambda: begin(
            bwrap=bwrap,
            parent=aileron_home / "git",
            aside=aileron_home / "aside" / session,
            session=session,
            project=project,
            env=env,
        )
        self._folders: GitFolders | None = None

    def __enter__(self) -> "Repositories":
        """Make the stand-ins.

        Raises:
            Forbidden: the project has what nothing can be mounted over.
        """
        self._folders = self._begin()
        for sentence in self._folders.told:
            self._say(sentence)
        return self

    @property
    def mounts(self) -> tuple[str, ...]:
        """Arguments of bubblewrap, for behind the project's own."""
        return self._folders.mounts if self._folders else ()

    def follow(self) -> None:
        """Bring back what is new whenever a ref moved, from a thread of its own, until the end."""
        self._thread = threading.Thread(target=self._follow, name="aileron-git", daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        assert self._folders is not None
        seen = list(_state(self._folders))
        rest = _LOOK
        while not self._over.wait(rest):
            now = list(_state(self._folders))
            rest = _LOOK
            if now == seen:
                continue
            began = time.monotonic()
            try:
                self._folders.bring_back()
                seen = now
            except (GitFailed, OSError, ValueError):  # told at the end, if it is so then
                rest = max(_LOOK, _REST * (time.monotonic() - began))

    def __exit__(self, *_: object) -> None:
        """Bring everything back, and tell what a person has to know."""
        self._over.set()
        if self._thread is not None:
            self._thread.join()
        if self._folders is not None:
            for sentence in self._folders.end():
                self._say(sentence)


def _state(folders: GitFolders) -> Iterator[tuple[str, int, int, int]]:
    """Yield what changes when a ref does."""
    for sides in folders.sides():
        waiting = [sides.own / "HEAD", sides.own / "packed-refs", sides.own / "refs"]
        while waiting:
            path = waiting.pop()
            try:
                status = path.lstat()
                yield str(path), status.st_mtime_ns, status.st_ino, status.st_size
                if path.is_dir() and not path.is_symlink():
                    waiting += sorted(path.iterdir())
            except OSError:  # gone meanwhile
                continue


def left_by_killed_launches(aileron_home: Path) -> list[str]:
    """Bring back what launches left that were killed; return what a person has to know."""
    bwrap = find_bwrap()
    if bwrap is None or not (aileron_home / "git").is_dir():
        return []
    return recover(bwrap=bwrap, parent=aileron_home / "git", aside=aileron_home / "aside")


def tell_later(aileron_home: Path, sentences: list[str]) -> None:
    """Keep *sentences*, each once, for the next launch: who brought something back has no terminal of a person's."""
    if sentences:
        path = aileron_home / "git" / f".{_LATER}"
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with path.open("a+", encoding="utf-8") as file:
            file.seek(0)
            known = {*file.read().splitlines()}
            new = [sentence for sentence in sentences if sentence not in known]
            file.write("".join(f"{sentence}\n" for sentence in new))


def told_before(aileron_home: Path) -> list[str]:
    """Return what `tell_later` kept, once."""
    path = aileron_home / "git" / f".{_LATER}"
    taken = path.with_name(f".{_LATER}.taken")
    try:
        path.replace(taken)
        return taken.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    finally:
        taken.unlink(missing_ok=True)
