"""The promises of chunks over many random texts.

python -m benchmarks.chunk_offsets --examples 10000
"""

from __future__ import annotations

import argparse
import time

from hypothesis import HealthCheck, given, settings

from engine.testing.mixed_text import MIXED, check_chunks


def main() -> None:
    """Run them; the first text that breaks a promise is shown, made small."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=10_000)
    examples = parser.parse_args().examples
    seen = characters = longest = 0

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(MIXED)
    def check(text: str) -> None:
        nonlocal seen, characters, longest
        seen, characters, longest = seen + 1, characters + len(text), max(longest, len(text))
        check_chunks(text)

    start = time.perf_counter()
    check()
    took = time.perf_counter() - start
    print(f"{seen} texts, {characters} characters, longest {longest}: all hold ({took:.0f} s)")


if __name__ == "__main__":
    main()
