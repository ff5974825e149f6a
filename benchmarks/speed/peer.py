"""Runs mem0 on our data, where it is installed in an environment of its own.

Its requirements contradict ours (protobuf), so it never shares an environment with the product.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.speed.data import Data, Plan
from memory.evaluation.measures import percentile

VARIABLE: Final = "BENCH_MEM0_PYTHON"
UP_TO: Final = 10_000
QUESTIONS: Final = 100


def measure(plan: Plan, limit: int) -> dict[str, Any]:
    """Its figures, or under ``absent`` why there are none."""
    python = os.environ.get(VARIABLE)
    if plan.passages > UP_TO:
        return {"absent": f"not measured above {UP_TO:,} passages"}
    if not python:
        return {"absent": f"{VARIABLE} names no Python that has mem0ai"}
    with tempfile.TemporaryDirectory(prefix="memory-studio-mem0-") as folder:
        _export(plan, limit, Path(folder))
        script = Path(__file__).with_name("peer_mem0.py")
        done = subprocess.run(
            [python, "-I", script, folder], capture_output=True, text=True, cwd=folder, check=False
        )
    if done.returncode != 0:
        return {"absent": f"mem0 failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}"}
    found = json.loads(done.stdout.splitlines()[-1])
    return {
        "search_p50_ms": round(percentile(found["search_ms"], 0.5), 2),
        "search_p95_ms": round(percentile(found["search_ms"], 0.95), 2),
        "add_p50_ms": round(percentile(found["add_ms"], 0.5), 2),
        "add_per_s": round(1000 * len(found["add_ms"]) / sum(found["add_ms"]), 1),
        "disk_mb": round(found["disk_mb"], 1),
    }


def _export(plan: Plan, limit: int, folder: Path) -> None:
    data = Data.empty(plan)
    texts = [note.record["content"] for notes in data.blocks() for note in notes]
    questions = data.questions[:QUESTIONS]
    rows = {"texts": texts, "questions": questions, "limit": limit}
    (folder / "rows.json").write_text(json.dumps(rows), encoding="utf-8")
    vectors = np.stack([*data.vectors, *(data.known[text] for text in questions)])
    np.save(folder / "vectors.npy", vectors)
