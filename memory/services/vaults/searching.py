"""Searching a vault, preparing its index, and telling its state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from engine.text.template import indexed_text
from engine.types import Match, Mode, Vector
from engine.vault import capacity
from engine.vault import embedding as fill_vectors
from engine.vault.errors import VaultError
from engine.vault.index import Document, VaultIndex, VectorCache
from engine.vault.keeper import Figures, Slot
from engine.vault.search import Found, VaultQuery, search
from memory import vault_wiring
from memory.models import Vault, VaultAsset
from memory.principal import Principal
from memory.services import audit, embedding
from memory.services.vaults import access, lifecycle, reached, tables
from memory.services.vaults.access import Watch
from memory.services.vaults.contents import Contents
from memory.services.vaults.tables import Counted, TableIndex
from memory.vault_services import Services

READ_BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search of one vault. ``grouped`` names each document once."""

    vault: str
    query: str
    mode: Mode = Mode.HYBRID
    match: Match = Match.ANY
    limit: int = 8
    cards_only: bool = False
    rerank: bool = True
    grouped: bool = False


@dataclass(frozen=True, slots=True)
class SearchView:
    """What a search found, and in what."""

    vault: Vault
    request: SearchRequest
    found: list[Found]
    reranked: str
    chunks: int
    embedded: int
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Prepared:
    """An index as far as it is ready. ``made`` vectors are new."""

    vault: Vault
    chunks: int
    embedded: int
    made: int
    model: str

    @property
    def is_complete(self) -> bool:
        """Whether every chunk has a vector."""
        return self.embedded == self.chunks


@dataclass(frozen=True, slots=True)
class Status:
    """The state of a vault, without text or keys."""

    vault: Vault
    is_unlocked: bool
    role: str
    figures: Figures
    assets: dict[str, int]
    backend: vault_wiring.Backend
    services: Services
    warnings: list[str]
    place: reached.Place = "memory"

    @property
    def limits(self) -> dict[str, int] | None:
        """How much of it may be searched in memory; None where the database answers alone."""
        return reached.limits(self.place)

    @property
    def generation_host(self) -> str:
        """Where answers are written; empty without a service."""
        service = self.services.generation
        return "" if service is None else service.host


def find(principal: Principal, request: SearchRequest) -> SearchView:
    """Search. Only the vault's memories and cards are looked at.

    Raises ``InvalidQuery`` and ``VaultError``; vector and hybrid never fall back to keyword.
    """
    started = time.perf_counter()
    vault = access.find(principal, request.vault, "reader")
    watch = Watch(principal, vault)
    view = look(watch, request)
    if view.found:
        audit.record(
            principal,
            "vault.search",
            owner=vault.owner,
            ids=dict.fromkeys(item.chunk.asset for item in view.found),
            duration_ms=(time.perf_counter() - started) * 1000,
            detail={"vault": str(vault.uid), "mode": request.mode.value},
        )
    return view


def look(watch: Watch, request: SearchRequest) -> SearchView:
    """The search itself, under a watch; nothing is recorded."""
    vault = watch.vault
    query = VaultQuery(
        request.query,
        request.mode,
        request.match,
        request.limit,
        cards_only=request.cards_only,
        grouped=request.grouped,
    )
    query.check()
    uses_vectors = request.mode is not Mode.KEYWORD
    live = embedding.active_index() if not vault.is_sealed else None
    is_table = reached.in_tables(vault, live, uses_vectors=uses_vectors)
    with vault_wiring.watching(watch):
        reranked, reranker = vault_wiring.reranker(vault) if request.rerank else ("none", None)
        index: TableIndex | VaultIndex
        if is_table:
            index = table = tables.TableIndex(vault)
            embed = partial(table.query_vector, request.query, check=watch)
        else:
            index, slot = indexed(watch)
            embed = partial(_query_vector, watch, index, slot, request.query)
        found = search(
            query, index, embed=embed if uses_vectors else None, reranker=reranker, check=watch
        )
    counts = (
        tables.counted([vault], embedding.active_index())[vault.pk]
        if isinstance(index, TableIndex)
        else Counted(len(index.chunks), index.embedded)
    )
    warnings = reached.warnings(vault, counts.failed, is_table=is_table, uses_vectors=uses_vectors)
    return SearchView(vault, request, found, reranked, counts.chunks, counts.embedded, warnings)


