"""Archives of releases (gzipped tar): read in memory, with a closed list of names; the same files make the same archive.

Nothing is extracted. The standard library's reader obeys what an archive says about itself (long names,
sizes in extended headers, sparse files); this one accepts plain files, folders, which it skips, and extended
headers that change nothing.
"""

import gzip
import io
import re
import tarfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import BinaryIO, Final

from aileron_core.errors import FileProblems, Problem
from aileron_core.text import escape

MAX_UNFOLDED: Final = 192 * 1024 * 1024
"""Bytes of everything in an archive, decompressed."""
_BLOCK: Final = 512
_CHUNK: Final = 64 * 1024
_MAX_EXTENDED: Final = 1024 * 1024
_MAX_PADDING: Final = 1024 * 1024
_MAX_MEMBERS: Final = 10_000
_OCTAL = re.compile(rb" *([0-7]+)[ \0]*")
_NAME = re.compile(r"[!-~]+")
_RECORD = re.compile(rb"([0-9]{1,6}) ([^=\n]+)=")
_CHANGES_A_MEMBER = frozenset({b"path", b"linkpath", b"size"})
_KINDS: Final = {
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"6": "a named pipe",
    b"S": "a sparse file",
    b"L": "a long name",
    b"K": "a long link",
}


def read_archive(
    archive: bytes | BinaryIO, file: str, limit_of: Callable[[str], int | None]
) -> dict[str, bytes]:
    """Return the files of an archive by name.

    Args:
        archive: its bytes, or the file that contains them.
        file: what problems call it.
        limit_of: how many bytes the file of a name may have; None for a name that must not be there.

    Raises:
        FileProblems: it is damaged, or contains something that no release contains. The message names the member.
    """
    stream = io.BytesIO(archive) if isinstance(archive, bytes) else archive
    unfolded = _Unfolded(stream, file)
    found: dict[str, bytes] = {}
    for name, size in _members(unfolded):
        limit = limit_of(name)
        if limit is None:
            raise unfolded.problem(name, "is not a file of a release")
        if name in found:
            raise unfolded.problem(name, "is there twice")
        if size > limit:
            raise unfolded.problem(name, f"is larger than {limit} bytes")
        found[name] = unfolded.take(size, name)
        unfolded.take(-size % _BLOCK, name)
    return found


