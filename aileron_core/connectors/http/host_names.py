"""Normalizing host names, so that exact `host:port` entries can be compared with URLs.

Manifests, routes and the URLs of guests all use this: two spellings of one host compare equal, and
what was compared is what is connected to.
"""

import ipaddress
import re
from collections.abc import Iterable

_MAX_HOST = 253
_LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")

_OTHER_DOTS = frozenset("\u3002\uff0e\uff61")


def normalize_host(host: str) -> str:
    """Return *host* normalized: lower-case ASCII without a final dot, IP addresses in their shortest form.

    International names become A-labels (IDNA 2008). A host whose last label is a number is an IPv4
    address in one of the spellings that resolvers accept: decimal, octal, hexadecimal, fewer parts
    (WHATWG URL, "IPv4 parser"). IPv6 is in brackets.

    Raises:
        ValueError: it is not a host.
    """
    if host.startswith("["):
        return _ipv6(host)
    text = (host if host.isascii() else _to_ascii(host)).lower()
    text = text.removesuffix(".")
    labels = text.split(".")
    if _NUMBER.fullmatch(labels[-1]):
        return _ipv4(labels)
    if len(text) > _MAX_HOST or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError("is not a host name")
    return text


def normalize_host_port(entry: str) -> str:
    """Return a `host:port` entry with its host normalized and its port without leading zeros.

    Raises:
        ValueError: it is malformed; the message says how, for a person to read.
    """
    host, separator, port = entry.rpartition(":")
    if not separator:
        raise ValueError("needs a port, such as :443")
    if not (port.isascii() and port.isdigit() and len(port) <= 5 and 1 <= int(port) <= 65535):
        raise ValueError("has no port from 1 to 65535")
    return f"{normalize_host(host)}:{int(port)}"


def short_host(entry: str) -> str:
    """Return a `host:port` entry for display, without HTTPS's default port."""
    return entry.removesuffix(":443")


def short_hosts(entries: Iterable[str]) -> str:
    """Return `host:port` entries as part of a sentence: `a.example and b.example:8443`."""
    return " and ".join(map(short_host, entries))


def _ipv6(host: str) -> str:
    if not host.endswith("]") or "%" in host:
        raise ValueError("is not an IPv6 address in brackets")
    try:
        return f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
    except ValueError as error:
        raise ValueError("is not an IPv6 address in brackets") from error


def _to_ascii(host: str) -> str:
    # httpx encodes strictly: look-alikes and full-width letters are not folded. Other full stops are.
    if set(host) & _OTHER_DOTS:
        raise ValueError("contains a full stop other than '.'")
    import httpx

    try:
        return httpx.URL(scheme="http", host=host).raw_host.decode("ascii")
    except (httpx.InvalidURL, ValueError) as error:
        raise ValueError("is not a valid internationalized host name") from error


def _ipv4(labels: list[str]) -> str:
    """Return the address that *labels* spell: each is a byte, but the last fills all remaining bytes."""
    if len(labels) > 4 or not all(_NUMBER.fullmatch(label) for label in labels):
        raise ValueError(
            "is not a host name: its last part is a number, but it is not an IPv4 address"
        )
    numbers = [_number(label) for label in labels]
    *front, last = numbers
    if any(number > 255 for number in front) or last >= 256 ** (5 - len(numbers)):
        raise ValueError("is not an IPv4 address: a part of it is too large")
    packed = bytes(front) + last.to_bytes(5 - len(numbers), "big")
    return str(ipaddress.IPv4Address(packed))


def _number(label: str) -> int:
    if len(label) > 40:
        raise ValueError("is not an IPv4 address: a part of it is too large")
    if label.startswith("0x"):
        return int(label[2:] or "0", 16)
    if len(label) > 1 and label.startswith("0"):
        if not set(label) <= set("01234567"):
            raise ValueError("is not an IPv4 address: a part of it is not an octal number")
        return int(label, 8)
    return int(label)
