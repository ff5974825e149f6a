"""``/api/memory/import`` and ``/api/memory/export``."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from engine.testing import exchange_files as files
from memory.models import ApiKey, Job, Memory, UploadPart
from memory.principal import SYSTEM, Principal
from memory.services import keys
from memory.tests.conftest import ApiClient, Remember, Work
from memory.tests.rest import refusal

Api = Callable[..., ApiClient]
ROWS = '[{"content": "a", "key": "k"}, {"content": ""}]'


def send(body: str | bytes, kind: str = "application/json", **query: Any) -> Any:
    """POST a file as the owner ``app``, which is made."""
    return _post(body, content_type=kind, query_params=query)


def _post(data: Any, **options: Any) -> Any:
    key = ApiKey.objects.filter(name="app").first()
    secret = keys.rotate(SYSTEM, "app")[1] if key else keys.create(SYSTEM, "app")[1]
    headers = {"Authorization": f"Bearer {secret}"}
    return Client().post("/api/memory/import", data, headers=headers, **options)


def test_a_body_is_imported_by_a_job_whose_result_is_the_report(
    first_start: None, work: Work
) -> None:
    response = send(ROWS)
    assert response.status_code == 202
    answer = response.json()
    assert answer["job"]["kind"] == "import"
    work()
    result = Job.objects.get(pk=answer["jobId"]).result
    assert (result["imported"], result["skipped"], result["dryRun"]) == (1, 1, False)
    assert result["problems"][0]["place"] == 2
    assert Memory.objects.get().api_key.name == "app"
    assert not UploadPart.objects.exists()


def test_a_dry_run_answers_the_report_with_a_sample(first_start: None) -> None:
    response = send(ROWS, dryRun="true")
    assert response.status_code == 200
    report = response.json()
    assert {name: report[name] for name in ("format", "dryRun", "total", "imported")} == {
        "format": "json",
        "dryRun": True,
        "total": 2,
        "imported": 1,
    }
    assert report["problems"] == [
        {"place": 2, "unit": "record", "file": "", "message": "There is no text in it."}
    ]
    assert [each["content"] for each in report["sample"]] == ["a"]
    assert not Memory.objects.exists()
    assert not Job.objects.exists()
    assert not UploadPart.objects.exists()


@pytest.mark.parametrize(
    "kind", ["application/json", "application/zip", "application/x-www-form-urlencoded", "odd/odd"]
)
def test_whatever_a_body_calls_itself_its_content_is_looked_at(
    first_start: None, kind: str
) -> None:
    assert send(files.openmemory(), kind, dryRun=True).json()["format"] == "openmemory"


def test_a_form_brings_its_options_beside_the_file(first_start: None, work: Work) -> None:
    file = SimpleUploadedFile("chat.json", json.dumps(files.claude()).encode())
    fields = {"file": file, "dryRun": "true", "assistant": "true", "format": "claude"}
    report = _post(fields).json()
    assert (report["format"], report["imported"], report["leftOut"]) == ("claude", 3, 1)
    file.seek(0)
    assert _post({"file": file, "assistant": "true"}).status_code == 202
    assert Job.objects.get(kind="import").params["name"] == "chat.json"
    work()
    assert Memory.objects.count() == 3


def test_a_note_is_told_by_the_name_of_its_file(first_start: None) -> None:
    file = SimpleUploadedFile("tea.md", b"# Tea\n\nGreen.")
    report = _post({"file": file, "dryRun": "true"}).json()
    assert (report["format"], report["imported"]) == ("markdown", 1)


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"format": "word"}, "format"),
        ({"dryRun": "perhaps"}, "dryRun"),
        ({"name": "x" * 201}, "name"),
    ],
)
def test_odd_options_are_refused_where_they_stand(
    first_start: None, query: dict[str, str], field: str
) -> None:
    assert field in refusal(send(ROWS, **query), 422, "invalid")["fields"]
    file = SimpleUploadedFile("a.json", b"[]")
    assert field in refusal(_post({"file": file, **query}), 422, "invalid")["fields"]


def test_nothing_is_no_file(first_start: None) -> None:
    assert "file" in refusal(send(b""), 422, "invalid")["fields"]
    assert "file" in refusal(_post({"format": "json"}), 422, "invalid")["fields"]
    empty = SimpleUploadedFile("a.json", b"")
    assert "file" in refusal(_post({"file": empty}), 422, "invalid")["fields"]


def test_a_file_that_cannot_be_read_is_refused(first_start: None) -> None:
    refusal(send(b"\xff\xfe\x00", dryRun="true"), 422, "invalid_utf8")
    refusal(send(b"PK\x03\x04", dryRun="true"), 422, "invalid_archive")


def test_a_body_over_the_limit_is_refused(first_start: None, settings: Any) -> None:
    settings.MEMORY_STUDIO_MAX_BODY_BYTES = 2_000_000
    refusal(send(b" " * 2_000_001), 413, "too_large")
    assert not UploadPart.objects.exists()


def test_only_a_manager_imports_for_others(api: Api, alice: Principal) -> None:
    ordinary, manager = api("app"), api("boss", "read", "write", "manage")
    refusal(ordinary.call("POST", "/api/memory/import", ROWS, apiKeyId="alice"), 403, "not_owner")
    refusal(
        ordinary.call("POST", "/api/memory/import", ROWS, apiKeyId="alice", dryRun="true"),
        403,
        "not_owner",
    )
    answer = manager.call("POST", "/api/memory/import", ROWS, apiKeyId="alice", dryRun="true")
    assert answer.json()["owners"] == {"alice": 1}
    reader = api("reader", "read")
    refusal(reader.call("POST", "/api/memory/import", ROWS), 403, "scope_missing")
    refusal(api().call("POST", "/api/memory/import", ROWS), 401, "unauthorized")


@pytest.mark.parametrize(
    ("kind", "content_type", "ending"),
    [
        ("json", "application/json", ".json"),
        ("jsonl", "application/x-ndjson", ".jsonl"),
        ("csv", "text/csv", ".csv"),
        ("markdown", "application/zip", ".zip"),
    ],
)
def test_an_export_is_a_file_of_its_format(
    api: Api, alice: Principal, remember: Remember, kind: str, content_type: str, ending: str
) -> None:
    remember(alice, "likes tea", key="drink")
    response = api("alice").call("GET", "/api/memory/export", format=kind)
    assert response.status_code == 200
    assert response["Content-Type"].startswith(content_type)
    assert response["Content-Disposition"].endswith(f'{ending}"')
    data = b"".join(response.streaming_content)
    if kind == "markdown":
        assert zipfile.ZipFile(io.BytesIO(data)).read("alice/drink.md").endswith(b"likes tea")
    else:
        assert b"likes tea" in data


def test_an_export_takes_the_filters_of_the_list(
    api: Api, alice: Principal, bob: Principal, remember: Remember
) -> None:
    remember(alice, "likes tea", key="a", type="semantic", metadata={"n": 1})
    remember(alice, "likes ink", key="b")
    remember(bob, "likes tea", key="c")
    client = api("alice")

    def exported(**query: str) -> list[str]:
        response = client.call("GET", "/api/memory/export", format="jsonl", **query)
        assert response.status_code == 200, response.content
        lines = b"".join(response.streaming_content).splitlines()
        return [json.loads(line)["key"] for line in lines]

    assert exported() == ["a", "b"]
    assert exported(apiKeyId="bob") == ["a", "b"]
    assert exported(type="semantic") == ["a"]
    assert exported(q="INK") == ["b"]
    assert exported(filters='{"n": {"gte": 1}}') == ["a"]
    assert exported(state="archived") == []


@pytest.mark.parametrize(
    "query",
    [{"format": "word"}, {"state": "odd"}, {"filters": "{"}, {"type": "odd"}, {"q": "x" * 2000}],
)
def test_an_export_that_cannot_be_is_refused(api: Api, query: dict[str, str]) -> None:
    response = api("app").call("GET", "/api/memory/export", **query)
    assert response.status_code == 422
    assert list(response.json()) == ["error"]
