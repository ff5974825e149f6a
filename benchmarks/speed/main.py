"""``make bench``: every size of ``BENCH_SIZES`` in turn, then the tables.

A size is measured in a process with a home of its own, away from the person's.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from benchmarks.speed import peer, report
from benchmarks.speed.data import Plan
from memstudio import quiet

ROOT = Path(__file__).resolve().parents[2]
SIZES = "1000 10000 100000 1000000"
"""Sizes without the variable ``BENCH_SIZES``; the last takes most of an hour."""

DOCUMENT = "BENCH_MARKDOWN"
"""Variable that names a document to put the tables into."""

QUESTIONS = 300
SHARE = 0.9
HNSW_UP_TO = 200_000
LOAD_S = 1.0
EMBEDDED_TEXTS = 500
LIMIT = 20
OURS = ("MEMORY_", "CELERY_", "DATABASE_", "REDIS_", "DJANGO_")


def main() -> None:
    """Measure every size, print the tables, and write them where a document is named."""
    sizes = [int(size) for size in os.environ.get("BENCH_SIZES", SIZES).replace(",", " ").split()]
    results: list[report.Result] = []
    for size in sizes:
        sys.stderr.write(f"-- {size:,} passages\n")
        results.append(measure(plan_of(size)))
        results[-1]["mem0"] = peer.measure(plan_of(size), LIMIT)
    print(report.machine(results[-1]), "", *report.table(results), sep="\n")
    print("\nEmbedding:", json.dumps(embedding()))
    if document := os.environ.get(DOCUMENT):
        report.write(Path(document), results)


def plan_of(passages: int, *, questions: int = QUESTIONS, share: float = SHARE) -> Plan:
    """The usual plan of a size."""
    return Plan(passages, questions, share, HNSW_UP_TO, load_s=LOAD_S)


def brief_plan(passages: int, *, questions: int, share: float = SHARE) -> Plan:
    """A plan for a test: the ratios, and little else."""
    whole = plan_of(passages, questions=questions, share=share)
    return replace(whole, load_s=0.1, is_brief=True)


def embedding(texts: int = EMBEDDED_TEXTS) -> dict[str, Any]:
    """Embedding by the product beside the bare model."""
    return run("benchmarks.speed.embedding", str(texts))


def measure(plan: Plan) -> dict[str, Any]:
    """Every figure of one size. Raises ``RuntimeError`` when the process fails."""
    return run("benchmarks.speed.run", json.dumps(asdict(plan)))


def run(module: str, *arguments: str) -> dict[str, Any]:
    """Run a module that prints one JSON object, with a fresh home and no settings but defaults."""
    quiet.apply()  # as every entry point of the product does
    with tempfile.TemporaryDirectory(prefix="memory-studio-bench-") as home:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        done = subprocess.run(
            [sys.executable, "-m", module, *arguments],
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={
                **kept,
                "MEMORY_STUDIO_HOME": home,
                "MEMORY_STUDIO_LOG_LEVEL": "WARNING",
                "DJANGO_SETTINGS_MODULE": "memstudio.settings",
            },
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"{module} ended with {done.returncode}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
