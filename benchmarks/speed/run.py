"""One size, in a process of its own: build, measure, print one JSON object.

``python -m benchmarks.speed.run PLAN``, the plan as JSON, with a home for the product in the
environment.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import django

from benchmarks.speed import cold, timing
from benchmarks.speed.data import Data, Plan
from benchmarks.speed.machine import describe
from benchmarks.speed.progress import say
from benchmarks.speed.timing import Engine, Times
from benchmarks.speed.vectors import DIM, near

if TYPE_CHECKING:
    from benchmarks.speed.engines import Built

WRITES = 40
THREADS = 4
SHARES = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
RATIOS = {
    "keyword_over_fts5": ("keyword", ("fts5",)),
    "vector_over_numpy": ("vector", ("numpy",)),
    "vector_over_hnsw": ("vector", ("hnsw",)),
    "sqlite_vec_over_vector": ("sqlite_vec", ("vector",)),
    "hybrid_over_raw": ("hybrid", ("fts5", "hnsw")),
    "hybrid_over_legs": ("hybrid", ("keyword", "vector")),
}
"""Medians of one engine over the sum of others; ``raw`` are FTS5 and HNSW."""


def main(arguments: list[str]) -> None:
    """Measure what the command line says."""
    plan = Plan(**json.loads(arguments[0]))
    django.setup()
    with tempfile.TemporaryDirectory(prefix="memory-studio-raw-") as folder:
        print(json.dumps(_measure(Data.empty(plan), Path(folder))))


def _measure(data: Data, folder: Path) -> dict[str, Any]:
    from benchmarks.speed import engines

    built = engines.build(data, folder)
    say("searching")
    asks = engines.engines(built)
    times = timing.in_turn(asks, len(data.questions))
    result: dict[str, Any] = {"passages": data.plan.passages, "owner_passages": data.plan.biggest}
    result["questions"] = len(data.questions)
    for name, measured in times.items():
        result |= {f"{name}_{key}_ms": _ms(measured.share(at)) for key, at in SHARES.items()}
        result[f"{name}_cpu_p50_ms"] = _ms(measured.cpu)
    result |= {name: round(value, 4) for name, value in engines.recalls(built).items()}
    result["ratios"], result["cpu_ratios"] = _ratios(times, built)
    result |= _throughput(asks, data)
    result |= _build(built)
    result |= {name: round(value, 3) for name, value in cold.start(data).items()}
    result |= _writes(data)
    return result | {"absent": built.absent, "machine": describe()}


def _ratios(times: dict[str, Times], built: Built) -> tuple[dict[str, float], dict[str, float]]:
    """Of medians over all questions: of wall time, and of processor time."""
    columns = (built.imports, built.analyses, built.stores)
    walls = [sum(took.wall for took in column) for column in columns]
    cpus = [sum(took.cpu for took in column) for column in columns]
    wall = {"import_over_raw": walls[0] / (walls[1] + walls[2])}
    cpu = {"import_over_raw": cpus[0] / (cpus[1] + cpus[2])}
    for name, (over, under) in RATIOS.items():
        if times.keys() >= {over, *under}:
            wall[name] = times[over].share(0.5) / sum(times[part].share(0.5) for part in under)
            cpu[name] = times[over].cpu / sum(times[part].cpu for part in under)
    return _rounded(wall), _rounded(cpu)


def _rounded(figures: dict[str, float]) -> dict[str, float]:
    return {name: round(value, 3) for name, value in figures.items()}


def _throughput(engines: dict[str, Engine], data: Data) -> dict[str, float]:
    from benchmarks.speed.product import leave

    found: dict[str, float] = {}
    for name in ("keyword", "vector", "hybrid"):
        for threads in (1, THREADS):
            load = timing.Load(threads, data.plan.load_s, leave)
            rate = timing.per_second(engines[name].ask, len(data.questions), load)
            found[f"{name}_per_s_{threads}_threads"] = round(rate, 1)
    return found


def _build(built: Built) -> dict[str, float]:
    from benchmarks.speed.product import disk_bytes

    data, product = built.data, built.product
    rows = data.plan.passages
    found = {
        "import_per_s": _per_s([took.wall for took in built.imports], rows),
        "import_per_cpu_s": _per_s([took.cpu for took in built.imports], rows),
        "analyse_per_s": _per_s([took.wall for took in built.analyses], rows),
        "vectors_per_s": round(rows / product.vector_s, 1),
        "settle_s": round(built.settle_s, 2),
        "disk_mb": round(disk_bytes() / 2**20, 1),
        "text_mb": round(data.text_bytes / 2**20, 2),
        "fts5_disk_mb": round(built.fts5.size_mb, 1),
        "vectors_mb": round(rows * DIM * 4 / 2**20, 1),
    }
    if built.vec0 is not None:
        found["sqlite_vec_disk_mb"] = round(built.vec0.size_mb, 1)
    if built.hnsw is not None:
        found["hnsw_build_s"] = round(built.hnsw.seconds, 2)
    return found


def _per_s(slices_ms: list[float], rows: int) -> float:
    return round(1000 * rows / sum(slices_ms), 1)


def _writes(data: Data) -> dict[str, float]:
    """One memory written and given its vector, and the first search after each."""
    from benchmarks.speed import product
    from benchmarks.speed.text import BIGGEST

    fresh = near(data.vectors[:WRITES], 1)
    wrote: list[float] = []
    searched: list[float] = []
    for number, vector in enumerate(fresh):
        started = time.perf_counter()
        passage_id = product.write(f"Written number {number}: the kettle moved.", f"w:{number}")
        wrote.append((time.perf_counter() - started) * 1000)
        product.give(passage_id, vector)
        started = time.perf_counter()
        product.hybrid(data.questions[number % len(data.questions)], owner=BIGGEST)
        searched.append((time.perf_counter() - started) * 1000)
    return {
        "write_p50_ms": _ms(statistics.median(wrote)),
        "hybrid_after_write_p50_ms": _ms(statistics.median(searched)),
    }


def _ms(value: float) -> float:
    return round(value, 3)


if __name__ == "__main__":
    main(sys.argv[1:])
