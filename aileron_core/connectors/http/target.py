"""Validating the URL and headers that a guest gives for a request; headers that are the host's own are dropped."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from aileron_core.connectors.http.host_names import normalize_host

_DEFAULT_PORTS = {"http": 80, "https": 443}
_MAX_URL = 32 * 1024
_MAX_HEADERS = 64 * 1024
_FORBIDDEN = re.compile(r"[\x00-\x1f\x7f\\]")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_AUTHORITY = re.compile(r"([^:\[\]%]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{0,5}))?")
_IN_PATH = "/%:@!$&'()*+,;=~-._"
_IN_QUERY = _IN_PATH + "?[]{}|^"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110, 5.6.2
_METHOD = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,40}")  # RFC 9110, 9.1, of a bearable length
_HOST_OWNED = frozenset(
    {
        *("host", "content-length", "transfer-encoding", "connection", "keep-alive", "cookie"),
        *("expect", "upgrade", "te", "trailer", "http2-settings"),
    }
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestTarget:
    """A URL, parsed once: what is checked is what is connected to."""

    scheme: str
    host: str
    """Normalized by `host_names.normalize_host`."""
    port: int
    path: str
    """Path and query as they stand in the request line."""

    @property
    def host_port(self) -> str:
        """The form in which manifests list it."""
        return f"{self.host}:{self.port}"

    @property
    def host_header(self) -> str:
        """The Host header, with the port unless it is the scheme's default."""
        return self.host if self.port == _DEFAULT_PORTS[self.scheme] else self.host_port

    @property
    def url(self) -> str:
        """The URL as text, to resolve redirects against."""
        return f"{self.scheme}://{self.host_port}{self.path}"


def parse_target(url: str) -> RequestTarget:
    """Parse *url*.

    Raises:
        ValueError: it is not an http or https URL with a host; the message does not quote path or
            query.
    """
    if len(url) > _MAX_URL:
        raise ValueError(f"the URL is longer than {_MAX_URL} characters")
    if _FORBIDDEN.search(url):
        raise ValueError("the URL contains a control character or a backslash")
    try:
        parts = urlsplit(url.strip(" "))
    except ValueError as error:
        raise ValueError("the URL cannot be read") from error
    scheme = parts.scheme.lower()
    if scheme not in _DEFAULT_PORTS:
        raise ValueError("the URL must begin with https:// or http://")
    if "@" in parts.netloc:
        raise ValueError("the URL contains user information; use a credential instead")
    place = _AUTHORITY.fullmatch(parts.netloc)
    if place is None:
        raise ValueError("the URL has no host")
    try:
        host = normalize_host(place[1])
    except ValueError as error:
        raise ValueError(f"the URL's host {error}") from error
    port = int(place[2]) if place[2] else _DEFAULT_PORTS[scheme]
    if not 1 <= port <= 65535:
        raise ValueError("the URL's port is not from 1 to 65535")
    query = f"?{quote(parts.query, safe=_IN_QUERY)}" if parts.query else ""
    path = quote(parts.path or "/", safe=_IN_PATH) + query
    return RequestTarget(scheme=scheme, host=host, port=port, path=path)


def check_method_name(method: str) -> None:
    """Check that *method* is a method name that may be sent.

    Raises:
        ValueError: it is malformed, or one of the two for proxies and for tracing.
    """
    if not _METHOD.fullmatch(method) or method.upper() in {"CONNECT", "TRACE"}:
        raise ValueError("the method is not supported")


def allowed_headers(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Return a guest's headers without those that only the host may set.

    Raises:
        ValueError: one is malformed; the message names it without its value.
    """
    kept: list[tuple[bytes, bytes]] = []
    size = 0
    for name, value in headers.items():
        if not _TOKEN.fullmatch(name):
            raise ValueError("a header's name is malformed")
        if _CONTROL.search(value):
            raise ValueError(
                f"the header {name} contains a line break or another control character"
            )
        lower = name.lower()
        if lower in _HOST_OWNED or lower.startswith("proxy-"):
            continue
        entry = (name.encode("ascii"), value.strip(" \t").encode("utf-8", "replace"))
        size += len(entry[0]) + len(entry[1])
        kept.append(entry)
    if size > _MAX_HEADERS:
        raise ValueError(f"the headers are larger than {_MAX_HEADERS} bytes")
    return kept
