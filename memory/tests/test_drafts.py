"""What can be stored, and what is refused with the field that is wrong."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from memory.errors import Invalid
from memory.models import Memory
from memory.principal import Principal
from memory.services import memories
from memory.services.drafts import MAX_CONTENT, MAX_KEY, MAX_METADATA, MAX_SESSION, MemoryDraft


def _deep(levels: int) -> dict[str, Any]:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    assert isinstance(value, dict)
    return value


REFUSED = [
    pytest.param({"content": ""}, "content", id="empty content"),
    pytest.param({"content": " \n\t "}, "content", id="blank content"),
    pytest.param({"content": "a\0b"}, "content", id="NUL in content"),
    pytest.param({"content": "\ud800"}, "content", id="lone surrogate in content"),
    pytest.param({"content": "a" * (MAX_CONTENT + 1)}, "content", id="content too long"),
    pytest.param({"key": ""}, "key", id="empty key"),
    pytest.param({"key": "  "}, "key", id="blank key"),
    pytest.param({"key": "k\0"}, "key", id="NUL in key"),
    pytest.param({"key": "\udfff"}, "key", id="lone surrogate in key"),
    pytest.param({"key": "k" * (MAX_KEY + 1)}, "key", id="key too long"),
    pytest.param({"session_id": "\0"}, "sessionId", id="NUL in session"),
    pytest.param({"session_id": "s" * (MAX_SESSION + 1)}, "sessionId", id="session too long"),
    pytest.param({"type": "gossip"}, "type", id="unknown type"),
    pytest.param({"metadata": {"a": math.nan}}, "metadata", id="NaN"),
    pytest.param({"metadata": {"a": [math.inf]}}, "metadata", id="infinity"),
    pytest.param({"metadata": {"a": "\0"}}, "metadata", id="NUL in metadata"),
    pytest.param({"metadata": {"\0": 1}}, "metadata", id="NUL in a metadata key"),
    pytest.param({"metadata": {"a": "\ud83d"}}, "metadata", id="lone surrogate in metadata"),
    pytest.param({"metadata": {"a": {1, 2}}}, "metadata", id="a set in metadata"),
    pytest.param({"metadata": {"a": datetime(2026, 1, 1)}}, "metadata", id="a date in metadata"),
    pytest.param({"metadata": ["a"]}, "metadata", id="metadata is a list"),
    pytest.param({"metadata": {"a": "x" * MAX_METADATA}}, "metadata", id="metadata too long"),
    pytest.param({"metadata": _deep(400)}, "metadata", id="metadata too deep"),
    pytest.param({"metadata": {"a": 10**5000}}, "metadata", id="a number too long to write"),
]


@pytest.mark.parametrize(("fields", "named"), REFUSED)
def test_what_cannot_be_stored_is_refused_by_field(
    alice: Principal, fields: dict[str, Any], named: str
) -> None:
    with pytest.raises(Invalid) as refused:
        memories.create(alice, MemoryDraft(**{"content": "text", "key": "key", **fields}))
    assert list(refused.value.fields) == [named]
    assert not Memory.objects.exists()


@pytest.mark.parametrize(("fields", "named"), REFUSED)
def test_what_cannot_be_stored_cannot_be_edited_in_either(
    alice: Principal, fields: dict[str, Any], named: str
) -> None:
    memory, _created = memories.create(alice, MemoryDraft("text", "key"))
    with pytest.raises(Invalid) as refused:
        memories.update(alice, memory.pk, fields)
    assert list(refused.value.fields) == [named]
    memory.refresh_from_db()
    assert (memory.content, memory.revision) == ("text", 1)


def test_every_wrong_field_is_named_at_once(alice: Principal) -> None:
    with pytest.raises(Invalid) as refused:
        memories.create(alice, MemoryDraft("", "", type="x", session_id="\0", metadata={"a": "\0"}))
    assert set(refused.value.fields) == {"content", "key", "type", "sessionId", "metadata"}


@pytest.mark.parametrize(
    "content",
    [
        "a" * MAX_CONTENT,
        "我喜欢喝咖啡",
        "emoji 👩‍👩‍👧 and 🇯🇵",
        "combining e\u0301",
        "right-to-left \u202e text",
        "line\r\nbreaks\u2028too",
        "'; DROP TABLE memory_memory; --",
        "{{ template }} %s %(x)s",
    ],
    ids=lambda text: text[:12],
)
def test_any_other_text_is_stored_as_it_is(alice: Principal, content: str) -> None:
    memory, _created = memories.create(alice, MemoryDraft(content, "key"))
    memory.refresh_from_db()
    assert memory.content == content


def test_metadata_of_any_json_comes_back_as_it_was(alice: Principal) -> None:
    metadata = {"a": [1, 2.5, None, True], "ü": {"b": "中"}, "": "", "long": "x" * 1000}
    memory, _created = memories.create(alice, MemoryDraft("text", "key", metadata=metadata))
    memory.refresh_from_db()
    assert memory.metadata == metadata


@pytest.mark.parametrize("name", ["expires_at", "occurred_at"])
@pytest.mark.parametrize(
    "moment",
    [
        datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))),
        datetime(9999, 12, 31, 23, tzinfo=timezone(timedelta(hours=-12))),
    ],
    ids=["before the first year", "after the last year"],
)
def test_a_moment_that_has_no_utc_is_refused(alice: Principal, name: str, moment: datetime) -> None:
    with pytest.raises(Invalid) as refused:
        memories.create(alice, MemoryDraft("text", "key", **{name: moment}))  # type: ignore[arg-type]
    assert list(refused.value.fields) == [{"expires_at": "expiresAt"}.get(name, "occurredAt")]


def test_the_first_and_last_moment_are_stored(alice: Principal) -> None:
    first, last = datetime(1, 1, 1, tzinfo=UTC), datetime(9999, 12, 31, 23, 59, tzinfo=UTC)
    memory, _created = memories.create(
        alice, MemoryDraft("text", "key", occurred_at=first, expires_at=last)
    )
    memory.refresh_from_db()
    assert (memory.occurred_at, memory.expires_at) == (first, last)
