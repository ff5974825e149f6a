"""The ASGI application: the front over the bridge. ``build`` makes one with other services."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings

from memstudio.bridge import Bridge
from memstudio.front import Front, Service
from memstudio.wsgi import application as wsgi_application


def build(services: Sequence[Service]) -> Front:
    """The front with the services that live beside it."""
    bridge = Bridge(
        wsgi_application,
        threads=settings.MEMORY_STUDIO_THREADS,
        max_body_bytes=settings.MEMORY_STUDIO_MAX_BODY_BYTES,
    )
    return Front(bridge, services=services)


def worker_services() -> list[Service]:
    """What runs jobs in this process; nothing where workers of their own do."""
    if not settings.MEMORY_STUDIO_EMBEDDED_WORKER:
        return []
    from memstudio import embedded
    from memstudio.celery import app

    return embedded.services(app)


def _services() -> list[Service]:
    services = worker_services()
    if not services:
        return []
    from memstudio.embedded import HomeLock

    # Jobs on memory:// need the one process that holds the home.
    return [HomeLock(settings.MEMORY_STUDIO_HOME), *services]


application = build(_services())
