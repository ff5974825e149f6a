"""Rows written by hand are those that Django would have written."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import row_writer
from memory.clock import now
from memory.models import Memory, MemoryRevision
from memory.services import access


def _memory(**fields: Any) -> Memory:
    moment = now()
    given = {
        "api_key": access.default_key(),
        "key": "tea",
        "content": "100 % green ☕ 茶 'quoted'",
        "metadata": {"tags": ["茶", 'a"b'], "none": None, "deep": {"number": 1.5}},
        "created_at": moment,
        "updated_at": moment,
        "retained_at": moment,
        "occurred_at": datetime(2024, 2, 29, 23, 30, tzinfo=timezone(timedelta(hours=9))),
        "is_pinned": True,
    }
    return Memory(**{**given, **fields})


def _raw(memory: Memory) -> list[Any]:
    """The stored columns, without the key of the row."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT * FROM memory_memory WHERE key = %s ORDER BY created_at", [memory.key]
        )
        rows = cursor.fetchall()
        names = [column[0] for column in cursor.description]
    assert len(rows) == 1
    return [value for name, value in zip(names, rows[0], strict=True) if name not in ("id", "key")]


def test_an_inserted_row_is_stored_as_django_stores_it(first_start: None) -> None:
    ours, theirs = _memory(), _memory(key="coffee")
    theirs.created_at = theirs.updated_at = theirs.retained_at = ours.created_at
    row_writer.insert([ours])
    theirs.save(force_insert=True)
    assert _raw(ours) == _raw(theirs)
    assert Memory.objects.get(pk=ours.pk).occurred_at == ours.occurred_at


def test_an_inserted_row_can_be_saved_again(first_start: None) -> None:
    memory = _memory()
    row_writer.insert([memory])
    memory.content = "black"
    memory.save()
    assert Memory.objects.get().content == "black"


def test_ids_that_the_database_gives_are_given(first_start: None) -> None:
    memory = _memory()
    row_writer.insert([memory])
    earlier = [
        MemoryRevision(memory=memory, revision=number, content="x", replaced_at=now())
        for number in (1, 2)
    ]
    row_writer.insert(earlier)
    assert {row.revision for row in MemoryRevision.objects.filter(memory=memory)} == {1, 2}


def test_times_of_rows_are_not_mixed_up(first_start: None) -> None:
    start = now()
    rows = [
        _memory(key=str(hour), created_at=start + timedelta(hours=hour), expires_at=start)
        for hour in range(3)
    ]
    row_writer.insert(rows)
    stored = dict(Memory.objects.values_list("key", "created_at"))
    assert stored == {row.key: row.created_at for row in rows}


def test_an_update_writes_what_is_named_and_nothing_else(first_start: None) -> None:
    rows = [_memory(key=key) for key in ("a", "b")]
    row_writer.insert(rows)
    for row in rows:
        row.content, row.metadata, row.type = f"new {row.key}", {"n": row.key}, "semantic"
    row_writer.update(rows, ["content", "metadata"])
    stored = Memory.objects.order_by("key").values_list("content", "metadata", "type")
    assert list(stored) == [("new a", {"n": "a"}, "factual"), ("new b", {"n": "b"}, "factual")]


def test_an_update_refuses_a_name_that_is_no_column(first_start: None) -> None:
    memory = _memory()
    row_writer.insert([memory])
    with pytest.raises(ValueError, match="columns of Memory"):
        row_writer.update([memory], ["api_key"])


def test_no_rows_are_no_statement(first_start: None) -> None:
    with CaptureQueriesContext(connection) as captured:
        row_writer.insert([])
        row_writer.update([], ["name"])
    assert len(captured) == 0
