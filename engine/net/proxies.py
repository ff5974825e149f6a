"""Which proxy a request goes through: the configured one, one of the environment, or none.

A configured proxy wins over the environment, and what stays on this machine never uses one.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote

from engine.errors import EngineError
from engine.net.errors import UrlBlocked
from engine.net.policy import Target, split_authority

DEFAULT_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/?#]*)/?")


@dataclass(frozen=True, slots=True)
class Proxy:
    """A proxy server. ``shown`` is its URL without credentials."""

    scheme: str
    host: str
    port: int
    shown: str
    credentials: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS5 rather than HTTP."""
        return self.scheme.startswith("socks")

    @property
    def resolves_names(self) -> bool:
        """Whether host names are left to the proxy, so that their addresses cannot be judged."""
        return self.scheme != "socks5"


@dataclass(frozen=True, slots=True)
class Proxies:
    """The proxies in force. ``environment`` is empty when it is not to be used."""

    configured: Proxy | None = None
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    def route(self, target: Target) -> Proxy | None:
        """The proxy for a target, None when it is called directly.

        Raises ``UrlBlocked`` (``bad_proxy``) for a variable that names no usable proxy: a request
        that is to go through a proxy never goes around it.
        """
        if target.is_loopback:
            return None
        if self.configured is not None:
            return self.configured
        named = self._variable(f"{target.scheme}_proxy") or self._variable("all_proxy")
        if not named or _is_excepted(target, self._variable("no_proxy")):
            return None
        try:
            return parse_proxy(named if "://" in named else f"http://{named}")
        except EngineError as error:
            raise UrlBlocked("bad_proxy") from error

    def _variable(self, name: str) -> str:
        # Lower case first, as curl and Python do.
        return (self.environment.get(name) or self.environment.get(name.upper()) or "").strip()


DIRECT = Proxies()
"""No proxy at all."""


def configured_proxy(url: str) -> Proxy:
    """The proxy of a configuration file or a setting, which may hold no credentials.

    Raises ``EngineError``: ``proxy_scheme``, ``proxy_malformed``, ``proxy_credentials_in_config``.
    """
    proxy = parse_proxy(url)
    if proxy.credentials is not None:
        raise EngineError(
            "Credentials of a proxy belong into the environment.",
            code="proxy_credentials_in_config",
        )
    return proxy


def parse_proxy(url: str) -> Proxy:
    """Read a proxy URL: http, https, socks5 or socks5h, with or without credentials.

    Raises ``EngineError``: ``proxy_scheme``, ``proxy_malformed``.
    """
    match = URL.fullmatch(url.strip())
    scheme = url.partition(":")[0].strip().lower()
    if scheme not in DEFAULT_PORTS and "://" in url:
        raise EngineError("A proxy is http, https, socks5 or socks5h.", code="proxy_scheme")
    if match is None:
        raise EngineError("This is no URL of a proxy.", code="proxy_malformed")
    before, at, authority = match[2].rpartition("@")
    try:
        host, port, address = split_authority(authority, DEFAULT_PORTS[scheme])
    except UrlBlocked:
        raise EngineError("This is no URL of a proxy.", code="proxy_malformed") from None
    user, _, password = before.partition(":")
    return Proxy(
        scheme=scheme,
        host=host if address is None else str(address),
        port=port,
        shown=f"{scheme}://{authority}",
        credentials=(unquote(user), unquote(password)) if at else None,
    )


def _is_excepted(target: Target, exceptions: str) -> bool:
    """Whether ``NO_PROXY`` names a target: names with their subdomains, addresses, networks."""
    entries = (entry.strip().lower() for entry in exceptions.split(","))
    return any(entry == "*" or _names(entry, target) for entry in entries if entry)


def _names(entry: str, target: Target) -> bool:
    if target.address is not None:
        try:
            return target.address in ipaddress.ip_network(entry.strip("[]"), strict=False)
        except ValueError:
            pass
    host, colon, port = entry.rpartition(":")
    if colon and port.isdecimal() and "]" not in port:
        entry, is_port = host.strip("[]"), int(port) == target.port
    else:
        is_port = True
    name = entry.removeprefix("*").removeprefix(".")
    return is_port and (target.host == name or target.host.endswith(f".{name}"))
