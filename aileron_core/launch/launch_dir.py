"""The files of one launch: its private folder, and what Aileron puts into the agent's folders and takes out again."""

import contextlib
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path, PurePosixPath

from aileron_core.containment.safe_paths import (
    open_beneath,
    open_folder,
    open_folder_beneath,
    remove_tree,
)
from aileron_core.errors import Forbidden
from aileron_core.launch.agent_folders import not_through
from aileron_core.launch.agent_logins import recover_logins
from aileron_core.launch.plan import InjectedFile


class LaunchDir:
    """A private folder (0700) of one launch, removed at the end whatever happened."""

    def __init__(self, parent: Path, say: Callable[[str], None] = lambda _: None) -> None:
        self._say = say
        # The name tells whose it is, so that a later launch knows which ones nobody uses any more.
        self.path = parent / f"{os.getpid()}-{secrets.token_hex(8)}"

    def __enter__(self) -> "LaunchDir":
        """Create the folder, after removing those of launches that were killed."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        for sentence in remove_stale([self.path.parent]):
            self._say(sentence)
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


def remove_stale(parents: Iterable[Path]) -> list[str]:
    """Remove the folders of launches whose process is gone (a killed one could not do it itself).

    A login that such a launch's agent had renewed is brought to the person's own file first.

    Returns:
        What failed of that, a sentence each.
    """
    failed: list[str] = []
    for folder in [each for parent in parents if parent.is_dir() for each in parent.iterdir()]:
        try:
            os.kill(int(folder.name.partition("-")[0]), 0)
        except (OSError, ValueError) as error:
            if not isinstance(error, PermissionError):
                failed += recover_logins(folder)
                remove_tree(folder)
    return failed


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
                    raise Forbidden(not_through(self._home / injected.path, error)) from None
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
