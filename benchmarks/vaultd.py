"""``make bench ARGS=vaultd``: what it costs that a web passes requests about sealed vaults on."""

from __future__ import annotations

import os
import secrets
import statistics
import sys
import time
from base64 import urlsafe_b64encode
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx

from benchmarks.chaos.processes import ROOT, Process
from engine.testing import postgres_server, redis_server
from engine.testing.postgres_server import free_port

ROUNDS = 600
PASSPHRASE = "correct horse battery"  # noqa: S105 - of a vault that lives for a minute
LARGE = 8 * 2**20


def main() -> None:
    """Measure on a Postgres, a Redis, a web and a vaultd of its own."""
    with (
        postgres_server.running() as postgres,
        redis_server.running() as redis,
        TemporaryDirectory(prefix="memory-studio-bench-") as folder,
    ):
        os.environ |= {
            "DATABASE_URL": postgres.create("studio"),
            "REDIS_URL": redis.url,
            "MEMORY_STUDIO_HOME": folder,
            "MEMORY_STUDIO_SECRET_KEY": secrets.token_urlsafe(50),
            "MEMORY_STUDIO_ENCRYPTION_KEY": urlsafe_b64encode(secrets.token_bytes(32)).decode(),
            "DJANGO_SETTINGS_MODULE": "memstudio.settings",
        }
        _measure(Path(folder), _key())


def _key() -> str:
    import django

    django.setup()
    from django.core.management import call_command

    from memory.principal import SYSTEM
    from memory.services import keys

    call_command("prepare", verbosity=0)
    return keys.create(SYSTEM, "bench", scopes=["read", "write"])[1]


def _measure(folder: Path, secret: str) -> None:
    from memstudio.vaultd.headers import PROOF
    from memstudio.vaultd.proof import proof

    vaultd, web = _started(folder, "vaultd"), _started(folder, "studio")
    headers = {"Authorization": f"Bearer {secret}"}
    try:
        with (
            httpx.Client(base_url=web[1], headers=headers, timeout=60) as through,
            httpx.Client(
                base_url=vaultd[1], headers=headers | {PROOF.decode(): proof().decode()}, timeout=60
            ) as direct,
        ):
            _compare(direct, through)
    finally:
        web[0].kill()
        vaultd[0].kill()


def _started(folder: Path, command: str) -> tuple[Process, str]:
    port = free_port()
    place = ["--listen", f"127.0.0.1:{port}"] if command == "vaultd" else ["--port", str(port)]
    url = f"http://127.0.0.1:{port}"
    process = Process(
        (sys.executable, str(ROOT / "manage.py"), command, *place),
        folder / command,
        dict(os.environ),
        f"{url}/readyz",
    )
    process.start()
    os.environ["MEMORY_STUDIO_VAULTD"] = url
    return process, url


def _compare(direct: httpx.Client, through: httpx.Client) -> None:
    uid = _vault(through, "sealed", PASSPHRASE)
    plain = _vault(through, "open", "")
    search = {"query": "refunds", "mode": "bm25"}
    large = {"body": "x" * LARGE, "kind": "file", "title": "large"}
    asked: dict[str, tuple[str, str, Any, int]] = {
        "the state of a sealed vault": ("GET", f"/api/vaults/{uid}", None, ROUNDS),
        "a keyword search of it": ("POST", f"/api/vaults/{uid}/search", search, ROUNDS),
        "8 MiB put into it": ("POST", f"/api/vaults/{uid}/assets", large, 10),
        "a keyword search of an open vault": (
            "POST",
            f"/api/vaults/{plain}/search",
            search,
            ROUNDS,
        ),
    }
    for name, (method, path, body, rounds) in asked.items():
        ways = {"direct": direct, "through a web": through}
        taken = _in_turn(ways, method, path, body, rounds)
        told = "   ".join(
            f"{way} p50 {statistics.median(times):6.1f} ms p95 "
            f"{statistics.quantiles(times, n=20)[-1]:6.1f} ms"
            for way, times in taken.items()
        )
        print(f"{name:36} {told}")


def _vault(client: httpx.Client, name: str, passphrase: str) -> str:
    asked = {"name": name, "sealed": bool(passphrase), "passphrase": passphrase}
    made = client.post("/api/vaults", json=asked)
    made.raise_for_status()
    uid = str(made.json()["id"])
    card = {"title": "Refund policy", "body": "Refunds are paid within seven days."}
    client.post(f"/api/vaults/{uid}/assets", json=card | {"kind": "card"}).raise_for_status()
    return uid


def _in_turn(
    ways: dict[str, httpx.Client], method: str, path: str, body: Any, rounds: int
) -> dict[str, list[float]]:
    """Milliseconds of each way; one after another, so that noise is shared."""
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for _round in range(rounds):
        for way, client in ways.items():
            began = time.perf_counter()
            client.request(method, path, json=body).raise_for_status()
            taken[way].append((time.perf_counter() - began) * 1e3)
    return taken
