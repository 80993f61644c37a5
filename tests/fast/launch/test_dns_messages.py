"""Questions of resolvers, and the answers that they get."""

import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.launch.network.host_resolver import NotAQuery, Query


def question(*labels: bytes, kind: int = 1, flags: int = 0x0100, count: int = 1) -> bytes:
    head = struct.pack(">6H", 0x1234, flags, count, 0, 0, 0)
    name = b"".join(len(each).to_bytes(1, "big") + each for each in labels) + b"\0"
    return head + name + struct.pack(">HH", kind, 1)


def test_an_answer_repeats_the_question_and_has_its_addresses() -> None:
    """With the spelling of the question: some resolvers compare it."""
    query = Query.parse(question(b"GitHub", b"com"))
    assert query.name == "github.com"
    answer = query.answer(["140.82.121.4", "140.82.121.3"])
    number, flags, asked, answered, _, _ = struct.unpack_from(">6H", answer)
    assert (number, flags & 0x800F, asked, answered) == (0x1234, 0x8000, 1, 2)
    assert b"\x06GitHub\x03com" in answer
    assert answer.endswith(socket.inet_aton("140.82.121.3"))
    assert struct.unpack_from(">6H", query.no_such_name())[1] & 0x800F == 0x8003
    assert struct.unpack_from(">6H", query.failure())[1] & 0x800F == 0x8002


def test_an_unusual_name_is_kept_as_text() -> None:
    assert Query.parse(question(b"a\x1b[31m", b"\xff")).name == "a\x1b[31m.\\xff"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        question(b"a", flags=0x8180),
        question(b"a", count=0),
        question(b"a", count=2),
        question(b"a")[:-1],
        question(b"a" * 63, b"b" * 63, b"c" * 63, b"d" * 63),
        question(b"a")[:12] + b"\xc0\x0c\x00\x01\x00\x01",
    ],
    ids=["empty", "an answer", "no question", "two", "cut short", "too long", "a pointer"],
)
def test_what_is_no_single_question_gets_no_answer(message: bytes) -> None:
    with pytest.raises(NotAQuery):
        Query.parse(message)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_question_or_refused(data: bytes) -> None:
    for message in (data, question(b"a")[:12] + data):
        try:
            Query.parse(message).answer([])
        except NotAQuery:
            continue
