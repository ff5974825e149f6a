"""The compose files: they can be read, nothing starts without secrets, nobody has needless rights.

No container runs here: what is in the files is held against what they promise.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
SCALED, SINGLE = "docker-compose.yml", "docker-compose.single.yml"
SECRETS = (
    "POSTGRES_PASSWORD",
    "REDIS_PASSWORD",
    "MEMORY_STUDIO_SECRET_KEY",
    "MEMORY_STUDIO_ENCRYPTION_KEY",
)
OURS = {"web", "vaultd", "worker", "beat"}


def read(name: str) -> dict[str, Any]:
    """The services of a file."""
    document: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
    return document["services"]


def config(*arguments: str, leave_out: str = "") -> subprocess.CompletedProcess[str]:
    """``docker-compose … config``, with every secret but one."""
    given = {name: "0" * 44 for name in SECRETS if name != leave_out}
    kept = {name: value for name, value in os.environ.items() if name not in SECRETS}
    return subprocess.run(
        ["docker-compose", *arguments, "config"],
        cwd=ROOT,
        env=kept | given,
        capture_output=True,
        text=True,
    )


def has_compose() -> bool:
    """Whether docker-compose is here; the whole check (.ci/run) must have it."""
    found = shutil.which("docker-compose") is not None
    if not found:
        missing = "docker-compose is not installed: its own reading of the files is not checked"
        sys.stderr.write(f"{missing}\n")
    assert found or "CI" not in os.environ
    return found


@pytest.mark.parametrize(
    ("arguments", "services"),
    [
        (["-f", SCALED], {*OURS, "postgres", "redis"}),
        (["-f", SCALED, "--profile", "qdrant"], {*OURS, "postgres", "redis", "qdrant"}),
        (["-f", SINGLE], {"studio"}),
    ],
)
def test_compose_reads_each_file_and_profile(arguments: list[str], services: set[str]) -> None:
    if has_compose():
        done = config(*arguments)
        assert done.returncode == 0, done.stderr
        chosen = yaml.safe_load(done.stdout)["services"]
        assert set(chosen) - {"qdrant"} == services - {"qdrant"}
    assert services <= set(read(arguments[1]))


@pytest.mark.parametrize("secret", SECRETS)
def test_nothing_starts_without_a_secret(secret: str) -> None:
    if has_compose():
        assert config("-f", SCALED, leave_out=secret).returncode != 0
    text = (ROOT / SCALED).read_text(encoding="utf-8")
    used = re.findall(rf"\$\{{{secret}([^}}]*)}}", text)
    assert used
    assert set(used) == {":?is not set in .env"}
    assert secret in (ROOT / ".env.example").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", [SCALED, SINGLE])
def test_no_service_has_rights_it_does_not_need(name: str) -> None:
    for service, options in read(name).items():
        assert options["cap_drop"] == ["ALL"], service
        assert options["security_opt"] == ["no-new-privileges:true"], service
        assert options["restart"] == "unless-stopped", service
        assert options.get("read_only") or service == "qdrant", service
        for port in options.get("ports", ()):
            assert port.startswith("127.0.0.1:"), f"{service} is open to everyone"


def test_images_are_pinned_and_servers_tell_how_they_are() -> None:
    for service, options in read(SCALED).items():
        if service in OURS:
            assert options["image"] == "memory-studio"
            continue
        assert re.search(r":v?\d+\.\d+", options["image"]), service
        assert options["healthcheck"]["test"], service
    assert read(SCALED)["worker"]["healthcheck"]["test"]
    assert set(read(SCALED)["web"]["depends_on"]) == {"postgres", "redis"}


def test_vaultd_is_reached_by_the_webs_and_by_nobody_else() -> None:
    services = read(SCALED)
    place = services["web"]["environment"]["MEMORY_STUDIO_VAULTD"]
    assert place == "http://vaultd:8001"
    assert "ports" not in services["vaultd"]
    assert services["vaultd"]["command"][-2:] == ["--listen", "0.0.0.0:8001"]
    assert services["vaultd"]["healthcheck"]["test"][-1] == "8001"
    assert "deploy" not in services["vaultd"], "there is one of it"


def test_the_image_is_built_apart_and_runs_as_nobody_in_particular() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    stages = re.findall(r"^FROM (\S+) AS (\w+)$", text, re.MULTILINE)
    assert [name for _image, name in stages] == ["builder", "runtime"]
    runtime = text.split(" AS runtime")[1]
    assert re.search(r"^USER studio$", runtime, re.MULTILINE)
    assert "HEALTHCHECK" in runtime
    assert "pip install" not in runtime
