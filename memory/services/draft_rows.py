"""From drafts to rows: new ones, and what an upsert changes in one that is there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from engine.text.tokens import estimate_tokens
from memory.clock import now
from memory.models import ApiKey, Memory
from memory.services.drafts import MemoryDraft


def new_row(owner: ApiKey, draft: MemoryDraft) -> Memory:
    """A row that is not stored yet."""
    moment = now()
    return Memory(
        api_key=owner,
        key=draft.key,
        content=draft.content,
        type=draft.type,
        session_id=draft.session_id,
        metadata=dict(draft.metadata),
        tokens=estimate_tokens(draft.content),
        created_at=draft.created_at or moment,
        updated_at=moment,
        retained_at=moment,
        occurred_at=draft.occurred_at,
        expires_at=draft.expires_at,
        archived_at=draft.archived_at,
        is_pinned=draft.is_pinned,
        is_shared=draft.is_shared,
    )


def merged(memory: Memory, draft: MemoryDraft) -> dict[str, Any]:
    """The fields of a row that a draft with its key changes."""
    return {
        "content": draft.content,
        "type": draft.type,
        "session_id": draft.session_id,
        "expires_at": draft.expires_at,
        "metadata": {**memory.metadata, **draft.metadata},
        "occurred_at": draft.occurred_at or memory.occurred_at,
        "is_pinned": draft.is_pinned or memory.is_pinned,
        "is_shared": draft.is_shared or memory.is_shared,
    }


def without_repeats(drafts: Sequence[MemoryDraft]) -> list[list[MemoryDraft]]:
    """Batches in which no key comes twice, in order; keys without blanks around them."""
    batches: list[list[MemoryDraft]] = [[]]
    seen: set[str] = set()
    for draft in map(_with_bare_key, drafts):
        if draft.key in seen:
            batches.append([])
            seen = set()
        seen.add(draft.key)
        batches[-1].append(draft)
    return [batch for batch in batches if batch]


def _with_bare_key(draft: MemoryDraft) -> MemoryDraft:
    key = draft.key.strip()
    return draft if key == draft.key else replace(draft, key=key)
