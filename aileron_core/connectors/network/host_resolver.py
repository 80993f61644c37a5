"""The hosts that a sandbox may reach, and a resolver for their names: DNS as far as it needs it (RFC 1035).

A sandbox starts with some, and a person allows others while it runs. What a name leads to is checked, and kept.
"""

import asyncio
import ipaddress
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from aileron_core.connectors.http.addresses import AddressGuard, Resolver
from aileron_core.connectors.http.host_names import normalize_host, normalize_host_port

HTTPS_PORT = 443
NOT_A_NAME = "it is not a host name"
IPV4, IPV6 = 1, 28
"""The types of questions for addresses."""
_INTERNET = 1
_HEAD = struct.Struct(">6H")
_MAX_NAME = 253
_TTL_SECONDS = 30
_FAILURE, _NO_SUCH_NAME, _NOT_IMPLEMENTED = 2, 3, 4
_NAME_IN_QUESTION = 0xC00C
"""A pointer to it."""
_RESPONSE, _OPCODE, _AUTHORITATIVE, _DESIRED, _AVAILABLE = 0x8000, 0x7800, 0x0400, 0x0100, 0x0080
_RESOLVE_SECONDS = 10.0
_FRESH_SECONDS, _FAILED_SECONDS = 30.0, 2.0
"""How long a name is not resolved again: clients ask for both kinds of addresses at once."""


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


class NotAQuery(ValueError):
    """A message that gets no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """One question."""

    number: int
    flags: int
    name: str
    """Labels joined by dots, in lower case, without a final dot; bytes that are not ASCII as `\\xNN`."""
    kind: int
    """Type of the records that are asked for."""
    question: bytes
    """As it was sent, to be repeated in the answer."""

    @classmethod
    def parse(cls, message: bytes) -> "Query":
        """Read one question.

        Raises:
            NotAQuery: it is an answer, has no or several questions, or is damaged.
        """
        if len(message) < _HEAD.size:
            raise NotAQuery
        number, flags, questions, *_ = _HEAD.unpack_from(message)
        if flags & _RESPONSE or questions != 1:
            raise NotAQuery
        labels, at = _labels(message, _HEAD.size)
        fixed = message[at : at + 4]
        if len(fixed) < 4 or fixed[2:] != _INTERNET.to_bytes(2, "big"):
            raise NotAQuery
        name = ".".join(each.decode("ascii", "backslashreplace") for each in labels).lower()
        if len(name) > _MAX_NAME:
            raise NotAQuery
        return cls(
            number=number,
            flags=flags,
            name=name,
            kind=int.from_bytes(fixed[:2], "big"),
            question=message[_HEAD.size : at + 4],
        )

    def answer(self, addresses: Sequence[str]) -> bytes:
        """Return the answer with these IPv4 addresses; there may be none."""
        record = struct.pack(">HHHIH", _NAME_IN_QUESTION, IPV4, _INTERNET, _TTL_SECONDS, 4)
        return self._response(0, [record + socket.inet_aton(each) for each in addresses])

    def no_such_name(self) -> bytes:
        return self._response(_NO_SUCH_NAME)

    def failure(self) -> bytes:
        """Return the answer that another attempt may succeed."""
        return self._response(_FAILURE)

    def _response(self, code: int, records: Sequence[bytes] = ()) -> bytes:
        if self.flags & _OPCODE:
            code, records = _NOT_IMPLEMENTED, ()
        flags = _RESPONSE | _AUTHORITATIVE | _AVAILABLE | self.flags & (_OPCODE | _DESIRED) | code
        head = _HEAD.pack(self.number, flags, 1, len(records), 0, 0)
        return head + self.question + b"".join(records)


def _labels(message: bytes, at: int) -> tuple[list[bytes], int]:
    """Return the labels of the name at *at*, and where it ends."""
    labels: list[bytes] = []
    while True:
        size = message[at] if at < len(message) else 0xFF
        at += 1
        if size == 0:
            return labels, at
        if size > 63 or at + size > len(
            message
        ):  # a pointer, which no question needs, or cut short
            raise NotAQuery
        labels.append(message[at : at + size])
        at += size


@dataclass(frozen=True, slots=True)
class ResolvedHost:
    """What became of one name."""

    addresses: tuple[str, ...]
    """None where the name could not be resolved."""
    problem: str
    """Why it is not reached, as a clause; empty where it is."""
    until: float
    """When it is resolved again, in monotonic seconds."""


class HostResolver:
    """Resolves listed names; belongs to one event loop."""

    def __init__(self, hosts: HostList, resolver: Resolver, guard: AddressGuard) -> None:
        self._hosts = hosts
        self._resolver = resolver
        self._guard = guard
        self._resolved: dict[str, ResolvedHost] = {}
        self._locks: dict[str, asyncio.Lock] = {}

    async def resolve(self, name: str) -> ResolvedHost:
        """Return the addresses of *name*, which are all allowed, or why it is not reached."""
        async with self._locks.setdefault(name, asyncio.Lock()):
            known = self._resolved.get(name)
            if known is not None and time.monotonic() < known.until:
                return known
            found = self._resolved[name] = await self._ask(name)
            return found

    async def _ask(self, name: str) -> ResolvedHost:
        try:
            async with asyncio.timeout(_RESOLVE_SECONDS):
                addresses = await _in_thread(lambda: self._resolver.resolve(name, HTTPS_PORT))
        except (OSError, UnicodeError):  # TimeoutError is an OSError
            until = time.monotonic() + _FAILED_SECONDS
            return ResolvedHost((), "its name cannot be resolved", until)
        private = self._hosts.may_be_private(name)
        problems = [
            f"it leads to {each}, which {problem}"
            for each in addresses
            if (problem := self._guard.problem(each, is_listed=private)) is not None
        ]
        if not problems and all(":" in each for each in addresses):
            problems = ["it has no IPv4 address"]
        until = time.monotonic() + _FRESH_SECONDS
        return ResolvedHost(tuple(addresses), "".join(problems[:1]), until)


async def _in_thread(call: Callable[[], list[str]]) -> list[str]:
    """Return what *call* returns, on a thread that does not keep this program alive."""
    done: Future[list[str]] = Future()
    done.set_running_or_notify_cancel()  # who waits may give up; the thread goes on

    def run() -> None:
        try:
            done.set_result(call())
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            done.set_exception(error)

    threading.Thread(target=run, name="network-resolver", daemon=True).start()
    return await asyncio.wrap_future(done)
