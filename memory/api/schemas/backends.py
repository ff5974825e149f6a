"""Shapes of ``/api/memory/backends``."""

from __future__ import annotations

from memory.api.schemas.base import Shape


class BackendHealthOut(Shape):
    """The outcome of a real call; ``code`` is stable."""

    ok: bool
    latency_ms: float | None
    error: str | None
    code: str | None


class BackendConfigOut(Shape):
    """Where a backend is; never a secret."""

    base_url: str | None
    has_api_key: bool
    backend_type: str | None


class BackendOut(Shape):
    """One backend. ``missing`` counts memories it does not have, ``pending`` changes it will hear.

    ``health`` is null while nobody has asked; ``problem`` says why it cannot be used as configured.
    """

    id: str
    display_name: str
    is_primary: bool
    is_fallback: bool
    adapter: str
    health: BackendHealthOut | None
    problem: str | None
    missing: int
    pending: int
    config: BackendConfigOut


class BackendsOut(Shape):
    """Who holds the truth, who stands in, and all that are configured."""

    primary: str
    fallbacks: list[str]
    warning: str | None
    backends: list[BackendOut]
