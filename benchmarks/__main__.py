"""``make bench``: the speed of searches beside other systems; ``make bench ARGS="NAME …"``: one
measurement, or several."""

from __future__ import annotations

import argparse

from benchmarks import busy_studio, gateway, read_by_id, vaultd, watching
from benchmarks.speed import main as speed
from benchmarks.speed import record

BENCHMARKS = {
    "speed": speed.main,
    "busy-studio": busy_studio.main,
    "gateway": gateway.main,
    "read-by-id": read_by_id.main,
    "record": record.record,
    "vaultd": vaultd.main,
    "watching": watching.main,
}
DEFAULT = "speed"


def main() -> None:
    """Run what was named."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    names = parser.parse_args().names or [DEFAULT]
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    for name in names:
        print(f"== {name}")
        BENCHMARKS[name]()


main()
