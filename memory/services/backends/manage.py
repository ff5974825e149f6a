"""The manager of the backends as the settings have them."""

from __future__ import annotations

from typing import Final

from engine.backends.manager import BackendManager
from engine.errors import BackendFailed
from memory import backend_wiring
from memory.errors import Invalid, ServiceError, TierDown
from memory.services.backends.copies import CopyMap
from memory.services.degraded import backend_reason

CLIENTS_FAULT: Final = frozenset({"too_large", "outside_vault"})


def manager() -> BackendManager:
    """The backends, configured. Cheap: the backends themselves are built once."""
    # The local backend is built over the services, which themselves ask for the manager.
    from memory.services.backends.local import LocalBackend

    plan = backend_wiring.plan()
    made = BackendManager(CopyMap())
    made.register(LocalBackend())
    for backend in backend_wiring.backends().values():
        made.register(backend)
    made.configure(plan.primary, plan.fallbacks)
    return made


def refusal(error: BackendFailed) -> ServiceError:
    """What a client is told when the primary does not take a change."""
    told = backend_reason(error.code, str(error))
    if error.code in CLIENTS_FAULT:
        return Invalid(told, code=error.code)
    return TierDown(told, code=f"backend_{error.code}")
