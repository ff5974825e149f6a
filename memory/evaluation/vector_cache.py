"""Vectors kept on disk by signature, purpose and text, so that a second run embeds nothing."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from engine.protocols import EmbeddingSource
from engine.text.template import text_hash
from engine.types import Health, Matrix, Purpose, Signature

_CREATE = "CREATE TABLE IF NOT EXISTS vector (id TEXT PRIMARY KEY, value BLOB NOT NULL)"


class DiskCachedSource:
    """An ``EmbeddingSource`` that asks another only for texts it has not seen."""

    def __init__(self, source: EmbeddingSource, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._source = source
        self._db = sqlite3.connect(folder / "vectors.sqlite3", check_same_thread=False)
        self._db.execute(_CREATE)

    @property
    def name(self) -> str:
        """Family of the wrapped source."""
        return self._source.name

    @property
    def model(self) -> str:
        """Model of the wrapped source."""
        return self._source.model

    @property
    def signature(self) -> Signature:
        """Signature of the wrapped source."""
        return self._source.signature

    @property
    def is_loaded(self) -> bool:
        """Ready at once: what is on disk needs no model."""
        return True

    def embed(self, texts: Sequence[str], *, purpose: Purpose) -> Matrix:
        """Unit vectors of the texts, from disk where they are there."""
        ids = [self._id(text, purpose) for text in texts]
        found = {key: row for key in ids if (row := self._read(key)) is not None}
        missing = [i for i, key in enumerate(ids) if key not in found]
        if missing:
            fresh = self._source.embed([texts[i] for i in missing], purpose=purpose)
            for row, i in zip(fresh, missing, strict=True):
                found[ids[i]] = row
                self._db.execute(
                    "INSERT OR REPLACE INTO vector VALUES (?, ?)", (ids[i], row.tobytes())
                )
            self._db.commit()
        return np.stack([found[key] for key in ids]).astype(np.float32, copy=False)

    def health(self) -> Health:
        """Health of the wrapped source."""
        return self._source.health()

    def _id(self, text: str, purpose: Purpose) -> str:
        return f"{self.signature}|{purpose}|{text_hash(text)}"

    def _read(self, key: str) -> Matrix | None:
        row = self._db.execute("SELECT value FROM vector WHERE id = ?", (key,)).fetchone()
        return np.frombuffer(row[0], dtype=np.float32) if row else None
