"""The tools of vaults, and what the tools of memories do when a vault is named.

A client learns nothing of a vault that it has no grant to, nor of private content, credentials and
files in any vault.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from django.utils.translation import gettext as _

from engine.errors import InvalidQuery
from engine.text.tokens import estimate_tokens
from engine.types import Match, Mode
from engine.vault.errors import VaultError
from memory.clock import iso
from memory.errors import NotFound
from memory.mcp import results, vault_results
from memory.models import VaultAsset
from memory.principal import Principal
from memory.services.vaults import asking, assets, searching
from memory.services.vaults.searching import SearchRequest

_MODES = {"bm25": Mode.KEYWORD, "vector": Mode.VECTOR, "hybrid": Mode.HYBRID}


def retrieve(principal: Principal, asked: Any) -> vault_results.Passages:
    """``memory_retrieve``."""
    request = SearchRequest(
        asked.vault_id,
        asked.query,
        _MODES[asked.mode],
        Match(asked.match_mode),
        asked.limit,
        cards_only=asked.cards_only,
        rerank=asked.rerank,
    )
    with _alike():
        return vault_results.passages(searching.find(principal, request))


def ask(principal: Principal, asked: Any) -> vault_results.Answered:
    """``memory_ask``."""
    request = SearchRequest(asked.vault_id, asked.question, _MODES[asked.mode], limit=asked.limit)
    with _alike():
        return vault_results.answered(asking.answer(principal, request))


def search(principal: Principal, asked: Any) -> results.Found:
    """``memory_search`` of a vault: by words alone, each document once, nothing is sent."""
    request = SearchRequest(
        asked.vault_id,
        asked.query,
        Mode.KEYWORD,
        Match(asked.match_mode),
        asked.limit,
        cards_only=asked.cards_only,
        rerank=False,
        grouped=True,
    )
    try:
        with _alike():
            view = searching.find(principal, request)
    except InvalidQuery as error:
        if error.code != "empty_query":
            raise
        return _found([])
    return _found(
        [
            results.FoundMemory(
                id=item.chunk.asset,
                key=item.chunk.passage.title,
                type=item.chunk.kind,
                content=item.chunk.passage.body,
                session_id="",
                created_at="",
                score=item.score,
                tokens=estimate_tokens(item.chunk.passage.body),
            )
            for item in view.found
        ]
    )


def read(principal: Principal, asked: Any) -> results.One:
    """``memory_read`` of a vault: a memory or card whole, as it is or was at a revision."""
    with _alike():
        stored, shown = assets.read(
            principal, asked.vault_id, asked.id, asked.revision, kinds=VaultAsset.SEARCHABLE
        )
    asset, content = stored.asset, stored.content
    written = shown.updated_at if isinstance(shown, VaultAsset) else shown.written_at
    return results.One(
        memory=results.WholeMemory(
            id=str(asset.pk),
            api_key_id=str(asset.vault.owner.uid),
            api_key_name=asset.vault.owner.name,
            session_id="",
            type=asset.kind,
            key=content.title,
            content=content.body,
            metadata=dict(content.meta),
            created_at=iso(asset.created_at) or "",
            updated_at=iso(written) or "",
            pinned=False,
            shared=False,
            revision=shown.revision,
            tokens=estimate_tokens(content.body),
        )
    )


@contextmanager
def _alike() -> Iterator[None]:
    """A grant that ended and a vault that is not there look the same."""
    try:
        yield
    except VaultError as error:
        if error.code != "not_authorized":
            raise
        raise NotFound(_("There is no such vault."), code="vault_not_found") from None


def _found(memories: list[results.FoundMemory]) -> results.Found:
    return results.Found(
        memories=memories,
        count=len(memories),
        total_tokens=sum(memory.tokens for memory in memories),
        strategy_used="exact",
        empty_reason=None if memories else "no_match",
    )
