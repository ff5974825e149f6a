"""What schemathesis loads beside the document (``SCHEMATHESIS_HOOKS``): who calls, what there is
to be named, and a studio that comes back from the settings it was given."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import django
import schemathesis
from schemathesis import Case, HookContext, Response

from benchmarks.contract.callers import Callers
from benchmarks.contract.keeper import keeper

AnyCase: TypeAlias = Case[Any]

django.setup()
_KEEPER: Final = keeper(os.environ["MEMORY_STUDIO_URL"])
_CALLERS: Final = Callers(_KEEPER)
_DEFAULTS: Final[Mapping[str, Any]] = {
    "/api/settings/memory": {
        **_KEEPER.get("/api/settings/memory").json(),
        "customApiKey": "",
        "rerankApiKey": "",
    },
    "/api/settings/qdrant": {"enabled": False, "host": ""},
}
_DERIVED: Final = ("has", "Masked")
CALLS_WITH_SETTINGS: Final = 25
"""So many calls a studio keeps the settings that the run chose."""

_settings_since: dict[str, int] = {}
_real = {
    name: itertools.cycle(values)
    for name, values in json.loads(os.environ["MEMORY_STUDIO_KNOWN"]).items()
}
_odd = itertools.cycle((True, True, False))


@schemathesis.auth(refresh_interval=None)
class KeyInTurn:
    """Keys of several scopes, one after another."""

    def get(self, _case: AnyCase, _context: Any) -> str:
        """A secret."""
        return _CALLERS.next()

    def set(self, case: AnyCase, data: str, _context: Any) -> None:
        """Send it."""
        case.headers["Authorization"] = f"Bearer {data}"


@schemathesis.hook
def map_path_parameters(_context: HookContext, parameters: dict[str, Any] | None) -> Any:
    """Two of three paths name what there is."""
    if parameters and next(_odd):
        return {
            name: next(_real[name]) if name in _real else value
            for name, value in parameters.items()
        }
    return parameters


@schemathesis.hook
def after_call(_context: HookContext, case: AnyCase, response: Response) -> None:
    """Renew a key that was revoked, and put the settings back after a while."""
    if response.status_code == 401:
        _CALLERS.refuse(str(case.headers.get("Authorization", "")).removeprefix("Bearer "))
    path = case.operation.path
    if case.method.upper() == "PUT" and path in _DEFAULTS and response.status_code == 200:
        _settings_since.setdefault(path, 0)
    for changed in list(_settings_since):
        _settings_since[changed] += 1
        if _settings_since[changed] > CALLS_WITH_SETTINGS:
            del _settings_since[changed]
            _put_back(changed)


def _put_back(path: str) -> None:
    wanted = {
        name: value
        for name, value in _DEFAULTS[path].items()
        if not (name.startswith(_DERIVED[0]) and name[3:4].isupper())
        and not name.endswith(_DERIVED[1])
    }
    _KEEPER.put(path, json=wanted)
