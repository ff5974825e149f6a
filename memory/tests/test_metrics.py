"""``/metrics`` is what Prometheus reads, for whoever may, and tells nothing of anybody."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from prometheus_client.openmetrics.parser import (
    text_string_to_metric_families as open_families,
)
from prometheus_client.parser import text_string_to_metric_families

from memory import jobs, measured
from memory.principal import SCOPES, Principal
from memory.services import metrics
from memory.services.webhooks import hooks
from memory.tests.asking import ask
from memory.tests.conftest import Remember, Work

pytestmark = pytest.mark.django_db

Api = Callable[..., Any]
Samples = dict[str, dict[tuple[tuple[str, str], ...], float]]


@pytest.fixture(autouse=True)
def fresh_counts() -> Iterator[None]:
    """No count survives a test."""
    measured.clear()
    yield
    measured.clear()


@pytest.fixture
def scrape(settings: Any) -> Callable[[], Samples]:
    """The samples by name and labels, read by the library's own parser."""
    settings.MEMORY_STUDIO_METRICS_TOKEN = "scraper"

    def read() -> Samples:
        response = Client().get("/metrics", headers={"Authorization": "Bearer scraper"})
        assert response.status_code == 200, response.content
        found: Samples = {}
        for family in text_string_to_metric_families(response.content.decode()):
            for sample in family.samples:
                labels = tuple(sorted(sample.labels.items()))
                found.setdefault(sample.name, {})[labels] = sample.value
        return found

    return read


def _labels(**labels: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(labels.items()))


def test_requests_are_counted_by_the_pattern_of_their_address(
    api: Api, scrape: Callable[[], Samples]
) -> None:
    client = api("alice")
    made = client.call("POST", "/api/memory", {"content": "likes tea", "key": "k"}).json()
    for _time in range(2):
        client.call("GET", f"/api/memory/{made['id']}")
    client.call("GET", "/api/memory/00000000-0000-4000-8000-000000000000")
    client.call("GET", "/nothing/here")
    client.call("BREW", "/api/memory")
    found = scrape()
    requests = found["memory_studio_http_requests_total"]
    route = "/api/memory/<memory_id>"
    assert requests[_labels(method="GET", route=route, status="200")] == 2
    assert requests[_labels(method="GET", route=route, status="404")] == 1
    assert requests[_labels(method="GET", route="(none)", status="404")] == 1
    assert requests[_labels(method="other", route="/api/memory", status="405")] == 1
    times = found["memory_studio_http_request_duration_seconds_bucket"]
    assert times[_labels(method="GET", route=route, le="+Inf")] == 3
    assert found["memory_studio_http_request_duration_seconds_count"][
        _labels(method="GET", route=route)
    ] == pytest.approx(3)


def test_retrievals_are_timed_by_tier_and_stage(
    alice: Principal, remember: Remember, scrape: Callable[[], Samples]
) -> None:
    remember(alice, "likes tea")
    ask(alice, "tea")
    ask(alice, "coffee")
    found = scrape()
    assert found["memory_studio_retrievals_total"] == {
        _labels(tier="keyword", outcome="hits"): 1,
        _labels(tier="keyword", outcome="empty"): 1,
    }
    stages = found["memory_studio_retrieval_stage_duration_seconds_count"]
    assert stages[_labels(stage="keyword")] == 2
    assert found["memory_studio_retrieval_duration_seconds_count"][_labels(tier="keyword")] == 2


def test_what_waits_is_told(
    alice: Principal, remember: Remember, work: Work, scrape: Callable[[], Samples]
) -> None:
    hooks.create(alice, hooks.WebhookDraft("app", "https://receiver.example/"))
    remember(alice, "likes tea")
    found = scrape()
    assert found["memory_studio_jobs"][_labels(kind="reindex", state="queued")] == 1
    assert found["memory_studio_memories"][()] == 1
    assert found["memory_studio_webhooks"][_labels(state="on")] == 1
    assert found["memory_studio_webhook_deliveries_waiting"][()] == 1
    assert found["memory_studio_database_up"][()] == 1
    hooks.remove(alice, hooks.list_hooks(alice)[0].pk)
    work()
    cache.clear()
    found = scrape()
    assert found["memory_studio_vector_coverage_ratio"][()] == 1
    assert found["memory_studio_jobs"][_labels(kind="reindex", state="succeeded")] == 1


