"""Imports from other systems: a dry run that tells the truth, and nothing stored twice."""

from __future__ import annotations

import io
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from engine.testing import exchange_files as files
from memory import jobs
from memory.errors import Invalid
from memory.models import ApiKey, AuditEntry, Job, Memory, UploadPart
from memory.principal import SYSTEM, Principal
from memory.services import exchange, jobrows
from memory.services.import_report import ImportReport
from memory.services.import_store import ImportOrder
from memory.tests.conftest import Remember, Work

FILES: dict[str, str | bytes] = {
    "chatgpt": json.dumps(files.chatgpt()),
    "claude": json.dumps(files.claude()),
    "mem0": json.dumps(files.mem0()),
    "openmemory": files.openmemory(),
    "mcp": files.graph(),
    "jsonl": '{"content": "a"}\n{"content": "b", "key": "k"}\n',
    "csv": "content,type\na,semantic\nb,odd\n",
    "markdown": files.zipped({"a.md": "text", "b/c.md": "---\ntags: [x]\n---\nmore"}),
}


def run(data: str | bytes, principal: Principal = SYSTEM, **options: Any) -> ImportReport:
    raw = data.encode() if isinstance(data, str) else data
    return exchange.import_file(principal, io.BytesIO(raw), ImportOrder(**options))


def counts(report: ImportReport) -> tuple[int, int, int, int]:
    return report.imported, report.updated, report.same, report.skipped


@pytest.mark.parametrize("name", FILES)
def test_a_dry_run_tells_what_the_import_then_does(alice: Principal, name: str) -> None:
    before = AuditEntry.objects.count()
    dry = run(FILES[name], alice, dry_run=True)
    assert not Memory.objects.exists()
    assert AuditEntry.objects.count() == before
    real = run(FILES[name], alice)
    assert counts(dry) == counts(real)
    assert dry.imported == Memory.objects.count() > 0
    assert (dry.format, dry.types, dry.owners, dry.left_out) == (
        real.format,
        real.types,
        real.owners,
        real.left_out,
    )
    assert dry.format == name
    stored = set(Memory.objects.values_list("key", flat=True))
    assert {each["key"] for each in dry.sample} <= stored
    assert not real.sample


@pytest.mark.parametrize("name", FILES)
def test_a_second_import_stores_nothing_twice(alice: Principal, name: str) -> None:
    first = run(FILES[name], alice)
    before = list(Memory.objects.order_by("pk").values())
    again = run(FILES[name], alice)
    assert counts(again) == (0, 0, first.imported, 0)
    assert list(Memory.objects.order_by("pk").values()) == before
    assert counts(run(FILES[name], alice, dry_run=True)) == (0, 0, first.imported, 0)


def test_a_dry_run_knows_what_is_there_and_what_comes_twice(
    alice: Principal, remember: Remember
) -> None:
    remember(alice, "old", key="a")
    remember(alice, "kept", key="b")
    rows = [
        {"key": "a", "content": "changed"},
        {"key": "b", "content": "kept"},
        {"key": "c", "content": "new"},
        {"key": "c", "content": "new"},
        {"key": "c", "content": "other"},
        {"key": "d", "content": ""},
    ]
    text = json.dumps(rows)
    assert counts(run(text, alice, dry_run=True)) == (1, 2, 2, 1)
    assert counts(run(text, alice)) == (1, 2, 2, 1)
    assert counts(run(text, alice, dry_run=True)) == (0, 2, 3, 1)


def test_what_comes_again_in_a_later_batch_is_known_as_well(alice: Principal) -> None:
    rows = [{"key": str(place % 700), "content": str(place % 700)} for place in range(1400)]
    text = json.dumps(rows)
    assert counts(run(text, alice, dry_run=True)) == (700, 0, 700, 0)
    assert counts(run(text, alice)) == (700, 0, 700, 0)


def test_a_dry_run_makes_no_owner(first_start: None) -> None:
    text = '[{"content": "a", "apiKeyName": "ana"}, {"content": "b"}]'
    dry = run(text, dry_run=True)
    assert dry.owners == {"ana": 1, "Default": 1}
    assert not ApiKey.objects.filter(name="ana").exists()
    assert [each["apiKeyName"] for each in dry.sample] == ["ana", "Default"]
    assert run(text).owners == dry.owners


def test_a_turn_of_a_chat_has_its_date_speaker_title_and_session(alice: Principal) -> None:
    run(FILES["chatgpt"], alice)
    memory = Memory.objects.get(key="chatgpt:m-ask")
    moment = datetime(2025, 5, 4, 12, 0, 0, 250_000, tzinfo=UTC)
    assert (memory.occurred_at, memory.created_at) == (moment, moment)
    assert (memory.session_id, memory.type) == ("c-1", "episodic")
    assert memory.metadata == {"source": "chatgpt", "speaker": "user", "title": "About tea"}
    assert counts(run(FILES["chatgpt"], alice, assistant=True)) == (1, 0, 2, 0)


def test_memories_of_mem0_keep_their_dates(alice: Principal) -> None:
    run(FILES["mem0"], alice)
    memory = Memory.objects.get()
    assert memory.created_at == datetime(2025, 5, 4, 12, 0, 0, 123_456, tzinfo=UTC)
    assert memory.expires_at == datetime(2100, 1, 2, tzinfo=UTC)
    assert memory.session_id == "r-1"


