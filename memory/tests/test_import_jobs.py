"""Imports as jobs, and the import command."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.utils import translation

from memory import jobs
from memory.models import ApiKey, Job, Memory, UploadPart
from memory.principal import SYSTEM, Principal
from memory.said import told
from memory.services import embedding, exchange, housekeeping, jobrows, uploads
from memory.services.import_store import ImportOrder
from memory.templatetags.studio import problem_text
from memory.tests.asking import days_ago
from memory.tests.conftest import Work


def _file(count: int) -> io.BytesIO:
    rows = [json.dumps({"content": f"note {place}", "key": f"k{place}"}) for place in range(count)]
    return io.BytesIO("\n".join(rows).encode())


def _kept() -> int:
    return UploadPart.objects.values("upload").distinct().count()


def test_an_import_job_reports_what_came_in_and_removes_the_file(
    alice: Principal, work: Work
) -> None:
    job = exchange.start_import(alice, _file(120), ImportOrder())
    assert _kept() == 1
    work()
    job = jobrows.get(alice, job.pk)
    assert job.state == Job.State.SUCCEEDED
    assert (job.done, job.total, job.percent) == (120, 120, 100)
    assert {name: job.result[name] for name in ("total", "imported", "updated", "skipped")} == {
        "total": 120,
        "imported": 120,
        "updated": 0,
        "skipped": 0,
    }
    assert job.result["perSecond"] > 0
    assert Memory.objects.filter(api_key=alice.owner).count() == 120
    assert embedding.coverage().percent == 100.0
    assert _kept() == 0


def test_an_import_that_is_cancelled_keeps_the_batches_that_are_in(
    alice: Principal, work: Work
) -> None:
    job = exchange.start_import(alice, _file(600), ImportOrder())
    claimed = jobs.claim(job.pk, "w")
    assert claimed is not None

    class Stopping(jobs.JobContext):
        def progress(self, done: int, total: int, **options: Any) -> None:
            if done:
                jobrows.cancel(alice, job.pk)
            super().progress(done, total, force=True)

    with pytest.raises(Exception, match="cancelled"):
        exchange.run_import(Stopping(claimed))
    assert Memory.objects.count() == 500
    Job.objects.filter(pk=job.pk).update(state=Job.State.CANCELLED)
    jobrows.retry(alice, job.pk)
    work()
    assert Memory.objects.count() == 600


def test_an_import_of_which_nothing_can_be_stored_can_be_cancelled(alice: Principal) -> None:
    file = io.BytesIO(b"no json\n" * 5000)
    job = exchange.start_import(alice, file, ImportOrder(format="jsonl"))
    claimed = jobs.claim(job.pk, "w")
    assert claimed is not None
    told: list[int] = []

    class Stopping(jobs.JobContext):
        def progress(self, done: int, total: int, **options: Any) -> None:
            told.append(done)
            if done:
                jobrows.cancel(alice, job.pk)
            super().progress(done, total, force=True)

    with pytest.raises(Exception, match="cancelled"):
        exchange.run_import(Stopping(claimed))
    assert told == [0, 1000]


def test_an_unreadable_file_fails_the_job_with_a_message(alice: Principal, work: Work) -> None:
    job = exchange.start_import(alice, io.BytesIO(b"\xff\xfe\xff"), ImportOrder())
    work()
    job.refresh_from_db()
    assert (job.state, job.error_code) == (Job.State.FAILED, "invalid_utf8")
    assert job.message == "The file is not UTF-8 text."


def test_uploads_that_nobody_finished_are_forgotten_after_a_week(
    alice: Principal, work: Work
) -> None:
    gone = exchange.start_import(alice, _file(1), ImportOrder())
    exchange.start_import(alice, _file(1), ImportOrder())
    parts = UploadPart.objects.filter(upload=gone.params["file"])
    parts.update(created_at=days_ago(8))
    housekeeping.cleanup()
    assert _kept() == 1
    work()
    gone.refresh_from_db()
    assert (gone.state, gone.error_code) == (Job.State.FAILED, "upload_gone")


def test_a_file_of_many_parts_comes_out_as_it_went_in(db: None) -> None:
    whole = bytes(range(256)) * 5000
    name = uploads.keep(io.BytesIO(whole))
    assert UploadPart.objects.filter(upload=name).count() == 2
    assert uploads.read(name).read() == whole
    assert uploads.read(uploads.keep(io.BytesIO(b""))).read() == b""


def test_the_command_imports_for_a_key_it_makes(tmp_path: Path, db: None) -> None:
    file = tmp_path / "export.jsonl"
    file.write_bytes(_file(3).getvalue() + b"\nnonsense\n")
    said, complained = io.StringIO(), io.StringIO()
    call_command("import_memories", str(file), api_key="app", stdout=said, stderr=complained)
    assert said.getvalue().startswith("3 imported, 0 updated, 0 the same, 1 skipped in ")
    assert complained.getvalue().startswith("line 4: ")
    assert Memory.objects.filter(api_key__name="app").count() == 3
    assert ApiKey.objects.filter(is_default=True).count() == 1


def test_the_command_takes_owners_from_the_file_without_a_key(tmp_path: Path, db: None) -> None:
    file = tmp_path / "export.json"
    file.write_text(json.dumps({"memories": [{"content": "a", "apiKeyName": "ana"}]}))
    call_command("import_memories", str(file), stdout=io.StringIO())
    assert Memory.objects.get().api_key.name == "ana"


def test_the_command_says_in_one_sentence_what_it_cannot_read(tmp_path: Path, db: None) -> None:
    with pytest.raises(CommandError, match="cannot read"):
        call_command("import_memories", str(tmp_path / "missing.json"))
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe\xff")
    with pytest.raises(CommandError, match="not UTF-8"):
        call_command("import_memories", str(tmp_path / "binary.json"))
    assert SYSTEM.label == "system:system"


def test_problems_are_told_in_the_readers_language(alice: Principal, work: Work) -> None:
    row = json.dumps({"content": "x" * 200_001, "key": "k"})
    job = exchange.start_import(alice, io.BytesIO(row.encode()), ImportOrder())
    work()
    problem = jobrows.get(alice, job.pk).result["problems"][0]
    assert problem["message"] == "At most 200000 characters."
    with translation.override("ja"):
        assert told(problem["parts"]) == "200000文字以内で入力してください。"
        assert problem_text(problem) == told(problem["parts"])
    assert problem_text({"message": "There is no text in it."}) == "There is no text in it."
