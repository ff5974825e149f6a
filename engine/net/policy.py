"""Which URLs may be called, judged on the text and again on the addresses it resolves to."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.net.addresses import METADATA_NAMES, Address, Place, is_private_host, place
from engine.net.errors import UrlBlocked

SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
NOT_ALLOWED = re.compile(r"[^\x21-\x7e]|[\\\"<>^`{|}]")
LABEL = re.compile(r"[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?")
PORT = re.compile(r"[0-9]{1,5}")
NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*")
DEFAULT_PORTS = {"http": 80, "https": 443}
MAX_PORT = 65_535
MAX_HOST = 253


@dataclass(frozen=True, slots=True)
class UrlPolicy:
    """What is allowed beyond the public internet. Metadata and link-local addresses never are."""

    allow_private: bool = True
    allow_loopback: bool = True
    require_https: bool = False
    """Plain HTTP only to loopback."""
    loopback_only: bool = False
    names_may_be_loopback: bool = True
    """Whether a name other than ``localhost`` may resolve to loopback."""


OPERATOR = UrlPolicy()
"""Endpoints an operator configured: the local network is fine."""

PUBLIC_ONLY = UrlPolicy(allow_private=False, allow_loopback=False, names_may_be_loopback=False)
"""Nothing but the public internet."""

STRICT = UrlPolicy(allow_private=False, require_https=True, names_may_be_loopback=False)
"""HTTPS to public hosts, HTTP to loopback (second seed)."""


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that passed. ``address`` is set when the host is one; ``path`` starts with ``/``."""

    scheme: str
    host: str
    port: int
    path: str
    address: Address | None

    @property
    def authority(self) -> str:
        """Host and port as a URL writes them; a port that goes without saying is left out."""
        is_v6 = self.address is not None and self.address.version == 6
        host = f"[{self.host}]" if is_v6 else self.host
        return host if self.has_default_port else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """The URL in its plainest form."""
        return f"{self.scheme}://{self.authority}{self.path}"

    @property
    def has_default_port(self) -> bool:
        """Whether the port goes without saying."""
        return self.port == DEFAULT_PORTS[self.scheme]

    @property
    def is_loopback(self) -> bool:
        """Whether the URL itself says that it stays on this machine."""
        if self.address is None:
            return self.host == "localhost"
        return place(self.address) is Place.LOOPBACK


def check_url(url: str, policy: UrlPolicy, *, allow_query: bool = False) -> Target:
    """Parse a URL strictly and judge it. Raises ``UrlBlocked``.

    Configured URLs have no query, which may carry a secret; the target of a redirect may.
    """
    target = _parse(url, allow_query)
    if target.address is not None:
        _check_blocked(place(target.address))
    elif target.host in METADATA_NAMES:
        raise UrlBlocked("blocked_address")
    if policy.require_https and target.scheme != "https" and not target.is_loopback:
        raise UrlBlocked("https_required")
    if target.address is not None:
        _check_place(place(target.address), policy)
    elif target.is_loopback:
        _check_place(Place.LOOPBACK, policy)
    elif is_private_host(target.host):
        _check_place(Place.PRIVATE, policy)
    if policy.loopback_only and not target.is_loopback:
        raise UrlBlocked("not_loopback")
    return target


def check_addresses(host: str, addresses: Sequence[Address], policy: UrlPolicy) -> None:
    """Judge everything a host resolved to: one bad address is enough. Raises ``UrlBlocked``."""
    if not addresses:
        raise UrlBlocked("dns_failed")
    places = [place(address) for address in addresses]
    for found in places:
        _check_blocked(found)
    for address, found in zip(addresses, places, strict=True):
        _check_name(host, address, found, policy)
        _check_place(found, policy)


def _check_blocked(found: Place) -> None:
    if found is Place.BLOCKED:
        raise UrlBlocked("blocked_address")


def _check_place(found: Place, policy: UrlPolicy) -> None:
    refused = (found is Place.PRIVATE and not policy.allow_private) or (
        found is Place.LOOPBACK and not policy.allow_loopback
    )
    if refused:
        raise UrlBlocked("private_address")


def _check_name(host: str, address: Address, found: Place, policy: UrlPolicy) -> None:
    is_loopback = found is Place.LOOPBACK
    if host == "localhost":
        if not is_loopback:
            raise UrlBlocked("loopback_name_not_loopback")
    elif is_loopback and not policy.names_may_be_loopback and host != str(address):
        raise UrlBlocked("name_resolves_to_loopback")
    elif policy.loopback_only and not is_loopback:
        raise UrlBlocked("not_loopback")


def split_authority(authority: str, default_port: int) -> tuple[str, int, Address | None]:
    """Host, port and, when the host is one, the address of ``host:port``. Raises ``UrlBlocked``."""
    if authority.startswith("["):
        host, bracket, port = authority[1:].partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise UrlBlocked("bad_host")
        return _v6(host), _port(port, default_port), ipaddress.IPv6Address(host)
    host, colon, port = authority.partition(":")
    host = host.lower()
    address = _name(host)
    return host, _port(colon + port, default_port), address


def _parse(url: str, allow_query: bool) -> Target:
    # The raw text is judged before any parser has a chance to drop or decode something.
    if NOT_ALLOWED.search(url):
        raise UrlBlocked("bad_character")
    match = SCHEME.fullmatch(url)
    if match is None:
        raise UrlBlocked("malformed")
    scheme, rest = match[1].lower(), match[2]
    if scheme not in DEFAULT_PORTS:
        # "host:8080/x" has a port where a scheme's rest would be.
        raise UrlBlocked("malformed" if rest[:1].isdigit() else "scheme")
    if not rest.startswith("//"):
        raise UrlBlocked("malformed")
    authority = re.split(r"[/?#]", rest[2:], maxsplit=1)[0]
    path = rest[2 + len(authority) :]
    if "@" in authority:
        raise UrlBlocked("credentials_in_url")
    host, port, address = split_authority(authority, DEFAULT_PORTS[scheme])
    _check_path(path, allow_query)
    return Target(scheme, host, port, path if path.startswith("/") else f"/{path}", address)


def _check_path(path: str, allow_query: bool) -> None:
    before, _, _ = path.partition("#")
    if "?" in before and not allow_query:
        raise UrlBlocked("query_in_url")
    if "#" in path:
        raise UrlBlocked("fragment_in_url")


def _port(text: str, default: int) -> int:
    if not text:
        return default
    if not PORT.fullmatch(text[1:]) or not 0 < int(text[1:]) <= MAX_PORT:
        raise UrlBlocked("bad_port")
    return int(text[1:])


def _v6(host: str) -> str:
    try:
        address = ipaddress.IPv6Address(host)
    except ValueError:
        raise UrlBlocked("bad_host") from None
    if address.scope_id is not None:
        raise UrlBlocked("bad_host")
    return str(address)


def _name(host: str) -> Address | None:
    """Check a host that is no bracketed address; returns it when it is an IPv4 address."""
    labels = host.split(".")
    if len(host) > MAX_HOST or not all(LABEL.fullmatch(label) for label in labels):
        raise UrlBlocked("bad_host")
    if not NUMBER.fullmatch(labels[-1]):
        return None
    try:
        return ipaddress.IPv4Address(host)
    except ValueError:
        # 127.1, 0177.0.0.1, 0x7f000001 and 2130706433 all mean an address to some resolvers.
        raise UrlBlocked("noncanonical_ip") from None
