"""A passphrase or secret that nobody types: from a variable, a file or an open descriptor."""

import ctypes
import os
import stat
import sys
from pathlib import Path

from aileron_core.errors import InvalidRequest
from aileron_core.vault.secret import Secret

VARIABLE = "AILERON_VAULT_PASSPHRASE"
_MAX_BYTES = 16 * 1024


def take_passphrase_variable() -> Secret | None:
    """Return the passphrase in the environment and overwrite it there; None without one.

    `os.environ.pop` leaves `/proc/self/environ` as it was, and children that were given the whole block
    would get it. Call it before anything is started. The shell that set the variable still has it.
    """
    value = os.environb.get(VARIABLE.encode())
    if value is None:
        return None
    passphrase = Secret(value)
    _overwrite_variable(len(value))
    os.environ.pop(VARIABLE)
    return passphrase


def _overwrite_variable(size: int) -> None:
    library = ctypes.CDLL(None)
    library.getenv.restype = ctypes.c_void_p
    found = library.getenv(VARIABLE.encode())
    if found:
        ctypes.memset(found, 0, size)
    if sys.platform == "linux":
        # What /proc/self/environ shows: libc may have moved its own copy elsewhere.
        start, end = _environment_block()
        block, name = ctypes.string_at(start, end - start), f"{VARIABLE}=".encode()
        at = 0
        for each in block.split(b"\0"):
            if each.startswith(name):
                ctypes.memset(start + at + len(name), 0, len(each) - len(name))
            at += len(each) + 1


def _environment_block() -> tuple[int, int]:
    """Return where the kernel has the environment that this process was started with (proc(5))."""
    fields = Path("/proc/self/stat").read_bytes().rpartition(b")")[2].split()
    start, end = int(fields[47]), int(fields[48])  # the 50th and 51st, counted from 1
    return (start, end) if 0 < start < end else (0, 0)


def read_secret_descriptor(descriptor: int, what: str = "passphrase") -> Secret:
    """Return what can be read from *descriptor*, without a newline at its end, and close it.

    Args:
        descriptor: an open one, for reading.
        what: it is, as in the option's name: `passphrase` or `secret`.

    Raises:
        InvalidRequest: it cannot be read, or has none.
    """
    try:
        with os.fdopen(descriptor, "rb") as file:
            return _first_line(file.read(_MAX_BYTES + 1), f"descriptor {descriptor}", what)
    except OSError as error:
        raise InvalidRequest(
            f"--{what}-fd {descriptor} cannot be read: {error.strerror}. Open it in the shell, as in "
            f"{descriptor}<FILE."
        ) from error


def read_secret_file(path: Path, what: str = "passphrase") -> Secret:
    """Return what the file has, without a newline at its end.

    Raises:
        InvalidRequest: it is not yours alone, is in a project, cannot be read, or has none.
    """
    try:
        path = path.resolve(strict=True)
        with os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
            _refuse_shared(path, os.fstat(file.fileno()), what)
            return _first_line(file.read(_MAX_BYTES + 1), str(path), what)
    except OSError as error:
        raise InvalidRequest(f"{path} cannot be read: {error.strerror}.") from error


def _refuse_shared(path: Path, status: os.stat_result, what: str) -> None:
    if not stat.S_ISREG(status.st_mode) or status.st_uid != os.getuid():
        raise InvalidRequest(
            f"{path} is not a regular file that you own, so it is not used for the {what}."
        )
    if status.st_mode & 0o077:
        raise InvalidRequest(f"Others can read {path}. Run `chmod 600` on it.")
    for folder in path.parents:
        if any((folder / name).exists() for name in (".git", "aileron.toml")):
            raise InvalidRequest(
                f"{path} is in the project {folder}, which agents read. Move it out of there."
            )


def _first_line(data: bytes, source: str, what: str) -> Secret:
    line = data.removesuffix(b"\n").removesuffix(b"\r")
    if not line or len(line) > _MAX_BYTES:
        raise InvalidRequest(
            f"There is no {what} in {source}: it has to be its first and only line."
        )
    return Secret(line)
