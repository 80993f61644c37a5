"""Frames of the built-in tools' workers: what is none ends the worker that sent it, and nothing else."""

import io
import struct

import pytest

from aileron_core.connectors.builtin.worker.frames import BrokenFrame, read_frame


@pytest.mark.parametrize("data", [b"[" * 200_000, b"\xff", b"[]", b"{"])
def test_what_cannot_be_read_is_no_frame(data: bytes) -> None:
    with pytest.raises(BrokenFrame):
        read_frame(io.BytesIO(struct.pack(">I", len(data)) + data))