def write_archive(files: Mapping[str, bytes]) -> bytes:
    """Return the archive of *files*: sorted by name, without owners, times or modes of their own."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            archive.addfile(member, io.BytesIO(files[name]))
    packed = gzip.compress(buffer.getvalue(), mtime=0)
    return packed[:9] + b"\xff" + packed[10:]  # no system: Python's versions write different ones


class _Unfolded:
    """The decompressed bytes, read in order; only as many are decompressed as are asked for."""

    def __init__(self, stream: BinaryIO, file: str) -> None:
        self._file = file
        self._stream = stream
        self._pending = stream.read(_CHUNK)
        if not self._pending.startswith(b"\x1f\x8b"):
            raise self.problem("", "is not a gzip archive")
        self._inflate = zlib.decompressobj(wbits=31)
        self._total = 0
        self.extended = 0
        """Bytes of extended headers so far."""

    def problem(self, member: str, message: str) -> FileProblems:
        said = f"its member {escape(member)} {message}" if member else message
        return FileProblems([Problem(file=self._file, message=said, class_="malformed_tarball")])

    def take(self, size: int, member: str = "") -> bytes:
        """Return the next *size* bytes.

        Raises:
            FileProblems: they are not there, or are too many.
        """
        self._total += size
        if self._total > MAX_UNFOLDED:
            raise self.problem(member, f"unfolds to more than {MAX_UNFOLDED // 1024 // 1024} MiB")
        taken = io.BytesIO()  # grows in place, and is not copied at its end
        while left := size - taken.tell():
            more = self._some(min(left, _CHUNK))
            if not more:
                raise self.problem(member, "ends in the middle")
            taken.write(more)
        return taken.getvalue()

    def end(self) -> None:
        """Check that only zeros are left, and nothing after the end of the gzip stream.

        Raises:
            FileProblems: there is more, or the archive is truncated or damaged.
        """
        padding = 0
        while more := self._some(_CHUNK):
            padding += len(more)
            if more.strip(b"\0") or padding > _MAX_PADDING:
                raise self.problem("", "has something after its end")
        if not self._inflate.eof:
            raise self.problem("", "ends in the middle")
        if self._inflate.unused_data or self._stream.read(1):
            raise self.problem("", "has something after its end")

    def _some(self, size: int) -> bytes:
        while not self._inflate.eof:
            if not self._pending:
                self._pending = self._stream.read(_CHUNK)
            try:
                more = self._inflate.decompress(self._pending, size)
            except zlib.error as error:
                raise self.problem(
                    "", "is damaged: what is inside is not what was packed"
                ) from error
            was_given = bool(self._pending)
            self._pending = self._inflate.unconsumed_tail
            if more or not was_given:
                return more
        return b""


def _members(unfolded: _Unfolded) -> Iterator[tuple[str, int]]:
    """Yield the name and size of each plain file; its bytes are to be taken before the next."""
    for _ in range(_MAX_MEMBERS):
        header = unfolded.take(_BLOCK)
        if not header.strip(b"\0"):
            unfolded.end()
            return
        name, size, kind = _header(unfolded, header)
        if kind in b"xg":
            _check_extended(unfolded, name, size)
        elif kind == b"5":
            if size:
                raise unfolded.problem(name, "is a folder with content")
        elif kind in (b"0", b"\0"):
            yield name, size
        else:
            raise unfolded.problem(name, f"is {_KINDS.get(kind, 'no plain file')}")
    raise unfolded.problem("", f"has more than {_MAX_MEMBERS} members")


def _header(unfolded: _Unfolded, header: bytes) -> tuple[str, int, bytes]:
    """Return the name, without `./` in front, the size and the kind that *header* states."""
    kind = header[156:157]
    raw = header[:100].partition(b"\0")[0]
    if header[257:263] == b"ustar\0" and (prefix := header[345:500].partition(b"\0")[0]):
        raw = prefix + b"/" + raw
    shown = raw.decode("ascii", "backslashreplace")
    checksum = _number(header[148:156])
    if header[257:262] != b"ustar" or checksum != sum(header[:148]) + 8 * 32 + sum(header[156:]):
        raise unfolded.problem(shown, "has no header of a tar archive")
    name = shown.removeprefix("./").removesuffix("/" if kind == b"5" else "")
    if kind not in b"xgLK" and not (kind == b"5" and name in ("", ".")):
        parts = name.split("/")
        if not _NAME.fullmatch(name) or any(part in ("", ".", "..") for part in parts):
            raise unfolded.problem(shown, "has a name that no file of a release has")
    size = _number(header[124:136])
    if size is None:
        raise unfolded.problem(shown, "states no size that a file can have")
    return name or shown, size, kind


def _number(text: bytes) -> int | None:
    match = _OCTAL.fullmatch(text)
    return int(match[1], 8) if match else None


def _check_extended(unfolded: _Unfolded, name: str, size: int) -> None:
    """Read an extended header: it may state times and owners, which are ignored, but nothing that changes a member."""
    unfolded.extended += size
    if unfolded.extended > _MAX_EXTENDED:
        raise unfolded.problem(name, f"is an extended header too many, of {size} bytes")
    records = unfolded.take(size, name)
    unfolded.take(-size % _BLOCK, name)
    at = 0
    while at < len(records):
        match = _RECORD.match(records, at)
        length = int(match[1]) if match else 0
        if match is None or not match.end() - at < length <= len(records) - at:
            raise unfolded.problem(name, "is an extended header that cannot be read")
        if match[2] in _CHANGES_A_MEMBER or match[2].startswith(b"GNU.sparse"):
            key = match[2].decode("ascii", "backslashreplace")
            raise unfolded.problem(name, f"changes the {key} of a member by an extended header")
        at += length
