"""Frames between the launcher and a worker: a length of 4 bytes, most significant first, then JSON in UTF-8."""

import json
import os
import struct
from typing import Any, Protocol

MAX_FRAME = 4 * 1024 * 1024
"""Bytes of one frame's JSON."""

_LENGTH = struct.Struct(">I")


class Readable(Protocol):
    """What frames are read from."""

    def read(self, size: int, /) -> bytes: ...


class Unbuffered:
    """Reads a descriptor and keeps nothing back, which `select` would not know of."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, size: int, /) -> bytes:
        data = b""
        while len(data) < size and (more := os.read(self._descriptor, size - len(data))):
            data += more
        return data


class BrokenFrame(Exception):
    """What was read is no frame: the other side has ended in the middle of one, or is not a worker."""


def read_frame(stream: Readable) -> dict[str, Any] | None:
    """Return the next frame, None at the end of *stream*.

    Raises:
        BrokenFrame: it ends early, is larger than `MAX_FRAME`, or is no JSON object.
    """
    head = stream.read(_LENGTH.size)
    if not head:
        return None
    if len(head) < _LENGTH.size:
        raise BrokenFrame("a frame ends within its length")
    (length,) = _LENGTH.unpack(head)
    if length > MAX_FRAME:
        raise BrokenFrame(f"a frame of {length} bytes is larger than {MAX_FRAME}")
    data = stream.read(length)
    if len(data) < length:
        raise BrokenFrame(f"a frame of {length} bytes ends after {len(data)}")
    try:
        frame = json.loads(data)
    except (RecursionError, ValueError) as error:
        raise BrokenFrame(f"a frame is not JSON that can be read: {error}") from None
    if not isinstance(frame, dict):
        raise BrokenFrame("a frame is not a JSON object")
    return frame  # pyright: ignore[reportUnknownVariableType]


def frame_bytes(frame: dict[str, Any]) -> bytes:
    """Return *frame* as it is written.

    Raises:
        BrokenFrame: it is larger than `MAX_FRAME`.
    """
    data = json.dumps(frame, ensure_ascii=True, separators=(",", ":")).encode("ascii")
    if len(data) > MAX_FRAME:
        raise BrokenFrame(f"a frame of {len(data)} bytes is larger than {MAX_FRAME}")
    return _LENGTH.pack(len(data)) + data


def write_frame(descriptor: int, frame: dict[str, Any]) -> None:
    """Write the whole of *frame*.

    Raises:
        BrokenFrame: it is larger than `MAX_FRAME`; nothing was written.
    """
    data = memoryview(frame_bytes(frame))
    while data:
        data = data[os.write(descriptor, data) :]
