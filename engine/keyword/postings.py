"""BM25 from memory in front of a durable index, which stays the truth and the fallback.

Postings are kept for each owner (and vault) apart, with the frequencies of that owner's passages
alone. A search sees every change committed before it began, by this process or any other: each
one first follows the change log. Inside a transaction that has changed something, the durable
index answers.

It also finds what match modes ``all`` and ``phrase`` ask for, which is scored here all the same,
and answers for scopes of very many owners and while a large part is being built in a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from engine.columns import change_log
from engine.columns.table import Mask
from engine.keyword.bm25 import Formula, Shard, Wanted, best, scored
from engine.keyword.durable import MAX_EXPRESSION_TERMS, DurableIndex
from engine.keyword.part import Limits
from engine.keyword.part_files import PartFiles
from engine.keyword.part_pool import PartPool
from engine.keyword.parts import MAX_PARTS, PartKey, parts_of
from engine.keyword.segment import Segment
from engine.keyword.stored_terms import StoredTerms
from engine.keyword.term_form import is_prefix, stored
from engine.types import Candidate, Health, Match, Passage, Scope


class PostingsIndex:
    """``KeywordIndex`` named ``postings``. One instance for a process and database; thread-safe.

    Writes go to ``index`` and to the change log, in the caller's transaction; the table of the log
    must exist. Whoever changes scope columns alone writes to the log as well.
    """

    name = "postings"

    def __init__(
        self,
        index: DurableIndex,
        *,
        formula: Formula | None = None,
        folder: Path | None = None,
        limits: Limits | None = None,
        release: Callable[[], None] | None = None,
    ) -> None:
        """``formula`` is FTS5's unless given. Files of large parts are kept in ``folder``.

        Threads that build call ``release`` at their end, to close their connection. Raises
        ``ValueError`` when the weights of ``index`` are not whole numbers.
        """
        self.durable = index
        title, body, meta = map(int, index.weights)
        if not all(weight.is_integer() for weight in map(float, index.weights)):
            raise ValueError("weights of fields are whole numbers")
        self._formula = formula or Formula(padding=index.analyzer.padding)
        self._files = PartFiles(folder) if folder is not None else None
        self._pool = PartPool(
            index.connect,
            StoredTerms(index, (title, body, meta)),
            self._files,
            limits or Limits(),
            release,
        )

    def ensure(self) -> None:
        """Create the durable index when absent."""
        self.durable.ensure()

    def upsert(self, passages: Sequence[Passage]) -> None:
        """Index passages, each replacing what its id held."""
        with self.durable.transaction():
            self.durable.upsert(passages)
            change_log.record(self.durable.connect(), [passage.id for passage in passages])

    def delete(self, ids: Collection[int]) -> None:
        """Forget passages; unknown ids are fine."""
        with self.durable.transaction():
            self.durable.delete(ids)
            change_log.record(self.durable.connect(), ids)

    def clear(self) -> None:
        """Empty the index, even a damaged one, and forget every file."""
        self.durable.clear()
        self.forget_files()

    def forget_files(self) -> None:
        """Remove the files of parts, which hold the terms of passages as they were."""
        if self._files is not None:
            self._files.forget()

    def is_current(self) -> bool:
        """Whether every row was cut by the analyzer in use."""
        return self.durable.is_current()

    def mark_current(self) -> None:
        """Say so, after all rows were written again."""
        self.durable.mark_current()

    def terms(self, query: str) -> tuple[str, ...]:
        """The distinct terms a query is cut into, in order."""
        return self.durable.terms(query)

    def search(
        self, query: str, *, scope: Scope, limit: int, match: Match = Match.ANY
    ) -> list[Candidate]:
        """Best passages within the scope; see ``DurableIndex`` for what it raises."""
        shards = self._shards(scope)
        wanted = self._wanted(query) if shards is not None else None
        if shards is not None and wanted is not None and match is Match.ANY:
            return best(shards, wanted, scope, limit, self._formula)
        found = self.durable.search(query, scope=scope, limit=limit, match=match)
        if shards is None or wanted is None:
            return found
        # FTS5 counts the passages of every owner: its scores would tell which words others use.
        ids = [candidate.passage_id for candidate in found]
        return scored(shards, wanted, scope, ids, self._formula)

    def count(self) -> int:
        """Passages indexed."""
        return self.durable.count()

    def health(self) -> Health:
        """Health of the durable index, and what is in memory. Never raises."""
        health = self.durable.health()
        return replace(health, detail={**health.detail, **self._pool.figures()})

    def settle(self, timeout: float = 60.0) -> bool:
        """Wait for the threads that build or merge; whether they ended in time."""
        return self._pool.settle(timeout)

    def _shards(self, scope: Scope) -> list[Shard] | None:
        """What a scope is searched in; None when the durable index has to answer."""
        keys = parts_of(scope)
        if len(keys) > MAX_PARTS:
            return None
        states = self._pool.states(keys)
        if states is None:
            return None
        shards: list[Shard] = []
        for key, state in zip(keys, states, strict=True):
            words = state.words
            shards.extend(
                Shard(_apart(key, segment, scope), words.types, words.sessions)
                for segment in state.segments
            )
        return shards

    def _wanted(self, query: str) -> list[Wanted] | None:
        """The terms of a query; None when the durable index refuses it or cuts it further."""
        terms = self.terms(query)
        if not 0 < len(terms) <= MAX_EXPRESSION_TERMS or any(" " in term for term in terms):
            return None
        return [Wanted(stored(term).encode().lower(), is_prefix(term)) for term in terms]


def _apart(key: PartKey, segment: Segment, scope: Scope) -> Segment:
    """A segment without the shared passages that are also in the part of their owner."""
    if key.kind != "shared" or not scope.owners:
        return segment
    table = segment.table
    double: Mask = np.isin(table.owner, np.fromiter(scope.owners, np.int64))
    return segment.without(np.flatnonzero(double & table.alive))
