"""The index of one vault in the memory of one process: postings, texts and vectors.

Nothing of it is written anywhere. Keyword scores are those of FTS5 over the analyzer ``seed``
(``engine.keyword.bm25``); vectors are compared exactly.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from engine.columns.table import NEVER, NO_VAULT, Ints, Mask, decode
from engine.errors import InvalidQuery
from engine.keyword.bm25 import Formula, Shard, Wanted, best
from engine.keyword.cutting import segment_of
from engine.keyword.term_form import is_prefix, stored
from engine.text.chunk import chunks
from engine.text.match import Matcher
from engine.text.normalize import has_unspaced
from engine.text.template import embedded_text, text_hash
from engine.text.tokenize import Analyzer, analyzer
from engine.types import Candidate, Match, Matrix, Passage, PassageKind, Scope, Signature, Vector
from engine.vault import capacity
from engine.vault.errors import VaultError

WEIGHTS: Final = (5, 1, 2)
EVERY: Final = Scope(now_ms=0, owners=None)
SEARCHABLE: Final = frozenset({"memory", "card"})


@dataclass(frozen=True, slots=True)
class Document:
    """A memory or a knowledge card as it is indexed. ``meta`` is its safe metadata as words."""

    asset: str
    revision: int
    kind: str
    title: str
    body: str
    meta: str = ""

    @property
    def size(self) -> int:
        """Bytes of its texts."""
        return sum(len(text.encode("utf-8")) for text in (self.title, self.body, self.meta))


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """A piece of a document. ``passage.body`` is its text; offsets are bytes of the whole body."""

    passage: Passage
    revision: int
    kind: str
    byte_start: int
    byte_end: int
    sha256: str

    @property
    def asset(self) -> str:
        """Id of the document."""
        return self.passage.parent

    @property
    def ordinal(self) -> int:
        """Its place among the chunks of the document, from 0."""
        return self.passage.ordinal

    @property
    def chunk_hash(self) -> str:
        """What identifies the text, wherever it stands."""
        return f"sha256:{self.sha256}"


class VectorCache:
    """Vectors of texts by their hash, of one vector space; another space empties it."""

    def __init__(self) -> None:
        self.signature: Signature | None = None
        self.changes = 0
        """Grows whenever a vector comes or goes."""
        self._held: dict[str, Vector] = {}
        self._lock = threading.RLock()

    @property
    def held(self) -> Mapping[str, Vector]:
        """The vectors by the hash of their text."""
        return self._held

    def enter(self, signature: Signature) -> Mapping[str, Vector]:
        """What is held of a space; from now on the vectors are of this one."""
        with self._lock:
            if self.signature != signature:
                self.signature, self._held = signature, {}
                self.changes += 1
            return self._held

    def put(self, signature: Signature, vectors: Mapping[str, Vector]) -> None:
        """Keep vectors of a space."""
        with self._lock:
            self.enter(signature)
            self._held = {**self._held, **vectors}
            self.changes += 1

    def keep_only(self, hashes: Iterable[str]) -> None:
        """Forget the vectors of texts that are no more."""
        wanted = set(hashes)
        with self._lock:
            self._held = {name: vector for name, vector in self._held.items() if name in wanted}
            self.changes += 1

    def lay_out(self, hashes: Sequence[str]) -> tuple[int, list[int], Matrix]:
        """The vectors of texts as one matrix; what is held becomes a part of it.

        Answers ``changes``, the places of the texts that have a vector, and these as rows.
        """
        with self._lock:
            places = [place for place, name in enumerate(hashes) if name in self._held]
            if not places:
                return self.changes, [], np.zeros((0, 1), np.float32)
            matrix: Matrix = np.stack([self._held[hashes[place]] for place in places])
            # Views, so that each vector is in memory once.
            for place, row in zip(places, matrix, strict=True):
                self._held[hashes[place]] = row
            return self.changes, places, matrix


class VaultIndex:
    """Everything that a search of one vault reads. Never changes but for its vectors."""

    def __init__(
        self,
        documents: Iterable[Document],
        vectors: VectorCache,
        *,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Cut and index documents; ``check`` is called between them and may raise.

        Passages are numbered by asset id, then place. Raises ``VaultError`` (``index_too_large``).
        """
        self._analyzer = analyzer("seed")
        self.vectors = vectors
        self.chunks: list[IndexedChunk] = []
        self.text_bytes = 0
        for document in sorted(documents, key=lambda document: document.asset):
            check()
            self.text_bytes += document.size
            self.chunks.extend(self._cut(document))
            capacity.check(chunks=len(self.chunks), text_bytes=self.text_bytes)
        self._shard = self._indexed(check)
        self._texts = [_joined(self._analyzer, chunk.passage) for chunk in self.chunks]
        self._laid_out: tuple[int, Ints, Matrix] | None = None
        self._counted = (-1, 0)
        vectors.keep_only(chunk.passage.text_hash for chunk in self.chunks)

    def terms(self, query: str) -> list[str]:
        """The distinct terms of a query."""
        return self._analyzer.query_terms(query)

    def chunk(self, passage_id: int) -> IndexedChunk:
        """A chunk by its number, from 1."""
        return self.chunks[passage_id - 1]

    def held(self, ids: Sequence[int]) -> Mapping[int, IndexedChunk]:
        """Chunks by their numbers."""
        return {passage_id: self.chunk(passage_id) for passage_id in ids}

    def keyword(
        self, query: str, *, limit: int, match: Match = Match.ANY, cards_only: bool = False
    ) -> list[Candidate]:
        """The best chunks by BM25. Raises ``InvalidQuery`` (``empty_query``)."""
        terms = self.terms(query)
        if not terms:
            raise InvalidQuery("The query holds no word to look for.", code="empty_query")
        wanted = [Wanted(stored(term).encode().lower(), is_prefix(term)) for term in terms]
        plain = match is Match.ANY and not cards_only
        most = limit if plain else len(self.chunks)
        found = best([self._shard], wanted, EVERY, most, Formula())
        if plain:
            return found
        accepted = self._accepted(query, match, cards_only)
        kept = [candidate for candidate in found if accepted[candidate.passage_id - 1]]
        if match is not Match.ANY:
            # Those that hold the query only as parts of longer words have no score.
            accepted[[candidate.passage_id - 1 for candidate in found]] = False
            kept.extend(Candidate(int(row) + 1, 0, 0.0) for row in np.flatnonzero(accepted))
        return _ranked(kept[:limit])

    def nearest(
        self,
        vector: Vector,
        query: str,
        *,
        limit: int,
        match: Match = Match.ANY,
        cards_only: bool = False,
    ) -> list[Candidate]:
        """The chunks with a vector that the match mode accepts, nearest first.

        A chunk without a vector is absent: ``missing`` tells whether there is one. Raises
        ``VaultError`` (``source_changed``) when the vectors are of another space by now.
        """
        rows, matrix = self._matrix()
        if not rows.size:
            return []
        if matrix.shape[1] != vector.shape[0]:
            raise VaultError("The vault has other vectors by now.", code="source_changed")
        if match is not Match.ANY or cards_only:
            among = self._accepted(query, match, cards_only)[rows]
            rows, matrix = rows[among], matrix[among]
        scores = matrix @ vector.astype(np.float32)
        order = np.lexsort((rows, -scores))[:limit]
        return [
            Candidate(int(rows[place]) + 1, rank, float(scores[place]))
            for rank, place in enumerate(order, 1)
        ]

    def missing(self, signature: Signature) -> list[IndexedChunk]:
        """Chunks whose text has no vector of a space yet; equal texts count once.

        Raises ``VaultError`` (``index_too_large``) when the vectors would not fit.
        """
        capacity.check(vectors=capacity.vector_bytes(len(self.chunks), signature.dim))
        held = self.vectors.enter(signature)
        first = {chunk.passage.text_hash: chunk for chunk in reversed(self.chunks)}
        return [
            chunk
            for chunk in self.chunks
            if chunk.passage.text_hash not in held and first[chunk.passage.text_hash] is chunk
        ]

    def put_vectors(
        self, signature: Signature, chunks: Sequence[IndexedChunk], vectors: Matrix
    ) -> None:
        """Keep vectors of chunks."""
        rows = {
            chunk.passage.text_hash: vector.copy()
            for chunk, vector in zip(chunks, vectors, strict=True)
        }
        self.vectors.put(signature, rows)

    @property
    def embedded(self) -> int:
        """Chunks that have a vector."""
        changes, held = self.vectors.changes, self.vectors.held
        if self._counted[0] != changes:
            count = sum(chunk.passage.text_hash in held for chunk in self.chunks)
            self._counted = (changes, count)
        return self._counted[1]

    def _matrix(self) -> tuple[Ints, Matrix]:
        """Chunks that have a vector (from 0), and the vectors as rows."""
        found = self._laid_out
        if found is None or found[0] != self.vectors.changes:
            hashes = [chunk.passage.text_hash for chunk in self.chunks]
            changes, places, matrix = self.vectors.lay_out(hashes)
            found = self._laid_out = (changes, np.array(places, np.int64), matrix)
        return found[1], found[2]

    def _accepted(self, query: str, match: Match, cards_only: bool) -> Mask:
        """Which chunks a match mode accepts: what ``Matcher.accepts`` says of each, in one go.

        Words of spaced scripts are looked up in the postings, all else in the texts.
        """
        mask: Mask = np.ones(len(self.chunks), np.bool_)
        if cards_only:
            mask &= np.array([chunk.kind == "card" for chunk in self.chunks], np.bool_)
        matcher = Matcher(query, match, self._analyzer)
        if match is Match.PHRASE:
            mask &= self._holding(matcher.phrase, matcher.phrase_pattern)
        if match is Match.ALL:
            for word in matcher.words:
                mask &= self._holding(word) if has_unspaced(word) else self._with_term(word)
        return mask

    def _holding(self, part: str, pattern: re.Pattern[str] | None = None) -> Mask:
        found = (
            part in text and (pattern is None or pattern.search(text) is not None)
            for text in self._texts
        )
        return np.fromiter(found, np.bool_, len(self._texts))

    def _with_term(self, word: str) -> Mask:
        mask: Mask = np.zeros(len(self.chunks), np.bool_)
        segment = self._shard.segment
        number = segment.terms.find(stored(word).encode().lower())
        if number >= 0:
            mask[segment.postings(number)[0]] = True
        return mask

    def _cut(self, document: Document) -> list[IndexedChunk]:
        if document.kind not in SEARCHABLE:
            raise ValueError("only memories and cards are indexed")
        kind = PassageKind.CARD if document.kind == "card" else PassageKind.MEMORY
        return [
            IndexedChunk(
                Passage(
                    id=len(self.chunks) + place + 1,
                    kind=kind,
                    parent=document.asset,
                    ordinal=place,
                    owner=0,
                    title=document.title,
                    body=piece.text,
                    meta=document.meta,
                    text_hash=text_hash(embedded_text(document.title, piece.text)),
                    parent_tokens=0,
                ),
                document.revision,
                document.kind,
                piece.byte_start,
                piece.byte_end,
                piece.sha256,
            )
            for place, piece in enumerate(chunks(document.body))
        ]

    def _indexed(self, check: Callable[[], None]) -> Shard:
        cut: list[tuple[bytes, bytes, bytes]] = []
        heads: dict[str, bytes] = {}
        for place, chunk in enumerate(self.chunks):
            if place % 64 == 0:
                check()
            passage = chunk.passage
            title, meta = (
                heads.get(text) or heads.setdefault(text, self._terms(text))
                for text in (passage.title, passage.meta)
            )
            cut.append((title, self._terms(passage.body), meta))
        records = [
            (number, 0, NO_VAULT, "", "", False, False, False, 0, NEVER)
            for number in range(1, len(self.chunks) + 1)
        ]
        return Shard(segment_of(decode(records, {}, {}), cut, WEIGHTS), {}, {})

    def _terms(self, text: str) -> bytes:
        return stored(" ".join(self._analyzer.document_terms(text))).encode()


def _joined(cutter: Analyzer, passage: Passage) -> str:
    """The three fields as match modes compare them, a line each: no query holds a line break."""
    return "\n".join(map(cutter.comparable, (passage.title, passage.body, passage.meta)))


def _ranked(found: Sequence[Candidate]) -> list[Candidate]:
    return [
        Candidate(candidate.passage_id, rank, candidate.score)
        for rank, candidate in enumerate(found, 1)
    ]
