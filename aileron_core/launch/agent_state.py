"""An agent's history between its contained launches: kept in Aileron's home, by agent and project.

It is mounted in the sandbox and nowhere else, so that nothing of it reaches the person's own home:
an agent can write invented turns into it, or files that a later session would restore. One
conversation leaves it where a person asks for that.

Two launches of one agent in one project share it, as two do outside a sandbox: each agent writes a
file of its own for each conversation, and only appends to what it shares. An agent with a database
gets one for each launch, a copy of what is kept. When that has ended, or its launcher was killed and the next one
starts, its database is copied without what the agent takes as settings, and that is kept. No process outside a
sandbox opens it.
"""

import contextlib
import errno
import fcntl
import io
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Any

from aileron_core.canonical import sha256_hex
from aileron_core.containment.mounts import Mount
from aileron_core.containment.programs import mount_roots, own_interpreter
from aileron_core.containment.safe_paths import (
    open_beneath,
    open_folder,
    open_folder_beneath,
    remove_tree,
)
from aileron_core.containment.sandboxed_command import run_sandboxed
from aileron_core.containment.support import find_bwrap
from aileron_core.errors import AileronError, NotFound
from aileron_core.launch import copy_conversations
from aileron_core.launch.agent_folders import find_named
from aileron_core.launch.plan import Agent, ConversationDatabase
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


_READABLE = 40
"""Characters of a project's name in the name of its folder, for a person who looks there."""
_HASHED = 16
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
WHY = "the agent's history in this project"


def _state_folder(agent: Agent, project: Path) -> PurePosixPath:
    """Return the folder that keeps the history of *agent* in *project*, relative to Aileron's home."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", project.name)[:_READABLE]
    digest = sha256_hex(os.fsencode(project))[:_HASHED]
    return PurePosixPath("agents", agent.name, f"{name}-{digest}")


def _entries(agent: Agent, project: Path) -> Iterator[tuple[PurePosixPath, bool]]:
    """Yield what is kept, relative to the person's home, and whether it is a file."""
    slug = re.sub(r"[^a-z0-9]+", "-", project.name.lower()).strip("-") or "project"
    for folder in agent.folders:
        yield from ((folder.path / name.format(slug=slug), False) for name in folder.state)
        yield from ((folder.path / name, True) for name in folder.state_files)


def state_mounts(
    aileron_home: Path, home: Path, agent: Agent, project: Path, launch: str
) -> tuple[Mount, ...]:
    """Return the mounts of that history; what they show is made by `make_state` and `kept_conversations`."""
    kept = aileron_home / _state_folder(agent, project)
    shared = [(path, kept / path) for path, _ in _entries(agent, project)]
    own = [
        ((each.path / each.database.path).parent, database_folder(kept, launch))
        for each in agent.folders
        if each.database is not None
    ]
    return tuple(
        Mount(path=home / path, how="writable", why=WHY, source=source)
        for path, source in (*shared, *own)
    )


def kept_conversations(
    aileron_home: Path,
    agent: Agent,
    project: Path,
    bwrap: str,
    say: Callable[[str], None] = lambda _: None,
) -> KeptConversations | None:
    """Return what is kept of the conversations in the agent's database, None if it has none."""
    for each in agent.folders:
        if each.database is not None:
            return KeptConversations(
                folder=aileron_home / _state_folder(agent, project),
                database=each.database,
                project=project,
                title=agent.title,
                bwrap=bwrap,
                say=say,
            )
    return None


def make_state(aileron_home: Path, agent: Agent, project: Path) -> None:
    """Make what `state_mounts` names, as far as it is not there: for the owner alone.

    Raises:
        AileronError: it cannot be made, or a link is on the way.
    """
    kept = _state_folder(agent, project)
    try:
        with open_folder(aileron_home) as root:
            with open_folder_beneath(root, kept, created=[]):
                pass
            for path, is_file in _entries(agent, project):
                with open_folder_beneath(root, (kept / path).parent, created=[]) as folder:
                    _make(folder, path.name, is_file=is_file)
    except OSError as error:
        raise AileronError(
            f"{agent.title}'s history in {aileron_home / kept} cannot be used ({error.strerror}). Fix "
            "that, or remove it, then launch again."
        ) from None