def prepare(
    principal: Principal, reference: str, *, budget_s: float = fill_vectors.BUDGET_S
) -> Prepared:
    """Build the index of a vault and its vectors, so that the first search need not.

    What is not done within the budget is left to the next call.
    """
    vault = access.find(principal, reference, "reader")
    watch = Watch(principal, vault)
    in_tables = reached.in_tables(vault, embedding.active_index(), uses_vectors=True)
    with vault_wiring.watching(watch):
        done = _filled(watch, budget_s) if in_tables else _built_up(watch, budget_s)
        watch()
    audit.record(
        principal,
        "vault.index",
        owner=vault.owner,
        ids=[vault.uid],
        detail={"chunks": done.chunks, "made": done.made},
    )
    return done


def _filled(watch: Watch, budget_s: float) -> Prepared:
    """Embed what of the tables waits."""
    index, source = tables.serving()
    made = tables.fill(watch.vault, index, source, check=watch, budget_s=budget_s, is_strict=False)
    counts = tables.counted([watch.vault], index)[watch.vault.pk]
    return Prepared(watch.vault, counts.chunks, counts.embedded, made, source.model)


def _built_up(watch: Watch, budget_s: float) -> Prepared:
    """Build what is kept in memory."""
    index, slot = indexed(watch)
    source = vault_wiring.source(watch.vault)
    with slot.filling:
        before = index.embedded
        try:
            fill_vectors.fill(index, source, check=watch, budget_s=budget_s)
        except VaultError as error:
            if error.reason != fill_vectors.SPENT:
                raise
        made = index.embedded - before
    return Prepared(watch.vault, len(index.chunks), index.embedded, made, source.model)


def status(principal: Principal, reference: str) -> Status:
    """The state of a vault."""
    vault = access.find(principal, reference, "reader")
    with vault_wiring.one_look():
        return _status(principal, vault)


def _status(principal: Principal, vault: Vault) -> Status:
    counts: dict[str, int] = dict.fromkeys(VaultAsset.Kind.values, 0)
    for kind in vault.assets.filter(trashed_at__isnull=True).values_list("kind", flat=True):
        counts[kind] += 1
    live = None if vault.is_sealed else embedding.active_index()
    is_table = reached.in_tables(vault, live, uses_vectors=True)
    failed = tables.counted([vault], live)[vault.pk].failed if is_table else 0
    return Status(
        vault,
        lifecycle.is_unlocked(vault),
        access.role_of(principal, vault),
        reached.figures([vault], live)[vault.pk],
        counts,
        reached.backend(live) if is_table else vault_wiring.backend(vault),
        vault_wiring.services(),
        reached.warnings(vault, failed, is_table=is_table, uses_vectors=True),
        reached.place_of(vault, live),
    )


def indexed(watch: Watch) -> tuple[VaultIndex, Slot]:
    """The index in memory of a vault as it is now; built once, whoever else waits for it.

    Who works with it looks with ``watch`` first: much may have changed while it was built.
    """
    uid, keeper, build = str(watch.vault.uid), vault_wiring.keeper(), partial(_built, watch)
    watch()
    try:
        return keeper.index(uid, watch.version, build)
    except VaultError as error:
        if error.code != "cancelled":
            raise
        # A lock erases the indexes of every vault, one that is being built too.
        watch()
        return keeper.index(uid, watch.version, build)


def _built(watch: Watch, vectors: VectorCache) -> VaultIndex:
    return VaultIndex(_documents(watch), vectors, check=watch.often)


def _documents(watch: Watch) -> Iterator[Document]:
    contents = Contents(watch.vault)
    size = 0
    rows = watch.vault.assets.filter(trashed_at__isnull=True, kind__in=VaultAsset.SEARCHABLE)
    for row in rows.order_by("pk").iterator(chunk_size=READ_BATCH):
        watch.often()
        content = contents.whole(row)
        document = Document(
            asset=str(row.pk),
            revision=row.revision,
            kind=row.kind,
            title=content.title,
            body=content.body,
            meta=indexed_text("", content.meta).meta,
        )
        # Before all of it is in memory.
        size += document.size
        capacity.check(text_bytes=size)
        yield document


def _query_vector(watch: Watch, index: VaultIndex, slot: Slot, text: str) -> Vector:
    """The query's vector, after seeing to it that every chunk has one of the same space."""
    source = vault_wiring.source(watch.vault)
    with slot.filling:
        fill_vectors.fill(index, source, check=watch)
    watch()
    return fill_vectors.query_vector(source, text)
