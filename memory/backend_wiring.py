"""Settings to memory backends: which are configured, who is primary, and their objects.

They live as long as the process, and are built anew when the settings change.
"""

from __future__ import annotations

import hashlib
import json
import os
import ssl
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings as django_settings

from engine.providers.spec import is_ours
from memory import backend_secrets
from memory.models import ApiKey, EngineSettings
from memory.stored_settings import Settings, normalise

if TYPE_CHECKING:
    from engine.backends.config import BackendConfig, ConfigInvalid
    from engine.net.client import HttpClient
    from engine.net.policy import UrlPolicy
    from engine.protocols import MemoryBackend

LOCAL: Final = "sqlite"
"""Id of our own tables in the settings (the first seed's), whatever database they lie in."""
ALIASES: Final = frozenset({LOCAL, "local"})
FRESH_S: Final = 1.0
"""How long a process may go by settings that another one has changed."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Who serves. A primary that cannot be built leaves our own tables serving.

    ``problems`` says why a configured backend cannot be built.
    """

    primary: str = LOCAL
    fallbacks: tuple[str, ...] = ()
    configs: Mapping[str, BackendConfig] = field(default_factory=dict)
    problems: Mapping[str, ConfigInvalid] = field(default_factory=dict)
    wanted: str = LOCAL
    fingerprint: str = ""

    @property
    def is_local(self) -> bool:
        """Whether nobody but our own tables serves."""
        return self.primary == LOCAL and not any(name != LOCAL for name in self.fallbacks)

    @property
    def is_elsewhere(self) -> bool:
        """Whether another backend holds the truth, and our tables are its mirror."""
        return self.primary != LOCAL

    @property
    def others(self) -> tuple[str, ...]:
        """The backends that serve beside our tables, the primary first."""
        return tuple(name for name in (self.primary, *self.fallbacks) if name != LOCAL)


_lock = threading.RLock()
_plan: tuple[float, Plan] | None = None
_built: tuple[str, dict[str, MemoryBackend]] | None = None


def plan() -> Plan:
    """Who serves now; read once a second at most."""
    global _plan
    with _lock:
        if _plan is None or time.monotonic() - _plan[0] > FRESH_S:
            row = EngineSettings.objects.filter(pk=1).first()
            _plan = (time.monotonic(), plan_of(normalise(row.stored if row else {})))
        return _plan[1]


def plan_of(chosen: Settings) -> Plan:
    """What settings mean for the backends."""
    names = [_bare(name) for name in (chosen.primary_backend, *chosen.fallback_backends)]
    if not chosen.backend_configs and set(names) <= ALIASES:
        # The usual case: nothing to read, nothing to import.
        return Plan()
    from engine.backends.build import vault_root
    from engine.backends.config import ConfigInvalid, read

    configs: dict[str, BackendConfig] = {}
    problems: dict[str, ConfigInvalid] = {}
    for name, stored in chosen.backend_configs.items():
        try:
            config = read(name, with_variables(backend_secrets.opened(stored)))
            if config.path:
                vault_root(config.path, roots())
            configs[name] = config
        except ConfigInvalid as error:
            problems[name] = error
    usable = {LOCAL, *configs}
    primary = names[0] if names[0] in usable else LOCAL
    fallbacks = dict.fromkeys(name for name in names[1:] if name in usable and name != primary)
    return Plan(
        primary, tuple(fallbacks), configs, problems, names[0], _fingerprint(chosen.backend_configs)
    )


def with_variables(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with the key that ``apiKeyEnv`` names; our own secrets are none of these."""
    found = dict(config)
    name = found.get("apiKeyEnv")
    if isinstance(name, str) and name and not is_ours(name):
        found["apiKey"] = os.environ.get(name, "").strip() or found.get("apiKey")
    return found


def backends() -> Mapping[str, MemoryBackend]:
    """The backends beside our tables, by id; built once for the settings."""
    global _built
    with _lock:
        current = plan()
        if _built is None or _built[0] != current.fingerprint:
            _shut(_built)
            _built = (current.fingerprint, _build(current))
        return _built[1]


def roots() -> list[Path]:
    """Folders below which vaults may lie."""
    named = [Path(path) for path in django_settings.MEMORY_STUDIO_VAULT_ROOTS]
    return named or [Path(django_settings.MEMORY_STUDIO_HOME) / "vaults"]


def reset() -> None:
    """Forget what was read and built, when the settings change."""
    global _plan, _built
    with _lock:
        _shut(_built)
        _plan = _built = None


def _build(current: Plan) -> dict[str, MemoryBackend]:
    from engine.backends.build import build

    return {
        name: build(config, make_client=_client, roots=roots(), owner=_owner(config.owner))
        for name, config in current.configs.items()
    }


def _owner(named: str) -> str:
    """Public id of the key that memories without an owner belong to: named, else the default."""
    keys = ApiKey.objects.all()
    by_name = keys.filter(name=named).first() if named else None
    by_id = next((key for key in keys if str(key.uid) == named), None) if named else None
    found = by_name or by_id or keys.filter(is_default=True).first()
    return str(found.uid) if found else ""


def _client(policy: UrlPolicy, tls: ssl.SSLContext | None) -> HttpClient:
    from engine.net.client import HttpClient
    from engine.net.proxies import Proxies

    return HttpClient(policy, proxies=Proxies(None, os.environ), tls=tls)


def _bare(name: str) -> str:
    bare = name.strip()
    return LOCAL if bare in ALIASES else bare


def _fingerprint(configs: Mapping[str, Any]) -> str:
    keys = [
        os.environ.get(str(config.get("apiKeyEnv", "")), "")
        for config in configs.values()
        if isinstance(config, Mapping)
    ]
    text = json.dumps([dict(configs), keys], sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _shut(built: tuple[str, dict[str, MemoryBackend]] | None) -> None:
    for backend in (built[1] if built else {}).values():
        backend.shutdown()
