"""What REST services of memories answer: records bare or wrapped, lists with or without a total."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from engine.errors import BackendFailed
from engine.net.strict_json import Json
from engine.records import MAX_ID, Draft, Page, Record, to_moment

ONE: Final = ("memory", "data", "result", "item")
MANY: Final = ("data", "memories", "results", "items")
CONTENT: Final = ("content", "text", "memory")


def record_in(answer: Json) -> Record:
    """The record of an answer. Raises ``BackendFailed`` when there is none in it."""
    found = _record(answer)
    if found is None:
        raise BackendFailed("The answer holds no memory.", code="invalid_response")
    return found


def created_in(answer: Json, draft: Draft) -> Record:
    """The record that was made; what the answer leaves out is as it was sent."""
    found = _record(answer)
    if found is not None:
        return found
    known = _id(answer.get("id")) if isinstance(answer, dict) else ""
    if not known:
        raise BackendFailed("The answer tells no id.", code="invalid_response")
    return Record(
        known,
        draft.key,
        draft.content,
        draft.type,
        draft.owner,
        draft.session,
        draft.metadata,
        expires_at=draft.expires_at,
    )


def records_in(answer: Json) -> list[Record]:
    """The records of a list; entries that are none are left out. Raises ``BackendFailed``."""
    return [record for entry in _entries(answer) if (record := _record(entry)) is not None]


def page_in(answer: Json) -> Page:
    """One page; a service that tells no total has as many as it sent."""
    records = records_in(answer)
    total: Json = answer.get("total") if isinstance(answer, dict) else None
    kinds: Json = answer.get("byType") if isinstance(answer, dict) else None
    by_type = kinds if isinstance(kinds, dict) else {}
    counted = isinstance(total, int) and not isinstance(total, bool)
    return Page(
        records,
        max(int(str(total)), 0) if counted else len(records),
        {name: count for name, count in by_type.items() if type(count) is int},
    )


def _entries(answer: Json) -> list[Json]:
    if isinstance(answer, dict):
        answer = next((answer[name] for name in MANY if isinstance(answer.get(name), list)), None)
    if not isinstance(answer, list):
        raise BackendFailed("The answer holds no list.", code="invalid_response")
    return answer


def _record(answer: Json) -> Record | None:
    if not isinstance(answer, dict):
        return None
    # The first system answers a creation with the whole memory as the ``id``.
    for name in (*ONE, "id"):
        inner = answer.get(name)
        if isinstance(inner, dict) and "id" in inner:
            return _record(inner)
    known = _id(answer.get("id"))
    content = next((answer[name] for name in CONTENT if isinstance(answer.get(name), str)), None)
    if not known or not isinstance(content, str):
        return None
    score = answer.get("score")
    return Record(
        id=known,
        key=_text(answer, "key") or known,
        content=content,
        type=_text(answer, "type") or "factual",
        owner=_text(answer, "apiKeyId"),
        session=_text(answer, "sessionId"),
        metadata=_metadata(answer.get("metadata")),
        created_at=to_moment(answer.get("createdAt")),
        updated_at=to_moment(answer.get("updatedAt")),
        expires_at=to_moment(answer.get("expiresAt")),
        score=float(score) if isinstance(score, int | float) else None,
    )


def _id(value: Json) -> str:
    is_id = isinstance(value, str | int) and not isinstance(value, bool)
    text = str(value) if is_id else ""
    return text if len(text) <= MAX_ID else ""


def _text(answer: Mapping[str, Json], name: str) -> str:
    value = answer.get(name)
    return value if isinstance(value, str) else ""


def _metadata(value: Json) -> dict[str, Json]:
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
    return value if isinstance(value, dict) else {}
