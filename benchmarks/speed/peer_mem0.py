"""mem0 on the same texts and vectors. Runs with the Python of an environment that has mem0ai, and
imports nothing of ours: ``python peer_mem0.py FOLDER`` reads ``rows.json`` and ``vectors.npy``.

Its own path without a language model: ``infer=False``, Qdrant's local store on disk, every memory
of one user; the embedder looks the vectors up, so that none of its time is a model's.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


class LookUp:
    """The embedder: vectors by text."""

    def __init__(self, known: dict[str, list[float]]) -> None:
        self._known = known

    def embed(self, text: str, memory_action: str | None = None) -> list[float]:
        """The vector of one text."""
        del memory_action
        return self._known[text]

    def embed_batch(self, texts: list[str], memory_action: str | None = None) -> list[list[float]]:
        """The vectors of several."""
        return [self.embed(text, memory_action) for text in texts]


def main(folder: Path) -> None:
    """Add, search, print milliseconds."""
    os.environ |= {"MEM0_TELEMETRY": "False", "OPENAI_API_KEY": "none", "MEM0_DIR": str(folder)}
    from mem0 import Memory

    given = json.loads((folder / "rows.json").read_text(encoding="utf-8"))
    vectors = np.load(folder / "vectors.npy").tolist()
    texts, questions = given["texts"], given["questions"]
    memory: Any = Memory.from_config(_config(folder))
    memory.embedding_model = LookUp(dict(zip([*texts, *questions], vectors, strict=True)))
    add_ms = [_timed(lambda t=text: memory.add(t, user_id="a", infer=False)) for text in texts]
    search_ms = [
        _timed(lambda q=text: memory.search(q, filters={"user_id": "a"}, top_k=given["limit"]))
        for text in questions
    ]
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    size -= sum((folder / name).stat().st_size for name in ("rows.json", "vectors.npy"))
    print(json.dumps({"add_ms": add_ms, "search_ms": search_ms, "disk_mb": size / 2**20}))
    sys.stdout.flush()
    os._exit(0)  # its clients close themselves noisily while the interpreter ends


def _config(folder: Path) -> dict[str, Any]:
    store = {
        "path": str(folder / "qdrant"),
        "collection_name": "bench",
        "embedding_model_dims": 384,
        "on_disk": True,
    }
    return {
        "vector_store": {"provider": "qdrant", "config": store},
        "history_db_path": str(folder / "history.db"),
    }


def _timed(work: Any) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    main(Path(sys.argv[1]))
