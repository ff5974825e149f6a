"""Which store of this machine keeps and searches the vectors of an index."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, cast

from django.conf import settings as django_settings
from django.db import connection

from engine.protocols import Connect, VectorStore
from engine.types import Health, Signature

if TYPE_CHECKING:
    from engine.vectors.pgvector import PgVectorStore
    from engine.vectors.pgvector_options import Quantization
    from engine.vectors.state import Options

Local = Literal["in-process", "pgvector"]

ASKED_AGAIN_S: Final = 60.0
"""A server that cannot have pgvector is asked again, for somebody may install it."""

_found: tuple[Health, float] | None = None


def kind_for(chosen: Callable[[], str], connect: Connect) -> Local:
    """The store that a choice of the settings means here.

    ``sqlite-vec`` is not among them: the in-process index is faster at every size. ``qdrant`` is
    another machine, beside a local store.
    """
    if connection.vendor != "postgresql" or chosen() == "in-process":
        return "in-process"
    return "pgvector" if availability(connect).available else "in-process"


def availability(connect: Connect) -> Health:
    """Whether this database can have pgvector, and why not."""
    global _found
    from engine.vectors.pgvector_options import available

    if _found is None or _found[1] < time.monotonic():
        found = available(connect())
        until = float("inf") if found.available else time.monotonic() + ASKED_AGAIN_S
        _found = found, until
    return _found[0]


def reset() -> None:
    """Ask again (tests, and after the database was replaced)."""
    global _found
    _found = None


def build(
    kind: Local, connect: Connect, *, signature: Signature, index_id: int, options: Options
) -> VectorStore:
    """A store over the durable vectors of an index."""
    from engine.vectors.in_process import InProcessIndex

    if connection.vendor != "postgresql":
        return InProcessIndex(connect, signature=signature, index_id=index_id, options=options)
    from engine.vectors.pgvector import PgVectorStore
    from engine.vectors.pgvector_beside import InProcessBesidePgVector
    from engine.vectors.pgvector_options import PgVectorOptions

    beside = InProcessBesidePgVector(
        connect, signature=signature, index_id=index_id, options=options
    )
    if kind == "in-process":
        return beside
    return PgVectorStore(
        connect,
        signature=signature,
        index_id=index_id,
        options=PgVectorOptions(
            centred=options.centred,
            means=options.means,
            quantization=cast("Quantization", django_settings.MEMORY_STUDIO_PGVECTOR_QUANTIZATION),
        ),
        meanwhile=beside,
    )


def prepare(connect: Connect) -> None:
    """Make what every index of pgvector shares, before there is traffic."""
    if connection.vendor == "postgresql" and availability(connect).available:
        from engine.vectors import pgvector_tables

        pgvector_tables.ensure(connect())


def is_due(store: VectorStore) -> bool:
    """Whether a store has something made for its searches that is not in the right shape."""
    if connection.vendor != "postgresql":
        return False
    from engine.vectors.pgvector import PgVectorStore

    return isinstance(store, PgVectorStore) and store.is_due()


def maintain(store: VectorStore, progress: Callable[[int, int, str], None]) -> None:
    """Bring a store into the right shape; nothing is embedded for it."""
    if is_due(store):
        cast("PgVectorStore", store).maintain(progress)
