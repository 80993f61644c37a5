"""Which host the first message of a TLS client names, from hellos that OpenSSL made."""

import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.launch.network.client_hello import NotTls, server_name


def hello(name: str | None) -> bytes:
    """Return what OpenSSL sends first when it asks for *name*."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    outgoing = ssl.MemoryBIO()
    tls = context.wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        tls.do_handshake()
    return outgoing.read()


HELLO = hello("Alpha.example")
BODY = HELLO[5:]


def tls_records(body: bytes, *sizes: int) -> bytes:
    """Return *body* in records of these sizes, the rest in a last one."""
    made, at = b"", 0
    for size in (*sizes, len(body)):
        part = body[at : at + size]
        at += size
        made += b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part if part else b""
    return made


def test_the_name_is_read_as_it_was_sent() -> None:
    assert server_name(HELLO) == "Alpha.example"
    assert server_name(HELLO + b"more") == "Alpha.example"
    assert server_name(hello(None)) == ""


@given(st.integers(0, len(HELLO) - 1))
def test_a_part_of_a_hello_names_nothing_yet(end: int) -> None:
    assert server_name(HELLO[:end]) is None


@given(st.lists(st.integers(1, 40), max_size=6))
def test_a_hello_in_several_records_is_the_same_hello(sizes: list[int]) -> None:
    """A filter that reads the first record alone is led astray so."""
    assert server_name(tls_records(BODY, *sizes)) == "Alpha.example"


@given(st.binary(min_size=1, max_size=200), st.integers(0, len(HELLO)))
def test_other_bytes_end_in_a_refusal_or_wait_for_more(data: bytes, at: int) -> None:
    """Whatever a client sends: a name, nothing yet, or `NotTls`, and no other exception."""
    for sent in (data, HELLO[:at] + data, tls_records(data)):
        try:
            server_name(sent)
        except NotTls:
            continue


@pytest.mark.parametrize(
    "sent",
    [
        b"GET / HTTP/1.1\r\n",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"\x80\x2e\x01\x03\x01",
        b"\x15\x03\x01\x00\x02\x02\x28",
        b"\x16\x03\x01\x00\x00",
        tls_records(b"\x02" + BODY[1:]),
        tls_records(BODY.replace(b"Alpha.example", b"Alpha.exampl\xe9")),
    ],
    ids=["http", "ssh", "SSL 2", "an alert", "an empty record", "a server's hello", "not ASCII"],
)
def test_what_is_no_clients_hello_is_refused(sent: bytes) -> None:
    with pytest.raises(NotTls):
        server_name(sent)


def test_two_extensions_with_names_are_refused() -> None:
    """A server could read the other one."""
    name = b"\x00\x00\x00\x10\x00\x0e\x00\x00\x0b" + b"evil.exampl"
    head = b"\x03\x03" + bytes(32) + b"\x00" + b"\x00\x02\x13\x01" + b"\x01\x00"
    one, two = (head + (len(name) * n).to_bytes(2, "big") + name * n for n in (1, 2))
    assert server_name(tls_records(b"\x01" + len(one).to_bytes(3, "big") + one)) == "evil.exampl"
    with pytest.raises(NotTls):
        server_name(tls_records(b"\x01" + len(two).to_bytes(3, "big") + two))


def test_a_hello_without_end_is_refused() -> None:
    with pytest.raises(NotTls):
        server_name(tls_records(b"\x01\xff\xff\xff" + bytes(100)))
