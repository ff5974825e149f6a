"""Export of everything, import with a report, compaction with a preview and an undo."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from memory.clock import now
from memory.models import ApiKey, Compaction, Job, Memory
from memory.principal import Principal
from memory.tests.conftest import Remember, Work
from memory.tests.views.conftest import Studio


def upload(studio: Studio, text: str, *, target: str = "dialog", owner: str = "") -> object:
    file = SimpleUploadedFile("memories.json", text.encode())
    return studio.post("/memories/import/", {"file": file, "owner": owner}, target=target)


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


def test_an_import_reports_what_came_in_and_why_some_did_not(studio: Studio, work: Work) -> None:
    rows = [
        {"key": "a", "content": "first"},
        {"key": "b", "content": ""},
        {"key": "a", "content": "first again"},
    ]
    response = upload(studio, json.dumps(rows))
    assert "dialog-close" in response["HX-Trigger"]  # type: ignore[index]
    job = Job.objects.get(kind="import")
    running = studio.get(f"/jobs/{job.pk}/", target=f"job-{job.pk}")
    assert "every 700ms" in running.content.decode()
    work()
    done = studio.get(f"/jobs/{job.pk}/", target=f"job-{job.pk}")
    body = " ".join(done.content.decode().split())
    assert "hx-trigger" not in body
    assert done["HX-Trigger"] == "job-ended"
    assert "1 imported, 1 updated, 1 skipped" in body
    assert "Record 2:" in body


def test_an_import_without_a_file_is_refused_at_the_field(studio: Studio) -> None:
    response = studio.post("/memories/import/", {}, target="dialog")
    assert response.status_code == 422
    assert 'id="import-file_error"' in response.content.decode()


def test_a_job_has_a_page_of_its_own_without_javascript(studio: Studio) -> None:
    response = upload(studio, "[]", target="")
    job = Job.objects.get(kind="import")
    assert response["Location"] == f"/jobs/{job.pk}/"  # type: ignore[index]
    assert "Refresh" in studio.text(f"/jobs/{job.pk}/")


def test_an_import_can_be_cancelled_and_started_again(studio: Studio) -> None:
    upload(studio, "[]")
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
