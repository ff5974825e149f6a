"""What a Qdrant server may do instead of answering."""

from __future__ import annotations

from typing import Final

from engine.errors import Unavailable


class QdrantFailed(Unavailable):
    """Qdrant cannot serve now.

    Codes: ``qdrant_unreachable``, ``qdrant_timeout``, ``qdrant_auth``, ``qdrant_missing`` (the
    collection is gone), ``qdrant_busy``, ``qdrant_error``, ``qdrant_refused`` (the request),
    ``qdrant_invalid`` (the answer), ``qdrant_blocked`` (the address), ``qdrant_building``,
    ``qdrant_behind``, ``qdrant_loading``, ``qdrant_name_taken``, ``qdrant_not_installed``.
    """

    code = "qdrant_error"


OUTAGES: Final = frozenset(
    ("qdrant_unreachable", "qdrant_timeout", "qdrant_busy", "qdrant_error", "qdrant_invalid")
)
"""Failures of the server as a whole, which pass."""
