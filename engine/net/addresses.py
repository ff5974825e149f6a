"""What kind of place an address or a host name is."""

from __future__ import annotations

import ipaddress
from enum import StrEnum

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class Place(StrEnum):
    """Where an address leads. ``BLOCKED`` is never reached, whatever the policy."""

    LOOPBACK = "loopback"
    BLOCKED = "blocked"
    PRIVATE = "private"
    PUBLIC = "public"


def _networks(*texts: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(ipaddress.ip_network(text) for text in texts)


METADATA = frozenset(
    ipaddress.ip_address(text)
    for text in (
        *("169.254.169.254", "169.254.170.2", "169.254.170.23", "169.254.42.42"),
        *("100.100.100.200", "192.0.0.192", "168.63.129.16"),
        *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42"),
    )
)
"""Where clouds hand out credentials."""

METADATA_NAMES = frozenset({"metadata.google.internal", "metadata.goog"})

LOOPBACK = _networks("127.0.0.0/8", "::1/128")
PRIVATE = _networks("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7")
# Link-local, "this network", protocol assignments, documentation, benchmarks, multicast, reserved;
# and IPv6 forms that carry an IPv4 address: compatible, mapped, NAT64, 6to4, Teredo.
BLOCKED = _networks(
    *("0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24"),
    *("198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4"),
    *("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"),
    *("100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20", "5f00::/16"),
    *("fe80::/10", "fec0::/10", "ff00::/8"),
)
ISATAP = frozenset({0x00005EFE, 0x02005EFE})
"""The third quarter of an IPv6 address that ends in an IPv4 address by ISATAP."""


def place(address: Address) -> Place:
    """Where an address leads."""
    if _within(address, LOOPBACK):
        return Place.LOOPBACK
    if address in METADATA or _within(address, BLOCKED) or _is_isatap(address):
        return Place.BLOCKED
    return Place.PRIVATE if _within(address, PRIVATE) else Place.PUBLIC


def is_address(host: str) -> bool:
    """Whether a host is an address rather than a name."""
    return _address(host) is not None


def is_private_host(host: str) -> bool:
    """Whether a host, as written, lies outside the public internet. Names are not resolved."""
    name = _plain(host)
    address = _address(name)
    if address is not None:
        return place(address) is not Place.PUBLIC
    return name in ("", "localhost") or name.endswith((".localhost", ".local", ".internal"))


def is_metadata_host(host: str) -> bool:
    """Whether a host, as written, is a cloud's metadata service."""
    name = _plain(host)
    address = _address(name)
    if address is None:
        return name in METADATA_NAMES
    inner = getattr(address, "ipv4_mapped", None)
    return address in METADATA or inner in METADATA


def _within(
    address: Address, networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
) -> bool:
    return any(address.version == net.version and address in net for net in networks)


def _is_isatap(address: Address) -> bool:
    return address.version == 6 and (int(address) >> 32) & 0xFFFFFFFF in ISATAP


def _plain(host: str) -> str:
    return host.strip("[]").rstrip(".").lower()


def _address(name: str) -> Address | None:
    try:
        return ipaddress.ip_address(name)
    except ValueError:
        return None
