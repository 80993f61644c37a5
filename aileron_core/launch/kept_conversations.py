"""Conversations in an agent's database, from one contained launch to the next of a project.

Each launch gets a database of its own, a copy of what is kept. When it has ended, or its launcher was
killed and the next one starts, its database is copied without what the agent takes as settings, and
that is kept. No process outside a sandbox opens it.
"""

import contextlib
import fcntl
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Generator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from aileron_core.containment.programs import mount_roots, own_interpreter
from aileron_core.containment.safe_paths import remove_tree
from aileron_core.containment.sandboxed_command import run_sandboxed
from aileron_core.errors import AileronError
from aileron_core.launch import copy_conversations
from aileron_core.launch.plan import ConversationDatabase
from aileron_core.text import escape

_KEPT, _LAUNCHES = "conversations.db", "launches"
_GIVEN, _LOCK, _SHOWN = "given.db", "lock", "database"
"""In the folder of a launch: what was kept when it began, that it runs, and what its sandbox shows."""
_SECONDS = 60.0
_MAX_BYTES = 512 * 1024 * 1024
_PROGRAM, _FOLDER = "/run/copy_conversations.py", "/run/database"
_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


class UnreadableDatabase(AileronError):
    """A database cannot be read; the message is the end of a sentence."""


def database_folder(kept: Path, launch: str) -> Path:
    """Return the folder that the sandbox of *launch* shows as the one of the agent's database."""
    return kept / _LAUNCHES / launch / _SHOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundConversation:
    """One conversation that was looked for."""

    name: str
    """Its id: a plain word."""
    exported: object
    """The JSON that the agent imports."""
    modified_at: float
    """Epoch seconds."""
    count: int
    """How many there were to choose from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptConversations:
    """The conversations of one agent in one project."""

    folder: Path
    """In Aileron's home. It is there, and no sandbox shows it."""
    database: ConversationDatabase
    project: Path
    title: str
    """The agent's."""
    bwrap: str
    say: Callable[[str], None] = lambda _: None

    @contextlib.contextmanager
    def lent_to(self, launch: str) -> Generator[None, None, None]:
        """Give *launch* a database while the context is entered, and keep its conversations at the end.

        Raises:
            AileronError: what is kept cannot be read.
        """
        folder = self.folder / _LAUNCHES / launch
        with contextlib.ExitStack() as held:
            try:
                with _lock(self.folder / _LOCK):
                    self._finish_killed()
                    (folder / _SHOWN).mkdir(mode=0o700, parents=True)
                    held.enter_context(_lock(folder / _LOCK))
                    if (kept := self.folder / _KEPT).exists():
                        os.link(kept, folder / _GIVEN)
                        path = folder / _SHOWN / self.database.path.name
                        shutil.copyfile(kept, path)
                        path.chmod(0o600)
            except OSError as error:
                raise AileronError(
                    f"{self.title}'s conversations in {self.folder} cannot be used ({error}). Fix that, or "
                    "remove it, then launch again."
                ) from None
            try:
                yield
            finally:
                with _lock(self.folder / _LOCK):
                    self._finish(folder)

    def newest(self, wanted: str) -> FoundConversation | None:
        """Return the newest conversation with *wanted* in its id, None if there is none.

        Raises:
            UnreadableDatabase, OSError: what is kept cannot be read.
        """
        with _lock(self.folder / _LOCK), tempfile.TemporaryFile() as output:
            self._finish_killed()
            if not (path := self.folder / _KEPT).exists():
                return None
            self._run("newest", path, output, wanted=wanted)
            try:
                if (found := json.load(output)) is None:
                    return None
                if not _ID.fullmatch(name := found["id"]):
                    raise ValueError(name)
                return FoundConversation(
                    name=name,
                    exported=self.database.export(found["rows"]),
                    modified_at=self.database.modified_at(found["modified"]),
                    count=int(found["count"]),
                )
            except (ValueError, TypeError, LookupError, RecursionError):
                raise UnreadableDatabase(f"it is not as {self.title} writes it") from None

    def _finish_killed(self) -> None:
        """Keep the conversations of launches whose launcher was killed."""
        launches = self.folder / _LAUNCHES
        for folder in sorted(launches.iterdir()) if launches.is_dir() else ():
            try:
                with _lock(folder / _LOCK, wait=False):
                    self._finish(folder)
            except BlockingIOError:
                continue  # it runs

    def _finish(self, folder: Path) -> None:
        """Keep the conversations of a launch that has ended, and remove its folder."""
        path, kept = folder / _SHOWN / self.database.path.name, self.folder / _KEPT
        new, given = kept.with_suffix(".new"), folder / _GIVEN
        try:
            if os.path.lexists(path):
                path.parent.chmod(0o700)  # the agent may have closed it
                is_new = kept.exists() and not (given.exists() and given.samefile(kept))
                new.unlink(missing_ok=True)
                new.touch(0o600)
                with new.open("r+b") as output:
                    both = self._run(
                        "keep", path, output,
                        kept=kept if is_new else None, given=given if is_new and given.exists() else None,
                    )  # fmt: skip
                new.rename(kept)
                for name in both.splitlines():
                    self.say(
                        f"Two launches of {self.title} went on with the conversation {escape(name)} at "
                        "once. What this one wrote is kept."
                    )
        except (UnreadableDatabase, OSError) as error:
            new.unlink(missing_ok=True)
            self.say(
                f"What {self.title} wrote in its last launch here is not kept for the next: "
                f"{escape(str(error)[:300])}. Its earlier conversations are kept."
            )
        remove_tree(folder)

    def _run(
        self, what: str, path: Path, output: IO[bytes], *, wanted: str = "", **others: Path | None
    ) -> str:
        """Have `copy_conversations` do *what* with *path*; return what it printed beside *output*.

        Raises:
            UnreadableDatabase: it is damaged, takes too long, or is none that this agent makes.
        """
        interpreter = own_interpreter()
        roots = mount_roots(interpreter, os.defpath, home=Path.home(), excluded=())
        mounts = [word for root in sorted(roots) for word in ("--ro-bind", str(root), str(root))]
        mounts += ["--ro-bind", str(copy_conversations.__file__), _PROGRAM]
        place = f"{_FOLDER}/{path.name}"
        if what == "keep":
            mounts += ["--bind", str(path.parent), _FOLDER]
        else:
            mounts += ["--ro-bind", str(path), place]
        request: dict[str, Any] = {
            "tables": self.database.tables, "first": next(iter(self.database.tables)),
            "versions": [*self.database.versions], "only": self.database.only,
            "modified": self.database.modified, "numbered": self.database.is_numbered,
            "project": str(self.project), "wanted": wanted,
        }  # fmt: skip
        for name, other in others.items():
            request[name] = f"/run/{name}.db" if other else ""
            mounts += ["--ro-bind", str(other), f"/run/{name}.db"] if other else []
        ended = run_sandboxed(
            self.bwrap,
            mounts,
            [str(interpreter), "-I", _PROGRAM, what, place],
            output,
            env={"LC_ALL": "C.UTF-8"},
            stdin=json.dumps(request).encode(),
            max_bytes=_MAX_BYTES,
            seconds=_SECONDS,
        )
        if ended.problem is not None:
            raise UnreadableDatabase(f"reading its database {ended.problem.rstrip('.')}")
        if ended.code != 0:
            last = ended.stderr.splitlines()[-1:] or [f"exit code {ended.code}"]
            raise UnreadableDatabase(f"its database cannot be read ({last[0][:200]})")
        output.seek(0)
        return ended.stderr


@contextlib.contextmanager
def _lock(path: Path, *, wait: bool = True) -> Generator[None, None, None]:
    """Hold the lock of the file *path*, which the system gives back if this process is killed.

    Raises:
        BlockingIOError: another has it, and this is not to *wait*.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)