def test_what_openmemory_had_archived_comes_in_archived(alice: Principal) -> None:
    run(FILES["openmemory"], alice)
    assert Memory.objects.get(key="openmemory:1").archived_at is None
    assert Memory.objects.get(key="openmemory:2").archived_at is not None


def test_times_in_numbers_are_seconds_or_milliseconds(alice: Principal) -> None:
    run('[{"content": "a", "createdAt": 1746360000}, {"content": "b", "createdAt": 1746360000000}]')
    moments = set(Memory.objects.values_list("created_at", flat=True))
    assert moments == {datetime(2025, 5, 4, 12, tzinfo=UTC)}


def test_an_ordinary_key_takes_everything_as_its_own(alice: Principal, bob: Principal) -> None:
    report = run('[{"content": "a", "apiKeyName": "bob", "shared": true}]', alice)
    assert report.owners == {"alice": 1}
    assert Memory.objects.get().is_shared is False


def test_a_batch_that_is_there_already_takes_few_queries(alice: Principal) -> None:
    text = json.dumps([{"key": str(n), "content": str(n)} for n in range(500)])
    run(text, alice)
    for options, most in (({"dry_run": True}, 6), ({}, 10)):
        with CaptureQueriesContext(connection) as queries:
            assert run(text, alice, **options).same == 500
        assert len(queries) <= most


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"PK\x03\x04 broken", "invalid_archive"),
        (b"\xff\xfe", "invalid_utf8"),
        (files.zipped({"a.png": b"x"}), "nothing_to_import"),
    ],
)
def test_a_file_that_cannot_be_read_is_refused_as_a_whole(
    alice: Principal, data: bytes, code: str
) -> None:
    with pytest.raises(Invalid) as refused:
        run(data, alice)
    assert refused.value.code == code
    assert refused.value.status == 422


def test_an_unknown_format_is_refused_before_anything_is_kept(alice: Principal) -> None:
    with pytest.raises(Invalid) as refused:
        exchange.start_import(alice, io.BytesIO(b"[]"), ImportOrder(format="word"))
    assert "format" in refused.value.fields
    assert not UploadPart.objects.exists()


def test_a_kept_report_holds_no_text_of_memories(alice: Principal, work: Work) -> None:
    text = '[{"content": "a secret text", "key": "a secret key"}, {"content": "", "key": "x"}]'
    check = exchange.start_import(alice, io.BytesIO(text.encode()), ImportOrder(dry_run=True))
    assert exchange.sample(alice, check)[0]["content"] == "a secret text"
    job = exchange.confirm(alice, check.pk)
    work()
    job.refresh_from_db()
    assert job.result["imported"] == 1
    for each in Job.objects.filter(kind__startswith="import"):
        assert "secret" not in json.dumps([each.result, each.params, each.message])
    assert exchange.sample(alice, check) == []


def test_a_check_can_be_confirmed_once_and_only_by_its_owner(
    alice: Principal, bob: Principal, work: Work
) -> None:
    check = exchange.start_import(
        alice, io.BytesIO(b'[{"content": "a"}]'), ImportOrder(dry_run=True)
    )
    with pytest.raises(Exception, match="No such job"):
        exchange.confirm(bob, check.pk)
    first, second = exchange.confirm(alice, check.pk), exchange.confirm(alice, check.pk)
    assert first.pk == second.pk
    work()
    with pytest.raises(Exception, match="no longer there"):
        exchange.confirm(alice, check.pk)
    assert Memory.objects.count() == 1


def test_a_check_that_is_discarded_stops(alice: Principal, work: Work) -> None:
    rows = json.dumps([{"content": "long " * 50, "key": str(n)} for n in range(2000)])
    check = exchange.start_import(alice, io.BytesIO(rows.encode()), ImportOrder(dry_run=True))
    assert check.state == Job.State.QUEUED
    exchange.discard(alice, check.pk)
    work()
    assert jobrows.get(alice, check.pk).state == Job.State.CANCELLED
    assert not UploadPart.objects.exists()


def test_progress_is_an_estimate_that_ends_at_the_truth(alice: Principal) -> None:
    told: list[tuple[int, int]] = []
    text = "\n".join(json.dumps({"content": "x" * 200, "key": str(n)}) for n in range(2000))
    exchange.import_file(
        alice,
        io.BytesIO(text.encode()),
        ImportOrder(),
        progress=lambda done, total: told.append((done, total)),
    )
    assert [done for done, _total in told] == [500, 1000, 1500, 2000, 2000]
    assert told[-1] == (2000, 2000)
    assert all(1500 <= total <= 3000 for _done, total in told)


def test_an_archive_that_breaks_off_keeps_what_came_before(alice: Principal) -> None:
    data = bytearray(
        files.zipped({"a.jsonl": FILES["jsonl"], "b.jsonl": '{"content": "z"}\n' * 99})
    )
    place = data.index(b"b.jsonl") + len("b.jsonl")
    data[place + 3] ^= 0xFF
    report = run(bytes(data), alice)
    assert report.skipped >= 1
    assert "damaged" in report.problems[-1].message
    assert set(Memory.objects.values_list("content", flat=True)) >= {"a", "b"}


def test_a_job_from_before_this_version_still_runs(alice: Principal, work: Work) -> None:
    job = exchange.start_import(alice, io.BytesIO(b'[{"content": "a"}]'), ImportOrder())
    kept = {name: job.params[name] for name in ("file", "owner", "shares")}
    Job.objects.filter(pk=job.pk).update(params=kept)
    work()
    assert Memory.objects.get().content == "a"
    assert jobs.claim(job.pk, "w") is None