def _make(folder: int, name: str, *, is_file: bool) -> None:
    """Make *name* in *folder*, and open it for its owner: an agent may have closed it."""
    with contextlib.suppress(FileExistsError):  # from before, or of another launch just now
        if is_file:
            os.close(open_beneath(folder, name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        else:
            os.mkdir(name, 0o700, dir_fd=folder)
        return
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if not (stat.S_ISREG if is_file else stat.S_ISDIR)(status.st_mode):
        raise OSError(errno.ELOOP, f"{name} is something else")
    # No link can have come in its place: what an agent writes is below it, or in it.
    os.chmod(name, 0o600 if is_file else 0o700, dir_fd=folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedConversation:
    """One conversation that a person took out of Aileron's home."""

    path: Path
    modified_at: float
    """Epoch seconds."""
    count: int
    """How many conversations there were to choose from."""


def export_conversation(
    aileron_home: Path, agent: Agent, project: Path, wanted: str, folder: Path
) -> ExportedConversation:
    """Copy the newest conversation of *agent* in *project* into *folder*.

    Args:
        wanted: a part of its id, or of the name of its file; empty for any.
        folder: a new or empty folder.

    Raises:
        NotFound: there is no such conversation.
        AileronError: *folder* cannot be used.
    """
    kept = _state_folder(agent, project)
    named = f" named {wanted}" if wanted else ""
    missing = f"{agent.title} has no conversation{named} from a contained launch in {project}."
    if not aileron_home.is_dir():
        raise NotFound(missing)
    database = kept_conversations(aileron_home, agent, project, find_bwrap() or "bwrap")
    if database is not None:
        return _export_rows(database, wanted, folder, missing)
    found: list[tuple[float, PurePosixPath]] = []
    with open_folder(aileron_home) as root:
        for each in agent.folders:
            try:
                with open_folder_beneath(root, kept / each.path) as at:
                    for path in find_named(at, each.conversations, {}):
                        status = os.stat(path, dir_fd=at, follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode) and wanted in path.name:
                            found.append((status.st_mtime, kept / each.path / path))
            except FileNotFoundError:
                continue
            except OSError as error:  # an agent may have closed it
                raise AileronError(
                    f"{aileron_home / kept} cannot be read ({error.strerror}). Fix that, then try again."
                ) from None
        if not found:
            raise NotFound(missing)
        modified_at, path = max(found)
        name = path.name if _PLAIN_NAME.fullmatch(path.name) else "conversation.jsonl"
        try:
            source = os.fdopen(open_beneath(root, path, os.O_RDONLY | os.O_NONBLOCK), "rb")
        except OSError as error:
            raise AileronError(
                f"{aileron_home / path} cannot be read ({error.strerror}). Fix that, then try again."
            ) from None
        with source:
            _copy_out(source, folder, name)
    return ExportedConversation(path=folder / name, modified_at=modified_at, count=len(found))


def _export_rows(
    database: KeptConversations, wanted: str, folder: Path, missing: str
) -> ExportedConversation:
    try:
        found = database.newest(wanted) if database.folder.is_dir() else None
    except (OSError, UnreadableDatabase) as error:
        raise AileronError(
            f"{database.folder} cannot be read ({error}). Fix that, then try again."
        ) from None
    if found is None:
        raise NotFound(missing)
    name = f"{found.name}.json"
    text = json.dumps(found.exported, indent=2)
    _copy_out(io.BytesIO(text.encode()), folder, name)
    return ExportedConversation(
        path=folder / name, modified_at=found.modified_at, count=found.count
    )


def _copy_out(source: IO[bytes], folder: Path, name: str) -> None:
    """Write what is left of *source* to the new file *name* in *folder*, which is new or empty.

    Raises:
        AileronError: it is not, or cannot be written.
    """
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        if any(folder.iterdir()):
            raise FileExistsError(0, "it is not empty")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with (
            open_folder(folder) as target,
            os.fdopen(open_beneath(target, name, flags, 0o600), "wb") as file,
        ):
            shutil.copyfileobj(source, file)
    except OSError as error:
        raise AileronError(
            f"{folder} cannot be used ({error.strerror}). Name a new or empty folder."
        ) from None
