"""5,000 memories are imported into a fresh studio: how fast, how fast they are embedded, and how
long pages take meanwhile."""

from __future__ import annotations

import json
import statistics
import threading
import time
from typing import Any

from benchmarks.notes import memories
from benchmarks.studio_process import Studio, studio

COUNT = 5000
WATCH_S = 240.0
SLOW_MS = 250.0
PAGES = {
    "list": "/memories/",
    "search": "/memories/?q=PostgreSQL",
    "preview": "/playground/?q=who+prefers+green+tea&strategy=hybrid",
    "engine": "/engine/",
}


def main() -> None:
    """Run and print."""
    with studio() as running:
        print(f"served after {running.started_s:.1f} s")
        _import(running)
        _watch(running)


def _import(running: Studio) -> None:
    body = "\n".join(json.dumps(row, ensure_ascii=False) for row in memories(COUNT)).encode()
    files = {"file": ("memories.jsonl", body, "application/json")}
    running.post_form("/memories/import/", {"owner": ""}, files).raise_for_status()
    first_hit_s = None
    started = time.perf_counter()
    while True:
        job = next(j for j in _jobs(running) if j["kind"] == "import")
        if first_hit_s is None and "note:" in running.client.get(PAGES["search"]).text:
            first_hit_s = time.perf_counter() - started
        if job["state"] not in ("queued", "running"):
            break
    print(f"import {job['state']}: {job['result']}")
    print(f"first page with a keyword hit after {first_hit_s or 0:.1f} s")


def _jobs(running: Studio) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = running.client.get("/api/jobs").json()["data"]
    return found


def _watch(running: Studio) -> None:
    """Ask for pages in turn until every passage has a vector or the time is over."""
    took_ms: dict[str, list[float]] = {name: [] for name in PAGES}
    started, shown = time.perf_counter(), -1
    pause = threading.Event()
    while True:
        covered = running.client.get("/api/memory/engine-status").json()["coverage"]
        elapsed = time.perf_counter() - started
        if covered["percent"] >= 100 or elapsed > WATCH_S:
            break
        if int(covered["percent"]) // 10 > shown:
            shown = int(covered["percent"]) // 10
            print(f"{elapsed:6.1f} s  coverage {covered['percent']:5.1f} %")
        for name, path in PAGES.items():
            begun = time.perf_counter()
            running.client.get(path).raise_for_status()
            took_ms[name].append((time.perf_counter() - begun) * 1000)
            if took_ms[name][-1] > SLOW_MS:
                print(f"{begun - started:6.1f} s  {name} took {took_ms[name][-1]:.0f} ms")
        pause.wait(0.2)
    print(f"{elapsed:6.1f} s  coverage {covered['percent']:5.1f} %")
    for name, values in took_ms.items():
        ordered = sorted(values)
        p95 = ordered[int(0.95 * (len(ordered) - 1))]
        median = statistics.median(values)
        print(
            f"{name:8} {len(values)} pages: p50 {median:.0f} p95 {p95:.0f} max {max(values):.0f} ms"
        )
