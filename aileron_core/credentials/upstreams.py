"""Where each provider's traffic goes: its own address, or what config.toml names; no path leaves a base path."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args
from urllib.parse import unquote_to_bytes, urlsplit

from aileron_core.errors import InvalidRequest
from aileron_core.settings import GatewaySettings

Provider: TypeAlias = Literal["anthropic", "openai", "gemini"]
PROVIDERS: tuple[Provider, ...] = get_args(Provider)
_DEFAULT: Mapping[Provider, str] = {
    "anthropic": "https://api.anthropic.com",
    "openai": "https://api.openai.com",
    "gemini": "https://generativelanguage.googleapis.com",
}
_MOST_ENCODED = 8
"""Times that a path may be percent-encoded; what is encoded more often is refused."""
_PORTS: Mapping[str, int] = {"http": 80, "https": 443}


def find_provider(name: str) -> Provider:
    """Return the provider *name*.

    Raises:
        InvalidRequest: there is none.
    """
    for each in PROVIDERS:
        if each == name:
            return each
    raise InvalidRequest(f"A provider is one of {', '.join(PROVIDERS)}.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Upstream:
    """One service that model traffic is passed to."""

    scheme: Literal["http", "https"]
    host: str
    """Without brackets, where it is an IPv6 address."""
    port: int
    base_path: bytes
    """Path in front of every request's own; empty, or with a slash first and none last."""
    configured: bool
    """A person named it, so it may be of this machine or its network."""

    @property
    def authority(self) -> str:
        """`host`, with the port where it is not the scheme's own: what Host says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def address(self) -> str:
        """`host:port`, for a sentence."""
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def url(self) -> str:
        """Its base URL, without a slash at its end."""
        return f"{self.scheme}://{self.authority}{self.base_path.decode('ascii')}"

    def is_below_base_path(self, path: bytes) -> bool:
        """Return whether *path*, behind `base`, surely stays below it, however a server reads it.

        Args:
            path: of the request, as sent, without its query.
        """
        return not self.base_path or not _has_dot_segment(path)


def _has_dot_segment(path: bytes) -> bool:
    """Return whether a server might see `.` or `..` as a segment, or what it might make one of."""
    for _ in range(_MOST_ENCODED):
        decoded = unquote_to_bytes(path)
        if decoded == path:
            break
        path = decoded
    else:
        return True
    try:
        text = path.decode("utf-8")  # an overlong encoding of a dot is not UTF-8
    except UnicodeDecodeError:
        return True
    # Some servers take a backslash for a slash, and what follows `;` for a parameter of the segment.
    segments = (re.split(r"[;?#]", each)[0] for each in re.split(r"[/\\]", text))
    return any(each.strip("\0\t\n\r ") in (".", "..") for each in segments)


def upstreams(settings: GatewaySettings) -> Mapping[Provider, Upstream]:
    named: Mapping[Provider, str] = {
        "anthropic": settings.anthropic,
        "openai": settings.openai,
        "gemini": settings.gemini,
    }
    return {
        provider: upstream_at(named[provider] or own, configured=bool(named[provider]))
        for provider, own in _DEFAULT.items()
    }


def base_urls(settings: GatewaySettings) -> Mapping[str, str]:
    """Return where requests go, by the provider's name."""
    return {provider: each.url for provider, each in upstreams(settings).items()}


def upstream_at(url: str, *, configured: bool) -> Upstream:
    """Return the service at a base URL that `settings.is_base_url` has let pass."""
    parts = urlsplit(url)
    scheme: Literal["http", "https"] = "https" if parts.scheme == "https" else "http"
    return Upstream(
        scheme=scheme,
        host=parts.hostname or "",
        port=parts.port or _PORTS[scheme],
        base_path=parts.path.rstrip("/").encode("ascii"),
        configured=configured,
    )
