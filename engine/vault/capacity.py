"""How much one vault may hold in memory, and how many vaults (second seed)."""

from __future__ import annotations

from typing import Final

from engine.vault.errors import VaultError

MIB: Final = 1 << 20
MAX_CHUNKS: Final = 10_000
MAX_TEXT_BYTES: Final = 16 * MIB
"""Text of chunks' sources with titles and metadata, in UTF-8."""
MAX_VECTOR_BYTES: Final = 32 * MIB
MAX_VAULTS: Final = 2
FLOAT_BYTES: Final = 4


def vector_bytes(chunks: int, dims: int) -> int:
    """What float32 vectors of so many chunks take."""
    return chunks * dims * FLOAT_BYTES


def check(*, chunks: int = 0, text_bytes: int = 0, vectors: int = 0) -> None:
    """Refuse what does not fit into memory; ``vectors`` in bytes.

    Raises ``VaultError`` (``index_too_large``, ``reason`` names the figure that is too large).
    """
    for name, size, most in (
        ("chunks", chunks, MAX_CHUNKS),
        ("text", text_bytes, MAX_TEXT_BYTES),
        ("vectors", vectors, MAX_VECTOR_BYTES),
    ):
        if size > most:
            unit = "" if name == "chunks" else " bytes"
            raise VaultError(
                f"The vault is too large for its index: {size:,} of {most:,} {name}{unit}.",
                code="index_too_large",
                reason=f"{size:,} of {most:,}{unit}",
            )
