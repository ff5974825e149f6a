"""The configuration of a backend as people write it (first seed, GenericBackendConfig, and ours).

Reading is strict: what is there has to make sense. Names of fields are those of JSON.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeVar

from engine.backends.http import ENDPOINTS, PATH_PARAMS, QUERY_PARAMS, Dialect
from engine.backends.note_names import check_folder
from engine.backends.notion import Database
from engine.backends.notion_pages import Names, is_id
from engine.backends.rest import Address
from engine.errors import BackendFailed, EngineError
from engine.net.errors import UrlBlocked
from engine.net.policy import PUBLIC_ONLY, UrlPolicy, check_url

Adapter = Literal["http", "obsidian", "obsidian-folder", "notion"]
Method = Literal["PATCH", "PUT"]
Answerer = Literal["backend", "mirror"]
Choice = TypeVar("Choice", bound=str)
METHODS: Final[tuple[Method, ...]] = ("PATCH", "PUT")
ANSWERERS: Final[tuple[Answerer, ...]] = ("backend", "mirror")
ANSWERER_OF: Final[Mapping[str, Answerer]] = {"http": "backend"}
ADAPTERS: Final[tuple[Adapter, ...]] = ("http", "obsidian", "obsidian-folder", "notion")
KNOWN: Final[Mapping[str, Adapter]] = {"obsidian": "obsidian", "notion": "notion"}
"""Ids that name a service by themselves (first seed, KNOWN_BACKENDS)."""
TITLES: Final[Mapping[Adapter, str]] = {
    "http": "HTTP",
    "obsidian": "Obsidian",
    "obsidian-folder": "Markdown",
    "notion": "Notion",
}
BASE_URLS: Final[Mapping[str, str]] = {
    "obsidian": "http://127.0.0.1:27123",
    "notion": "https://api.notion.com/v1",
}
NOTION_VERSION: Final = "2022-06-28"
TIMEOUT_MS: Final = (100, 120_000, 30_000)
ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
PATH: Final = re.compile(r"/[\x21-\x7e]{0,499}")
PARAM: Final = re.compile(r"[A-Za-z0-9_.\[\]-]{1,80}")
OURS: Final = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "content-type", "accept",
     "accept-encoding", "upgrade", "te", "trailer", "expect", "proxy-authorization"}
)  # fmt: skip
"""Headers that belong to the client for outbound HTTP."""


class ConfigInvalid(EngineError):
    """A field of a configuration cannot be right.

    Codes: ``wrong_type``, ``missing``, ``unknown_name``, ``bad_path``, ``bad_header``,
    ``bad_url``, ``bad_address``, ``out_of_range``, ``bad_certificate``, ``bad_folder``, ``bad_id``.
    """

    code = "wrong_type"

    def __init__(self, place: str, code: str) -> None:
        super().__init__(f"{place}: {code}", code=code)
        self.place = place


@dataclass(frozen=True, slots=True)
class BackendConfig:
    """One backend as configured. ``owner`` names the key whose memories name nobody.

    ``answers`` says who answers lists and searches while this backend is primary: itself, or the
    local mirror. ``path`` is the folder of a vault, ``folder`` the part of a vault that is ours.
    """

    id: str
    adapter: Adapter
    display_name: str
    address: Address
    label: str = ""
    policy: UrlPolicy = PUBLIC_ONLY
    certificate: str = field(default="", repr=False)
    dialect: Dialect = field(default_factory=Dialect)
    owner: str = ""
    answers: Answerer = "mirror"
    folder: str = ""
    path: str = ""
    database: Database | None = None
    has_key: bool = False


def read(backend_id: str, values: Mapping[str, Any]) -> BackendConfig:
    """The configuration of a backend. Raises ``ConfigInvalid``."""
    if not ID.fullmatch(backend_id):
        raise ConfigInvalid("id", "bad_id")
    adapter = _choice(values, "adapter", ADAPTERS, KNOWN.get(backend_id, "http"))
    key = _text(values, "apiKey")
    config = BackendConfig(
        id=backend_id,
        adapter=adapter,
        display_name=_text(values, "displayName") or _title(backend_id, adapter),
        label=_text(values, "backendType"),
        address=_address(values, adapter, key),
        policy=_policy(values, adapter),
        certificate=_certificate(values),
        dialect=_dialect(values),
        owner=_text(values, "owner"),
        answers=_choice(values, "answers", ANSWERERS, ANSWERER_OF.get(adapter, "mirror")),
        folder=_folder(values),
        path=_text(values, "path"),
        database=_database(values) if adapter == "notion" else None,
        has_key=bool(key),
    )
    _check_place(config)
    return config


def _check_place(config: BackendConfig) -> None:
    if config.adapter == "obsidian-folder":
        if not config.path:
            raise ConfigInvalid("path", "missing")
        return
    if not config.address.base_url:
        raise ConfigInvalid("baseUrl", "missing")
    try:
        check_url(config.address.base_url, config.policy)
    except UrlBlocked as error:
        code = "bad_url" if error.is_invalid else "bad_address"
        raise ConfigInvalid("baseUrl", code) from None


def _title(backend_id: str, adapter: Adapter) -> str:
    return TITLES[adapter] if backend_id in KNOWN else backend_id


def _address(values: Mapping[str, Any], adapter: Adapter, key: str) -> Address:
    headers = _headers(values)
    if key:
        if not (key.isascii() and key.isprintable()):
            raise ConfigInvalid("apiKey", "bad_header")
        headers["Authorization"] = f"Bearer {key}"
    if adapter == "notion":
        headers["Notion-Version"] = _text(values, "notionVersion") or NOTION_VERSION
    base_url = _text(values, "baseUrl") or BASE_URLS.get(adapter, "")
    return Address(base_url, headers, _timeout(values))


def _headers(values: Mapping[str, Any]) -> dict[str, str]:
    headers = _texts(values, "headers")
    for name, value in headers.items():
        is_good = HEADER.fullmatch(name) and value.isascii() and value.isprintable()
        if not is_good or name.lower() in OURS:
            raise ConfigInvalid(f"headers.{name[:100]}", "bad_header")
    return headers


def _policy(values: Mapping[str, Any], adapter: Adapter) -> UrlPolicy:
    """Public hosts only, unless the operator says otherwise; Obsidian is on this machine."""
    loopback = _flag(values, "allowLoopback", default=adapter == "obsidian")
    private = _flag(values, "allowPrivate", default=False)
    return replace(
        PUBLIC_ONLY,
        allow_loopback=loopback,
        allow_private=private,
        names_may_be_loopback=loopback,
    )


def _dialect(values: Mapping[str, Any]) -> Dialect:
    endpoints = _named(values, "endpoints", ENDPOINTS)
    for name, path in endpoints.items():
        parts = path.split("/")
        if not PATH.fullmatch(path) or "?" in path or "#" in path or ".." in parts or "." in parts:
            raise ConfigInvalid(f"endpoints.{name}", "bad_path")
    params = _named(values, "queryParams", QUERY_PARAMS)
    placed = _named(values, "pathParams", PATH_PARAMS)
    for group, names in (("queryParams", params), ("pathParams", placed)):
        for name, value in names.items():
            if not PARAM.fullmatch(value):
                raise ConfigInvalid(f"{group}.{name}", "bad_path")
    method: Method = _choice(values, "updateMethod", METHODS, "PATCH")
    return Dialect(endpoints, params, placed, method)


def _database(values: Mapping[str, Any]) -> Database:
    database_id = _text(values, "databaseId")
    if not database_id:
        raise ConfigInvalid("databaseId", "missing")
    if not is_id(database_id):
        raise ConfigInvalid("databaseId", "bad_id")
    named = _named(values, "properties", Names().named())
    return Database(database_id, replace(Names(), **named))


def _folder(values: Mapping[str, Any]) -> str:
    folder = _text(values, "folder")
    try:
        check_folder(folder)
    except BackendFailed:
        raise ConfigInvalid("folder", "bad_folder") from None
    return folder


def _certificate(values: Mapping[str, Any]) -> str:
    """PEM text of a certificate to trust, such as Obsidian's own."""
    text = _text(values, "certificate")
    if text:
        try:
            ssl.create_default_context(cadata=text)
        except (ssl.SSLError, ValueError):
            raise ConfigInvalid("certificate", "bad_certificate") from None
    return text


