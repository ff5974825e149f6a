"""``manage.py settings …``: the memory settings, as REST has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from memstudio.cli.api import USAGE, Api, Refused
from memstudio.cli.command import ApiCommand, fields
from memstudio.cli.settings import change


class Command(ApiCommand):
    """Show and change settings."""

    help = "Work with the memory settings."

    def add_subcommands(self) -> None:
        """One for each thing that can be done."""
        shown = self.subcommand("get", "all settings, or one", _get, _show)
        shown.add_argument("name", nargs="?")
        changed = self.subcommand("set", "change settings", _set, fields)
        changed.add_argument("changes", nargs="+", metavar="NAME=VALUE", help="value: JSON or text")


def _get(api: Api, options: Mapping[str, Any]) -> Any:
    answer, name = api.call("GET", "settings/memory"), options["name"]
    if name is None:
        return answer
    if name not in answer:
        raise Refused(USAGE, {"code": "usage", "message": f"There is no setting {name}."})
    return answer[name]


def _set(api: Api, options: Mapping[str, Any]) -> Any:
    changes = dict(change(text) for text in options["changes"])
    answer = api.call("PUT", "settings/memory", changes)
    return {name: answer[name] for name in changes if name in answer}


def _show(answer: Any) -> list[str]:
    return fields(answer) if isinstance(answer, dict) else [json.dumps(answer, ensure_ascii=False)]
