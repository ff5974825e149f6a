"""Searching one vault: keyword, vector or both, fused by ranks, reranked, labelled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

from engine.errors import RerankFailed
from engine.keyword.limits import check_query
from engine.net.errors import HttpFailed, UrlBlocked
from engine.protocols import Reranker
from engine.rank.rrf import DEFAULT_K, fuse
from engine.text.tokenize import analyzer
from engine.types import Candidate, Match, Mode, Vector
from engine.vault.errors import VaultError
from engine.vault.generator import failed
from engine.vault.index import IndexedChunk

DEPTH: Final = 100
LEAST_POOL: Final = 32
MODES: Final = ("keyword", "vector", "hybrid")
RERANK_CODES: Final = {
    "invalid_response": "rerank_invalid_response",
    "response_too_large": "rerank_invalid_response",
    "auth_failed": "auth_failed",
    "rate_limited": "rate_limited",
    "redirect_refused": "redirect_refused",
    "timeout": "timeout",
}


@dataclass(frozen=True, slots=True)
class VaultQuery:
    """A search as asked. ``limit`` counts chunks, or documents when ``grouped``."""

    text: str
    mode: Mode = Mode.HYBRID
    match: Match = Match.ANY
    limit: int = 8
    cards_only: bool = False
    grouped: bool = False

    def check(self) -> None:
        """Raise ``InvalidQuery`` when it is out of bounds."""
        check_query(
            self.text,
            self.limit,
            self.mode.value,
            self.match.value,
            modes=MODES,
            terms_of=analyzer("seed"),
        )

    @property
    def pool(self) -> int:
        """How many candidates are reranked."""
        return min(DEPTH, max(LEAST_POOL, 4 * self.limit))


@dataclass(frozen=True, slots=True)
class Found:
    """A chunk of the result. Scores are None for a list or stage that it was not in."""

    label: str
    chunk: IndexedChunk
    score: float
    bm25: float | None = None
    vector: float | None = None
    rrf: float | None = None
    rerank: float | None = None


Embed = Callable[[], Vector]


class Searchable(Protocol):
    """What a search of one vault reads: ``VaultIndex`` in memory, or tables of a database."""

    def keyword(
        self, query: str, *, limit: int, match: Match = Match.ANY, cards_only: bool = False
    ) -> list[Candidate]:
        """The best chunks by BM25. Raises ``InvalidQuery`` (``empty_query``)."""
        ...

    def nearest(
        self,
        vector: Vector,
        query: str,
        *,
        limit: int,
        match: Match = Match.ANY,
        cards_only: bool = False,
    ) -> list[Candidate]:
        """The nearest chunks, of those that the match mode accepts."""
        ...

    def held(self, ids: Sequence[int]) -> Mapping[int, IndexedChunk]:
        """Chunks by passage id; those that no longer exist are absent."""
        ...


def search(
    query: VaultQuery,
    index: Searchable,
    *,
    embed: Embed | None = None,
    reranker: Reranker | None = None,
    check: Callable[[], None] = lambda: None,
) -> list[Found]:
    """The best chunks, best first, labelled from ``S1``.

    Equal scores are ordered by asset and place. ``embed`` gives the vector of the query, after
    seeing to it that the index has vectors; ``check`` is called between the steps and raises when
    the work is not to go on. Raises ``InvalidQuery`` and ``VaultError``; a reranker that fails
    fails the search.
    """
    query.check()
    check()
    found = _listed(query, index, embed, None if reranker is None else query.pool)
    check()
    if reranker is not None and found:
        found = _reranked(query, found, reranker)
        check()
    kept = _grouped(found) if query.grouped else found
    return [replace(item, label=f"S{place}") for place, item in enumerate(kept[: query.limit], 1)]


def _listed(
    query: VaultQuery, index: Searchable, embed: Embed | None, most: int | None
) -> list[Found]:
    """The candidates in order, at most so many."""
    words: list[Candidate] = []
    near: list[Candidate] = []
    if query.mode is not Mode.VECTOR:
        words = index.keyword(
            query.text, limit=DEPTH, match=query.match, cards_only=query.cards_only
        )
    if query.mode is not Mode.KEYWORD:
        if embed is None:
            raise VaultError("There is no embedding model.", code="model_not_installed")
        near = index.nearest(
            embed(), query.text, limit=DEPTH, match=query.match, cards_only=query.cards_only
        )
    bm25 = {candidate.passage_id: candidate.score for candidate in words}
    cosine = {candidate.passage_id: candidate.score for candidate in near}
    if query.mode is Mode.KEYWORD:
        ordered = list(bm25.items())
    elif query.mode is Mode.VECTOR:
        ordered = list(cosine.items())
    else:
        ordered = fuse([list(bm25), list(cosine)], k=DEFAULT_K)
    is_fused = query.mode is Mode.HYBRID
    chunks = index.held([passage_id for passage_id, _score in ordered[:most]])
    found = [
        Found(
            "",
            chunk,
            score,
            bm25=bm25.get(passage_id),
            vector=cosine.get(passage_id),
            rrf=score if is_fused else None,
        )
        for passage_id, score in ordered[:most]
        if (chunk := chunks.get(passage_id)) is not None
    ]
    # Passages of a database are numbered as they came, not by asset and place.
    return sorted(found, key=lambda item: (-item.score, item.chunk.asset, item.chunk.ordinal))


def _reranked(query: VaultQuery, pool: Sequence[Found], reranker: Reranker) -> list[Found]:
    by_id = {item.chunk.passage.id: item for item in pool}
    given = [
        (Candidate(item.chunk.passage.id, rank, item.score), item.chunk.passage)
        for rank, item in enumerate(pool, 1)
    ]
    try:
        ordered = reranker.rerank(query.text, given)
    except RerankFailed as error:
        raise told(error) from error
    return [
        replace(by_id[candidate.passage_id], score=candidate.score, rerank=candidate.score)
        for candidate in ordered
    ]


def told(error: RerankFailed) -> VaultError:
    """The error of a vault for one of a reranker."""
    cause = error.__cause__
    if isinstance(cause, UrlBlocked | HttpFailed):
        found = failed(cause, RERANK_CODES)
        code, reason = found.code, found.reason
    else:
        code, reason = RERANK_CODES.get(error.code, "upstream_error"), error.code
    message = f"Reranking failed: {error} Search without it (no-rerank), or repair the service."
    return VaultError(message, code=code, reason=reason)


def _grouped(found: Sequence[Found]) -> list[Found]:
    """The best chunk of each document."""
    best: dict[str, Found] = {}
    for item in found:
        best.setdefault(item.chunk.asset, item)
    return list(best.values())
