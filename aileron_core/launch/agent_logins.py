"""Logins that an agent renews in its sandbox: brought to the person's own file, also if the launcher is killed.

Only what the agent's module lists as credentials, only as a JSON object that kept its keys and value
types, and never through a link. What a login was is recorded beside the agent's home, where no
agent can write, as a digest and a form: no secret.

A login that changes outside meanwhile is brought in alike, or the second of two agents would be left
with one that the service no longer accepts. If it changed on both sides, both stay as they are.
"""

import contextlib
import json
import os
import re
import secrets
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, cast

from aileron_core.canonical import sha256_hex
from aileron_core.containment.safe_paths import (
    open_beneath,
    open_folder,
    open_folder_beneath,
    read_small_file,
)
from aileron_core.launch.plan import AgentFolder

PRIVATE_HOME = "home"
"""The agent's home in the folder of its launch; the record is beside it, outside the sandbox."""
_RECORD = "logins.json"
_BYTES = 1024 * 1024
_POLL_SECONDS = 1.0
_REFERENCE = re.compile(r"^!|`|\$[({A-Za-z_]|\{(env|file):")
"""A text that some agent takes for a command to run, or for a variable or file to read: of another form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Login:
    """One credential, as both sides last had it."""

    path: PurePosixPath
    """Relative to both homes."""
    digest: str
    form: Any
    """Its keys and value types, as JSON."""


class RenewedLogins:
    """Keeps the logins of one contained launch the same on both sides, from its start to its end."""

    def __init__(
        self,
        folder: Path,
        home: Path,
        folders: Iterable[AgentFolder],
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Record the logins that were copied into the sandbox.

        Args:
            folder: of this launch, with the agent's home `PRIVATE_HOME` in it.
            home: the person's.
        """
        self._folder = folder
        self._home = home
        self._say = say
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="aileron-logins", daemon=True)
        self._failed: set[PurePosixPath] = set()
        names = (each.path / name for each in folders for name in each.credentials)
        with open_folder(folder / PRIVATE_HOME) as own:
            found = [_login(path, _small(own, path)) for path in names]
        self._logins = [each for each in found if each is not None]
        self._record()

    def __enter__(self) -> "RenewedLogins":
        return self

    def follow(self) -> None:
        """Start bringing over what is renewed, on a thread of its own."""
        if self._logins:
            self._thread.start()

    def __exit__(self, *_: object) -> None:
        """Bring over what was renewed last, and name what could not be."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with contextlib.suppress(OSError):
            self.exchange()
            for path in self._changed_form():
                self._say(
                    f"The agent's login in ~/{path} has another form now, so it was not copied back. If it "
                    "asks you to sign in again, do so outside the sandbox."
                )

    def _follow(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            with contextlib.suppress(OSError):  # a full disk, say: the end tries again
                self.exchange()

    def exchange(self) -> None:
        """Bring what one side changed to the other.

        Raises:
            OSError: the record cannot be written.
        """
        before = self._logins
        with open_folder(self._folder / PRIVATE_HOME) as own, open_folder(self._home) as home:
            self._logins = [self._exchanged(each, own, home) for each in before]
        if self._logins != before:
            self._record()

    def _exchanged(self, login: _Login, own: int, home: int) -> _Login:
        try:
            taken = _bring_over(login, own, home)
        except OSError as error:
            if login.path not in self._failed:
                self._failed.add(login.path)
                self._say(_failed(self._home / login.path, error))
            return login
        if taken is login:
            with contextlib.suppress(OSError):  # an agent that closes its folder goes without
                return _bring_over(login, home, own)
        return taken

    def _changed_form(self) -> list[PurePosixPath]:
        with open_folder(self._folder / PRIVATE_HOME) as own:
            now = [(each, _small(own, each.path)) for each in self._logins]
        return [each.path for each, text in now if text is not None and _form(text) != each.form]

    def _record(self) -> None:
        """Write what a sweep needs if this process is killed."""
        rows = [
            {"path": str(each.path), "digest": each.digest, "form": each.form}
            for each in self._logins
        ]
        with open_folder(self._folder) as folder:
            text = json.dumps({"home": str(self._home), "logins": rows})
            _replace(folder, PurePosixPath(_RECORD), text.encode())


def recover_logins(folder: Path) -> list[str]:
    """Bring out what an agent renewed before its launcher was killed; return what failed, a sentence each.

    Args:
        folder: of that launch; one without a record is none of a contained launch.
    """
    failed: list[str] = []
    try:
        record: Any = json.loads((folder / _RECORD).read_bytes())
        home = Path(record["home"])
        with open_folder(folder / PRIVATE_HOME) as own, open_folder(home) as at:
            for row in record["logins"]:
                login = _Login(
                    path=PurePosixPath(row["path"]), digest=row["digest"], form=row["form"]
                )
                try:
                    _bring_over(login, own, at)
                except OSError as error:
                    failed.append(_failed(home / login.path, error))
    except (OSError, ValueError, LookupError, TypeError):
        return failed  # no record, or not ours
    return failed


def _failed(path: Path, error: OSError) -> str:
    return (
        f"The agent's renewed login could not be written to {path} ({error.strerror}). You may have to "
        "sign in again."
    )


def _bring_over(login: _Login, source: int, target: int) -> _Login:
    """Write what changed in *source* alone to *target*; return the login as both have it now.

    Raises:
        OSError: it could not be written.
    """
    new, old = _small(source, login.path), _small(target, login.path)
    if new is None or old is None:
        return login
    digest = sha256_hex(new)
    if digest == login.digest or _form(new) != login.form:
        return login
    if sha256_hex(old) == login.digest:
        _replace(target, login.path, new)
    elif old != new:
        return login
    return replace(login, digest=digest)


def _login(path: PurePosixPath, text: bytes | None) -> _Login | None:
    form = None if text is None else _form(text)
    if text is None or form is None:
        return None
    return _Login(path=path, digest=sha256_hex(text), form=form)


def _small(root: int, path: PurePosixPath) -> bytes | None:
    """Return the bytes of a small regular file, without following a link or blocking on a FIFO."""
    try:
        return read_small_file(open_beneath(root, path, os.O_RDONLY | os.O_NONBLOCK), _BYTES)
    except OSError:
        return None


def _replace(root: int, path: PurePosixPath, content: bytes) -> None:
    with open_folder_beneath(root, path.parent) as folder:
        temporary = f".{path.name}.{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            with os.fdopen(open_beneath(folder, temporary, flags, 0o600), "wb") as file:
                file.write(content)
            os.replace(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise


def _form(text: bytes) -> Any:
    """Return the keys and value types of a JSON object; None for anything else."""
    try:
        value: Any = json.loads(text)
        return _types(cast("dict[str, Any]", value)) if isinstance(value, dict) else None
    except (ValueError, RecursionError):
        return None


def _types(value: object) -> object:
    if isinstance(value, str) and _REFERENCE.search(value):
        return "reference"
    if isinstance(value, Mapping):
        return {key: _types(item) for key, item in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    return type(value).__name__