def _timeout(values: Mapping[str, Any]) -> int:
    low, high, default = TIMEOUT_MS
    value = values.get("timeout")
    if value is None:
        return default
    if not isinstance(value, int) or isinstance(value, bool):
        raise ConfigInvalid("timeout", "wrong_type")
    if not low <= value <= high:
        raise ConfigInvalid("timeout", "out_of_range")
    return value


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise ConfigInvalid(name, "wrong_type")
    return value.strip()


def _flag(values: Mapping[str, Any], name: str, *, default: bool) -> bool:
    value = values.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise ConfigInvalid(name, "wrong_type")
    return value


def _choice(
    values: Mapping[str, Any], name: str, choices: tuple[Choice, ...], default: Choice
) -> Choice:
    value = values.get(name)
    if value is None:
        return default
    found = next((choice for choice in choices if choice == value), None)
    if found is None:
        raise ConfigInvalid(name, "unknown_name")
    return found


def _texts(values: Mapping[str, Any], name: str) -> dict[str, str]:
    value = values.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise ConfigInvalid(name, "wrong_type")
    for inner, text in value.items():
        if not isinstance(inner, str) or not isinstance(text, str):
            raise ConfigInvalid(f"{name}.{inner}"[:120], "wrong_type")
    return dict(value)


def _named(values: Mapping[str, Any], name: str, known: Any) -> dict[str, str]:
    texts = _texts(values, name)
    for inner in texts:
        if inner not in known:
            raise ConfigInvalid(f"{name}.{inner}"[:120], "unknown_name")
    return texts
