"""The product itself in a home of its own: imports by its import service, searches by its indexes
and its one retrieval. Wants Django set up."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Event

import numpy as np
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections, transaction

from benchmarks.speed.raw import Ids
from benchmarks.speed.text import BIGGEST, Note, number_of
from benchmarks.speed.vectors import StandInSource
from engine.types import Candidate, Matrix, Scope, Vector
from memory import wiring
from memory.models import ApiKey, Passage, VectorIndex
from memory.principal import SYSTEM, Principal
from memory.services import access, embedding, exchange, indexes, lifetimes, memories, signin
from memory.services.drafts import MemoryDraft
from memory.services.retrieval import Purpose, RetrieveRequest, retrieve

LIMIT = 20
"""Hits asked for, of the product and of everything else."""

BUSY = ("arranging", "building")
"""Details of a health check that say that a thread is at work."""

QUIET = 3
PAUSE_S = 0.05
SETTLE_S = 3600.0
UPSERT = 1000
"""Vectors stored in one transaction."""


class Product:
    """Memory Studio with a stand-in source of vectors."""

    def __init__(self, known: Mapping[str, Vector]) -> None:
        wiring.wrap_source(lambda _real: StandInSource(known))
        self.vector_s = 0.0
        self._last = 0
        self._held: VectorIndex | None = None
        self._numbers: list[np.ndarray[tuple[int], np.dtype[np.int64]]] = []

    @classmethod
    def fresh(cls, known: Mapping[str, Vector]) -> Product:
        """One whose home was empty; its vector index exists, so that imports mark for it."""
        call_command("migrate", verbosity=0, interactive=False)
        signin.first_start()
        product = cls(known)
        indexes.target_index()
        return product

    @property
    def index(self) -> VectorIndex:
        """The vector index in use."""
        index = embedding.active_index()
        if index is None:
            raise RuntimeError("there is no vector index")
        return index

    @property
    def held(self) -> VectorIndex:
        """The same, read once, as each retrieval does for itself."""
        self._held = self._held or self.index
        return self._held

    def store(self, notes: Sequence[Note]) -> None:
        """Import memories, as an uploaded file is."""
        report = exchange.import_records(SYSTEM, [note.record for note in notes], owner=None)
        if report.imported != len(notes):
            raise RuntimeError(f"not every memory was stored: {report}")

    def embed(self, first: int, vectors: Matrix) -> None:
        """Give vectors to the memories imported last, whose lowest number is ``first``."""
        rows = list(
            Passage.objects.filter(pk__gt=self._last)
            .order_by("pk")
            .values_list("pk", "memory__key", "text_hash", "language")
        )
        if len(rows) != len(vectors) or rows[0][0] != self._last + 1:
            raise RuntimeError("a memory is not one passage each")
        numbers = np.array([number_of(str(row[1])) for row in rows])
        given = {row[0]: vectors[n - first] for row, n in zip(rows, numbers, strict=True)}
        started = time.perf_counter()
        self._upsert(given, {row[0]: (row[2], row[3]) for row in rows})
        self.vector_s += time.perf_counter() - started
        self._last = rows[-1][0]
        self._numbers.append(numbers)

    def settle(self) -> float:
        """Let the indexes do what they do in the minutes after an import; seconds.

        Both build what they search in threads, which the first search starts.
        """
        embedding.prune_changes()
        started, quiet = time.perf_counter(), 0
        while quiet < QUIET:
            states = wiring.keyword_index().health(), wiring.store_for(self.held).health()
            busy = any(state.detail.get(name) for state in states for name in BUSY)
            quiet = 0 if busy else quiet + 1
            if time.perf_counter() - started > SETTLE_S:
                raise RuntimeError("the indexes do not come to rest")
            Event().wait(PAUSE_S)
        return time.perf_counter() - started - QUIET * PAUSE_S

    def numbers(self, ids: Iterable[int]) -> Ids:
        """The numbers of memories by the ids of their passages."""
        known = np.concatenate(self._numbers)
        return [int(known[passage_id - 1]) for passage_id in ids]

    def terms(self, text: str) -> tuple[str, ...]:
        """The terms the product cuts a question into."""
        return wiring.keyword_index().terms(text)

    def by_keyword(self, question: str, scope: Scope, limit: int) -> list[Candidate]:
        """The keyword leg."""
        return wiring.keyword_index().search(question, scope=scope, limit=limit)

    def by_vector(self, vector: Vector, scope: Scope, limit: int) -> list[Candidate]:
        """The vector leg."""
        return wiring.store_for(self.held).search(vector, scope=scope, limit=limit)

    def _upsert(self, vectors: Mapping[int, Vector], texts: Mapping[int, tuple[str, str]]) -> None:
        """Store vectors with hash and language of their texts, and take away the marks."""
        index = self.index
        store = wiring.store_for(index)
        ids = sorted(vectors)
        for start in range(0, len(ids), UPSERT):
            batch = ids[start : start + UPSERT]
            with transaction.atomic():
                store.upsert(
                    {pk: vectors[pk] for pk in batch},
                    hashes={pk: texts[pk][0] for pk in batch},
                    languages={pk: texts[pk][1] for pk in batch},
                )
                index.marks.filter(passage__gte=batch[0], passage__lte=batch[-1]).delete()


def scope_of(owner: str) -> Scope:
    """What a retrieval for an owner sees now."""
    return lifetimes.scope([access.find(owner)], view=lifetimes.View())


def hybrid(
    question: str,
    *,
    owner: str | None,
    principal: Principal = SYSTEM,
    purpose: Purpose = "preview",
) -> list[str]:
    """The whole retrieval as the Playground and clients ask for it: keys of the hits."""
    request = RetrieveRequest(question, limit=LIMIT, owner=owner)
    view = retrieve(principal, request, purpose=purpose)
    if view.retrieval.degraded:
        raise RuntimeError(f"a tier was left out: {view.retrieval.degraded}")
    return [view.memories[hit.passage.parent].key for hit in view.retrieval.hits]


def client() -> Principal:
    """The biggest owner as an application with its key."""
    key = ApiKey.objects.get(name=BIGGEST)
    return Principal("key", key.name, frozenset(key.scopes), key.pk)


def write(content: str, key: str) -> int:
    """Store one memory of the biggest owner as REST does; the id of its passage."""
    memory, _created = memories.create(SYSTEM, MemoryDraft(content=content, key=key), owner=BIGGEST)
    return int(memory.passages.get().pk)


def give(passage_id: int, vector: Vector) -> None:
    """Give one new passage its vector."""
    passage = Passage.objects.get(pk=passage_id)
    index = embedding.active_index()
    if index is not None:
        wiring.store_for(index).upsert(
            {passage_id: vector},
            hashes={passage_id: passage.text_hash},
            languages={passage_id: passage.language},
        )
        index.marks.filter(passage=passage_id).delete()


def leave(_thread: int) -> None:
    """Close what a thread has opened."""
    connections.close_all()


def disk_bytes() -> int:
    """Size of the home, after the log of the database was written into it."""
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    home = Path(settings.MEMORY_STUDIO_HOME)
    return sum(path.stat().st_size for path in home.rglob("*") if path.is_file())