def test_jobs_are_timed_where_they_run(
    alice: Principal,
    scrape: Callable[[], Samples],
    django_capture_on_commit_callbacks: Callable[..., Any],
) -> None:
    job = jobs.enqueue(jobs.Order("count"), dispatch=False)
    with django_capture_on_commit_callbacks(execute=True):
        jobs.run(job.pk, {"count": lambda context: {}})
    found = scrape()
    ended = _labels(kind="count", state="succeeded")
    assert found["memory_studio_jobs_ended_total"] == {ended: 1}
    assert found["memory_studio_job_duration_seconds_count"][_labels(kind="count")] == 1


def test_what_the_documentation_names_is_there(scrape: Callable[[], Samples]) -> None:
    jobs.enqueue(jobs.Order("count"), dispatch=False)
    measured.request("GET", "/", 200, 0.1)
    measured.RETRIEVALS.add("hybrid", "hits")
    for timer in (measured.RETRIEVAL_TIME, measured.STAGE_TIME, measured.JOB_TIME):
        timer.add("x", seconds=1)
    measured.DEGRADED.add("vector", "loading")
    measured.JOBS_ENDED.add("reindex", "failed")
    measured.WEBHOOK_ATTEMPTS.add("sent")
    page = (Path(settings.BASE_DIR) / "docs" / "monitoring.md").read_text(encoding="utf-8")
    named = set(re.findall(r"memory_studio_[a-z_]+", page))
    ours = {name for name in scrape() if name.startswith("memory_studio_")}
    assert len(named) > 10
    known = ours | {name.rsplit("_", 1)[0] for name in ours}
    assert named - known == set()


def test_tokens_that_go_into_chats_are_counted(scrape: Callable[[], Samples]) -> None:
    assert scrape()["memory_studio_injected_tokens_total"][()] == 0
    measured.injected_tokens(120)
    measured.injected_tokens(30)
    assert scrape()["memory_studio_injected_tokens_total"][()] == 150


def test_no_owner_id_or_text_is_told(
    alice: Principal, remember: Remember, scrape: Callable[[], Samples]
) -> None:
    memory = remember(alice, "a secret wish", session_id="sss-1")
    ask(alice, "wish")
    text = str(scrape())
    for word in ("alice", "wish", "sss-1", str(memory.pk), str(memory.api_key.uid)):
        assert word not in text


def test_a_second_scrape_asks_the_database_next_to_nothing(
    first_start: None, scrape: Callable[[], Samples]
) -> None:
    scrape()
    with CaptureQueriesContext(connection) as asked:
        scrape()
    assert len(asked) <= 2, [one["sql"] for one in asked]


def test_who_may_not_scrape_is_refused(api: Api, settings: Any) -> None:
    assert Client().get("/metrics").status_code == 401
    assert api("alice").call("GET", "/metrics").status_code == 403
    assert api("boss", *SCOPES).call("GET", "/metrics").status_code == 200
    for token in ("", "wrong", "ms_wrong", "\u00ff"):
        header = {"Authorization": f"Bearer {token}"}
        assert Client().get("/metrics", headers=header).status_code == 401
    settings.MEMORY_STUDIO_METRICS_TOKEN = "scraper"
    assert Client().get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert Client().post("/metrics").status_code in (403, 405)
    signed_in = Client()
    signed_in.force_login(User.objects.get(username="studio"))
    assert signed_in.get("/metrics").status_code == 200


def test_open_metrics_is_spoken_where_it_is_asked_for(first_start: None) -> None:
    accept = "application/openmetrics-text; version=1.0.0"
    body, content_type = metrics.exposition(None, accept)
    assert content_type.startswith("application/openmetrics-text")
    parsed = open_families(body.decode())  # type: ignore[no-untyped-call]
    names = {family.name for family in parsed}
    assert {"memory_studio_jobs", "memory_studio_http_requests", "memory_studio_passages"} <= names


def test_buckets_hold_everything_below_them() -> None:
    timer = measured.Timer("t", "", ("a",), (0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 7.0):
        timer.add("x", seconds=seconds)
    spread = timer.read()[("x",)]
    assert spread.counts == [2, 1, 1]
    assert spread.total == pytest.approx(7.65)
