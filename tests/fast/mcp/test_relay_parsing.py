"""The relay's own parsers: lines of stdin, HTTP answers, server-sent events, header values."""

import contextlib
import json
import socket
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp.shared.inbound import decode_header_value

from aileron_mcp.relay import http_client
from aileron_mcp.relay.http_client import ConnectionDropped, HttpConnection, read_events
from aileron_mcp.relay.messages import LineSplitter, header_value
from tests.support.making import cut

LIMIT = 4 * 1024 * 1024


def feed(pieces: Iterable[bytes]) -> list[tuple[bytes, bool]]:
    lines = LineSplitter()
    return [found for piece in pieces for found in lines.feed(piece)]


@given(
    st.lists(st.binary(max_size=50).map(lambda b: b.replace(b"\n", b""))),
    st.lists(st.integers(0, 40)),
)
def test_lines_are_the_same_however_a_pipe_cuts_them(lines: list[bytes], sizes: list[int]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    assert feed(cut(data, sizes)) == [(line, True) for line in lines]


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        (b'{"jsonrpc":"2.0","id":7,"method":"x","params":"%s"}', 7),
        (b'{"method":"x","params":{"a":"%s"},"jsonrpc":"2.0","id":"seven"}', "seven"),
        (b'{"method":"x","params":{"a":"%s","id":9}}', None),
        (b'{"id":null,"a":"%s"}', None),
        (b'"%s"', None),
    ],
)
def test_a_line_that_is_too_long_is_dropped_and_only_its_id_is_read(line: bytes, id_: Any) -> None:
    data = line % (b"a" * LIMIT) + b"\n" + b"next\n"
    found = feed([data[i : i + 65536] for i in range(0, len(data), 65536)])
    assert [(json.loads(text), whole) for text, whole in found[:1]] == [(id_, False)]
    assert (found[1:], feed([data])) == ([(b"next", True)], found)


def test_a_line_of_exactly_the_limit_is_whole() -> None:
    assert feed([b"a" * LIMIT + b"\n"]) == [(b"a" * LIMIT, True)]
    assert feed([b"a" * (LIMIT + 1) + b"\n"]) == [(b"null", False)]


@given(
    st.lists(st.text(st.characters(blacklist_characters="\r\n", codec="utf-8"), min_size=1)),
    st.sampled_from([b"\n", b"\r\n"]),
    st.lists(st.integers(0, 30)),
)
def test_events_are_the_same_however_cut(texts: list[str], end: bytes, sizes: list[int]) -> None:
    """Both line ends, comments and other fields in between; every event once, in order."""
    before = b": ping" + end + b"event: message" + end + b"data: "
    data = b"".join(before + text.encode() + end + end for text in texts)
    assert list(read_events(cut(data, sizes))) == [t.encode() for t in texts]


def parsed(data: bytes, sizes: Iterable[int] = ()) -> tuple[int, dict[str, str], bytes]:
    """Have a link read *data* from a real socket, which then ends."""
    ours, theirs = socket.socketpair()
    with theirs, HttpConnection(ours, "127.0.0.1") as connection:
        for piece in cut(data, sizes):
            theirs.sendall(piece)
        theirs.shutdown(socket.SHUT_WR)
        status = connection.request("POST", "/mcp", {}, b"{}")
        return status, connection.headers, connection.read_body()


@given(st.lists(st.binary(min_size=1, max_size=300)), st.lists(st.integers(0, 200)))
def test_a_chunked_answer_is_put_together_again(chunks: list[bytes], sizes: list[int]) -> None:
    body = b"".join(b"%x;ext=1\r\n%s\r\n" % (len(each), each) for each in chunks)
    body += b"0\r\nTrailer: x\r\n\r\n"
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX-Y:  z \r\n\r\n"
    status, headers, got = parsed(head + body, sizes)
    assert (status, headers["x-y"], got) == (200, "z", b"".join(chunks))


@given(st.binary(max_size=300))
def test_a_sized_answer_is_read_to_its_size_and_an_unsized_one_to_its_end(body: bytes) -> None:
    """What comes after the announced size is not part of it."""
    sized = b"HTTP/1.1 404 Not Found\r\nContent-Length: %d\r\n\r\n" % len(body)
    assert parsed(sized + body + b"more")[2] == body
    assert parsed(b"HTTP/1.0 200\r\n\r\n" + body)[2] == body


@given(st.binary(max_size=400))
@example(b"Content-Length: \xb2\r\n\r\nab")
@example(b"Transfer-Encoding: chunked\r\n\r\n-5\r\nabcdefgh\r\n")
def test_any_bytes_are_an_answer_or_a_dropped_connection_and_nothing_else(data: bytes) -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    for head in (b"", b"HTTP/1.1 200 OK\r\n", chunked):
        with contextlib.suppress(ConnectionDropped):
            parsed(head + data)


def test_an_answer_that_ends_early_or_never_is_a_dropped_connection(monkeypatch: Any) -> None:
    monkeypatch.setattr(http_client, "ANSWER_LIMIT", 10_000)
    pieces = [b"data: " + b"x" * 900] * 12
    for chunks in (pieces, [piece + b"\n" for piece in pieces]):
        with pytest.raises(ConnectionDropped):
            list(read_events(chunks))
    assert len(list(read_events([b"data: " + b"x" * 900 + b"\n\n"] * 100))) == 100
    for wrong in (
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabc",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70000,
        b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 20_000,
        b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(300)) + b"\r\n",
    ):
        with pytest.raises(ConnectionDropped):
            parsed(wrong)


@given(st.text(st.characters(codec="utf-8")))
def test_any_name_fits_a_header_and_is_read_back_by_the_server(name: str) -> None:
    """A name with a line end in it adds no header; the official reader gets the same name."""
    value = header_value(name)
    assert value.isascii()
    assert value.isprintable()
    assert decode_header_value(value) == name
