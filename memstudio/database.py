"""Where the rows live: SQLite in the home, or the server that ``DATABASE_URL`` names."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from memstudio.errors import StartError

SQLITE_PRAGMAS: Final = (
    "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA cache_size=-65536;"
    "PRAGMA mmap_size=268435456;PRAGMA temp_store=MEMORY;"
    # What is erased must not stay readable in the file; not every build does so by itself.
    "PRAGMA secure_delete=ON;"
)

PATIENCE: Final = {
    # A server that is cut off is noticed in seconds, not when the system gives up on it.
    "connect_timeout": "5",
    "keepalives_idle": "30",
    "tcp_user_timeout": "30000",
}
"""Options of libpq; those in the URL win."""


def default(home: Path, url: str) -> dict[str, Any]:
    """The entry ``default`` of Django's DATABASES; SQLite where ``url`` is empty."""
    return _postgres(url) if url else _sqlite(home)


def _sqlite(home: Path) -> dict[str, Any]:
    return {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": home / "studio.sqlite3",
        # One connection for each server thread, kept: opening one runs the pragmas again.
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            # Deferred transactions fail under several writers; immediate ones wait their turn.
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": SQLITE_PRAGMAS,
        },
        # A file, because server threads of browser tests share the rows of the test.
        "TEST": {"NAME": home / "test.sqlite3"},
    }


def _postgres(url: str) -> dict[str, Any]:
    parts = urlsplit(url)
    name = unquote(parts.path.lstrip("/"))
    if parts.scheme not in ("postgres", "postgresql") or not name or "/" in name:
        # The URL carries a password: it is never repeated.
        raise StartError("DATABASE_URL must read postgres://user:password@host:port/name.")
    try:
        port = parts.port
    except ValueError:
        raise StartError("DATABASE_URL has a port that is not a number below 65536.") from None
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": name,
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": unquote(parts.hostname or ""),
        "PORT": str(port or ""),
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**PATIENCE, **dict(parse_qsl(parts.query))},
    }
