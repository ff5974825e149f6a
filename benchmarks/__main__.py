"""``make bench ARGS="NAME …"``: run one measurement, or all of them."""

from __future__ import annotations

import argparse

from benchmarks import busy_studio

BENCHMARKS = {"busy-studio": busy_studio.main}


def main() -> None:
    """Run what was named."""
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHMARKS))
    names = parser.parse_args().names or list(BENCHMARKS)
    if unknown := set(names) - set(BENCHMARKS):
        parser.error(f"there is no {', '.join(sorted(unknown))}")
    for name in names:
        print(f"== {name}")
        BENCHMARKS[name]()


main()
