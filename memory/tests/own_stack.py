"""Environments of processes that have a home and a database of their own."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
from django.conf import settings

DROPPED = ("DATABASE_URL", "CELERY_BROKER_URL", "REDIS_URL")


def environment(home: Path) -> dict[str, str]:
    """The variables of a process on this home; on servers, with a database named after it."""
    kept = {name: value for name, value in os.environ.items() if name not in DROPPED}
    kept |= {
        "MEMORY_STUDIO_HOME": str(home),
        "DJANGO_SETTINGS_MODULE": "memstudio.settings",
        "PYTHONPATH": str(settings.BASE_DIR),
    }
    if url := os.environ.get("DATABASE_URL"):
        kept["DATABASE_URL"] = _database(url, home)
    return kept


def _database(url: str, home: Path) -> str:
    name = f"home_{hashlib.sha256(str(home).encode()).hexdigest()[:16]}"
    maintenance = urlsplit(url)._replace(path="/postgres").geturl()
    with psycopg.connect(maintenance, autocommit=True) as server:
        known = server.execute("SELECT 1 FROM pg_database WHERE datname = %s", (name,)).fetchone()
        if known is None:
            server.execute(
                psycopg.sql.SQL("CREATE DATABASE {}").format(psycopg.sql.Identifier(name))
            )
    return urlsplit(url)._replace(path=f"/{name}").geturl()
