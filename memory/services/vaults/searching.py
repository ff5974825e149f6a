"""Searching a vault, preparing its index, and telling its state."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from django.utils.translation import gettext as _

from engine.text.template import indexed_text
from engine.types import Match, Mode, Vector
from engine.vault import capacity, embedding
from engine.vault.errors import VaultError
from engine.vault.index import Document, VaultIndex, VectorCache
from engine.vault.keeper import Figures, Slot
from engine.vault.search import Found, VaultQuery, search
from memory import vault_wiring
from memory.models import Vault, VaultAsset
from memory.principal import Principal
from memory.services import audit
from memory.services.vaults import access, lifecycle
from memory.services.vaults.access import Watch
from memory.services.vaults.contents import Contents

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
    generation_host: str
    warnings: list[str]


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
    with vault_wiring.watching(watch):
        reranked, reranker = vault_wiring.reranker(vault) if request.rerank else ("none", None)
        index, slot = indexed(watch)
        embed = partial(_query_vector, watch, index, slot, request.query)
        found = search(
            query, index, embed=embed if uses_vectors else None, reranker=reranker, check=watch
        )
    return SearchView(
        vault,
        request,
        found,
        reranked,
        len(index.chunks),
        index.embedded,
        _warnings(vault) if uses_vectors else [],
    )


def prepare(
    principal: Principal, reference: str, *, budget_s: float = embedding.BUDGET_S
) -> Prepared:
    """Build the index of a vault and its vectors, so that the first search need not.

    What is not done within the budget is left to the next call.
    """
    vault = access.find(principal, reference, "reader")
    watch = Watch(principal, vault)
    with vault_wiring.watching(watch):
        index, slot = indexed(watch)
        source = vault_wiring.source(vault)
        with slot.filling:
            before = index.embedded
            try:
                embedding.fill(index, source, check=watch, budget_s=budget_s)
            except VaultError as error:
                if error.reason != embedding.SPENT:
                    raise
            made = index.embedded - before
        watch()
    audit.record(
        principal,
        "vault.index",
        owner=vault.owner,
        ids=[vault.uid],
        detail={"chunks": len(index.chunks), "made": made},
    )
    return Prepared(vault, len(index.chunks), index.embedded, made, source.model)


def status(principal: Principal, reference: str) -> Status:
    """The state of a vault."""
    vault = access.find(principal, reference, "reader")
    version = access.version_of(vault)
    counts: dict[str, int] = dict.fromkeys(VaultAsset.Kind.values, 0)
    for kind in vault.assets.filter(trashed_at__isnull=True).values_list("kind", flat=True):
        counts[kind] += 1
    return Status(
        vault,
        lifecycle.is_unlocked(vault),
        access.role_of(principal, vault),
        vault_wiring.keeper().figures(str(vault.uid), version),
        counts,
        vault_wiring.backend(vault),
        vault_wiring.generation_host(),
        _warnings(vault),
    )


def indexed(watch: Watch) -> tuple[VaultIndex, Slot]:
    """The index of a vault as it is now; built once, whoever else waits for it.

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
        embedding.fill(index, source, check=watch)
    watch()
    return embedding.query_vector(source, text)


def _warnings(vault: Vault) -> list[str]:
    if not vault_wiring.is_stopgap(vault):
        return []
    model = vault_wiring.backend(vault).model
    message = _("EmbeddingGemma is not installed; this vault embeds with %(model)s.")
    return [message % {"model": model}]


LIMITS: Final = {
    "chunks": capacity.MAX_CHUNKS,
    "textBytes": capacity.MAX_TEXT_BYTES,
    "vectorBytes": capacity.MAX_VECTOR_BYTES,
    "vaults": capacity.MAX_VAULTS,
}
