"""``manage.py keys …``: the API keys, as REST has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from memory.principal import SCOPES
from memstudio.cli.api import Api
from memstudio.cli.command import ApiCommand, fields, table

COLUMNS: Final = ("name", "scopes", "hint", "memoryCount", "lastUsedAt", "revokedAt", "id")


class Command(ApiCommand):
    """List, make, rotate and revoke keys."""

    help = "Work with API keys."

    def add_subcommands(self) -> None:
        """One for each thing that can be done."""
        self.subcommand("list", "every key, without secrets", _list, _show_list)
        made = self.subcommand("create", "make a key; its secret is shown once", _create, fields)
        made.add_argument("name")
        made.add_argument("--scope", action="append", choices=SCOPES, help="may be repeated")
        made.add_argument("--expires", help="ISO 8601 time")
        rotated = self.subcommand("rotate", "give a key a new secret", _rotate, fields)
        rotated.add_argument("key", help="name or id")
        revoked = self.subcommand("revoke", "make a key useless; its memories stay", _revoke, _none)
        revoked.add_argument("key", help="name or id")


def _list(api: Api, _options: Mapping[str, Any]) -> Any:
    return api.call("GET", "keys")


def _create(api: Api, options: Mapping[str, Any]) -> Any:
    body: dict[str, Any] = {"name": options["name"]}
    if options["scope"]:
        body["scopes"] = options["scope"]
    if options["expires"]:
        body["expiresAt"] = options["expires"]
    return api.call("POST", "keys", body)


def _rotate(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("POST", f"keys/{quote(options['key'], safe='')}/rotate")


def _revoke(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("DELETE", "keys", id=options["key"])


def _show_list(answer: Any) -> list[str]:
    return table(answer["data"], COLUMNS)


def _none(_answer: Any) -> list[str]:
    return []
