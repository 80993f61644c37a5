"""URLs and headers from a guest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
