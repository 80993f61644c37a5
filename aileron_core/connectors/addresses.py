"""Which network addresses an outgoing request may go to (DESIGN 3, THREATS H29)."""

import ipaddress
import socket
from collections.abc import Iterable
from typing import Protocol, TypeAlias

__all__ = ["AddressGuard", "Resolver", "SystemResolver"]

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
IPNetwork: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

_REFUSED: tuple[tuple[str, IPNetwork], ...] = tuple(
    (kind, ipaddress.ip_network(text))
    for kind, text in (
        ("the unspecified network", "0.0.0.0/8"),
        ("loopback", "127.0.0.0/8"),
        ("link-local (cloud metadata lives there)", "169.254.0.0/16"),
        ("carrier-grade NAT", "100.64.0.0/10"),
        ("multicast", "224.0.0.0/4"),
        ("reserved", "240.0.0.0/4"),
        ("loopback or unspecified", "::/127"),
        ("link-local", "fe80::/10"),
        ("cloud metadata", "fd00:ec2::/32"),
        ("multicast", "ff00::/8"),
    )
)
_PRIVATE: tuple[IPNetwork, ...] = tuple(
    ipaddress.ip_network(text)
    for text in ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7")
)
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")


class Resolver(Protocol):
    """Turns a name into addresses. Tests give their own, in process."""

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses of *host*, best first.

        Raises:
            OSError: there are none, or the name service did not answer.
        """
        ...


class SystemResolver:
    """The machine's resolver."""

    def resolve(self, host: str, port: int) -> list[str]:
        """Return the addresses that `getaddrinfo` gives, each once."""
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))


class AddressGuard:
    """Refuses addresses through which a service's name could reach this machine or its network.

    Args:
        allow: networks to let through all the same. Only tests give any; nothing a person, an
            agent or a file says reaches this.
    """

    def __init__(self, allow: Iterable[IPNetwork] = ()) -> None:
        self._allow = tuple(allow)

    def problem(self, address: str, *, named: bool = False) -> str | None:
        """Return why *address* is refused, or None.

        Args:
            address: an IP address, as the resolver gave it.
            named: the manifest lists this very address, so a person saw it and private ranges pass.
        """
        try:
            parsed = ipaddress.ip_address(address.partition("%")[0])
        except ValueError:
            return "is not an IP address"
        for one in (parsed, *_embedded(parsed)):
            if self._allows(one):
                continue
            for kind, network in _REFUSED:
                if one.version == network.version and one in network:
                    return f"is {kind}"
            if any(one.version == network.version and one in network for network in _PRIVATE):
                if named:
                    continue
                return "is a private address"
            if not one.is_global and not _embedded(one):
                return "is not an address of the public Internet"
        return None

    def own_address_problem(self, local: str, peer: str) -> str | None:
        """Return why a connection from *local* to *peer* is refused: both are this machine."""
        if local != peer or self._allows(ipaddress.ip_address(peer.partition("%")[0])):
            return None
        return "is an address of this machine"

    def _allows(self, address: IPAddress) -> bool:
        return any(address.version == net.version and address in net for net in self._allow)


def _embedded(address: IPAddress) -> tuple[IPAddress, ...]:
    """Return the IPv4 addresses that an IPv6 address stands for, through whatever translation."""
    if isinstance(address, ipaddress.IPv4Address):
        return ()
    found: list[IPAddress] = []
    if address.ipv4_mapped is not None:
        found.append(address.ipv4_mapped)
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found.extend(address.teredo)
    if address in _NAT64 or (int(address) >> 32 == 0 and int(address) > 1):
        found.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return tuple(found)
