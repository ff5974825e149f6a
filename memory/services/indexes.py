"""The life of vector indexes: one is active, one may be built beside it, one kept to go back to.

A switch retires the earlier index. A retired one keeps its vectors; nobody searches it and no write
marks anything for it, but what is deleted leaves it as well. Chosen again, it is *revived*: it is
built up from where it stands, since only passages that it lacks, or has with another text, need
embedding.

``wiring.lock_indexes`` keeps writers, who mark passages for every index in use, and whoever changes
which are in use apart.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import F

from memory import remembered, wiring
from memory.clock import now
from memory.models import EngineSettings, VectorIndex
from memory.services import mirror_soon, passages
from memory.services.vaults import spaces
from memory.stored_settings import SOURCE_FIELDS, Settings

KEPT: Final = timedelta(days=7)
"""How long a retired index can be gone back to."""
PAGE: Final = 5_000
AT_ONCE: Final = 50_000
"""Passages up to which an index is compared with them while somebody waits."""
SHARE_SECONDS: Final = 60

State = VectorIndex.State


def active() -> VectorIndex | None:
    """The index that searches use."""
    return VectorIndex.objects.filter(state=State.ACTIVE).first()


def retired() -> VectorIndex | None:
    """The index that can be gone back to: the one retired last."""
    return VectorIndex.objects.filter(state=State.RETIRED).order_by("-retired_at", "-pk").first()


def source_values() -> dict[str, Any]:
    """The stored settings that choose the embedding source; secrets sealed as they are."""
    row = EngineSettings.objects.filter(pk=1).first()
    stored = row.stored if row else {}
    return {field.key: stored[field.key] for field in SOURCE_FIELDS if field.key in stored}


def keep_source(chosen: Settings, values: dict[str, Any]) -> None:
    """Keep with the active index the settings that chose its source, before they change."""
    source, index = wiring.resolve_source(chosen).source, active()
    if source is not None and index is not None and wiring.makes(source, index):
        VectorIndex.objects.filter(pk=index.pk).update(made_by=values)


def target_index() -> VectorIndex | None:
    """The index the configured source fills: the active one, or one built beside it.

    Makes the index with its marks where it is missing, and revives a retired one. None while no
    source is configured. Raises ``EmbeddingFailed`` when the source cannot tell its signature yet.
    """
    source = wiring.resolve_source().source
    if source is None:
        return None
    signature = wiring.signature_of(source)
    with transaction.atomic():
        wiring.lock_indexes(alone=True)
        row = VectorIndex.objects.filter(signature=str(signature)).first()
        if row is not None and row.state == State.BUILDING:
            return row
        # The settings chose another model meanwhile, or have gone back to the live one.
        stop_building()
        if row is not None and row.state == State.RETIRED:
            return _revive(row)
        return row or _make(VectorIndex(signature=str(signature), **_parts(signature)))


def _parts(signature: Any) -> dict[str, Any]:
    return {name: getattr(signature, name) for name in ("source", "model", "revision", "dim")}


def _make(row: VectorIndex) -> VectorIndex:
    first = active() is None
    row.state = State.ACTIVE if first else State.BUILDING
    row.created_at = now()
    row.activated_at = row.created_at if first else None
    row.made_by = source_values()
    row.save()
    wiring.store_for(row).ensure()
    passages.mark_all(row)
    return row


def _revive(row: VectorIndex) -> VectorIndex:
    """Build a retired index up again: writes mark it from now on, ``check`` marks what it lacks."""
    row.state, row.needs_check = State.BUILDING, True
    row.save(update_fields=["state", "needs_check"])
    wiring.store_for(row).ensure()
    return row


def check(index: VectorIndex) -> None:
    """Mark what a revived index lacks or holds with another text. May be broken off and repeated.

    Sees what was committed before the revival; what came later was marked by its writer.
    """
    if not index.needs_check:
        return
    after = 0
    while True:
        with transaction.atomic():
            wiring.lock_indexes(alone=True)
            page = _page(index, after)
            passages.mark(index, _lacking(index, dict(page)))
        if len(page) < PAGE:
            break
        after = page[-1][0]
    VectorIndex.objects.filter(pk=index.pk, state=State.BUILDING).update(needs_check=False)
    index.needs_check = False


def _page(index: VectorIndex, after: int, vault: int | None = None) -> list[tuple[int, str]]:
    rows = spaces.embedded_by(index).filter(pk__gt=after).order_by("pk")
    if vault is not None:
        rows = rows.filter(vault_id=vault)
    return list(rows.values_list("pk", "text_hash")[:PAGE])


def _lacking(index: VectorIndex, texts: dict[int, str]) -> list[int]:
    held = wiring.store_for(index).hashes(texts)
    return [key for key, text_hash in texts.items() if held.get(key) != text_hash]


def mark_lost(index: VectorIndex, vault: int | None = None) -> int:
    """Mark the passages whose vectors an index has lost, of all or of one vault; how many are."""
    after, count = 0, 0
    while page := _page(index, after, vault):
        lacking = _lacking(index, dict(page))
        waiting = set(index.marks.filter(passage__in=lacking).values_list("passage_id", flat=True))
        count += passages.mark(index, [key for key in lacking if key not in waiting])
        after = page[-1][0]
    return count


def switch(index: VectorIndex) -> bool:
    """Make a complete index the active one and retire the earlier one; whether it is active now.

    Not one that another process has discarded, dropped or found incomplete meanwhile.
    """
    with transaction.atomic():
        wiring.lock_indexes(alone=True)
        row = VectorIndex.objects.select_for_update().filter(pk=index.pk).first()
        if row is None or row.state != State.BUILDING:
            return row is not None and row.state == State.ACTIVE
        if row.needs_check or row.marks.exists():
            return False
        for earlier in VectorIndex.objects.select_for_update().filter(state=State.ACTIVE):
            _retire(earlier)
        row.state, row.activated_at, row.retired_at = State.ACTIVE, now(), None
        row.save(update_fields=["state", "activated_at", "retired_at"])
        mirror_soon.mirror_soon()
    drop_surplus()
    return True


def _retire(row: VectorIndex) -> None:
    row.marks.all().delete()
    row.state, row.needs_check = State.RETIRED, False
    row.retired_at = row.retired_at or now()
    row.save(update_fields=["state", "needs_check", "retired_at"])
    # What it holds in memory is not needed; should it be revived, it is read again.
    wiring.forget_store(row.pk)


def stop_building() -> None:
    """Give up what is being built; an index that was being revived is retired as before."""
    for row in VectorIndex.objects.select_for_update().filter(state=State.BUILDING):
        if row.retired_at is None:
            drop(row)
        else:
            _retire(row)


def earlier() -> VectorIndex | None:
    """The index before the last change: while one is being built the active one, else the retired.

    Read in one query, so that another process cannot move them meanwhile.
    """
    rows = list(VectorIndex.objects.order_by("-retired_at", "-pk"))
    wanted = State.ACTIVE if any(row.state == State.BUILDING for row in rows) else State.RETIRED
    return next((row for row in rows if row.state == wanted), None)


def go_back_to(index_id: int) -> VectorIndex | None:
    """Stop building another index than this; revive it if it is retired. None when it is gone."""
    wiring.lock_indexes(alone=True)
    row = VectorIndex.objects.filter(pk=index_id).first()
    if row is None or row.state == State.BUILDING:
        return row
    stop_building()
    return _revive(row) if row.state == State.RETIRED else row


def drop(row: VectorIndex) -> None:
    """Remove an index with everything that belongs to it."""
    wiring.store_for(row).drop()
    wiring.forget_store(row.pk)
    row.delete()


def drop_surplus(*, kept: int = 1) -> int:
    """Drop retired indexes whose time is over, and all but the newest ``kept``; how many."""
    order = (F("retired_at").desc(nulls_last=True), "-pk")
    rows = list(VectorIndex.objects.filter(state=State.RETIRED).order_by(*order))
    oldest = now() - KEPT
    surplus = [
        row
        for place, row in enumerate(rows)
        if place >= kept or row.retired_at is None or row.retired_at < oldest
    ]
    return sum(_drop_retired(row.pk) for row in surplus)


def _drop_retired(index_id: int) -> bool:
    with transaction.atomic():
        wiring.lock_indexes(alone=True)
        rows = VectorIndex.objects.select_for_update()
        row = rows.filter(pk=index_id, state=State.RETIRED).first()
        if row is not None:
            drop(row)
    return row is not None


def share_current(row: VectorIndex) -> float:
    """Percent of its passages whose present text a retired index has a vector of, rounded down.

    Of a large index the figure may be a minute old.
    """
    total = spaces.count(row)
    if total <= AT_ONCE:
        return _share(row, total)
    name = f"memory.retired.{row.pk}"
    known: float | None = remembered.recall(name)
    if known is None:
        known = _share(row, total)
        remembered.remember(name, known, SHARE_SECONDS)
    return known


def _share(row: VectorIndex, total: int) -> float:
    lacking, after = 0, 0
    while page := _page(row, after):
        lacking += len(_lacking(row, dict(page)))
        after = page[-1][0]
    return int(1000 * max(0, total - lacking) / total) / 10 if total else 100.0
