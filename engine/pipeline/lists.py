"""The lists that bring candidates: newest, keyword, vector."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.errors import EngineError
from engine.pipeline.run import Run
from engine.protocols import VectorStore
from engine.text.match import Matcher
from engine.text.tokenize import analyzer
from engine.types import Candidate, Degraded, Match, Purpose, StageEntry, Vector


def recent(run: Run) -> list[tuple[int, float]]:
    """The newest passages; the query is not looked at."""
    ids = run.tiers.passages.recent(run.scope, max(run.query.limit, run.tiers.depth))
    ordered = [(passage_id, 1.0 / rank) for rank, passage_id in enumerate(ids, start=1)]
    run.stage("recent", (StageEntry(i, rank) for rank, i in enumerate(ids, start=1)))
    return ordered


def search_keywords(run: Run) -> None:
    """Fill ``run.keyword``. A failure is told, not raised."""
    tiers, query = run.tiers, run.query
    try:
        found = tiers.keyword.search(
            query.text, scope=run.scope, limit=tiers.depth, match=query.match
        )
    except EngineError as error:
        run.stage("keyword", (), note=error.code)
        run.degraded.append(Degraded("keyword", error.code, str(error)))
        return
    run.keyword = {candidate.passage_id: candidate for candidate in found}
    run.stage("keyword", _entries(found))


def search_vectors(run: Run) -> bool:
    """Whether the vector half ran; its candidates are in ``run.vector``."""
    tiers = run.tiers
    if tiers.source is None or tiers.store is None:
        return _without_vectors(
            run, tiers.vector_off or Degraded("vector", "off", "semantic search is off")
        )
    if tiers.languages is not None and run.language not in tiers.languages:
        message = f"the model does not know this language ({run.language})"
        return _without_vectors(run, Degraded("vector", "unknown_language", message))
    try:
        vector = tiers.source.embed([run.query.text], purpose=Purpose.QUERY)[0]
        run.stage("embed", ())
        found = _nearest(run, vector, (tiers.store, *tiers.fallback_stores))
    except EngineError as error:
        return _without_vectors(run, Degraded("vector", error.code, str(error)))
    run.vector = {candidate.passage_id: candidate for candidate in found}
    run.used_vector = True
    run.degraded.extend(tiers.notes)
    run.stage("vector", _entries(found))
    if run.query.match is not Match.ANY:
        _keep_matching(run)
    return True


def _nearest(run: Run, vector: Vector, stores: Sequence[VectorStore]) -> list[Candidate]:
    """What the first store that can answer finds; each that cannot is named in ``degraded``.

    Raises what the last one raises.
    """
    *earlier, last = stores
    for store in earlier:
        try:
            return _searched(run, vector, store)
        except EngineError as error:
            run.degraded.append(Degraded("vectorStore", error.code, str(error)))
    return _searched(run, vector, last)


def _searched(run: Run, vector: Vector, store: VectorStore) -> list[Candidate]:
    found = store.search(vector, scope=run.scope, limit=run.tiers.depth, language=run.language)
    run.vector_store = store.name
    return found


def _without_vectors(run: Run, reason: Degraded) -> bool:
    run.degraded.append(reason)
    run.stage("vector", (), note=reason.code)
    return False


def _keep_matching(run: Run) -> None:
    """A match mode binds what meaning finds as well: drop vector candidates without the words."""
    matcher = Matcher(run.query.text, run.query.match, analyzer("search"))
    passages = run.tiers.passages.load(list(run.vector))
    entries: list[StageEntry] = []
    kept: list[Candidate] = []
    for candidate in run.vector.values():
        passage = passages.get(candidate.passage_id)
        if passage is not None and matcher.accepts((passage.title, passage.body, passage.meta)):
            kept.append(Candidate(candidate.passage_id, len(kept) + 1, candidate.score))
        else:
            entries.append(StageEntry(candidate.passage_id, dropped="match"))
    run.vector = {candidate.passage_id: candidate for candidate in kept}
    run.stage("match", [*_entries(kept), *entries], note=run.query.match.value)


def _entries(found: Sequence[Candidate]) -> Iterator[StageEntry]:
    return (StageEntry(c.passage_id, c.rank, c.score) for c in found)
