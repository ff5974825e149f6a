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
    bridge = _bridge()
    # Not before Django is set up, which importing the WSGI application does.
    from memory.compat import BESIDE_CHATS
    from memory.gateway.mount import Gateway
    from memory.mcp.mount import Mount
    from memory.tracing import Flusher
    from memstudio.observed import Observed

    mcp, gateway = Mount(), Gateway()
    mounts: dict[str, AsgiApplication] = {
        **_watched(),
        "/mcp": Observed(mcp, "/mcp"),
        "/v1": Observed(gateway, "/v1"),
        **dict.fromkeys(BESIDE_CHATS, bridge),
    }
    living = [Flusher(), *services, mcp, gateway]
    if settings.MEMORY_STUDIO_VAULTD:
        from memstudio.vaultd.forwarding import Forwarding
        from memstudio.vaultd.routing import API, MCP, PAGES

        vaults = Forwarding(settings.MEMORY_STUDIO_VAULTD)
        mounts |= dict.fromkeys((PAGES, API), vaults.pages(bridge))
        mounts[MCP] = vaults.mcp(mounts[MCP])
        living.append(vaults)
    return Front(bridge, mounts=mounts, services=living)


def build_vaultd() -> AsgiApplication:
    """What ``manage.py vaultd`` serves: vaults alone, behind the door for our own webs."""
    from memstudio.vaultd.door import Door

    bridge = _bridge()
    from memory.mcp.mount import Mount
    from memory.tracing import Flusher
    from memstudio.observed import Observed

    mcp = Mount()
    mounts: dict[str, AsgiApplication] = {**_watched(), "/mcp": Observed(mcp, "/mcp")}
    return Door(Front(bridge, mounts=mounts, services=[Flusher(), mcp]))


def _bridge() -> Bridge:
    return Bridge(
        wsgi_application,
        threads=settings.MEMORY_STUDIO_THREADS,
        max_body_bytes=settings.MEMORY_STUDIO_MAX_BODY_BYTES,
    )


def _watched() -> dict[str, AsgiApplication]:
    return {
        health.ALIVE: health.alive,
        health.READY: health.Ready(health.database_is_ready),
    }


def worker_services() -> list[Service]:
    """What runs jobs in this process; where workers of their own do, only what looks after them."""
    from memstudio import embedded
    from memstudio.celery import app

    if not settings.MEMORY_STUDIO_EMBEDDED_WORKER:
        return [embedded.watcher()]
    return embedded.services(app)


def keeps_for_others() -> bool:
    """Whether this process keeps the keys of vaults where others could as well."""
    from memory import wiring

    return settings.MEMORY_STUDIO_KEEPS_VAULTS and not wiring.is_alone()


def _services() -> list[Service]:
    from memory import wiring

    if keeps_for_others():
        from memstudio.vaultd import lease

        return [lease.service(), *worker_services()]
    if not settings.MEMORY_STUDIO_EMBEDDED_WORKER or not wiring.is_alone():
        return worker_services()
    from memstudio.embedded import HomeLock

    # Jobs on memory:// need the one process that holds the home.
    return [HomeLock(settings.MEMORY_STUDIO_HOME), *worker_services()]


application = build(_services())
