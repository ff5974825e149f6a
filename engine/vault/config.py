"""The ``[rag]`` tables of the configuration file, as the second seed prints them.

Strict: an unknown name, a wrong type or a value out of bounds is refused, never passed over. Keys
of services never stand here, only the names of the environment variables that hold them.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from engine.errors import EngineError
from engine.net.errors import UrlBlocked
from engine.net.policy import STRICT, UrlPolicy, check_url
from engine.net.proxies import configured_proxy
from engine.net.retry import MAX_RETRIES
from engine.vault.errors import ConfigInvalid

ENV_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
MAX_TOKENS: Final = 2048
MAX_THREADS: Final = 256
MAX_DIMENSIONS: Final = 16_384
MAX_SECONDS: Final = 86_400
MODEL_DIR: Final = "./models/embeddinggemma"
JSON_MODES: Final = ("off", "json_object", "json_schema")
PROTOCOLS: Final = {
    "embedding": ("gemini", "compatible"),
    "generation": ("gemini", "compatible"),
    "rerank": ("compatible",),
}

Check = Callable[[str, object], object]


@dataclass(frozen=True, slots=True)
class Service:
    """A model that is asked over HTTP. ``url`` is the operation itself."""

    protocol: str
    url: str
    model: str
    api_key_env: str = ""
    dimensions: int | None = None
    json_mode: str = "off"
    """Of generation: how the service is asked for JSON, ``off``, ``json_object``,
    ``json_schema``."""


@dataclass(frozen=True, slots=True)
class Http:
    """How services are asked. ``retries`` are further attempts."""

    use_env_proxy: bool = True
    proxy_url: str = ""
    retries: int = 2
    backoff_ms: int = 500
    connect_timeout_seconds: float = 10
    timeout_seconds: float = 60
    download_timeout_seconds: float = 900
    allow_private_networks: bool = False

    @property
    def policy(self) -> UrlPolicy:
        """Which URLs may be called."""
        return replace(STRICT, allow_private=self.allow_private_networks)


@dataclass(frozen=True, slots=True)
class RagConfig:
    """Everything under ``[rag]``. A service that is None is not configured."""

    local_model_dir: Path
    local_threads: int = 4
    max_tokens: int = MAX_TOKENS
    model_download_base_url: str = ""
    embedding: Service | None = None
    generation: Service | None = None
    rerank: Service | None = None
    http: Http = Http()


def load(path: Path) -> RagConfig:
    """The configuration of a TOML file; defaults when there is no such file.

    Raises ``ConfigInvalid``.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        document = {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigInvalid(path.name, "this is no TOML file", code="malformed") from error
    return read(document, beside=path.parent)


def read(document: Mapping[str, object], *, beside: Path) -> RagConfig:
    """The ``rag`` table of a document; relative paths resolve in the folder ``beside`` it.

    Raises ``ConfigInvalid``. Other tables are not looked at.
    """
    table = _table("rag", document.get("rag", {}))
    tables = {name: table.get(name) for name in (*PROTOCOLS, "http")}
    plain = {name: value for name, value in table.items() if name not in tables}
    http = Http(
        **_checked(
            "rag.http", _table("rag.http", {} if tables["http"] is None else tables["http"]), HTTP
        )
    )
    given = _checked("rag", plain, RAG)
    folder = Path(str(given.pop("local_model_dir", MODEL_DIR))).expanduser()
    if base := given.get("model_download_base_url"):
        _url("rag.model_download_base_url", base, http.policy)
    services: dict[str, Any] = {
        name: None if (found := tables[name]) is None else _service(name, found, http.policy)
        for name in PROTOCOLS
    }
    return RagConfig(local_model_dir=beside / folder, http=http, **services, **given)


def _service(name: str, value: object, policy: UrlPolicy) -> Service:
    where = f"rag.{name}"
    table = _table(where, value)
    for key in ("protocol", "url", "model"):
        if not table.get(key):
            raise ConfigInvalid(f"{where}.{key}", "this is needed", code="missing")
    checks = {key: SERVICE[key] for key in SERVICE if OWN.get(key, name) == name}
    given = _checked(where, table, checks)
    allowed = PROTOCOLS[name]
    if given["protocol"] not in allowed:
        message = f"{' or '.join(allowed)} only" if len(allowed) == 1 else " or ".join(allowed)
        raise ConfigInvalid(f"{where}.protocol", message, code="protocol")
    _url(f"{where}.url", given["url"], policy)
    return Service(**given)


def _table(where: str, value: object) -> Mapping[str, object]:
    if not isinstance(value, dict):
        raise ConfigInvalid(where, "this is no table", code="type")
    return value


def _checked(
    where: str, table: Mapping[str, object], checks: Mapping[str, Check]
) -> dict[str, Any]:
    for name in table:
        if name not in checks:
            hint = "keys only by api_key_env" if "key" in name else "no such name"
            raise ConfigInvalid(f"{where}.{name}", hint, code="unknown_key")
    return {name: checks[name](f"{where}.{name}", value) for name, value in table.items()}


def _url(where: str, value: object, policy: UrlPolicy) -> None:
    try:
        check_url(str(value), policy)
    except UrlBlocked as error:
        raise ConfigInvalid(where, "this address is not allowed", code=error.reason) from None


def _text(where: str, value: object) -> str:
    if not isinstance(value, str):
        raise ConfigInvalid(where, "this is no text", code="type")
    return value


def _flag(where: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ConfigInvalid(where, "true or false", code="type")
    return value


def _json_mode(where: str, value: object) -> str:
    if _text(where, value) not in JSON_MODES:
        raise ConfigInvalid(where, " or ".join(JSON_MODES), code="json_mode")
    return str(value)


def _env_name(where: str, value: object) -> str:
    if not ENV_NAME.fullmatch(_text(where, value)):
        raise ConfigInvalid(where, "this names no environment variable", code="env_name")
    return str(value)


def _proxy(where: str, value: object) -> str:
    if not _text(where, value):
        return ""
    try:
        configured_proxy(str(value))
    except EngineError as error:
        raise ConfigInvalid(where, "this proxy cannot be used", code=error.code) from None
    return str(value)


def _whole(least: int, most: int, *, why: str = "", code: str = "out_of_range") -> Check:
    def check(where: str, value: object) -> int:
        # A bool is an int to Python.
        if type(value) is not int:
            raise ConfigInvalid(where, "this is no whole number", code="type")
        if not least <= value <= most:
            raise ConfigInvalid(where, why or f"{least} to {most}", code=code)
        return value

    return check


def _seconds(where: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ConfigInvalid(where, "this is no number of seconds", code="type")
    if not 0 < value <= MAX_SECONDS:
        raise ConfigInvalid(where, f"above 0, at most {MAX_SECONDS}", code="out_of_range")
    return float(value)


OWN: Final = {"dimensions": "embedding", "json_mode": "generation"}
"""Names that only one service has."""
SERVICE: Final[dict[str, Check]] = {
    "protocol": _text,
    "url": _text,
    "model": _text,
    "api_key_env": _env_name,
    "dimensions": _whole(1, MAX_DIMENSIONS),
    "json_mode": _json_mode,
}
HTTP: Final[dict[str, Check]] = {
    "use_env_proxy": _flag,
    "proxy_url": _proxy,
    "retries": _whole(0, MAX_RETRIES, code="retries_out_of_range"),
    "backoff_ms": _whole(0, 60_000),
    "connect_timeout_seconds": _seconds,
    "timeout_seconds": _seconds,
    "download_timeout_seconds": _seconds,
    "allow_private_networks": _flag,
}
RAG: Final[dict[str, Check]] = {
    "local_model_dir": _text,
    "local_threads": _whole(1, MAX_THREADS),
    "max_tokens": _whole(1, MAX_TOKENS, why=f"model limit {MAX_TOKENS}"),
    "model_download_base_url": _text,
}
