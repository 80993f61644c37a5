"""The home folder: its layout and modes, whose it is, and the lock that says which process owns it."""

import contextlib
import fcntl
import os
import stat
import time
from dataclasses import dataclass
from pathlib import Path

from aileron_core.errors import HomeError
from aileron_core.home.owner import OwnerNotVerified, lock_owner, socket_path

DEFAULT_HOME = Path("~/.aileron")
_LOCK_TRIES = 100

_OURS = {
    "config.toml",
    "policy.toml",
    "actions",
    "suites",
    "store",
    "vault.json",
    "vault.json.previous",
    "vault.json.damaged",
    "vault.lock",
    "vault-attempts.json",
    "history-keys.json",
    "secrets.json",
    "aileron.db",
    "aileron.db-wal",
    "aileron.db-shm",
    "audit.head",
    "daemon.json",
    "run",
    "log",
    "backups",
    "exports",
    "aside",
    "git",
    "caches",
    "agents",
}


@dataclass(frozen=True, slots=True)
class Home:
    """Paths under `$AILERON_HOME`."""

    path: Path

    @property
    def database(self) -> Path:
        """The SQLite file."""
        return self.path / "aileron.db"

    @property
    def actions(self) -> Path:
        """The folder of action files; it has no folders in it."""
        return self.path / "actions"

    @property
    def suites(self) -> Path:
        """Which action files came by one `action add` (`aileron_core.actions.suites`)."""
        return self.path / "suites"

    @property
    def audit_head(self) -> Path:
        """The newest record's number and hash, outside the database."""
        return self.path / "audit.head"

    @property
    def exports(self) -> Path:
        """Copies of the audit that a person asked for."""
        return self.path / "exports"

    @property
    def sockets(self) -> Path:
        return self.path / "run"

    @property
    def socket(self) -> Path:
        """The socket of the person's own command line."""
        return Path(socket_path(self.path))

    @property
    def log_file(self) -> Path:
        return self.path / "log"

    @property
    def backups(self) -> Path:
        """Copies of the database from before each migration."""
        return self.path / "backups"

    @property
    def daemon_file(self) -> Path:
        """The address file; it holds no secret."""
        return self.path / "daemon.json"

    @property
    def config(self) -> Path:
        return self.path / "config.toml"

    @property
    def policy(self) -> Path:
        """The person's rules for the built-in tools."""
        return self.path / "policy.toml"

    def prepare(self) -> None:
        """Create what is missing and close what is open to others.

        Raises:
            HomeError: the folder belongs to another program or user, or cannot be used.
        """
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self.database.exists():
                self._refuse_foreign()
            if self.path.stat().st_uid != os.getuid():
                raise HomeError(
                    f"{self.path} belongs to another user. Set AILERON_HOME to a folder of your own."
                )
            self.path.chmod(stat.S_IRWXU)
            for folder in (self.actions, self.sockets, self.log_file, self.path / "store"):
                folder.mkdir(mode=0o700, exist_ok=True)
                folder.chmod(stat.S_IRWXU)
        except OSError as error:
            raise HomeError(
                f"{self.path} cannot be used as Aileron's home: {error.strerror}. "
                "Set AILERON_HOME (or --home) to a folder that you can write to."
            ) from error

    def _refuse_foreign(self) -> None:
        names = {entry.name for entry in self.path.iterdir() if not entry.name.startswith(".")}
        if foreign := sorted(names - _OURS):
            raise HomeError(
                f"{self.path} contains files of another program ({', '.join(foreign[:3])}). "
                "Nothing was changed. Set AILERON_HOME (or --home) to an empty folder."
            )


class HomeLock:
    """The lock on the home's directory handle: one process owns a home.

    It is on the folder itself, not on a file in it that somebody could remove.
    """

    def __init__(self, home: Home) -> None:
        self._home = home
        self._handle: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            HomeError: another process holds it; the message names its pid where that is known.
        """
        handle = os.open(self._home.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        owner = ""
        for _ in range(_LOCK_TRIES):
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._handle = handle
                return
            if owner := self._owner():
                break
            time.sleep(0.01)  # whoever asks for the owner holds a shared lock for a moment
        os.close(handle)
        raise HomeError(
            f"A console is already running on {self._home.path} ({owner or 'another process'}). "
            "Use that one, or set AILERON_HOME to another folder."
        )

    def _owner(self) -> str:
        """Return who holds the exclusive lock; empty if nobody does."""
        try:
            pid = lock_owner(self._home.path)
        except OwnerNotVerified:
            return "another process"
        return f"process {pid}" if pid else ""

    def release(self) -> None:
        """Give the lock back; the second time nothing happens."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None
