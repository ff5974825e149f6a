"""How an index of pgvector is kept and searched, and whether a database can have one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from engine.database import SQLITE, DatabaseFailed, atomic, dialect_of
from engine.protocols import DatabaseConnection
from engine.types import Health, Vector

Quantization = Literal["none", "int8", "binary"]

OLDEST: Final = (0, 8)
"""The first version that goes on searching until enough rows are within the scope."""
LEAST: Final = 10_000
"""Rows within reach of a search from which a graph may be faster than a scan."""
INSTALLED: Final = "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
OFFERED: Final = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
CREATE: Final = "CREATE EXTENSION IF NOT EXISTS vector"


@dataclass(frozen=True, slots=True)
class PgVectorOptions:
    """``centred`` and ``means`` as ``engine.vectors.state.Options`` has them.

    ``quantization``: what the graph is made over. pgvector has no eight-bit type: its half floats
    stand for ``int8`` as well as for ``none``. ``least`` is the smallest number of rows that is
    worth a graph; 0 always uses one.
    """

    centred: bool = False
    means: Mapping[str, Vector] = field(default_factory=dict)
    quantization: Quantization = "none"
    least: int = LEAST


def available(connection: DatabaseConnection) -> Health:
    """Whether a database can have an index of pgvector, and why not.

    Makes the extension where the server has it and the user may.
    """
    if dialect_of(connection) is SQLITE:
        return _not("not_postgres", "pgvector is an extension of Postgres.")
    version = connection.execute(INSTALLED).fetchone()
    if version is None:
        if connection.execute(OFFERED).fetchone() is None:
            return _not("extension_missing", "The server does not have the extension pgvector.")
        try:
            with atomic(connection):
                connection.execute(CREATE)
        except DatabaseFailed as error:
            version = connection.execute(INSTALLED).fetchone()
            if version is None:
                return _not("extension_forbidden", f"The extension cannot be made ({error}).")
        version = connection.execute(INSTALLED).fetchone()
    if _number(version[0]) < OLDEST:
        return _not("extension_old", f"pgvector {version[0]} is older than 0.8.")
    return Health(True, detail={"version": str(version[0])})


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _not(code: str, reason: str) -> Health:
    return Health(False, reason, {"code": code})
