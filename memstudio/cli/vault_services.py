"""``rag services`` and ``rag service-test``: which services vaults use, as REST has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from memstudio.cli.api import Api
from memstudio.cli.command import ApiCommand, fields
from memstudio.cli.settings import change

SERVICES: Final = ("embedding", "generation", "rerank")
PATH: Final = "settings/vaults"


def add(command: ApiCommand) -> None:
    """Both subcommands."""
    chosen = command.subcommand("services", "the services of vaults, or choose some", _do, _show)
    chosen.add_argument("changes", nargs="*", metavar="NAME=VALUE", help="value: JSON or text")
    tried = command.subcommand("service-test", "try a service of vaults for real", _test, fields)
    tried.add_argument("service", choices=SERVICES)


def _do(api: Api, options: Mapping[str, Any]) -> Any:
    changes = dict(change(text) for text in options["changes"])
    return api.call("PUT", PATH, changes) if changes else api.call("GET", PATH)


def _test(api: Api, options: Mapping[str, Any]) -> Any:
    return api.call("POST", f"{PATH}/test", {"service": options["service"]})


def _show(answer: Any) -> list[str]:
    return [f"{name:<12}{_told(answer['inForce'][name])}" for name in SERVICES]


def _told(service: Mapping[str, Any] | None) -> str:
    if service is None:
        return "none"
    origin = service["origin"]
    place = "config.toml" if origin == "config" else f"studio: {service['provider']}"
    variable = service["apiKeyEnv"]
    key = "with a key" if service["hasKey"] else "without a key"
    key = f"{key} ({variable})" if variable else key
    problem = f", cannot be used: {service['problem']}" if service["problem"] else ""
    return f"{service['model']} at {service['host'] or '?'} ({place}), {key}{problem}"
