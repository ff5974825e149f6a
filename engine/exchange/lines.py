"""JSON lines: each is a record of its own, and one that is broken costs only itself."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import IO, Any, Final

from engine.exchange.found import Place, Reason, Refused, Unit

MAX_LINE: Final = 1 << 26
"""Bytes of one line."""
MARK: Final = b"\xef\xbb\xbf"


def read(file: IO[bytes], name: str) -> Iterator[tuple[Place, Any] | Refused]:
    """The value of every line that is not blank."""
    number = 0
    # Not ``splitlines``: JSON may hold U+2028 and its kin as they are.
    while line := file.readline(MAX_LINE):
        number += 1
        place = Place(number, Unit.LINE, name)
        if len(line) == MAX_LINE and not line.endswith(b"\n"):
            _skip_rest(file)
            yield Refused(place, Reason.TOO_LONG)
            continue
        if number == 1:
            line = line.removeprefix(MARK)
        if not line.strip():
            continue
        try:
            yield place, json.loads(line.decode())
        except UnicodeDecodeError:
            yield Refused(place, Reason.NOT_UTF8)
        except (ValueError, RecursionError):
            yield Refused(place, Reason.NOT_JSON)


def _skip_rest(file: IO[bytes]) -> None:
    while (line := file.readline(MAX_LINE)) and not line.endswith(b"\n"):
        pass
