"""Progress of a long measurement, on standard error."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """One line; on a terminal it takes the place of the last one."""
    if sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{line}")
    else:
        sys.stderr.write(f"{line}\n")
    sys.stderr.flush()
