"""Addresses that no connector may reach."""

import ipaddress

import pytest

from aileron_core.connectors.http.addresses import AddressGuard

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
