"""The hosts that a sandbox may reach, and how they are known: from a resolver's question, and from the first
message of a TLS client, by hellos that OpenSSL made.
"""

import socket
import ssl
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.connectors.network.client_hello import NotTls, server_name
from aileron_core.connectors.network.host_resolver import (
    HostList,
    NotAQuery,
    Query,
    is_host_name,
    parse_entry,
)
from aileron_core.errors import FileProblems
from aileron_core.launch.agents import AGENTS
from aileron_core.settings import load_settings, parse_project_settings


def test_a_host_is_reached_on_the_port_that_is_listed() -> None:
    hosts = HostList(["GitHub.com:443", "registry.example:8443"], ["api.example"])
    assert "github.com:443" in hosts
    assert "api.example:443" in hosts
    assert "github.com:22" not in hosts
    assert "sub.github.com:443" not in hosts
    assert hosts.is_named("registry.example")
    assert not hosts.is_named("example")
    assert hosts.ports == (443, 8443)
    hosts.allow("late.example:443")
    assert "late.example:443" in hosts


def test_only_a_name_that_the_person_listed_may_lead_to_a_private_network() -> None:
    """One that the agent chose, and the person allowed with a key, leads to the Internet."""
    hosts = HostList(["git.corp.example"], ["api.example"])
    hosts.allow("late.example")
    assert hosts.may_be_private("git.corp.example")
    assert not hosts.may_be_private("api.example")
    assert not hosts.may_be_private("late.example")


@pytest.mark.parametrize("text", ["1.2.3.4:443", "[::1]:443", "a.example:0", "a b:443", "", ":443"])
def test_what_is_no_name_of_a_host_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_entry(text)
    assert not is_host_name(text)


def test_every_agent_names_hosts_of_its_own() -> None:
    for agent in AGENTS.values():
        assert agent.hosts
        assert all(parse_entry(each) == f"{each}:443" for each in agent.hosts)


def test_hosts_are_listed_in_the_persons_settings_and_never_in_a_projects(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[launch]\nhosts = ["github.com:443", "pypi.org"]\n[launch.codex]\nargs = []\n')
    settings = load_settings(path)
    assert settings.launch_hosts == ("github.com:443", "pypi.org")
    assert {*settings.launch} == {"codex"}
    for wrong in (
        '"*"',
        '"https://github.com"',
        '"1.2.3.4"',
        '"a.example:0"',
        '"a.example:65536"',
        "1",
    ):
        path.write_text(f"[launch]\nhosts = [{wrong}]\n")
        with pytest.raises(FileProblems, match="hosts"):
            load_settings(path)
    with pytest.raises(FileProblems, match=r"launch\.hosts"):
        parse_project_settings(path, '[launch]\nhosts = ["evil.example"]\n')


def question(*labels: bytes, kind: int = 1, flags: int = 0x0100, count: int = 1) -> bytes:
    head = struct.pack(">6H", 0x1234, flags, count, 0, 0, 0)
    name = b"".join(len(each).to_bytes(1, "big") + each for each in labels) + b"\0"
    return head + name + struct.pack(">HH", kind, 1)


def test_an_answer_repeats_the_question_and_has_its_addresses() -> None:
    """With the spelling of the question: some resolvers compare it. An unusual name is kept as text."""
    query = Query.parse(question(b"GitHub", b"com"))
    assert query.name == "github.com"
    answer = query.answer(["140.82.121.4", "140.82.121.3"])
    number, flags, asked, answered, _, _ = struct.unpack_from(">6H", answer)
    assert (number, flags & 0x800F, asked, answered) == (0x1234, 0x8000, 1, 2)
    assert b"\x06GitHub\x03com" in answer
    assert answer.endswith(socket.inet_aton("140.82.121.3"))
    assert struct.unpack_from(">6H", query.no_such_name())[1] & 0x800F == 0x8003
    assert struct.unpack_from(">6H", query.failure())[1] & 0x800F == 0x8002
    assert Query.parse(question(b"a\x1b[31m", b"\xff")).name == "a\x1b[31m.\\xff"


NO_QUESTION = {
    "empty": b"",
    "an answer": question(b"a", flags=0x8180),
    "no question": question(b"a", count=0),
    "two": question(b"a", count=2),
    "cut short": question(b"a")[:-1],
    "too long": question(b"a" * 63, b"b" * 63, b"c" * 63, b"d" * 63),
    "a pointer": question(b"a")[:12] + b"\xc0\x0c\x00\x01\x00\x01",
}


@pytest.mark.parametrize("message", NO_QUESTION.values(), ids=NO_QUESTION)
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


NO_HELLO = {
    "http": b"GET / HTTP/1.1\r\n",
    "ssh": b"SSH-2.0-OpenSSH_9.6\r\n",
    "SSL 2": b"\x80\x2e\x01\x03\x01",
    "an alert": b"\x15\x03\x01\x00\x02\x02\x28",
    "an empty record": b"\x16\x03\x01\x00\x00",
    "a server's hello": tls_records(b"\x02" + BODY[1:]),
    "not ASCII": tls_records(BODY.replace(b"Alpha.example", b"Alpha.exampl\xe9")),
    "without end": tls_records(b"\x01\xff\xff\xff" + bytes(100)),
}


@pytest.mark.parametrize("sent", NO_HELLO.values(), ids=NO_HELLO)
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
