"""Exports in every format come back whole, and are written page by page."""

from __future__ import annotations

import io
import json
import tracemalloc
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from memory import row_writer
from memory.clock import now
from memory.errors import Invalid
from memory.models import ApiKey, AuditEntry, Memory
from memory.principal import SYSTEM, Principal
from memory.services import exchange, exports, memories
from memory.services.draft_rows import new_row
from memory.services.drafts import MemoryDraft
from memory.services.import_store import ImportOrder
from memory.services.listing import MemoryFilter
from memory.tests.conftest import Remember

MOMENT = datetime(2024, 2, 29, 23, 59, 58, 123_456, tzinfo=UTC)
COMPARED = (
    "api_key__name",
    "key",
    "content",
    "type",
    "session_id",
    "metadata",
    "is_pinned",
    "is_shared",
    "created_at",
    "occurred_at",
    "expires_at",
    "archived_at",
)


def exported(kind: str, principal: Principal = SYSTEM, **wanted: Any) -> bytes:
    chosen = replace(exports.EVERYTHING, **wanted)
    return b"".join(exports.export(principal, kind, chosen).pieces)


def everything() -> list[dict[str, Any]]:
    return list(Memory.objects.order_by("created_at", "key").values(*COMPARED))


@pytest.fixture
def full(alice: Principal, bob: Principal, manager: Principal, remember: Remember) -> None:
    """Memories with everything that a memory can have, and texts that files find difficult."""
    remember(
        alice,
        '=SUM(A1)\r\nlikes «tea», 茶 \U0001f375, "quotes"; and\ttabs\u2028---\n- end\n',
        key="../a: b/c? *",
        type="semantic",
        session_id="'s 1",
        metadata={"a": [1, None, {"b": "ü\u0085"}], "title": "T", "n": 1.5, "long": "x" * 500},
        expires_at=MOMENT + timedelta(days=36500),
        occurred_at=MOMENT - timedelta(days=1),
        is_pinned=True,
        created_at=MOMENT,
    )
    remember(alice, "second", key="../A: b/c? *", created_at=MOMENT + timedelta(microseconds=1))
    remember(bob, "---\nno: front matter\n---\nplays", key="drink", created_at=MOMENT)
    remember(manager, " office hours ", key="office", is_shared=True, type="procedural")
    remember(alice, "archived", key="gone", created_at=MOMENT - timedelta(days=3))
    Memory.objects.filter(key="gone").update(archived_at=MOMENT)


@pytest.mark.parametrize("kind", exports.EXPORT_FORMATS)
def test_what_goes_out_comes_back_equal(full: None, kind: str) -> None:
    before, data = everything(), exported(kind)
    again = exchange.import_file(SYSTEM, io.BytesIO(data), ImportOrder())
    assert (again.same, again.total) == (5, 5), "nothing changes where it came from"
    for memory in Memory.objects.all():
        memories.delete(SYSTEM, memory.pk, purge=True)
    ApiKey.objects.filter(name__in=("alice", "bob")).delete()
    report = exchange.import_file(SYSTEM, io.BytesIO(data), ImportOrder())
    assert (report.imported, report.skipped, report.format) == (5, 0, kind)
    assert everything() == before


@pytest.mark.parametrize("kind", exports.EXPORT_FORMATS)
def test_nothing_is_an_export_too(first_start: None, kind: str) -> None:
    data = exported(kind)
    if kind == "markdown":
        assert zipfile.ZipFile(io.BytesIO(data)).namelist() == []
    else:
        report = exchange.import_file(SYSTEM, io.BytesIO(data), ImportOrder())
        assert report.total == 0


@pytest.mark.parametrize("kind", exports.EXPORT_FORMATS)
def test_an_ordinary_key_exports_only_its_own(full: None, alice: Principal, kind: str) -> None:
    data = exported(kind, alice, owner="bob")
    if kind == "markdown":
        names = zipfile.ZipFile(io.BytesIO(data)).namelist()
        assert {name.partition("/")[0] for name in names} == {"alice"}
    else:
        assert b"plays" not in data
        assert b"second" in data


def test_notes_lie_in_a_folder_for_each_owner_under_names_that_are_safe(full: None) -> None:
    archive = zipfile.ZipFile(io.BytesIO(exported("markdown")))
    assert archive.testzip() is None
    assert sorted(archive.namelist()) == [
        "alice/A- b-c 2.md",
        "alice/a- b-c.md",
        "alice/gone.md",
        "bob/drink.md",
        "manager/office.md",
    ]


def test_the_filters_of_the_list_choose_what_goes_out(full: None) -> None:
    def keys(**wanted: Any) -> list[str]:
        return [json.loads(line)["key"] for line in exported("jsonl", **wanted).splitlines()]

    assert keys(type="procedural") == ["office"]
    assert keys(q="PLAYS") == ["drink"]
    assert keys(session="'s 1") == ["../a: b/c? *"]
    assert keys(state="archived") == ["gone"]
    assert "gone" not in keys(state="live")
    assert keys(metadata={"title": "T"}) == ["../a: b/c? *"]
    assert keys(owner="bob") == ["drink"]
    memories.delete(SYSTEM, Memory.objects.get(key="drink").pk)
    assert "drink" not in keys()
    assert keys(state="trash") == ["drink"]


def test_every_row_comes_once_also_where_many_were_made_at_once(alice: Principal) -> None:
    _rows(1203, created_at=MOMENT)
    lines = exported("jsonl").splitlines()
    assert len({json.loads(line)["key"] for line in lines}) == len(lines) == 1203


def test_an_export_takes_a_query_for_each_page_and_holds_only_one(alice: Principal) -> None:
    _rows(5000, content="x" * 2000)
    pieces = exports.export(SYSTEM, "jsonl").pieces
    next(pieces)
    tracemalloc.start()
    with CaptureQueriesContext(connection) as queries:
        size = sum(len(piece) for piece in pieces)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size > 10_000_000
    assert peak < size / 2
    assert len(queries) <= 12


def test_an_export_leaves_an_audit_row_without_text(full: None) -> None:
    exported("csv", owner="bob")
    row = AuditEntry.objects.latest("pk")
    assert (row.action, row.detail) == ("memory.export", {"format": "csv"})
    assert row.owner is not None
    assert row.owner.name == "bob"


def test_an_unknown_format_is_refused(first_start: None) -> None:
    with pytest.raises(Invalid) as refused:
        exports.export(SYSTEM, "word")
    assert "format" in refused.value.fields
    with pytest.raises(Invalid):
        exports.export(SYSTEM, "json", MemoryFilter(state="nonsense"))


def _rows(count: int, *, content: str = "text", created_at: datetime | None = None) -> None:
    owner = ApiKey.objects.get(name="alice")
    moment = created_at or now()
    row_writer.insert(
        [
            new_row(owner, MemoryDraft(content=content, key=str(place), created_at=moment))
            for place in range(count)
        ]
    )
