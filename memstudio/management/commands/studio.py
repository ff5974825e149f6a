"""``manage.py studio``: everything that one process needs, from an empty directory to a page."""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from memstudio import address, home, serving, startup

LOCAL_HOSTS = ("127.0.0.1", "localhost", "::1")


class Command(BaseCommand):
    """Prepare the home, print the way in, serve until told to stop."""

    help = "Start the studio: web server and worker in one process."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own attribute

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Where to listen, and whether jobs run here."""
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=serving.port, default=8765, help="port to listen on")
        parser.add_argument("--no-worker", action="store_true", help="run no jobs in this process")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the server to its end."""
        host, port = options["host"], options["port"]
        with _home_held():
            serving.check_address(host, port)
            startup.prepare()
            url = serving.base_url(host, port)
            with _keys_held(), address.published(settings.MEMORY_STUDIO_HOME, url):
                self._serve(host, port, has_worker=not options["no_worker"])
            serving.leave()

    def _serve(self, host: str, port: int, *, has_worker: bool) -> None:
        from memstudio import asgi

        if host not in settings.ALLOWED_HOSTS:
            settings.ALLOWED_HOSTS.append(f"[{host}]" if ":" in host else host)
        application = asgi.build(asgi.worker_services() if has_worker else [])
        link = _way_in(serving.base_url(host, port))
        serving.serve(
            application, host=host, port=port, on_ready=lambda: self._greet(host, port, link)
        )

    def _greet(self, host: str, port: int, link: str | None) -> None:
        url = serving.base_url(host, port)
        lines = [f"Memory Studio runs on {url} with its data in {startup.place_of_data()}"]
        if link is None:
            lines.append(f"Sign in at {url}/")
        else:
            lines.append(f"Sign in with this link, it works once: {link}")
        if not settings.MEMORY_STUDIO_EMBEDDED_WORKER:
            lines.append("Its jobs wait for workers of their own: make worker")
        if host not in LOCAL_HOSTS:
            lines.append("Other machines can reach it: put HTTPS in front of it.")
        self.stdout.write("\n".join([*lines, "Stop it with Ctrl-C."]))
        self.stdout.flush()


def _way_in(url: str) -> str | None:
    """The link that signs in once; None when a password exists."""
    from memory.services import signin

    signin.first_start()
    return signin.sign_in_link(url)


@contextlib.contextmanager
def _home_held() -> Iterator[None]:
    """A database of the home is one studio's; that of a server is everyone's."""
    from memory import wiring

    with home.lock(settings.MEMORY_STUDIO_HOME) if wiring.is_alone() else contextlib.nullcontext():
        yield


@contextlib.contextmanager
def _keys_held() -> Iterator[None]:
    """Where several processes could keep the keys of vaults, one does."""
    from memstudio import asgi
    from memstudio.vaultd import lease

    with lease.held() if asgi.keeps_for_others() else contextlib.nullcontext():
        yield
