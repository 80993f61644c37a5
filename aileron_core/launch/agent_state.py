"""An agent's history between its contained launches: kept in Aileron's home, by agent and project.

It is mounted in the sandbox and nowhere else, so that nothing of it reaches the person's own home:
an agent can write invented turns into it, or files that a later session would restore. One
conversation leaves it where a person asks for that.

Two launches of one agent in one project share it, as two do outside a sandbox: each agent writes a
file of its own for each conversation, and only appends to what it shares. An agent with a database
gets one for each launch.
"""

import contextlib
import errno
import io
import json
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO

from aileron_core.canonical import sha256_hex
from aileron_core.containment.mounts import Mount
from aileron_core.containment.safe_paths import open_beneath, open_folder, open_folder_beneath
from aileron_core.containment.support import find_bwrap
from aileron_core.errors import AileronError, NotFound
from aileron_core.launch.agent_folders import find_named
from aileron_core.launch.kept_conversations import (
    KeptConversations,
    UnreadableDatabase,
    database_folder,
)
from aileron_core.launch.plan import Agent

_SHOWN = 40
"""Characters of a project's name in the name of its folder, for a person who looks there."""
_HASHED = 16
_PLAIN_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}")
WHY = "the agent's history in this project"


def _state_folder(agent: Agent, project: Path) -> PurePosixPath:
    """Return the folder that keeps the history of *agent* in *project*, relative to Aileron's home."""
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", project.name)[:_SHOWN]
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
