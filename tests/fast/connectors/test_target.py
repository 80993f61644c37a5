"""URLs and headers from a guest, addresses that no connector may reach, and the hosts that a sandbox may, however known."""

import ipaddress
import socket
import ssl
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.target import allowed_headers, parse_target
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


@pytest.mark.parametrize(
    ("url", "host_port", "host_header", "path"),
    [
        ("https://a.example", "a.example:443", "a.example", "/"),
        ("HTTPS://A.Example:443/x?y=1#frag", "a.example:443", "a.example", "/x?y=1"),
        ("http://a.example:8080/", "a.example:8080", "a.example:8080", "/"),
        ("https://a.example/r-1%2F..%2Fx%20y", "a.example:443", "a.example", "/r-1%2F..%2Fx%20y"),
        ("https://a.example/ü b", "a.example:443", "a.example", "/%C3%BC%20b"),
        ("https://[2a00::1]:8443/", "[2a00::1]:8443", "[2a00::1]:8443", "/"),
        ("https://evil.example/#.good.example/", "evil.example:443", "evil.example", "/"),
        ("https://A.Example.:443/", "a.example:443", "a.example", "/"),
        ("https://Bücher.example/", "xn--bcher-kva.example:443", "xn--bcher-kva.example", "/"),
        ("https://[2A00:0:0::0:1]/", "[2a00::1]:443", "[2a00::1]", "/"),
        ("http://2130706433/", "127.0.0.1:80", "127.0.0.1", "/"),
        ("http://0x7f.1:0080/", "127.0.0.1:80", "127.0.0.1", "/"),
        ("http://0177.0.0.1/", "127.0.0.1:80", "127.0.0.1", "/"),
    ],
)
def test_a_url_is_taken_apart_once(url: str, host_port: str, host_header: str, path: str) -> None:
    """What is checked, what is connected to and what is sent are the same parts."""
    target = parse_target(url)
    assert (target.host_port, target.host_header, target.path) == (host_port, host_header, path)


