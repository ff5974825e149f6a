"""An open vault as the tables have it: searched by the indexes of memories, within its scope."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from engine.errors import EmbeddingFailed, EngineError, InvalidQuery
from engine.text.language import language_of
from engine.text.match import Matcher
from engine.text.tokenize import analyzer
from engine.types import Candidate, Degraded, Match, PassageKind, Scope, Vector
from engine.vault import embedding as vault_embedding
from engine.vault.errors import VaultError
from engine.vault.index import IndexedChunk
from memory import wiring
from memory.clock import now, to_ms
from memory.models import Passage, Vault, VectorIndex
from memory.passage_reader import PassageReader
from memory.services import embedding, indexes
from memory.services.vaults import spaces

if TYPE_CHECKING:
    from engine.embed.cache import CachedSource
    from engine.protocols import VectorStore

MATCHED: Final = 100
"""Chunks with the words of a query that are found out before meaning looks among them; as many as
the list of words has."""
NEAREST: Final = (400, 2_000)
"""Nearest chunks that are read for the words when more than that hold them."""
READ: Final = 100

Check = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Counted:
    """How much of a vault is in the tables. ``failed`` chunks could not be embedded."""

    chunks: int
    embedded: int
    failed: int = 0


def counted(vaults: Sequence[Vault], index: VectorIndex | None) -> dict[int, Counted]:
    """The figures of open vaults by primary key, as far as an index has their vectors."""
    if not vaults:
        return {}
    keys = [vault.pk for vault in vaults]
    rows = Passage.objects.filter(vault_id__in=keys).order_by()
    chunks = dict(rows.values_list("vault_id").annotate(n=Count("pk")))
    waits: dict[int, tuple[int, int]] = {}
    if index is not None and index.marks.exists():
        marks = index.marks.filter(passage__vault_id__in=keys).order_by()
        failing = Count("pk", filter=Q(attempts__gte=embedding.MAX_ATTEMPTS))
        per_vault = marks.values_list("passage__vault_id").annotate(n=Count("pk"), failed=failing)
        waits = {key: (waiting, failed) for key, waiting, failed in per_vault}
    found: dict[int, Counted] = {}
    for vault in vaults:
        count, (waiting, failed) = chunks.get(vault.pk, 0), waits.get(vault.pk, (0, 0))
        is_covered = index is not None and spaces.shares(vault, index)
        found[vault.pk] = Counted(count, count - waiting if is_covered else 0, failed)
    return found


class TableIndex:
    """``Searchable`` over the keyword index and the vector store of memories, for one search."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._reader = PassageReader()
        self._stores: Sequence[VectorStore] = ()
        self._matched: list[Candidate] | None = None

    def keyword(
        self, query: str, *, limit: int, match: Match = Match.ANY, cards_only: bool = False
    ) -> list[Candidate]:
        """The best chunks by BM25, with the frequencies of this vault alone."""
        if match is not Match.ANY:
            return self._matching(query, match, cards_only)[:limit]
        return self._by_words(query, limit, match, cards_only)

    def nearest(
        self,
        vector: Vector,
        query: str,
        *,
        limit: int,
        match: Match = Match.ANY,
        cards_only: bool = False,
    ) -> list[Candidate]:
        """The nearest chunks; with a match mode, those that hold the words.

        When more than ``MATCHED`` do, they are looked for among the nearest ones.
        """
        language = language_of(query)
        if match is Match.ANY:
            return self._searched(vector, self._scope(cards_only), limit, language)
        matching = self._matching(query, match, cards_only)
        if len(matching) < MATCHED:
            only = frozenset(candidate.passage_id for candidate in matching)
            scope = self._scope(cards_only, only)
            return self._searched(vector, scope, limit, language) if only else []
        return self._nearest_with_words(
            vector, Matcher(query, match, analyzer("search")), cards_only, limit
        )

    def held(self, ids: Sequence[int]) -> Mapping[int, IndexedChunk]:
        """Chunks by passage id, read in one go."""
        chunks = self._reader.chunks
        if unread := [key for key in ids if key not in chunks]:
            self._reader.load(unread)
        return {key: chunks[key] for key in ids if key in chunks}

    def query_vector(self, text: str, *, check: Check) -> Vector:
        """The vector of a query, after seeing to it that every chunk has one of the same space.

        Raises ``VaultError``: ``timeout`` when the budget is over before that, and what
        ``engine.vault.embedding.told`` makes of a source that fails.
        """
        index, source = serving()
        if not spaces.shares(self._vault, index):
            # The studio's source became another one a moment ago.
            raise VaultError("The source of vectors has changed meanwhile.", code="cancelled")
        self._stores = self._of(index)
        fill(self._vault, index, source, check=check)
        check()
        # The cache may lie on another machine.
        asked = source.bare if self._vault.is_device_only else source
        return vault_embedding.query_vector(asked, text)

    def _of(self, index: VectorIndex) -> Sequence[VectorStore]:
        local = wiring.store_for(index)
        # What is device-only is in no store of another machine.
        is_local = self._vault.is_device_only
        return (local,) if is_local else wiring.search_stores(index, wiring.settings())

    def _matching(self, query: str, match: Match, cards_only: bool) -> list[Candidate]:
        """The best chunks that a match mode accepts; every one where there are few."""
        if self._matched is None:
            self._matched = self._by_words(query, MATCHED, match, cards_only)
        return self._matched

    def _by_words(self, query: str, limit: int, match: Match, cards_only: bool) -> list[Candidate]:
        try:
            return wiring.keyword_index().search(
                query, scope=self._scope(cards_only), limit=limit, match=match
            )
        except InvalidQuery:
            raise
        except EngineError as error:
            raise VaultError(str(error), code="upstream_error", reason=error.code) from error

    def _nearest_with_words(
        self, vector: Vector, matcher: Matcher, cards_only: bool, limit: int
    ) -> list[Candidate]:
        found: list[Candidate] = []
        looked = 0
        for depth in NEAREST:
            near = self._searched(
                vector, self._scope(cards_only), depth, language_of(matcher.query)
            )
            while looked < len(near) and len(found) < limit:
                part = near[looked : looked + READ]
                held = self.held([candidate.passage_id for candidate in part])
                found += [
                    candidate
                    for candidate in part
                    if (chunk := held.get(candidate.passage_id)) is not None
                    and matcher.accepts(
                        (chunk.passage.title, chunk.passage.body, chunk.passage.meta)
                    )
                ]
                looked += len(part)
            if len(found) >= limit or len(near) < depth:
                break
        return [replace(candidate, rank=rank) for rank, candidate in enumerate(found[:limit], 1)]

    def _searched(self, vector: Vector, scope: Scope, limit: int, language: str) -> list[Candidate]:
        *earlier, last = self._stores
        for store in earlier:
            try:
                return store.search(vector, scope=scope, limit=limit, language=language)
            except EngineError:
                # The store here has the same vectors; the Engine page tells of the other one.
                continue
        try:
            return last.search(vector, scope=scope, limit=limit, language=language)
        except EngineError as error:
            raise VaultError(str(error), code="upstream_error", reason=error.code) from error

    def _scope(self, cards_only: bool, only: frozenset[int] | None = None) -> Scope:
        return Scope(
            now_ms=to_ms(now()),
            vaults=frozenset({self._vault.pk}),
            types=frozenset({PassageKind.CARD}) if cards_only else frozenset(),
            only=only,
        )


