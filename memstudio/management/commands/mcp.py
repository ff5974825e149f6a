"""``manage.py mcp``: the tools of a memory over standard input and output, for a desktop client."""

from __future__ import annotations

import argparse
from functools import partial
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from memstudio import env, serving, startup

STOPPED: Final = 130
"""Exit status after Ctrl-C, as shells have it."""


class Command(BaseCommand):
    """Serves one client until it closes the input; works beside a running studio or without."""

    help = "Speak MCP over stdio, as the key given, or as the default key."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own attribute

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Whose memory it is."""
        parser.add_argument(
            "--key", default="", help="secret, name or id of a key; else MEMORY_STUDIO_KEY"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Serve; standard output belongs to the protocol."""
        _prepare()
        key = options["key"].strip() or env.secret("MEMORY_STUDIO_KEY") or ""
        try:
            _serve(key)
        except KeyboardInterrupt:
            raise SystemExit(STOPPED) from None
        serving.leave()


def _serve(key: str) -> None:
    from memory.errors import ServiceError
    from memory.mcp import stdio
    from memory.services import keys

    if key.startswith(keys.PREFIX):
        identify = partial(keys.authenticate, key)
    else:
        identify = partial(keys.acting, key or None)
    try:
        identify()
    except ServiceError as error:
        raise CommandError(error.message) from None
    for worker in _workers():
        worker.start()
    stdio.serve(identify)


def _workers() -> list[Any]:
    """What runs the jobs that are ordered here; on ``memory://`` no other process hears of them."""
    if not settings.MEMORY_STUDIO_EMBEDDED_WORKER:
        return []
    from memstudio.celery import QUEUES, app
    from memstudio.embedded import Worker

    return [Worker(app, queue) for queue in QUEUES]


def _prepare() -> None:
    """A first start may be this one."""
    from memory.services import signin

    startup.prepare()
    signin.first_start()
