"""``make fuzz``: ten minutes of schemathesis; ``make fuzz ARGS="--minutes 1 --seed 7"``."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
import tempfile

import django


def main() -> int:
    """Run, print the report, and fail when anything was found."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="memory-studio-fuzz-") as home:
        os.environ |= {
            "MEMORY_STUDIO_HOME": home,
            "MEMORY_STUDIO_SECRET_KEY": secrets.token_urlsafe(48),
            "DJANGO_SETTINGS_MODULE": "memstudio.settings",
        }
        django.setup()
        from benchmarks.contract.run import run
        from benchmarks.studio_process import serving

        chosen = ["--seed", str(options.seed), "--max-time", str(round(options.minutes * 60))]
        with serving(os.environ) as (url, _link):
            status, report = run(url, os.environ, [*chosen, "--max-examples", "200"])
    print(report)
    return status


sys.exit(main())
