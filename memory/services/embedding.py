"""Vectors: filling the index of the chosen model in the background and before a search."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import Count, F, Q, QuerySet

from engine.columns import change_log
from engine.errors import EmbeddingFailed, EngineError
from engine.protocols import EmbeddingSource
from engine.text.template import embedded_text
from engine.types import Matrix, Purpose, Scope
from engine.types import Passage as EnginePassage
from memory import jobs, local_stores, planner, wiring
from memory.clock import now
from memory.models import Job, Passage, VectorIndex, VectorMark
from memory.moment import one_moment
from memory.passage_reader import PassageReader
from memory.services import indexes, mirror_soon
from memory.services.vaults import spaces, taking_in

BATCH: Final = 16
EAGER_BATCH: Final = 4
EAGER_MOST: Final = 100
MAX_ATTEMPTS: Final = 3
DEDUPE: Final = "vectors"
KEYWORD_CURSOR: Final = "keyword_cursor"
RETRY_AFTER: Final = timedelta(seconds=60)
TEXT_FAULTS: Final = frozenset({"invalid_response", "invalid_text"})
"""Failures that one text may cause; every other one is an outage, and costs no attempt."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How far the active index covers the passages. ``building`` is the index beside it.

    ``retired`` is the one that can be gone back to until ``retired_until``; how much of it is up to
    date is only counted over all owners.
    """

    passages: int
    indexed: int
    pending: int
    failed: int
    signature: str | None
    building: str | None = None
    building_percent: float | None = None
    retired: str | None = None
    retired_percent: float | None = None
    retired_until: datetime | None = None

    @property
    def percent(self) -> float:
        """Share of passages with a vector, 0 to 100; rounded down, so that 100 means all."""
        return int(1000 * self.indexed / self.passages) / 10 if self.passages else 100.0


def embed_soon() -> Job:
    """Have the background job fill what is marked, once the transaction commits."""
    return jobs.enqueue(jobs.Order("reindex", dedupe_key=DEDUPE, requested_by="system"))


def active_index() -> VectorIndex | None:
    """The index that searches use."""
    return indexes.active()


def coverage(owner: int | None = None) -> Coverage:
    """Count passages, vectors and marks of the active index, of the one beside it, of the retired.

    With ``owner``, the primary key of an API key, only what belongs to it is counted.
    """
    counted = Q() if owner is None else Q(marks__passage__owner=owner)
    failing = counted & ~Q(marks__error="")
    rows = {
        row.state: row
        for row in VectorIndex.objects.exclude(state=VectorIndex.State.RETIRED).annotate(
            waiting=Count("marks", filter=counted), failing=Count("marks", filter=failing)
        )
    }
    active, building = rows.get("active"), rows.get("building")
    total = spaces.count(active, owner)
    waiting = active.waiting if active else total
    beside = _percent(building, spaces.count(building, owner)) if building else None
    kept = indexes.retired()
    return Coverage(
        passages=total,
        indexed=total - waiting,
        pending=waiting,
        failed=active.failing if active else 0,
        signature=active.signature if active else None,
        building=building.signature if building else None,
        building_percent=beside,
        retired=kept.signature if kept else None,
        retired_percent=indexes.share_current(kept) if kept and owner is None else None,
        retired_until=kept.retired_at + indexes.KEPT if kept and kept.retired_at else None,
    )


def _percent(index: VectorIndex, total: int) -> float | None:
    waiting: int = index.waiting  # type: ignore[attr-defined]  # annotated by the query
    return 100 * (total - waiting) / total if total else None


def fill(context: jobs.JobContext) -> dict[str, int]:
    """Handler of the job ``reindex``: rebuild keywords where asked, take open vaults in that are
    not in the tables yet, then embed what is marked."""
    _rebuild_keywords(context)
    taking_in.take_in(context)
    processed = errors = 0
    index = indexes.target_index()
    while index is not None:
        indexes.check(index)
        source = wiring.source_for(index)
        batch = list(waiting(index)[:BATCH])
        if source is None or not batch:
            break
        done, failed = embed_marked(index, source, batch)
        processed, errors = processed + done, errors + failed
        left = index.marks.count()
        context.progress(processed, processed + left, message=index.signature)
        _rebuild_keywords(context)
        if _chosen() != index.signature:
            index = indexes.target_index()
    if index is not None:
        _keep(index, context)
        indexes.switch(index)
    planner.learn(processed)
    pending = index.marks.count() if index else Passage.objects.count()
    context.progress(processed, processed + pending, force=True)
    return {"processed": processed, "errors": errors, "pending": pending}


def _keep(index: VectorIndex, context: jobs.JobContext) -> None:
    """Make what the store of an index searches by: a table that was chosen late, a graph."""

    def tell(done: int, total: int, _what: str) -> None:
        context.progress(done, total, message=index.signature)

    local_stores.maintain(wiring.store_for(index), tell)


def _chosen() -> str | None:
    """Signature of the chosen source; None without one, or before a remote one has told it."""
    source = wiring.resolve_source().source
    try:
        return str(source.signature) if source is not None else None
    except EngineError:
        return None


def backfill(scope: Scope, index: VectorIndex, source: EmbeddingSource, *, budget_ms: float) -> int:
    """Embed waiting memories of a scope before a search, within a time budget; how many.

    Small on purpose: one new memory is found at once, thousands are left to the job, which
    would only be slowed down. ``source`` has to be loaded.
    """
    deadline = time.monotonic() + budget_ms / 1000
    marks = waiting(index).filter(passage__vault_id__isnull=True).order_by("-passage_id")
    if scope.owners is not None:
        marks = marks.filter(passage__owner__in=scope.owners)
    if len(marks.values_list("pk")[: EAGER_MOST + 1]) > EAGER_MOST:
        return 0
    done = 0
    while time.monotonic() < deadline:
        batch = list(marks[:EAGER_BATCH])
        if not batch:
            break
        try:
            embedded, failed = embed_marked(index, source, batch)
        except EngineError:
            # The search itself meets the same outage, and its account says so.
            break
        done += embedded
        if failed:
            break
    return done


def waiting(index: VectorIndex) -> QuerySet[VectorMark]:
    """The marks of an index that are still tried, oldest passage first."""
    return index.marks.filter(attempts__lt=MAX_ATTEMPTS).order_by("passage_id")


def embed_marked(
    index: VectorIndex, source: EmbeddingSource, marks: Sequence[VectorMark]
) -> tuple[int, int]:
    """Embed marked passages and store their vectors: how many worked, how many failed.

    Passages of vaults that the index does not embed lose their mark: no text of theirs reaches the
    source. Raises ``EmbeddingFailed`` for an outage.
    """
    found = PassageReader().load([mark.passage_id for mark in marks])
    rows = _allowed(index, list(found.values()))
    marks = [mark for mark in marks if mark.passage_id in {row.id for row in rows}]
    if not rows:
        return 0, 0
    texts = [embedded_text(row.title, row.body) for row in rows]
    try:
        vectors = source.embed(texts, purpose=Purpose.DOCUMENT)
    except EmbeddingFailed as error:
        if error.code not in TEXT_FAULTS:
            raise
        return _one_by_one(index, source, marks, error)
    return _store(index, rows, vectors), 0


def _store(index: VectorIndex, rows: Sequence[EnginePassage], vectors: Matrix) -> int:
    """Store the vectors of passages that have not changed meanwhile; how many."""
    with transaction.atomic():
        wiring.lock_indexes()
        # Locked: one that goes or changes at this moment must not keep the vector of its old text.
        rows_now = Passage.objects.select_for_update(no_key=True).filter(
            pk__in=[row.id for row in _allowed(index, rows)]
        )
        stored = rows_now.order_by("pk").values_list("pk", "text_hash", "language")
        current = {key: text_hash for key, text_hash, _language in stored}
        # A text that changed meanwhile keeps its mark: this vector is already out of date.
        valid = [i for i, row in enumerate(rows) if current.get(row.id) == row.text_hash]
        if not VectorIndex.objects.filter(pk=index.pk).exists():
            # Dropped meanwhile: nobody would ever remove what is stored for it now.
            return 0
        store = wiring.store_for(index)
        store.ensure()
        store.upsert(
            {rows[i].id: vectors[i] for i in valid},
            hashes={row.id: row.text_hash for row in rows},
            languages={key: language for key, _text_hash, language in stored},
        )
        index.marks.filter(passage__in=[rows[i].id for i in valid]).delete()
        mirror_soon.mirror_soon()
    return len(valid)


def _allowed(index: VectorIndex, rows: Sequence[EnginePassage]) -> list[EnginePassage]:
    """The passages without those of vaults that have meanwhile become ones of another space."""
    withheld = spaces.apart(index) if any(row.vault is not None for row in rows) else frozenset()
    gone = [row.id for row in rows if row.vault in withheld]
    if gone:
        index.marks.filter(passage__in=gone).delete()
    return [row for row in rows if row.vault not in withheld]


def _one_by_one(
    index: VectorIndex,
    source: EmbeddingSource,
    marks: Sequence[VectorMark],
    error: EmbeddingFailed,
) -> tuple[int, int]:
    """Find the text that a batch failed over; only that one is set aside."""
    if len(marks) == 1:
        index.marks.filter(pk=marks[0].pk).update(attempts=F("attempts") + 1, error=error.code[:40])
        return 0, 1
    outcomes = [embed_marked(index, source, [mark]) for mark in marks]
    return sum(done for done, _ in outcomes), sum(failed for _, failed in outcomes)


def _rebuild_keywords(context: jobs.JobContext) -> None:
    """Write the keyword index again from a cursor that survives a restart, when asked to."""
    context.refresh()
    cursor = context.params.get(KEYWORD_CURSOR)
    if cursor is None:
        return
    reader, index, total = PassageReader(), wiring.keyword_index(), Passage.objects.count()
    while True:
        ids = list(
            Passage.objects.filter(pk__gt=cursor).order_by("pk").values_list("pk", flat=True)[:500]
        )
        if not ids:
            break
        with transaction.atomic():
            index.upsert(list(reader.load(ids).values()))
        cursor = ids[-1]
        context.save_params(**{KEYWORD_CURSOR: cursor})
        context.progress(Passage.objects.filter(pk__lte=cursor).count(), total, message="keyword")
    index.mark_current()
    context.save_params(**{KEYWORD_CURSOR: None})


def resume() -> bool:
    """Start the job again when marks wait and none works on them (called by the sweep)."""
    last = Job.objects.filter(dedupe_key=DEDUPE).order_by("-created_at").first()
    if last is not None and not last.is_active and last.params.get(KEYWORD_CURSOR) is not None:
        # Asked for in the last moment of a job that had nothing left to do.
        jobs.enqueue(jobs.Order("reindex", dedupe_key=DEDUPE, params=last.params))
        return True
    if not (_is_waiting() or _is_unmade() or is_unkept() or taking_in.is_waiting()):
        return False
    if last is not None and last.state == Job.State.CANCELLED:
        return False
    if last is not None and last.finished_at and last.finished_at > now() - RETRY_AFTER:
        return False
    embed_soon()
    return True


def _is_waiting() -> bool:
    in_use = VectorMark.objects.exclude(index__state=VectorIndex.State.RETIRED)
    return in_use.filter(attempts__lt=MAX_ATTEMPTS).exists()


def _look_again(_result: Mapping[str, Any]) -> None:
    """Go on when a mark came after the last look of a job that could have embedded it."""
    # Not by what the job counted as pending: that may be this very mark.
    index = VectorIndex.objects.filter(signature=_chosen()).first()
    if index is not None and waiting(index).exists():
        embed_soon()


jobs.last_look("reindex", _look_again)


def _is_unmade() -> bool:
    """Whether the index of the chosen model is still to be made, or to be built to its end."""
    index = active_index()
    if index is None:
        return wiring.resolve_source().source is not None and Passage.objects.exists()
    return _chosen() not in (None, index.signature)


def is_unkept() -> bool:
    """Whether the store of the live index has yet to make what it searches by."""
    index = active_index()
    return index is not None and local_stores.is_due(wiring.store_for(index))


def reconcile() -> int:
    """Mark what is not as it must be; how many passages (once, at a start).

    That is: passages whose vectors an index in use has lost, and open vaults that are not in the
    tables. Vectors of vaults that have become ones of another space go.
    """
    marked = 0
    taking_in.mark_lacking()
    for index in VectorIndex.objects.exclude(state=VectorIndex.State.RETIRED):
        wiring.store_for(index).ensure()
        _name_languages(index)
        if others := spaces.apart(index):
            spaces.withdraw(index, others)
        with one_moment():
            held = wiring.store_for(index).count() + index.marks.count()
            has_lost = held < spaces.count(index)
        if has_lost:
            marked += indexes.mark_lost(index)
    return marked


def _name_languages(index: VectorIndex) -> None:
    """Tell a store the languages of vectors from before it kept them."""
    from engine.vectors.in_process import InProcessIndex

    store = wiring.store_for(index)
    while isinstance(store, InProcessIndex) and (ids := store.unnamed()):
        stored = Passage.objects.filter(pk__in=ids).values_list("pk", "language")
        known = {key: language or "other" for key, language in stored}
        store.name_languages({**dict.fromkeys(ids, "other"), **known})


def prune_changes(keep: int = 100_000) -> None:
    """Forget old entries of the change log; an index that missed them loads itself again."""
    change_log.prune(wiring.connect(), keep)
