"""URLs and headers from a guest, and addresses that no connector may reach."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.connectors.http.addresses import AddressGuard
from aileron_core.connectors.http.target import allowed_headers, parse_target


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
    assert line.isascii()
    assert line.count(" ") == 1
    assert line.isprintable()
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
        "169.254.169.254",
        "168.63.129.16",
        "192.0.0.192",
        "fd00:ec2::254",
        "fd20:ce::254",
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
