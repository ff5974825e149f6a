"""``manage.py messages``: collect visible texts into the catalogues and compile them."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand


class Command(BaseCommand):
    """Needs the development packages."""

    help = "Update and compile the message catalogues."
    requires_migrations_checks = False

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Update each language; name what still needs a translation."""
        from memory import catalogues

        for locale in catalogues.LOCALES:
            missing = catalogues.update(locale)
            self.stdout.write(f"{locale}: {len(missing)} without a translation")
            for text in missing:
                self.stdout.write(f"  {text}")
