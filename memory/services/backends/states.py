"""The backends with their health, for the API and the Engine page."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

from django.core.cache import cache
from django.utils.translation import gettext as _

from engine.types import Health
from memory import backend_wiring
from memory.backend_wiring import LOCAL, Plan
from memory.clock import now
from memory.models import BackendCopy
from memory.principal import Principal
from memory.services import access
from memory.services.backends import copies
from memory.services.backends.local import LocalBackend
from memory.services.degraded import backend_reason

if TYPE_CHECKING:
    from engine.backends.config import BackendConfig

CACHE: Final = "studio.backends"
KEPT_S: Final = 300
AT_ONCE: Final = 8


@dataclass(frozen=True, slots=True)
class BackendState:
    """One backend. ``health`` is None until it is asked; ``problem`` says why it cannot be built.

    ``missing`` counts live memories that it does not have, ``pending`` changes it is to be told.
    """

    id: str
    display_name: str
    is_primary: bool
    is_fallback: bool
    adapter: str = "local"
    place: str = ""
    label: str = ""
    has_key: bool = False
    health: Health | None = None
    checked_at: datetime | None = None
    problem: str = ""
    missing: int = 0
    pending: int = 0

    @property
    def reason(self) -> str:
        """Why it does not serve, in the reader's language."""
        if self.problem or self.health is None or self.health.available:
            return self.problem
        code = str(self.health.detail.get("code") or "")
        return backend_reason(code, self.health.reason)

    @property
    def state(self) -> str:
        """As cards show it: on, off, warn or error."""
        if self.problem:
            return "error"
        if self.health is None:
            return "off"
        return "on" if self.health.available else "error"


@dataclass(frozen=True, slots=True)
class Backends:
    """All backends, ours first, and who serves."""

    primary: str
    fallbacks: tuple[str, ...]
    rows: tuple[BackendState, ...]
    warning: str = ""

    @property
    def has_others(self) -> bool:
        """Whether any is configured beside our own tables."""
        return len(self.rows) > 1


def backends(principal: Principal, *, check: bool) -> Backends:
    """The backends; with ``check`` each is asked really, else as it was last found."""
    access.require(principal, "manage")
    plan = backend_wiring.plan()
    healths, at = _checked(plan) if check else _last(plan)
    rows = [
        BackendState(
            LOCAL,
            "Memory Studio",
            is_primary=plan.primary == LOCAL,
            is_fallback=LOCAL in plan.fallbacks,
            health=healths.get(LOCAL),
            checked_at=at,
        )
    ]
    rows += [_row(plan, config, healths.get(name), at) for name, config in plan.configs.items()]
    rows += [
        BackendState(name, name, False, False, adapter="", problem=problem(error.place, error.code))
        for name, error in plan.problems.items()
    ]
    return Backends(plan.primary, plan.fallbacks, tuple(rows), _warning(plan))


def problem(place: str, code: str) -> str:
    """What is wrong with a field of a configuration."""
    texts = {
        "wrong_type": _("%(field)s has a value of the wrong type."),
        "missing": _("%(field)s is needed."),
        "unknown_name": _("%(field)s is not known."),
        "bad_path": _("%(field)s cannot be part of an address."),
        "bad_header": _("%(field)s cannot be sent as a header."),
        "bad_url": _("%(field)s is no http or https address."),
        "bad_address": _("%(field)s is an address that is not allowed here."),
        "out_of_range": _("%(field)s is out of bounds."),
        "bad_certificate": _("%(field)s is no certificate."),
        "bad_folder": _("%(field)s is no folder that a vault may lie in."),
        "bad_id": _("%(field)s cannot be an id."),
    }
    return texts[code] % {"field": place}


def _row(
    plan: Plan, config: BackendConfig, health: Health | None, at: datetime | None
) -> BackendState:
    return BackendState(
        id=config.id,
        display_name=config.display_name,
        is_primary=plan.primary == config.id,
        is_fallback=config.id in plan.fallbacks,
        adapter=config.adapter,
        place=config.path if config.adapter == "obsidian-folder" else config.address.base_url,
        label=config.label,
        has_key=config.has_key,
        health=health,
        checked_at=at,
        missing=copies.missing_in(config.id),
        pending=BackendCopy.objects.filter(backend=config.id).exclude(pending="").count(),
    )


def _checked(plan: Plan) -> tuple[dict[str, Health], datetime]:
    built = dict(backend_wiring.backends())
    # Each takes up to its five seconds; ours uses the database connection of this thread.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        futures = {name: pool.submit(backend.health) for name, backend in built.items()}
        healths = {LOCAL: LocalBackend().health()}
        healths.update({name: future.result() for name, future in futures.items()})
    at = now()
    # Plain values: a cache that processes share keeps JSON.
    plain = {name: [h.available, h.reason, dict(h.detail)] for name, h in healths.items()}
    cache.set(CACHE, [plan.fingerprint, plain, at.isoformat()], KEPT_S)
    return healths, at


def _last(plan: Plan) -> tuple[Mapping[str, Health], datetime | None]:
    kept = cache.get(CACHE)
    if kept is None or kept[0] != plan.fingerprint:
        return {}, None
    healths = {name: Health(*values) for name, values in kept[1].items()}
    return healths, datetime.fromisoformat(kept[2])


def _warning(plan: Plan) -> str:
    if plan.wanted == plan.primary:
        return ""
    told = _("The primary backend “%(name)s” cannot be used; our own tables hold the truth.")
    return told % {"name": plan.wanted}
