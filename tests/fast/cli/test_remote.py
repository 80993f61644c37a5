"""The connections of an attached console in one session of ssh: pipes with the real code at both ends."""

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from aileron_tui.cli.remote import Channels
from tests.support.processes import eventually

HEAD = struct.Struct(">II")


class Session:
    """Two ends, and what the far one connected to."""

    def __init__(self, stack: ExitStack) -> None:
        self.homes: list[socket.socket] = []
        self.opened: list[socket.socket] = []
        (far_reads, self.to_far), (near_reads, self.to_near) = os.pipe(), os.pipe()
        read, write = os.fdopen(far_reads, "rb"), os.fdopen(self.to_near, "wb")
        self.far = Channels(read, write, self.connect)
        self.near = Channels(os.fdopen(near_reads, "rb"), os.fdopen(self.to_far, "wb"))
        self.runs = [threading.Thread(target=each.run) for each in (self.far, self.near)]
        for each in self.runs:
            each.start()
        stack.callback(self.end)

    def connect(self) -> socket.socket:
        here, home = socket.socketpair()
        home.settimeout(10)
        self.homes.append(home)
        return here

    def home(self, number: int) -> socket.socket:
        eventually(lambda: len(self.homes) > number)
        return self.homes[number]

    def open(self) -> socket.socket:
        opened = self.near.open()
        opened.settimeout(10)
        self.opened.append(opened)
        return opened

    def send_frame(self, number: int, size: int, piece: bytes = b"") -> None:
        os.write(self.to_far, HEAD.pack(number, size) + piece)

    def end(self) -> None:
        for channels in (self.near, self.far):
            channels._write.close()  # pyright: ignore[reportPrivateUsage]
        for each in self.runs:
            each.join(10)
            assert not each.is_alive()
        for channels in (self.near, self.far):
            channels._read.close()  # pyright: ignore[reportPrivateUsage]
        for each in (*self.homes, *self.opened):
            each.close()


@pytest.fixture
def session() -> Iterator[Session]:
    with ExitStack() as stack:
        yield Session(stack)


def test_connections_are_kept_apart_and_the_end_of_each_is_passed_on(session: Session) -> None:
    first, second = session.open(), session.open()
    for number, each in enumerate((first, second)):
        each.sendall(b"%d" % number * 200_000)
        assert session.home(number).recv(1) == b"%d" % number
    for home, text in zip(session.homes, (b"one", b"two"), strict=True):
        home.sendall(text)
    assert (first.recv(9), second.recv(9)) == (b"one", b"two")
    session.homes[0].close()
    assert first.recv(9) == b""
    second.close()
    while session.homes[1].recv(65536):
        pass
    session.send_frame(1, 4, b"late")
    third = session.open()
    third.sendall(b"x")
    assert session.home(2).recv(9) == b"x"


@pytest.mark.parametrize("size", [64 * 1024 + 1, 2**32 - 1])
def test_a_piece_larger_than_any_that_is_sent_ends_it_all(session: Session, size: int) -> None:
    opened = session.open()
    opened.sendall(b"x")
    session.send_frame(1, size)
    session.runs[0].join(10)
    assert not session.runs[0].is_alive()
    assert len(session.homes) <= 1
