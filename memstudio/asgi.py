"""The ASGI application: the front over the bridge. ``build`` makes one with other services."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from memstudio import health
from memstudio.bridge import AsgiApplication, Bridge
from memstudio.front import Front, Service
from memstudio.wsgi import application as wsgi_application


def build(services: Sequence[Service]) -> Front:
    """The front with the services that live beside it."""
    bridge = Bridge(
        wsgi_application,
        threads=settings.MEMORY_STUDIO_THREADS,
        max_body_bytes=settings.MEMORY_STUDIO_MAX_BODY_BYTES,
    )
    # Not before Django is set up, which importing the WSGI application does.
    from memory.compat import BESIDE_CHATS
    from memory.gateway.mount import Gateway
    from memory.mcp.mount import Mount
    from memory.tracing import Flusher
    from memstudio.observed import Observed

    mcp, gateway = Mount(), Gateway()
    mounts: dict[str, AsgiApplication] = {
        health.ALIVE: health.alive,
        health.READY: health.Ready(health.database_is_ready),
        "/mcp": Observed(mcp, "/mcp"),
        "/v1": Observed(gateway, "/v1"),
        **dict.fromkeys(BESIDE_CHATS, bridge),
    }
    return Front(bridge, mounts=mounts, services=[Flusher(), *services, mcp, gateway])


def worker_services() -> list[Service]:
    """What runs jobs in this process; where workers of their own do, only what looks after them."""
    from memstudio import embedded
    from memstudio.celery import app

    if not settings.MEMORY_STUDIO_EMBEDDED_WORKER:
        return [embedded.watcher()]
    return embedded.services(app)


def _services() -> list[Service]:
    from memory import wiring

    if not settings.MEMORY_STUDIO_EMBEDDED_WORKER or not wiring.is_alone():
        return worker_services()
    from memstudio.embedded import HomeLock

    # Jobs on memory:// need the one process that holds the home.
    return [HomeLock(settings.MEMORY_STUDIO_HOME), *worker_services()]


application = build(_services())
