"""What the gateway adds to a chat: 10,000 memories, a model server that answers at once, and turns
asked of it directly, through the gateway without memory, and with it."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import httpx

from benchmarks.notes import PEOPLE, THINGS, memories
from benchmarks.studio_process import ROOT, serving
from engine.testing.fake_upstream import serving_models

COUNT: Final = 10_000
TURNS: Final = 150
WARM_UP: Final = 20
PAUSE_S: Final = 0.15
"""Between two chats, as between two turns of a person: what follows the first is then over."""
EMBEDDED_WITHIN_S: Final = 3600.0

_PREPARE: Final = """
import json, sys
from memory.principal import SYSTEM
from memory.services import keys, settings
key, secret = keys.create(SYSTEM, "app", scopes=("read", "write", "chat"))
settings.update(SYSTEM, {"enabled": True})
print(secret)
"""


def main() -> None:
    """Run and print."""
    folder = tempfile.TemporaryDirectory(prefix="memory-studio-bench-")
    with folder as home, serving_models() as upstream:
        environ = {
            **os.environ,
            "MEMORY_STUDIO_HOME": home,
            "MEMORY_STUDIO_PROVIDER_LAB_BASE_URL": upstream.url,
        }
        with serving(environ) as (url, _link):
            key = {"Authorization": f"Bearer {_prepared(environ)}"}
            with httpx.Client(base_url=url, headers=key, timeout=120) as studio:
                _fill(studio)
                _measure(studio, upstream.url)


def _prepared(environ: dict[str, str]) -> str:
    command = [sys.executable, "manage.py", "shell", "--no-imports", "--command", _PREPARE]
    done = subprocess.run(
        command, cwd=Path(ROOT), env=environ, capture_output=True, text=True, check=True
    )
    return done.stdout.split()[-1]


def _fill(studio: httpx.Client) -> None:
    started = time.perf_counter()
    rows = memories(COUNT)
    for first in range(0, COUNT, 500):
        items = [{"op": "create", "memory": row} for row in rows[first : first + 500]]
        done = studio.post("/api/memory/batch", json={"items": items}).raise_for_status().json()
        if not done["success"]:
            raise RuntimeError(done["results"][0])
    print(f"{COUNT} memories stored in {time.perf_counter() - started:.0f} s")
    while time.perf_counter() - started < EMBEDDED_WITHIN_S:
        if not studio.get("/api/memory").json()["stats"]["pendingIndex"]:
            break
        _pause(2.0)
    print(f"embedded after {time.perf_counter() - started:.0f} s")


def _measure(studio: httpx.Client, direct_url: str) -> None:
    with httpx.Client(base_url=direct_url.removesuffix("/v1"), timeout=120) as direct:
        ways: dict[str, Callable[[str], httpx.Response]] = {
            "direct": lambda text: _ask(direct, text),
            "without memory": lambda text: _ask(studio, text, **{"x-memory-opt-out": "true"}),
            "with memory": lambda text: _ask(studio, text),
            "the same turn again": lambda text: _ask(studio, text),
        }
        took: dict[str, list[float]] = {name: [] for name in ways}
        states: dict[str, int] = {}
        for turn in range(WARM_UP + TURNS):
            text = f"What did {PEOPLE[turn % 10]} say about {THINGS[turn % 15]} in week {turn}?"
            for name, ask in ways.items():
                _pause(PAUSE_S)
                started = time.perf_counter()
                answer = ask(text)
                spent = (time.perf_counter() - started) * 1000
                answer.raise_for_status()
                if turn >= WARM_UP:
                    took[name].append(spent)
                    if name == "with memory":
                        count = answer.headers["x-memory-injected"]
                        states[count] = states.get(count, 0) + 1
    base = statistics.median(took["direct"])
    for name, values in took.items():
        middle, slow = statistics.median(values), statistics.quantiles(values, n=20)[-1]
        print(f"{name:20} p50 {middle:6.1f} ms  p95 {slow:6.1f} ms  added {middle - base:5.1f} ms")
    print("memories put in:", json.dumps(states))
    _steps(studio)


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def _steps(studio: httpx.Client) -> None:
    """The steps as the receipts have them."""
    rows: list[dict[str, Any]] = []
    for page in (1, 2):
        found = studio.get("/api/traces", params={"memory": "injected", "limit": 200, "page": page})
        rows += found.json()["data"]
    for step in ("retrieve", "inject", "ready"):
        values = [row["durations"][step] for row in rows if step in row["durations"]]
        print(f"step {step}: p50 {statistics.median(values):.1f} ms")


def _ask(client: httpx.Client, text: str, **headers: str) -> httpx.Response:
    body = {"model": "small", "messages": [{"role": "user", "content": text}]}
    return client.post("/v1/chat/completions", json=body, headers=headers)
