"""What describes one provider, wherever it was written down, and what can be wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Final

from engine.errors import EngineError
from engine.net.errors import UrlBlocked
from engine.net.policy import OPERATOR, check_url
from engine.providers import catalogue
from engine.providers.catalogue import Service
from engine.providers.speech import ProviderProtocol

NAME: Final = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
RESERVED: Final = frozenset({"local", "compatible"})
"""Names before the slash that mean no provider: local models, and the address in the settings."""
MAX_NAME: Final = 60
MAX_URL: Final = 2048
MAX_KEY: Final = 4096
MAX_VARIABLE: Final = 200
MAX_MODELS: Final = 200
MAX_MODEL: Final = 200
OUR_VARIABLES: Final = (
    *("MEMORY_STUDIO_", "DATABASE_URL", "CELERY_", "REDIS_", "POSTGRES_", "PGPASS", "DJANGO_"),
    *("OTEL_", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"),
)
"""Beginnings of variables that hold our own secrets, which are sent to nobody: those of the
studio, its database and broker, the collector of traces and the proxies."""


@dataclass(frozen=True, slots=True)
class ProviderSpec:
    """One provider. ``name`` is what stands before the slash of ``provider/model``.

    A blank ``base_url`` or ``protocol`` is that of the kind. The credential is ``api_key``, or
    the value of the environment variable that ``key_variable`` names. ``models`` are ids and
    patterns (with ``*``) of what it serves in chats; none leaves that to the kind.
    """

    name: str
    kind: str = catalogue.COMPATIBLE
    base_url: str = ""
    protocol: str = ""
    api_key: str = field(default="", repr=False)
    key_variable: str = ""
    models: tuple[str, ...] = ()
    enabled: bool = True

    @property
    def service(self) -> Service:
        """What the catalogue says of its kind. Raises ``EngineError`` (``unknown_kind``)."""
        return catalogue.find(self.kind)

    @property
    def url(self) -> str:
        """Its base URL, without a slash at the end."""
        return (self.base_url or self.service.base_url).rstrip("/")

    @property
    def speaks(self) -> ProviderProtocol:
        """Its protocol."""
        return ProviderProtocol(self.protocol) if self.protocol else self.service.protocol

    @property
    def patterns(self) -> tuple[str, ...]:
        """Ids and patterns of its chat models: its own, else those that its kind is known for."""
        return self.models or self.service.model_patterns

    def serves(self, model: str) -> bool:
        """Whether a model is named by one of its ids or patterns."""
        return any(fnmatchcase(model, pattern) for pattern in self.patterns)


def problems(spec: ProviderSpec) -> Mapping[str, str]:
    """What is wrong with a provider: a code for each field that cannot be as it is."""
    found = {
        "name": _name(spec.name),
        "kind": _kind(spec.kind),
        "protocol": _protocol(spec.protocol),
        "base_url": _url(spec),
        "api_key": _key(spec),
        "key_variable": _variable(spec.key_variable),
        "models": _models(spec.models),
    }
    return {name: code for name, code in found.items() if code}


def _name(name: str) -> str:
    if name in RESERVED:
        return "reserved_name"
    return "" if NAME.fullmatch(name) and len(name) <= MAX_NAME else "bad_name"


def _kind(kind: str) -> str:
    try:
        catalogue.find(kind)
    except EngineError as error:
        return error.code
    return ""


def _protocol(protocol: str) -> str:
    return "" if not protocol or protocol in set(ProviderProtocol) else "unknown_protocol"


def _url(spec: ProviderSpec) -> str:
    try:
        url = spec.url
    except EngineError:
        return ""
    if not url:
        return "missing"
    if len(url) > MAX_URL:
        return "malformed"
    try:
        check_url(url, OPERATOR)
    except UrlBlocked as error:
        return error.reason
    return ""


def _key(spec: ProviderSpec) -> str:
    if spec.api_key and spec.key_variable:
        return "two_keys"
    return "" if is_sendable(spec.api_key) else "bad_key"


def is_sendable(key: str) -> bool:
    """Whether a credential can stand in a header."""
    return len(key) <= MAX_KEY and key.isascii() and key.isprintable() and key == key.strip()


def _variable(name: str) -> str:
    if not name:
        return ""
    if len(name) > MAX_VARIABLE or not VARIABLE.fullmatch(name):
        return "bad_variable"
    return "our_variable" if is_ours(name) else ""


def is_ours(variable: str) -> bool:
    """Whether a variable may hold a secret of our own; some are read in small letters too."""
    return variable.upper().startswith(OUR_VARIABLES)


def _models(models: tuple[str, ...]) -> str:
    is_fine = len(models) <= MAX_MODELS and all(
        0 < len(model) <= MAX_MODEL and model.isprintable() and model == model.strip()
        for model in models
    )
    return "" if is_fine else "bad_models"
