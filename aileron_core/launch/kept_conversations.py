"""Conversations in an agent's database, from one contained launch to the next of a project.

Each launch gets a database of its own, made from what is kept. When it has ended, or its launcher was
killed and the next one starts, the conversations in it are read in a sandbox, checked row by row, and
added to what is kept. Nothing else of that database is ever used again.
"""

import contextlib
import fcntl
import json
import os
import shutil
import sqlite3
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from aileron_core.containment.safe_paths import remove_tree
from aileron_core.errors import AileronError
from aileron_core.launch.conversation_tables import Conversation, ConversationDatabase
from aileron_core.launch.ended_launch import EndedLaunch, UnreadableDatabase, read_ended
from aileron_core.text import escape

_KEPT, _LAUNCHES = "conversations.db", "launches"
_GIVEN, _LOCK, _SHOWN = "given.json", "lock", "database"
"""In the folder of a launch: what it began with, that it runs, and what its sandbox shows."""


def database_folder(kept: Path, launch: str) -> Path:
    """Return the folder that the sandbox of *launch* shows as the one of the agent's database."""
    return kept / _LAUNCHES / launch / _SHOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundConversation:
    """One conversation that was looked for."""

    name: str
    """Its id: a plain word."""
    conversation: Conversation
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
                    self._lend(folder)
            except (OSError, sqlite3.Error) as error:
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
            sqlite3.Error, OSError: what is kept cannot be read.
        """
        with _lock(self.folder / _LOCK):
            self._finish_killed()
            if not (self.folder / _KEPT).exists():
                return None
            with self._opened() as kept:
                stamps = self._stamps(kept)
                found = [(stamp, name) for name, stamp in stamps.items() if wanted in name]
                if not found:
                    return None
                stamp, name = max(found, key=lambda each: self.database.modified_at(each[0]))
                conversation = self._conversation(kept, name)
        return FoundConversation(
            name=name,
            conversation=conversation,
            modified_at=self.database.modified_at(stamp),
            count=len(found),
        )

    def _finish_killed(self) -> None:
        """Keep the conversations of launches whose launcher was killed."""
        launches = self.folder / _LAUNCHES
        for folder in sorted(launches.iterdir()) if launches.is_dir() else ():
            try:
                with _lock(folder / _LOCK, wait=False):
                    self._finish(folder)
            except BlockingIOError:
                continue  # it runs

    def _lend(self, folder: Path) -> None:
        given: Mapping[str, object] = {}
        if (self.folder / _KEPT).exists():
            with self._opened() as kept:  # which also completes what a killed launcher began
                given = self._stamps(kept)
            path = folder / _SHOWN / self.database.path.name
            shutil.copyfile(self.folder / _KEPT, path)
            path.chmod(0o600)
        (folder / _GIVEN).write_text(json.dumps(given), encoding="utf-8")

    def _finish(self, folder: Path) -> None:
        """Keep the conversations of a launch that has ended, and remove its folder."""
        path = folder / _SHOWN / self.database.path.name
        try:
            if os.path.lexists(path):
                given = json.loads((folder / _GIVEN).read_text(encoding="utf-8"))
                with (
                    read_ended(self.bwrap, path.parent, self.database, self.project) as ended,
                    self._opened() as kept,
                ):
                    for sentence in self._keep(kept, ended, given):
                        self.say(sentence)
        except (UnreadableDatabase, OSError, ValueError, sqlite3.Error) as error:
            self.say(
                f"What {self.title} wrote in its last launch here is not kept for the next: "
                f"{escape(str(error)[:300])}. Its earlier conversations are kept."
            )
        remove_tree(folder)

    def _keep(
        self, kept: sqlite3.Connection, ended: EndedLaunch, given: Mapping[str, object]
    ) -> list[str]:
        """Bring what is kept up to date; return what a person has to know, a sentence each.

        Args:
            given: when each conversation had changed last as this launch began.
        """
        first, said, lost = self.database.tables[0].name, list[str](), 0
        kept.execute("BEGIN IMMEDIATE")
        now = self._stamps(kept)
        for name, conversation in ended.conversations():
            if conversation.rows[first][0][self.database.modified] == given.get(name):
                continue
            if now.get(name) != given.get(name):  # another launch continued it, or took its id
                if self.database.another_id is not None:
                    used = {*now, *given, *self._stamps(kept)}
                    other = self.database.another_id(name, used)
                    conversation = conversation.under(other, self.database.tables)
                else:
                    said.append(
                        f"Two launches of {self.title} went on with the conversation {escape(name)} at once. What "
                        "this one wrote is kept."
                    )
            if not self._put(kept, conversation):
                lost += 1
        for name in {*given} - ended.ids:
            if now.get(name) == given[name]:
                self._remove(kept, name)
        kept.execute("COMMIT")
        if lost := lost + ended.left_out:
            one = "1 conversation" if lost == 1 else f"{lost} conversations"
            said.append(
                f"{one} of {self.title} could not be kept: not as {self.title} writes them, or larger than "
                "64 MiB."
            )
        return said

    def _put(self, kept: sqlite3.Connection, conversation: Conversation) -> bool:
        """Replace or add *conversation*; return whether its rows fit into the agent's tables."""
        first = self.database.tables[0]
        row = conversation.rows[first.name][0]
        kept.execute("SAVEPOINT one")
        try:
            self._remove(kept, str(row[first.conversation]))
            if self.database.before:
                kept.execute(self.database.before, row)
            for table in self.database.tables:
                names = ", ".join(f'"{each}"' for each in table.columns)
                values = ", ".join(f":{each}" for each in table.columns)
                kept.executemany(
                    f'INSERT INTO "{table.name}" ({names}) VALUES ({values})',  # noqa: S608 - names of ours
                    conversation.rows[table.name],
                )
        except (sqlite3.DataError, sqlite3.IntegrityError, OverflowError, ValueError):
            kept.execute("ROLLBACK TO one")
            return False
        finally:
            kept.execute("RELEASE one")
        return True

    def _remove(self, kept: sqlite3.Connection, name: str) -> None:
        for table in reversed(self.database.tables):
            query = f'DELETE FROM "{table.name}" WHERE "{table.conversation}" = ?'  # noqa: S608 - names of ours
            kept.execute(query, (name,))

    def _stamps(self, kept: sqlite3.Connection) -> dict[str, str | int | float | None]:
        """Return when each conversation was modified, by id."""
        first = self.database.tables[0]
        query = f'SELECT "{first.conversation}", "{self.database.modified}" FROM "{first.name}"'  # noqa: S608 - names of ours
        return dict(kept.execute(query))

    def _conversation(self, kept: sqlite3.Connection, name: str) -> Conversation:
        rows = {
            table.name: [
                dict(zip(table.columns, values, strict=True))
                for values in kept.execute(
                    f'SELECT {", ".join(table.columns)} FROM "{table.name}" '  # noqa: S608 - names of ours
                    f'WHERE "{table.conversation}" = ?',
                    (name,),
                )
            ]
            for table in self.database.tables
        }
        return Conversation(rows=rows)

    @contextlib.contextmanager
    def _opened(self) -> Generator[sqlite3.Connection, None, None]:
        """Open what is kept; it is made if it is not there."""
        path = self.folder / _KEPT
        if not path.exists():
            new = path.with_name(f"{path.name}.new")
            new.unlink(missing_ok=True)
            new.touch(0o600)
            text = files("aileron_core.launch.agents").joinpath(self.database.schema)
            with contextlib.closing(sqlite3.connect(new)) as made:
                made.executescript(text.read_text("utf-8"))
            new.rename(path)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as kept:
            kept.execute("PRAGMA foreign_keys=ON")
            yield kept


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
