"""The hosts that a sandbox may reach: those it starts with, and those that a person allows while it runs."""

import ipaddress
import threading
from collections.abc import Iterable, Iterator

from aileron_core.connectors.http.host_names import normalize_host, normalize_host_port

HTTPS_PORT = 443
NOT_A_NAME = "it is not a host name"


def is_host_name(text: str) -> bool:
    """Return whether *text* is the name of a host in its normalized form, and no address."""
    try:
        return normalize_host(text) == text and not text.startswith("[") and not _is_address(text)
    except ValueError:
        return False


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def parse_entry(text: str) -> str:
    """Return *text*, `host:port` or `host` for the port of HTTPS, normalized.

    Raises:
        ValueError: it is malformed, or an address; the message says how, for a person to read.
    """
    entry = normalize_host_port(text if ":" in text else f"{text}:{HTTPS_PORT}")
    if not is_host_name(entry.rpartition(":")[0]):
        raise ValueError("is an address, and TLS names hosts only; write the host's name")
    return entry


class HostList:
    """Entries `host:port`, normalized. Safe to use from several threads.

    Args:
        listed: what the person's own settings list; these may lead to private networks.
        others: the agent's own.
    """

    def __init__(self, listed: Iterable[str], others: Iterable[str] = ()) -> None:
        self._lock = threading.Lock()
        self._listed = frozenset(map(parse_entry, listed))
        self._entries = {*self._listed, *map(parse_entry, others)}

    def allow(self, entry: str) -> None:
        """Add *entry*, which a person allowed.

        Raises:
            ValueError: it is malformed.
        """
        with self._lock:
            self._entries.add(parse_entry(entry))

    def __contains__(self, entry: str) -> bool:
        with self._lock:
            return entry in self._entries

    def __iter__(self) -> Iterator[str]:
        with self._lock:
            return iter(sorted(self._entries))

    def is_named(self, host: str) -> bool:
        """Return whether *host* may be reached on any port."""
        with self._lock:
            return any(each.rpartition(":")[0] == host for each in self._entries)

    def may_be_private(self, host: str) -> bool:
        """Return whether *host* may lead to a private network."""
        return any(each.rpartition(":")[0] == host for each in self._listed)

    @property
    def ports(self) -> tuple[int, ...]:
        """The ports that connections are accepted on: of the entries, and that of HTTPS."""
        with self._lock:
            return tuple(sorted({HTTPS_PORT, *(int(e.rpartition(":")[2]) for e in self._entries)}))
