"""What one process writes, another that has the memory in its cache serves at once."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from pathlib import Path

from benchmarks.studio_process import serving
from memory.tests.own_stack import environment

PRELUDE = """
import django
django.setup()
from memory.principal import SYSTEM
from memory.services import keys, memories
from memory.services.drafts import MemoryDraft
"""
MAKE = """
secret = keys.create(SYSTEM, "app", scopes=["read", "write"])[1]
print(secret, memories.create(SYSTEM, MemoryDraft("likes tea", "k"), owner="app")[0].pk)
"""


def _elsewhere(environ: dict[str, str], script: str) -> str:
    """What a process of its own prints, on the same database."""
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + script],
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def _read(url: str, secret: str, memory_id: str) -> str:
    request = urllib.request.Request(
        f"{url}/api/memory/{memory_id}", headers={"Authorization": f"Bearer {secret}"}
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return str(json.load(answer)["memory"]["content"])


def test_a_write_elsewhere_is_served_at_once(tmp_path: Path) -> None:
    environ = environment(tmp_path)
    with serving(environ) as (url, _link):
        secret, memory_id = _elsewhere(environ, MAKE).split()
        assert [_read(url, secret, memory_id) for _ in range(3)] == ["likes tea"] * 3
        change = f"memories.update(SYSTEM, '{memory_id}', {{'content': 'likes cocoa'}})"
        _elsewhere(environ, change)
        assert _read(url, secret, memory_id) == "likes cocoa"
