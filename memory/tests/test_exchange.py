"""Export of everything, and import of our own and other files, with a report."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory.errors import Forbidden, Invalid
from memory.models import ApiKey, Memory
from memory.principal import SYSTEM, Principal
from memory.services import compaction, exchange, exports, memories
from memory.services.import_report import ImportReport
from memory.services.import_store import ImportOrder
from memory.tests.asking import ask, days_ago
from memory.tests.conftest import Remember

BOUNDED = settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def _export(principal: Principal = SYSTEM, owner: str | None = None) -> str:
    return b"".join(exports.export_all(principal, owner)).decode()


def _import(
    text: str | bytes, principal: Principal = SYSTEM, owner: str | None = None
) -> ImportReport:
    data = text.encode() if isinstance(text, str) else text
    return exchange.import_file(principal, io.BytesIO(data), ImportOrder(owner=owner))


def _jsonl(*records: Any) -> str:
    return "\n".join(json.dumps(record) for record in records)


def _everything() -> list[dict[str, Any]]:
    """What an export must keep, whatever ids and times of writing are."""
    own = {"id", "apiKeyId", "updatedAt", "revision", "accessCount", "lastAccessedAt"}
    return [
        {name: value for name, value in record.items() if name not in own}
        for record in json.loads(_export())["memories"]
    ]


@pytest.fixture
def full(alice: Principal, bob: Principal, manager: Principal, remember: Remember) -> None:
    """Memories of three owners with everything a memory can have."""
    remember(
        alice,
        "likes tea ☕ 茶\nand a line break",
        key="drink",
        type="semantic",
        session_id="s1",
        metadata={"a": [1, None, {"b": "ü"}], "title": "Tea"},
        expires_at=datetime(2100, 1, 2, 3, 4, 5, 678000, tzinfo=UTC),
        occurred_at=datetime(2001, 2, 3, tzinfo=UTC),
        is_pinned=True,
        created_at=days_ago(400).replace(microsecond=0),
    )
    remember(bob, "plays the cello", key="drink", created_at=days_ago(3).replace(microsecond=0))
    remember(
        manager,
        "office hours",
        key="office",
        is_shared=True,
        created_at=days_ago(2).replace(microsecond=0),
    )


def test_everything_comes_back_whole_with_its_owners(full: None) -> None:
    text, before = _export(), _everything()
    assert json.loads(text)["format"] == "memory-studio"
    for memory in Memory.objects.all():
        memories.delete(SYSTEM, memory.pk, purge=True)
    ApiKey.objects.filter(name="bob").delete()
    report = _import(text)
    assert (report.total, report.imported, report.updated, report.skipped) == (3, 3, 0, 0)
    assert _everything() == before
    assert {row["apiKeyName"] for row in before} == {"alice", "bob", "manager"}


def test_importing_an_export_twice_stores_nothing_twice(full: None) -> None:
    before = _everything()
    report = _import(_export())
    assert (report.imported, report.updated, report.same) == (0, 0, 3)
    assert _everything() == before


def test_what_was_archived_comes_back_archived(alice: Principal, remember: Remember) -> None:
    remember(alice, "zebra", key="animal", created_at=days_ago(60))
    compaction.run_now(alice, compaction.CompactRequest())
    remember(alice, "lion", key="animal")
    text = _export()
    for memory in Memory.objects.all():
        memories.delete(SYSTEM, memory.pk, purge=True)
    for _ in range(2):
        _import(text)
        rows = Memory.objects.filter(key="animal").order_by("created_at")
        assert [(row.content, row.archived_at is not None) for row in rows] == [
            ("zebra", True),
            ("lion", False),
        ]
    assert "zebra" not in ask(alice, "zebra")
    assert ask(alice, "lion") == ["lion"]


def test_an_ordinary_key_exports_and_imports_only_its_own(
    full: None, alice: Principal, bob: Principal
) -> None:
    hers = json.loads(_export(alice, "bob"))["memories"]
    assert [row["apiKeyName"] for row in hers] == ["alice"]
    report = _import(_jsonl({"content": "planted", "apiKeyName": "bob", "shared": True}), alice)
    assert report.imported == 1
    memory = Memory.objects.get(content="planted")
    assert (memory.api_key_id, memory.is_shared) == (alice.owner, False)
    with pytest.raises(Forbidden):
        _import(_jsonl({"content": "planted"}), alice, owner="bob")


def test_a_named_owner_takes_every_record(full: None, bob: Principal) -> None:
    text = _export()
    _import(text, owner="bob")
    assert Memory.objects.filter(api_key=bob.owner).count() == 2, "two had the same key"


def test_an_export_of_one_owner_has_only_that_one(full: None) -> None:
    rows = json.loads(_export(SYSTEM, "bob"))["memories"]
    assert [row["content"] for row in rows] == ["plays the cello"]


def test_an_empty_export_is_a_document_that_can_be_imported(first_start: None) -> None:
    assert json.loads(_export())["memories"] == []
    assert _import(_export()).total == 0


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            _jsonl({"content": "a", "key": "1"}, {"content": "b", "key": "2"}), id="JSONL"
        ),
        pytest.param(json.dumps([{"content": "a"}, {"content": "b"}]), id="a JSON list"),
        pytest.param(json.dumps({"data": [{"content": "a"}, {"content": "b"}]}), id="page export"),
        pytest.param(json.dumps({"memories": [{"content": "a"}, {"content": "b"}]}), id="ours"),
        pytest.param("\ufeff" + json.dumps([{"content": "a"}, {"content": "b"}]), id="with a BOM"),
        pytest.param('\r\n{"content": "a"}\r\n\r\n{"content": "b"}\r\n', id="Windows line ends"),
    ],
)
def test_every_kind_of_file_is_read(first_start: None, text: str) -> None:
    report = _import(text)
    assert (report.imported, report.skipped) == (2, 0)
    assert set(Memory.objects.values_list("content", flat=True)) == {"a", "b"}


def test_a_file_of_one_record_is_read(first_start: None) -> None:
    assert _import('{"content": "alone"}').imported == 1


def test_a_file_that_is_not_text_is_refused(first_start: None) -> None:
    with pytest.raises(Invalid) as refused:
        _import(b"\xff\xfe\x00binary")
    assert refused.value.code == "invalid_utf8"


def test_the_page_export_of_the_first_system_keeps_its_fields(first_start: None) -> None:
    _import(
        json.dumps(
            {
                "data": [
                    {
                        "id": "x1",
                        "apiKeyId": "unknown-here",
                        "sessionId": "s9",
                        "type": "procedural",
                        "key": "preference:tabs",
                        "content": "prefers tabs",
                        "metadata": '{"category": "preference"}',
                        "createdAt": "2025-03-04T05:06:07.000Z",
                        "expiresAt": None,
                        "accessCount": 7,
                    }
                ],
                "total": 1,
            }
        )
    )
    memory = Memory.objects.get()
    assert memory.api_key.is_default
    assert (memory.key, memory.session_id, memory.type) == ("preference:tabs", "s9", "procedural")
    assert memory.metadata == {"category": "preference"}
    assert memory.created_at == datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)


def test_a_record_of_an_evaluation_set_becomes_a_memory_with_its_context(
    first_start: None,
) -> None:
    _import(
        _jsonl(
            {
                "id": "D1:3",
                "title": "Session 1",
                "text": "Ana: I moved to Lisbon",
                "raw": "I moved to Lisbon",
                "speaker": "Ana",
                "date": "8 May 2023, 1:56 pm",
                "owner": "conv-26",
                "session": "session_1",
            }
        )
    )
    memory = Memory.objects.get()
    assert (memory.api_key.name, memory.key, memory.session_id) == ("conv-26", "D1:3", "session_1")
    assert memory.content == "I moved to Lisbon"
    assert memory.metadata["speaker"] == "Ana"
    assert memory.occurred_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["user", "feedback", "reference", "", 7, None, ["x"]])
def test_an_unknown_type_is_factual(first_start: None, kind: Any) -> None:
    assert _import(_jsonl({"content": "a", "type": kind})).imported == 1
    assert Memory.objects.get().type == "factual"


def test_bad_lines_are_reported_with_their_place_and_the_rest_is_stored(
    first_start: None,
) -> None:
    text = "\n".join(
        [
            '{"content": "good"}',
            "{broken",
            '{"content": ""}',
            "[1, 2]",
            '{"key": "no text"}',
            '{"content": "a\\u0000b"}',
            '{"content": "x", "apiKeyName": "' + "n" * 200 + '"}',
            '{"content": "x", "createdAt": "0001-01-01T00:00:00+14:00"}',
            '{"content": "also good"}',
        ]
    )
    report = _import(text)
    assert (report.total, report.imported, report.skipped) == (9, 2, 7)
    assert [problem.place for problem in report.problems] == [2, 3, 4, 5, 6, 7, 8]
    assert all(problem.message for problem in report.problems)


def test_only_fifty_problems_are_listed_but_all_are_counted(first_start: None) -> None:
    report = _import("\n".join(["nonsense"] * 80))
    assert (report.skipped, len(report.problems)) == (80, 50)


def test_the_report_has_its_speed(first_start: None) -> None:
    report = _import(_jsonl(*({"content": f"n{place}"} for place in range(20))))
    assert report.seconds > 0
    assert report.per_second == pytest.approx(20 / report.seconds)


def test_a_record_without_a_key_has_one_from_its_text(first_start: None) -> None:
    _import(_jsonl({"content": "same"}, {"content": "other"}))
    report = _import(_jsonl({"content": "same"}))
    assert (report.imported, report.same, Memory.objects.count()) == (0, 1, 2)


@pytest.mark.parametrize("writes", ["creates", "updates"])
def test_a_big_batch_takes_a_bounded_number_of_queries(alice: Principal, writes: str) -> None:
    records = [{"content": f"note {place}", "key": f"k{place}"} for place in range(1000)]
    if writes == "updates":
        exchange.import_records(alice, records, owner=None)
        records = [{**record, "content": f"{record['content']} again"} for record in records]
    counts = []
    for batch in (records[:500], records[500:]):
        with CaptureQueriesContext(connection) as queries:
            report = exchange.import_records(alice, batch, owner=None)
        counts.append(len(queries))
        assert (report.updated, report.imported) in ((500, 0), (0, 500))
    assert max(counts) <= 60


@BOUNDED
@given(
    record=st.dictionaries(
        st.sampled_from(
            [
                "id",
                "key",
                "content",
                "text",
                "raw",
                "title",
                "type",
                "sessionId",
                "metadata",
                "createdAt",
                "expiresAt",
                "archivedAt",
                "date",
                "owner",
                "apiKeyName",
                "pinned",
            ]
        ),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats()
            | st.text(st.characters(), max_size=12)
            | st.sampled_from(["1:2:nan", "10:60", "99999999999", "Feb 30", "now", "\ud800"]),
            lambda inner: (
                st.lists(inner, max_size=2)
                | st.dictionaries(st.text(max_size=4), inner, max_size=2)
            ),
            max_leaves=4,
        ),
        max_size=8,
    )
)
def test_any_record_is_stored_or_reported(first_start: None, record: dict[str, Any]) -> None:
    report = exchange.import_records(SYSTEM, [record, {"content": "good"}], owner=None)
    assert report.imported + report.updated + report.same + report.skipped == report.total == 2
    assert Memory.objects.filter(content="good").exists()


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85"], ids=ascii)
def test_a_line_of_jsonl_ends_at_a_line_feed_only(first_start: None, mark: str) -> None:
    lines = [json.dumps({"content": f"one{mark}two"}, ensure_ascii=False), '{"content": "three"}']
    report = _import("\r\n".join(lines))
    assert (report.imported, report.skipped) == (2, 0)
    assert Memory.objects.filter(content=f"one{mark}two").exists()


@pytest.mark.parametrize("written", ["2020-01-01T00:00:00+99:99", "2020-01-01 00:00 -9999"])
def test_an_impossible_offset_from_utc_does_not_stop_an_import(
    first_start: None, written: str
) -> None:
    record = {"content": "tea", "createdAt": written, "expiresAt": written, "date": written}
    report = _import(_jsonl(record, {"content": "coffee"}))
    assert (report.imported, report.skipped) == (2, 0)


def test_an_import_looks_its_keys_up_in_no_order(alice: Principal) -> None:
    with CaptureQueriesContext(connection) as captured:
        _import(_jsonl({"key": "tea", "content": "green"}, {"key": "cup", "content": "red"}))
    by_key = [query["sql"] for query in captured if '"key" IN' in query["sql"]]
    # With one, SQLite walks all memories of the owner to spare sorting the few that are found.
    assert by_key and not any("ORDER BY" in sql for sql in by_key)


def test_usual_times_are_read_as_any_other(alice: Principal) -> None:
    times = ["2026-05-06T07:08:09.123Z", "2026-05-06T16:08:09.123+09:00", "6 May 2026 07:08:09.123"]
    records = [{"key": f"k{i}", "content": "x", "date": time} for i, time in enumerate(times)]
    _import(_jsonl(*records))
    stored = set(Memory.objects.values_list("occurred_at", flat=True))
    assert stored == {datetime(2026, 5, 6, 7, 8, 9, 123000, tzinfo=UTC)}