def serving() -> tuple[VectorIndex, CachedSource]:
    """The index that searches use, made where there is none yet, and the source of its vectors.

    Raises ``VaultError`` when nothing embeds.
    """
    index = embedding.active_index()
    try:
        index = index or indexes.target_index()
    except EmbeddingFailed as error:
        raise vault_embedding.told(error) from error
    source = wiring.source_for(index) if index is not None else None
    if index is None or source is None:
        off = wiring.resolve_source().off or Degraded("vector", "model_not_installed", "")
        code = vault_embedding.WITHOUT_CAUSE.get(off.code, "model_not_installed")
        message = off.message or _("The model that made the vectors is not there any more.")
        raise VaultError(message, code=code, reason=off.code)
    return index, source


def fill(
    vault: Vault,
    index: VectorIndex,
    source: CachedSource,
    *,
    check: Check,
    budget_s: float = vault_embedding.BUDGET_S,
    is_strict: bool = True,
) -> int:
    """Embed what of a vault waits for a vector, newest first; how many chunks.

    The background job does the same from the other end. When the budget is over before the end
    what was embedded stays, and ``is_strict`` raises ``VaultError`` (``timeout``).
    """
    if not index.marks.exists():
        return 0
    deadline, made = time.monotonic() + budget_s, 0
    marks = embedding.waiting(index).filter(passage__vault_id=vault.pk).order_by("-passage_id")
    while batch := list(marks[: embedding.BATCH]):
        check()
        if time.monotonic() >= deadline:
            if not is_strict:
                break
            left = marks.count()
            raise VaultError(
                f"The time for embedding is over; {left} chunks are left.",
                code="timeout",
                reason=vault_embedding.SPENT,
            )
        try:
            made += embedding.embed_marked(index, source, batch)[0]
        except EmbeddingFailed as error:
            raise vault_embedding.told(error) from error
        check()
    return made
