"""One run: a studio on a home of its own, the data, and the command ``schemathesis``."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from benchmarks.contract.data import fill
from benchmarks.contract.keeper import keeper

ROOT: Final = Path(__file__).resolve().parent.parent.parent
DOCUMENT: Final = ROOT / "docs" / "openapi.json"
CONFIGURATION: Final = Path(__file__).with_name("schemathesis.toml")
CHECKS: Final = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
    "ignored_auth",
    "missing_required_header",
)


def run(url: str, environ: Mapping[str, str], options: Sequence[str]) -> tuple[int, str]:
    """Exit status and report of a run against the studio at ``url`` on the home of ``environ``."""
    with keeper(url) as client:
        known = fill(client)
    command = [
        *(sys.executable, "-m", "schemathesis.cli", "--config-file", str(CONFIGURATION)),
        *("run", str(DOCUMENT), "--url", url),
        *("--checks", ",".join(CHECKS), "--continue-on-failure", *options),
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        env={
            **environ,
            "DJANGO_SETTINGS_MODULE": "memstudio.settings",
            "MEMORY_STUDIO_URL": url,
            "PYTHONPATH": str(ROOT),
            "MEMORY_STUDIO_KNOWN": json.dumps(known),
            "SCHEMATHESIS_HOOKS": "benchmarks.contract.hooks",
        },
        capture_output=True,
        text=True,
    )
    return done.returncode, done.stdout + done.stderr
