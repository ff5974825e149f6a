"""Bounds of a search (second seed): refused when asked for by name, kept to on the chat path."""

from __future__ import annotations

from collections.abc import Collection

from engine.errors import InvalidQuery
from engine.text.tokenize import Analyzer, analyzer
from engine.types import Match, Mode

MAX_QUERY_BYTES = 1024
MAX_TERMS = 64
MAX_LIMIT = 100

MODES = frozenset(mode.value for mode in Mode)
MATCHES = frozenset(match.value for match in Match)


def check_query(
    text: str,
    limit: int,
    mode: str = Mode.HYBRID.value,
    match: str = Match.ANY.value,
    *,
    modes: Collection[str] = MODES,
    terms_of: Analyzer | None = None,
) -> None:
    """Refuse a search that is out of bounds.

    ``modes`` are the names the edge speaks; names are case-sensitive. Terms are counted as words
    of the analyzer ``terms_of`` (``search`` unless given). A text may be empty only in mode
    ``recent``, where it does not matter. Raises ``InvalidQuery`` with the codes it lists.
    """
    if mode not in modes:
        raise InvalidQuery("There is no such search mode.", code="invalid_mode")
    if match not in MATCHES:
        raise InvalidQuery("Match is one of any, all, phrase.", code="invalid_match_mode")
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidQuery(f"Limit is 1 to {MAX_LIMIT}.", code="limit_out_of_range")
    if mode == Mode.RECENT:
        return
    if _size(text) > MAX_QUERY_BYTES:
        message = f"A query has at most {MAX_QUERY_BYTES} bytes of UTF-8."
        raise InvalidQuery(message, code="query_too_long")
    words = (terms_of or analyzer("search")).words(text)
    if not words:
        raise InvalidQuery("The query holds no word to look for.", code="empty_query")
    if len(words) > MAX_TERMS:
        message = f"A query has at most {MAX_TERMS} different words."
        raise InvalidQuery(message, code="too_many_terms")


def shorten_query(text: str, *, terms_of: Analyzer | None = None) -> str:
    """A text cut to the bounds of a query: its beginning and its end, where questions stand.

    For the chat path, whose query is whatever the user said. A text within bounds is returned
    as it is.
    """
    counter = terms_of or analyzer("search")
    size = min(_size(text), MAX_QUERY_BYTES)
    short = _ends(text, size)
    while (count := len(counter.words(short))) > MAX_TERMS:
        size = min(size - 1, size * MAX_TERMS // count)
        short = _ends(text, size)
    return short


def _ends(text: str, size: int) -> str:
    """The first and last half of ``size`` bytes, cut between words where there are any."""
    data = text.encode("utf-8", "replace")
    if len(data) <= size:
        return text
    half = max((size - 1) // 2, 0)
    head = data[:half].decode("utf-8", "ignore")
    tail = data[len(data) - half :].decode("utf-8", "ignore")
    if " " in head.strip():
        head = head.rsplit(" ", 1)[0]
    if " " in tail.strip():
        tail = tail.split(" ", 1)[1]
    return f"{head} {tail}".strip()


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
