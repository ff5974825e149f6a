"""``manage.py vaultd``: keeps the keys, texts and indexes of sealed vaults for several webs."""

from __future__ import annotations

import argparse
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand

from memstudio import serving, startup
from memstudio.errors import StartError

HOST: Final = "127.0.0.1"
PORT: Final = 8001


class Command(BaseCommand):
    """Serves our own webs until told to stop; then every vault is locked."""

    help = "Keep the keys of sealed vaults for several web processes (MEMORY_STUDIO_VAULTD)."
    requires_system_checks: list[str] = []  # noqa: RUF012 - Django's own attribute

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Where the webs find it."""
        parser.add_argument(
            "--listen",
            type=_place,
            default=(HOST, PORT),
            metavar="HOST:PORT",
            help=f"address that the webs reach, and nobody else ({HOST}:{PORT})",
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run it to its end."""
        from memory import wiring
        from memstudio.vaultd import lease

        if wiring.is_alone():
            raise StartError(
                "The studio on SQLite keeps the keys of vaults itself; vaultd is for several webs "
                "on Postgres (DATABASE_URL)."
            )
        host, port = options["listen"]
        serving.check_address(host, port)
        startup.prepare()
        settings.MEMORY_STUDIO_KEEPS_VAULTS, settings.MEMORY_STUDIO_VAULTD = True, ""
        # Each web has looked whether it is called by a name of the studio.
        settings.ALLOWED_HOSTS = ["*"]
        with lease.held():
            self._serve(host, port)
        serving.leave()

    def _serve(self, host: str, port: int) -> None:
        from memstudio import asgi

        serving.serve(
            asgi.build_vaultd(), host=host, port=port, on_ready=lambda: self._greet(host, port)
        )

    def _greet(self, host: str, port: int) -> None:
        self.stdout.write(
            f"The keys of sealed vaults are kept on {serving.base_url(host, port)} "
            f"with the data in {startup.place_of_data()}\nStop it with Ctrl-C."
        )
        self.stdout.flush()


def _place(text: str) -> tuple[str, int]:
    host, _colon, port = text.rpartition(":")
    return host.strip("[]") or HOST, serving.port(port)
