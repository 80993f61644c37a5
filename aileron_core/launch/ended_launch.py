"""The conversations in the database of a launch that has ended: read in a sandbox, then checked row by row."""

import contextlib
import json
import os
import tempfile
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from aileron_core.containment.programs import mount_roots, own_interpreter
from aileron_core.containment.sandboxed_command import run_sandboxed
from aileron_core.errors import AileronError
from aileron_core.launch import read_conversations
from aileron_core.launch.conversation_tables import (
    Conversation,
    ConversationDatabase,
    Row,
    object_in,
)

_SECONDS = 60.0
_MAX_BYTES = 512 * 1024 * 1024
_MAX_CONVERSATION_BYTES = 64 * 1024 * 1024
_PROGRAM, _FOLDER = "/run/read_conversations.py", "/run/database"


class UnreadableDatabase(AileronError):
    """The database of a launch cannot be read; the message is the end of a sentence."""


@dataclass(slots=True, kw_only=True)
class EndedLaunch:
    """What a launch left in its database."""

    database: ConversationDatabase
    project: Path
    output: IO[bytes]
    """What Aileron's program printed, from the second line."""
    ids: set[str] = field(default_factory=set[str])
    """Of all conversations, once `conversations` is exhausted."""
    left_out: int = 0
    """How many conversations are not as the agent writes them, or too large."""

    def conversations(self) -> Iterator[tuple[str, Conversation]]:
        """Yield the ids and rows that may be kept, a conversation at a time.

        Raises:
            UnreadableDatabase: what was read is nothing that Aileron's program prints.
        """
        for line in self.output:
            try:
                found = object_in(json.loads(line))
                name, rows = found["id"], found["rows"]
            except (ValueError, TypeError, LookupError, RecursionError):
                raise UnreadableDatabase("reading it failed") from None
            if not isinstance(name, str):
                self.left_out += 1
                continue
            self.ids.add(name)
            try:
                if (conversation := self._checked(name, rows)) is not None:
                    yield name, conversation
            except (ValueError, TypeError, LookupError, RecursionError):
                self.left_out += 1

    def _checked(self, name: str, rows: object) -> Conversation | None:
        """Return the conversation in *rows*, None if it is of a kind that is not kept.

        Raises:
            ValueError, TypeError, LookupError: it is not what the agent writes.
        """
        found = object_in(rows)
        checked: dict[str, list[Row]] = {}
        for table in self.database.tables:
            kept = [table.checked(values, self.project) for values in found[table.name]]
            checked[table.name] = [row for row in kept if row is not None]
            if any(row[table.conversation] != name for row in checked[table.name]):
                raise ValueError(name)
        return Conversation(rows=checked) if checked[self.database.tables[0].name] else None


@contextlib.contextmanager
def read_ended(
    bwrap: str, folder: Path, database: ConversationDatabase, project: Path
) -> Generator[EndedLaunch, None, None]:
    """Read the agent's database in *folder*, which that agent could write.

    Raises:
        UnreadableDatabase: it is damaged, takes too long or has tables that Aileron does not know.
    """
    folder.chmod(0o700)  # the agent may have closed it
    interpreter = own_interpreter()
    roots = mount_roots(interpreter, os.defpath, home=Path.home(), excluded=())
    mounts = [word for root in sorted(roots) for word in ("--ro-bind", str(root), str(root))]
    mounts += ["--ro-bind", str(read_conversations.__file__), _PROGRAM]
    mounts += ["--bind", str(folder), _FOLDER]
    tables = {
        table.name: {
            "columns": list(table.columns),
            "conversation": table.conversation,
            "all": [*table.columns, *table.others],
        }
        for table in database.tables
    }
    wanted = json.dumps({"tables": tables, "max_bytes": _MAX_CONVERSATION_BYTES})
    with tempfile.TemporaryFile() as output:
        ended = run_sandboxed(
            bwrap,
            mounts,
            [str(interpreter), "-I", _PROGRAM, f"{_FOLDER}/{database.path.name}"],
            output,
            env={"LC_ALL": "C.UTF-8"},
            stdin=wanted.encode(),
            max_bytes=_MAX_BYTES,
            seconds=_SECONDS,
        )
        output.seek(0)
        if ended.problem is not None:
            raise UnreadableDatabase(f"reading its database {ended.problem.rstrip('.')}")
        if ended.code != 0:
            last = ended.stderr.splitlines()[-1:] or [f"exit code {ended.code}"]
            raise UnreadableDatabase(f"its database cannot be read ({last[0][:200]})")
        if _first(output) is not True:
            raise UnreadableDatabase(
                "its database has other tables than those of the versions that Aileron knows"
            )
        yield EndedLaunch(database=database, project=project, output=output)


def _first(output: IO[bytes]) -> Any:
    try:
        return object_in(json.loads(output.readline()))["known"]
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
