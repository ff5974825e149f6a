"""``manage.py providers …``: the services that may be called, as REST has them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from memstudio.cli.api import Api
from memstudio.cli.command import ApiCommand, fields, table

COLUMNS: Final = ("name", "title", "baseUrl", "enabled", "hasKey", "origin", "id")
CHECKS: Final = ("what", "ok", "latencyMs", "model", "dimensions", "count", "error")
FIELDS: Final = {
    "kind": "kind",
    "base_url": "baseUrl",
    "protocol": "protocol",
    "key_env": "apiKeyEnv",
    "models": "models",
}


class Command(ApiCommand):
    """List, add, change, put in order, try and remove providers."""

    help = "Work with providers."

    def add_subcommands(self) -> None:
        """One for each thing that can be done. A key is never an argument."""
        self.subcommand("list", "every provider in order", _list, _show_list)
        self.subcommand("catalogue", "the kinds of providers", _catalogue, _show_kinds)
        added = self.subcommand("add", "add a provider", _add, fields)
        added.add_argument("name")
        _describe(added)
        changed = self.subcommand("set", "change a provider", _set, fields)
        changed.add_argument("provider", help="name or id")
        _describe(changed)
        switch = changed.add_mutually_exclusive_group()
        switch.add_argument("--enable", dest="enabled", action="store_const", const=True)
        switch.add_argument("--disable", dest="enabled", action="store_const", const=False)
        ordered = self.subcommand("order", "put providers in order", _order, _show_list)
        ordered.add_argument("providers", nargs="+", help="names or ids")
        tried = self.subcommand("test", "try a provider for real", _test, _show_checks)
        tried.add_argument("provider", help="name or id")
        tried.add_argument("--model", help="the embedding model to try")
        removed = self.subcommand("remove", "remove a provider", _remove, _none)
        removed.add_argument("provider", help="name or id")


def _describe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kind", help="see catalogue")
    parser.add_argument("--base-url")
    parser.add_argument("--protocol")
    parser.add_argument("--key-env", help="the environment variable of the studio with the key")
    parser.add_argument("--models", nargs="*", help="ids and patterns of chat models")


def _described(options: Mapping[str, Any]) -> dict[str, Any]:
    found = {api: options[name] for name, api in FIELDS.items() if options[name] is not None}
    return found | ({"enabled": options["enabled"]} if options.get("enabled") is not None else {})


def _path(name: str) -> str:
    return f"providers/{quote(name, safe='')}"


def _list(api: Api, _options: Mapping[str, Any]) -> Any:
    return api.call("GET", "providers")


def _catalogue(api: Api, _options: Mapping[str, Any]) -> Any:
    return api.call("GET", "providers/catalogue")


def _add(api: Api, options: Mapping[str, Any]) -> Any:
    body = {"name": options["name"], **_described(options)}
    if "kind" not in body:
        known = {row["kind"] for row in api.call("GET", "providers/catalogue")["data"]}
        body["kind"] = options["name"] if options["name"] in known else "compatible"
    return api.call("POST", "providers", body)


def _set(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("PUT", _path(options["provider"]), _described(options))


def _order(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("PUT", "providers/order", {"ids": options["providers"]})


def _test(api: Api, options: Mapping[str, Any]) -> Any:
    body = {"model": options["model"]} if options["model"] else {}
    return api.call("POST", f"{_path(options['provider'])}/test", body)


def _remove(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("DELETE", _path(options["provider"]))


def _show_list(answer: Any) -> list[str]:
    return table(answer["data"], COLUMNS)


def _show_kinds(answer: Any) -> list[str]:
    return table(answer["data"], ("kind", "title", "baseUrl", "protocol", "apiKeyEnv"))


def _show_checks(answer: Any) -> list[str]:
    return table(answer["checks"], CHECKS)


def _none(_answer: Any) -> list[str]:
    return []
