"""A file as it is at one moment: its bytes, what was shown of it, and what its text is."""

import hashlib
import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from aileron_core.connectors.builtin.worker.arguments import OpFailed
from aileron_core.connectors.builtin.worker.paths import open_regular

MAX_TEXT = 10 * 1024 * 1024
"""Bytes of a file that is read, searched and edited as text."""
MAX_FILE = 1024 * 1024 * 1024
"""Bytes of a file whose hash is still taken, which is about a second's work."""
_CHUNK = 1024 * 1024

_BEGINNINGS = (
    (b"\x89PNG\r\n\x1a\n", "PNG image"),
    (b"\xff\xd8\xff", "JPEG image"),
    (b"GIF8", "GIF image"),
    (b"%PDF-", "PDF document"),
    (b"PK\x03\x04", "Zip archive"),
    (b"\x1f\x8b", "gzip archive"),
    (b"\x7fELF", "ELF program or library"),
    (b"\0asm", "WebAssembly module"),
    (b"SQLite format 3\0", "SQLite database"),
    (b"\xff\xfe", "UTF-16 text"),
    (b"\xfe\xff", "UTF-16 text"),
)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A regular file, or that there is none (`status` is None)."""

    path: PurePosixPath
    status: os.stat_result | None = None
    sha256: str | None = None
    data: bytes | None = None
    """None if there is no file, or it is larger than `MAX_TEXT`."""
    beginning: bytes = b""
    size: int = 0

    def base(self) -> dict[str, Any]:
        """Return what a write compares, to have replaced exactly the file that a person was shown."""
        facts: dict[str, Any] = {"path": str(self.path), "sha256": self.sha256}
        if self.status is not None:
            facts |= {"mode": self.status.st_mode & 0o7777, "ino": self.status.st_ino}
        return facts

    def summary(self) -> dict[str, Any]:
        """Return type, size and hash, for a file whose text is not shown."""
        return {
            "type": type_of(self.beginning, self.data),
            "bytes": self.size,
            "sha256": self.sha256,
        }


def take_snapshot(path: PurePosixPath, descriptor: int) -> Snapshot:
    """Return the open regular file as it is.

    Raises:
        OpFailed: `too_large`.
        OSError: it cannot be read.
    """
    status = os.fstat(descriptor)
    if status.st_size > MAX_FILE:
        raise OpFailed(
            "too_large",
            f"{path} has {status.st_size} bytes; these tools take files of up to {MAX_FILE}.",
        )
    digest = hashlib.sha256()
    chunks: list[bytes] = []
    left = status.st_size
    # Not until its end: somebody may be adding to it. A file of /proc or the like says 0 and is empty here.
    while left and (chunk := os.read(descriptor, min(left, _CHUNK))):
        left -= len(chunk)
        digest.update(chunk)
        if status.st_size <= MAX_TEXT or not chunks:
            chunks.append(chunk)
    data = b"".join(chunks)
    whole = data if status.st_size <= MAX_TEXT else None
    size = status.st_size - left
    return Snapshot(path, status, digest.hexdigest(), whole, data[:_CHUNK], size)


def snapshot_of(path: PurePosixPath, data: bytes) -> Snapshot:
    """Return the file that *data* will be; it has no status yet."""
    return Snapshot(path, None, hashlib.sha256(data).hexdigest(), data, data[:_CHUNK], len(data))


def snapshot_at(folder: int, path: PurePosixPath) -> Snapshot:
    """Return the file of *path*'s name in the open *folder* as it is.

    Raises:
        OpFailed: it is not a regular file, or too large.
        OSError: `ELOOP`: it is a link; else it cannot be read.
    """
    try:
        descriptor = open_regular(folder, path.name, str(path))
    except FileNotFoundError:
        return Snapshot(path)
    try:
        return take_snapshot(path, descriptor)
    finally:
        os.close(descriptor)


def text_of(data: bytes | None) -> str | None:
    """Return UTF-8 text, a byte order mark as its first character; None for anything else."""
    if data is None or b"\0" in data:
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None


def type_of(beginning: bytes, data: bytes | None) -> str:
    """Return what a person calls a file that begins so, by its content alone."""
    for start, name in _BEGINNINGS:
        if beginning.startswith(start):
            return name
    if b"\0" in beginning:
        return "binary data"
    try:
        (beginning if data is None else data).decode("utf-8")
    except UnicodeDecodeError as error:
        # The end of *beginning* may cut a character.
        if data is not None or error.start < len(beginning) - 3:
            return "text that is not UTF-8"
    return "text"


def bytes_of(text: str) -> bytes:
    """Return *text* in UTF-8.

    Raises:
        OpFailed: it contains half of a surrogate pair.
    """
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise OpFailed(
            "invalid_arguments",
            f"Character {error.start + 1} of the text is half of a surrogate pair, which UTF-8 cannot "
            "hold. Send the whole character.",
        ) from None


def lines_of(text: str) -> list[str]:
    """Return the lines of *text* without their ends: only a line feed, or one after a carriage return, ends one."""
    lines = [each.removesuffix("\r") for each in text.removeprefix("\ufeff").split("\n")]
    return lines[:-1] if lines[-1] == "" else lines
