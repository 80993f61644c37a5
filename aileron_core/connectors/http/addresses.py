"""Which network addresses an outgoing request may connect to.

None of this machine, a private network or a metadata service, nor an IPv6 address that stands for one;
a private one only where the manifest names that very address.
"""

import ipaddress
import socket
from collections.abc import Iterable
from typing import Protocol, TypeAlias

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_METADATA: tuple[IPNetwork, ...] = tuple(
    ipaddress.ip_network(text)
    for text in (
        "168.63.129.16/32",  # Azure
        "192.0.0.192/32",  # Oracle
        "100.100.100.200/32",  # Alibaba
        "fd00:ec2::/32",  # AWS
        "fd20:ce::254/128",  # Google
        "fd00:c1::a9fe:a9fe/128",  # Oracle
        "fd00:42::42/128",  # Scaleway
    )
)
"""Cloud metadata outside link-local: refused whatever is let through."""
_REFUSED: tuple[tuple[str, IPNetwork], ...] = tuple(
    (kind, ipaddress.ip_network(text))
    for kind, text in (
        ("the unspecified network", "0.0.0.0/8"),
        ("loopback", "127.0.0.0/8"),
        ("link-local (where cloud metadata services are)", "169.254.0.0/16"),
        ("carrier-grade NAT", "100.64.0.0/10"),
        ("reserved for protocols", "192.0.0.0/24"),
        ("multicast", "224.0.0.0/4"),
        ("reserved", "240.0.0.0/4"),
        ("loopback or unspecified", "::/127"),
        ("link-local", "fe80::/10"),
        ("site-local", "fec0::/10"),
        ("segment routing", "5f00::/16"),
        ("for documentation", "3fff::/20"),
        ("multicast", "ff00::/8"),
    )
)
_PRIVATE: tuple[IPNetwork, ...] = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
_UNSPECIFIED = ipaddress.IPv4Network("0.0.0.0/8")
_ISATAP = (0x00005EFE, 0x02005EFE)
"""The upper half of an interface's identifier whose lower half is an IPv4 address (RFC 5214)."""


class Resolver(Protocol):
    """Resolves host names. Tests provide their own, in process."""

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of *host*, best first.

        Raises:
            OSError: there are none, or the name service did not answer.
        """
        ...


class SystemResolver:
    """The operating system's resolver."""

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses from `getaddrinfo`, without duplicates."""
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


class AddressGuard:
    """Refuses addresses through which a host name could reach this machine or its network.

    Args:
        allow: networks to allow nevertheless. No person, agent or file can set this: tests do, and what
            fetches from the registries of the person's own settings.
        private: whether private ranges are allowed; None: where a manifest lists the address.
    """

    def __init__(self, allow: Iterable[IPNetwork] = (), *, private: bool | None = None) -> None:
        self._allow = tuple(allow)
        self._private = private

    def problem(self, address: str, *, is_listed: bool = False) -> str | None:
        """Return why *address* is refused, None if it is allowed.

        Args:
            address: an IP address from the resolver.
            is_listed: the manifest lists this very address, so a person saw it; private ranges are then
                allowed.
        """
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return "is not an IP address"
        for one in (parsed, *_embedded_ipv4(parsed)):
            if _within(one, _METADATA):
                return "is a cloud metadata address"
            if self._allows(one):
                continue
            for kind, network in _REFUSED:
                if one.version == network.version and one in network:
                    return f"is {kind}"
            if _within(one, _PRIVATE):
                if is_listed if self._private is None else self._private:
                    continue
                return "is a private address"
            if not one.is_global and not _embedded_ipv4(one):
                return "is not an address of the public Internet"
        return None

    def own_address_problem(self, local: str, peer: str) -> str | None:
        """Return why a connection from *local* to *peer* is refused if both are this machine."""
        if local != peer or self._allows(ipaddress.ip_address(peer.partition("%")[0])):
            return None
        return "is an address of this machine"

    def _allows(self, address: IPAddress) -> bool:
        return _within(address, self._allow)


def _within(address: IPAddress, networks: Iterable[IPNetwork]) -> bool:
    return any(address.version == network.version and address in network for network in networks)


def _embedded_ipv4(address: IPAddress) -> tuple[IPAddress, ...]:
    """Return the IPv4 addresses that an IPv6 address stands for under any translation scheme."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    embedded: list[IPAddress] = []
    if address.ipv4_mapped is not None:
        embedded.append(address.ipv4_mapped)
    if address.sixtofour is not None:
        embedded.append(address.sixtofour)
    if address.teredo is not None:
        embedded.extend(address.teredo)
    number = int(address)
    # NAT64, IPv4-compatible (`::a.b.c.d`), IPv4-translated (`::ffff:0:a.b.c.d`) and ISATAP.
    if (
        address in _NAT64
        or (number >> 32 == 0 and number > 1)
        or number >> 32 == 0xFFFF0000
        or number >> 32 & 0xFFFFFFFF in _ISATAP
    ):
        embedded.append(ipaddress.IPv4Address(number & 0xFFFFFFFF))
    if address in _LOCAL_NAT64:
        embedded.extend(_local_nat64(address.packed))
    return tuple(embedded)


def _local_nat64(packed: bytes) -> list[IPAddress]:
    """Return the IPv4 addresses that an address of 64:ff9b:1::/48 may stand for (RFC 8215).

    The network's owner chooses a prefix of 48, 56, 64 or 96 bits (RFC 6052), and nothing reveals
    which, so every reading counts except addresses that no host can have.
    """
    readings = (packed[6:8] + packed[9:11], packed[7:8] + packed[9:12], packed[9:13], packed[12:16])
    addresses: list[IPAddress] = [
        address for address in map(ipaddress.IPv4Address, readings) if address not in _UNSPECIFIED
    ]
    return addresses or [ipaddress.IPv4Address(0)]
