"""Export of everything, import with a report, compaction with a preview and an undo."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from memory.clock import now
from memory.models import ApiKey, Compaction, Job, Memory, UploadPart
from memory.principal import Principal
from memory.tests.conftest import Remember, Work
from memory.tests.views.conftest import Studio


def upload(studio: Studio, text: str, *, target: str = "dialog", **fields: str) -> Any:
    file = SimpleUploadedFile("memories.json", text.encode())
    return studio.post("/memories/import/", {"file": file, **fields}, target=target)


def checked(studio: Studio, text: str, **fields: str) -> Job:
    """The job that has looked at a file."""
    upload(studio, text, **fields)
    return Job.objects.get(kind="import-check")


def imported(studio: Studio, check: Job, *, target: str = "dialog") -> Any:
    return studio.post(f"/memories/import/{check.pk}/run/", target=target)


def words(response: Any) -> str:
    return " ".join(response.content.decode().split())


def test_the_export_holds_every_row_of_the_chosen_key(
    studio: Studio, alice: Principal, bob: Principal, remember: Remember
) -> None:
    for number in range(120):
        remember(alice, f"fact {number}", key=str(number))
    remember(bob, "bob's own")
    uid = ApiKey.objects.get(name="alice").uid
    response = studio.get(f"/memories/export/?owner={uid}")
    document = json.loads(b"".join(response.streaming_content))
    assert document["format"] == "memory-studio"
    assert len(document["memories"]) == 120
    assert response["Content-Disposition"].startswith('attachment; filename="memory-export-')


def test_a_file_is_checked_before_anything_is_stored(studio: Studio) -> None:
    rows = [
        {"key": "a", "content": "first"},
        {"key": "b", "content": ""},
        {"key": "a", "content": "first again"},
    ]
    body = words(upload(studio, json.dumps(rows)))
    assert "<dt>New</dt> <dd> 1 </dd>" in body
    assert "<dt>Updated</dt> <dd> 1 </dd>" in body
    assert "<dt>Skipped</dt> <dd> 1 </dd>" in body
    assert "Record 2: There is no text in it." in body
    assert "JSON: our export, or a list" in body
    assert "first again" in body
    assert "Import 2 memories" in body
    assert not Memory.objects.exists()


def test_an_import_reports_what_came_in_and_why_some_did_not(studio: Studio, work: Work) -> None:
    rows = [{"key": "a", "content": "first"}, {"key": "b", "content": ""}]
    response = imported(studio, checked(studio, json.dumps(rows)))
    assert "dialog-close" in response["HX-Trigger"]
    job = Job.objects.get(kind="import")
    running = studio.get(f"/jobs/{job.pk}/", target=f"job-{job.pk}")
    assert "every 700ms" in running.content.decode()
    work()
    done = studio.get(f"/jobs/{job.pk}/", target=f"job-{job.pk}")
    body = words(done)
    assert "hx-trigger" not in body
    assert done["HX-Trigger"] == "job-ended"
    assert "1 imported, 0 updated, 0 the same, 1 skipped" in body
    assert "Record 2:" in body


def test_a_large_file_is_checked_by_a_worker_with_progress(studio: Studio, work: Work) -> None:
    rows = [{"key": str(place), "content": "long " * 100} for place in range(600)]
    response = upload(studio, json.dumps(rows))
    job = Job.objects.get(kind="import-check")
    assert "every 700ms" in words(response)
    assert "Looking at memories.json" in words(response)
    work()
    body = words(studio.get(f"/memories/import/{job.pk}/", target="import-check"))
    assert "<dt>New</dt> <dd> 600 </dd>" in body
    assert "every 700ms" not in body


def test_a_file_can_be_discarded_and_then_not_imported(studio: Studio) -> None:
    check = checked(studio, '[{"content": "a"}]')
    response = studio.post(f"/memories/import/{check.pk}/discard/", target="import-check")
    assert (response.status_code, response["HX-Trigger"]) == (204, "dialog-close")
    assert not UploadPart.objects.exists()
    assert imported(studio, check).status_code == 409
    assert "Import 1 memory" not in studio.text(f"/memories/import/{check.pk}/")
    assert Job.objects.filter(kind="import").count() == 0


def test_without_javascript_each_step_is_a_page(studio: Studio, work: Work) -> None:
    response = upload(studio, '[{"content": "a"}]', target="")
    check = Job.objects.get(kind="import-check")
    assert response["Location"] == f"/memories/import/{check.pk}/"
    assert "Import 1 memory" in studio.text(response["Location"])
    response = imported(studio, check, target="")
    job = Job.objects.get(kind="import")
    assert response["Location"] == f"/jobs/{job.pk}/"
    work()
    assert Memory.objects.get().content == "a"
    assert "See what would come in" in studio.text(f"/jobs/{check.pk}/")
    again = studio.post(f"/memories/import/{check.pk}/discard/")
    assert again["Location"] == "/"


def test_a_file_that_cannot_be_read_says_why(studio: Studio) -> None:
    file = SimpleUploadedFile("memories.zip", b"PK\x03\x04 but no archive")
    body = words(studio.post("/memories/import/", {"file": file}, target="dialog"))
    assert "The archive is damaged." in body
    assert "Another file…" in body


def test_the_options_of_an_import_are_kept_from_the_check(studio: Studio, alice: Principal) -> None:
    uid = str(ApiKey.objects.get(name="alice").uid)
    chat = [
        {
            "uuid": "c",
            "name": "Tea",
            "chat_messages": [
                {"uuid": "1", "sender": "human", "text": "Likes tea"},
                {"uuid": "2", "sender": "assistant", "text": "Noted"},
            ],
        }
    ]
    check = checked(studio, json.dumps(chat), owner=uid, format="claude", assistant="on")
    assert check.result["imported"] == 2
    assert check.result["owners"] == {"alice": 2}
    assert check.params["name"] == "memories.json"
    other = upload(studio, json.dumps(chat))
    assert "Left out by choice: 1" in words(other)


def test_the_list_is_exported_as_it_is_filtered(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    remember(alice, "green tea", key="a", type="semantic")
    remember(alice, "black tea", key="b")
    remember(alice, "old tea", key="c", created_at=now() - timedelta(days=99))
    Memory.objects.filter(key="c").update(archived_at=now())

    def exported(query: str) -> list[str]:
        response = studio.get(f"/memories/export/?{query}")
        lines = b"".join(response.streaming_content).decode().splitlines()
        return sorted(json.loads(line)["content"] for line in lines)

    assert exported("format=jsonl") == ["black tea", "green tea", "old tea"]
    assert exported("format=jsonl&q=tea") == ["black tea", "green tea"]
    assert exported("format=jsonl&type=semantic") == ["green tea"]
    assert exported("format=jsonl&state=archived") == ["old tea"]
    menu = studio.text("/?q=tea")
    assert "/memories/export/?format=markdown&amp;q=tea" in menu
    assert studio.get("/memories/export/?format=nonsense")["Content-Type"].startswith(
        "application/json"
    )


def test_an_import_without_a_file_is_refused_at_the_field(studio: Studio) -> None:
    response = studio.post("/memories/import/", {}, target="dialog")
    assert response.status_code == 422
    assert 'id="import-file_error"' in response.content.decode()


def test_a_job_has_a_page_of_its_own_without_javascript(studio: Studio) -> None:
    imported(studio, checked(studio, '[{"content": "a"}]'), target="")
    job = Job.objects.get(kind="import")
    assert "Refresh" in studio.text(f"/jobs/{job.pk}/")


def test_an_import_can_be_cancelled_and_started_again(studio: Studio) -> None:
    imported(studio, checked(studio, '[{"content": "a"}]'))
    job = Job.objects.get(kind="import")
    body = studio.post(f"/jobs/{job.pk}/cancel/", target=f"job-{job.pk}").content.decode()
    assert "cancelled" in body
    body = studio.post(f"/jobs/{job.pk}/retry/", target=f"job-{job.pk}").content.decode()
    assert "queued" in body
    again = studio.post(f"/jobs/{job.pk}/cancel/", target=f"job-{job.pk}")
    assert again.status_code == 409


@pytest.fixture
def old(alice: Principal, remember: Remember) -> list[Memory]:
    """Two memories older than a month."""
    then = now() - timedelta(days=40)
    return [remember(alice, f"old fact {n}.", key=f"old:{n}", created_at=then) for n in (1, 2)]


def test_the_preview_shows_exactly_what_will_be_stored(
    studio: Studio, old: list[Memory], work: Work
) -> None:
    owner = str(old[0].api_key.uid)
    preview = studio.text(f"/memories/compact/?kind=age&days=30&owner={owner}", target="dialog")
    assert "old:1" in preview
    studio.post(
        "/memories/compact/", {"kind": "age", "days": "30", "owner": owner}, target="dialog"
    )
    work()
    summary = Memory.objects.get(pk=Compaction.objects.get().summary_ids[0])
    for line in summary.content.splitlines():
        assert line in preview


def test_a_compaction_can_be_undone_from_its_notice(
    studio: Studio, old: list[Memory], work: Work
) -> None:
    studio.post("/memories/compact/", {"kind": "age", "days": "30"}, target="dialog")
    work()
    job = Job.objects.get(kind="compact")
    body = studio.text(f"/jobs/{job.pk}/", target=f"job-{job.pk}")
    made = Compaction.objects.get()
    assert f"/compactions/{made.pk}/undo/" in body
    answer = studio.post(f"/compactions/{made.pk}/undo/", target="memories-main")
    assert "2 memories are back" in answer.content.decode()
    assert not Memory.objects.filter(archived_at__isnull=False).exists()
    again = studio.post(f"/compactions/{made.pk}/undo/", target="memories-main")
    assert again.status_code == 409


def test_a_compaction_to_a_budget_shows_both_texts(
    studio: Studio, alice: Principal, remember: Remember
) -> None:
    remember(alice, "One. Two. Three. Four. Five.", key="long")
    remember(alice, "Newest.", key="new")
    owner = str(ApiKey.objects.get(name="alice").uid)
    body = studio.text(
        f"/memories/compact/?kind=tokens&max_tokens=3&owner={owner}", target="dialog"
    )
    assert "Memories that will be shortened" in body
    assert "<ins>" in body


def test_nothing_to_compact_says_so(studio: Studio, alice: Principal) -> None:
    assert "Nothing to compact" in studio.text("/memories/compact/", target="dialog")


def test_bounds_of_a_compaction_are_said_at_the_field(studio: Studio) -> None:
    response = studio.get("/memories/compact/?kind=age&days=400", target="dialog")
    assert response.status_code == 422
    assert 'id="compact-days_error"' in response.content.decode()