REFUSED = {
    "no URL": ("", "a.example", "ftp://a.example/", "file:///etc/passwd", "https://", "https:///x"),
    "another host": ("https://user:pw@a.example/", "https://good.example@evil.example/"),
    "a backslash": ("https://a.example\\@evil.example/",),
    "control characters": ("https://a.example/\r\nX: y", "https://a.exa\tmple/"),
    "look-alikes": ("https://ａ.example/", "https://a。example/"),
    "an encoded dot": ("https://a.example%2eevil.example/",),
    "no name": ("https://a..example/", "https://-a.example/", "https://a.example.1/"),
    "no address": ("https://256.1.1.1/", "https://1.2.3.4.5/", "https://099/", "https://[::1/"),
    "a zone": ("https://[fe80::1%25eth0]/",),
    "a large number": ("https://" + "9" * 5000 + "/",),
    "no port": ("https://a.example:0/", "https://a.example:99999/", "https://a.example:4x/"),
    "too long": ("https://a.example/" + "x" * 40_000,),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_url_that_could_mean_two_things_is_refused(kind: str) -> None:
    for url in REFUSED[kind]:
        with pytest.raises(ValueError, match=r"."):
            parse_target(url)


def test_user_information_is_reported_as_that() -> None:
    """A secret does not belong into a URL, and the message does not repeat it."""
    for rest in ("s://a@a.example/", "s://user:pw@a.example:443/", "://a.example@[::1]/"):
        with pytest.raises(ValueError, match="user information") as caught:
            parse_target(f"http{rest}")
        assert "pw" not in str(caught.value)


@given(st.text(max_size=60))
def test_any_text_is_a_target_or_a_value_error(rest: str) -> None:
    """Whatever follows the scheme, a target that comes out is fit for a request line."""
    try:
        target = parse_target("https://a.example" + rest)
    except ValueError:
        return
    line = f"{target.host_header} {target.path}"
    assert (line.isascii(), line.isprintable(), line.count(" ")) == (True, True, 1)
    assert parse_target(target.url) == target


def test_headers_of_the_host_are_dropped() -> None:
    """A guest words its own headers, not those that frame the request or name the host."""
    of_host = ("Host", "content-LENGTH", "Transfer-Encoding", "Connection", "Proxy-Authorization")
    others = ("Cookie", "Expect", "Upgrade", "TE", "Trailer")
    given_headers = {**dict.fromkeys((*of_host, *others), "x"), "X-Mine": " ü "}
    assert allowed_headers(given_headers) == [(b"X-Mine", "ü".encode())]


BREAKING = (
    *({"X": "a\r\nHost: evil"}, {"X\n": "a"}, {"": "a"}, {"X Y": "a"}, {"X": "\0"}),
    *({"X": "a\x0bb"}, {"X": "a\x7f"}, {"X": "y" * 70_000}),
)


@pytest.mark.parametrize("headers", BREAKING)
def test_headers_that_would_break_the_request_are_refused(headers: dict[str, str]) -> None:
    """The connector hears of it as its own mistake, and the message holds no value."""
    with pytest.raises(ValueError, match=r"^(a header's name|the header)") as caught:
        allowed_headers(headers)
    assert "evil" not in str(caught.value)


INNER = {
    "loopback": ("127.0.0.1", "127.9.9.9", "0.0.0.0", "0.1.2.3", "::", "::1"),
    "private": ("10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1", "fc00::1", "fec0::1"),
    "metadata": (
        *("169.254.169.254", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"),
    ),
    "link-local": ("fe80::1", "fe80::1%eth0"),
    "shared": ("100.64.0.1", "100.100.100.200"),
    "multicast and reserved": ("224.0.0.1", "240.0.0.1", "255.255.255.255", "ff02::1"),
    "of documents and tests": ("192.0.2.1", "198.18.0.1", "2001:db8::1", "3fff::1"),
    "of protocols": ("192.0.0.1", "192.0.0.9", "5f00::1"),
    "mapped": ("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254"),
    "mapped otherwise": ("::ffff:168.63.129.16", "::127.0.0.1", "::ffff:0:127.0.0.1"),
    "NAT64": ("64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b::168.63.129.16"),
    "local NAT64": ("64:ff9b:1::127.0.0.1", "64:ff9b:1::169.254.169.254", "64:ff9b:1::"),
    "of /48": ("64:ff9b:1:7f00:0:100::", "64:ff9b:1:a9fe:a9:fe00::"),
    "of /56 to /96": (
        *("64:ff9b:1:a9:fe:a9fe::", "64:ff9b:1:0:a9:fea9:fe00:0", "64:ff9b:1:2:3::10.0.0.1"),
    ),
    "6to4 and Teredo": (
        *("2002:7f00:1::", "2002:c0a8:101::1", "2001:0:7f00:1::1", "2001:0:101:101:0:0:80ff:fffe"),
    ),
    "ISATAP": ("2606:4700::5efe:7f00:1", "2606:4700::200:5efe:a9fe:a9fe"),
    "none": ("not an address", ""),
}


@pytest.mark.parametrize("kind", INNER)
def test_inner_addresses_are_refused_in_every_spelling(kind: str) -> None:
    """Loopback, private, link-local, metadata, multicast and their IPv6 disguises."""
    for address in INNER[kind]:
        assert AddressGuard().problem(address) is not None, address


def test_addresses_of_the_internet_pass() -> None:
    """Those beside a refused one, and disguises of others of the Internet."""
    for address in (
        *("142.250.74.106", "1.1.1.1", "168.63.129.17", "192.0.1.1", "2a00:1450:4001:82a::200a"),
        *("64:ff9b::8efa:4a6a", "64:ff9b:1::1.1.1.1", "64:ff9b:1:101:1:100::"),
        *("::ffff:1.1.1.1", "2606:4700::5efe:101:101"),
    ):
        assert AddressGuard().problem(address) is None, address


def test_a_private_address_passes_where_the_manifest_lists_it_itself() -> None:
    """A person saw that address; a name that happens to lead there is another thing."""
    for address in ("10.1.2.3", "192.168.1.1", "fc00::1"):
        assert AddressGuard().problem(address, is_listed=True) is None, address


def test_loopback_and_metadata_never_pass() -> None:
    clouds = ("169.254.169.254", "100.64.0.1", "fd00:ec2::254", "fd00:42::42", "168.63.129.16")
    for address in ("127.0.0.1", *clouds):
        assert AddressGuard().problem(address, is_listed=True) is not None, address


def test_a_connection_to_ourselves_is_refused() -> None:
    """A public address of this machine is still this machine."""
    guard = AddressGuard()
    assert guard.own_address_problem("203.0.113.9", "203.0.113.9") is not None
    assert guard.own_address_problem("203.0.113.9", "142.250.74.106") is None


def test_only_what_a_test_allows_passes() -> None:
    """The exception covers its network and nothing beside it."""
    guard = AddressGuard(allow=[ipaddress.ip_network("127.0.0.1/32")])
    assert guard.problem("127.0.0.1") is None
    assert guard.problem("127.0.0.2") is not None


def test_a_host_is_reached_on_the_port_that_is_listed() -> None:
    hosts = HostList(["GitHub.com:443", "registry.example:8443"], ["api.example"])
    assert "github.com:443" in hosts
    assert "api.example:443" in hosts
    assert "github.com:22" not in hosts
    assert "sub.github.com:443" not in hosts
    assert (hosts.is_named("registry.example"), hosts.is_named("example")) == (True, False)
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
    assert (server_name(HELLO), server_name(HELLO + b"more")) == ("Alpha.example", "Alpha.example")
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
