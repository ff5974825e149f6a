"""Spans tell what took how long, from a request to its jobs and outbound requests, and no text."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.conf import settings
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from engine import spans
from engine.testing.fake_provider import Answer, serving
from memory import jobs, tracing
from memory.models import Job
from memory.principal import SCOPES
from memory.tests.conftest import Work
from memory.tests.receiver import receiving

pytestmark = pytest.mark.django_db

Api = Callable[..., Any]
PARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


@pytest.fixture
def kept() -> Iterator[InMemorySpanExporter]:
    """Every span of the test, as the SDK's own exporter keeps them."""
    exporter = InMemorySpanExporter()
    made = tracing.provider(SimpleSpanProcessor(exporter))
    spans.install(tracing.OpenTelemetry(made))
    yield exporter
    spans.install(None)
    made.shutdown()


def _by_name(kept: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in kept.get_finished_spans()}


def _is_child(child: ReadableSpan, parent: ReadableSpan) -> bool:
    context = parent.get_span_context()
    return (
        child.parent is not None and context is not None and child.parent.span_id == context.span_id
    )


def test_a_search_is_a_request_with_its_stages(api: Api, kept: InMemorySpanExporter) -> None:
    client = api("alice")
    client.call("POST", "/api/memory", {"content": "likes tea", "key": "drink"})
    kept.clear()
    body = {"query": "tea", "strategy": "exact"}
    assert client.call("POST", "/api/memory/retrieve-preview", body).status_code == 200
    found = _by_name(kept)
    request = found["POST /api/memory/retrieve-preview"]
    assert request.attributes is not None
    assert request.attributes["http.response.status_code"] == 200
    assert _is_child(found["retrieve"], request)
    assert _is_child(found["retrieve.keyword"], found["retrieve"])
    retrieve, keyword = found["retrieve"], found["retrieve.keyword"]
    assert retrieve.start_time is not None
    assert keyword.start_time is not None
    assert keyword.end_time is not None
    assert retrieve.start_time <= keyword.start_time <= keyword.end_time
    assert dict(retrieve.attributes or {}) == {
        "retrieval.mode": "keyword",
        "retrieval.purpose": "preview",
        "retrieval.tier": "keyword",
        "retrieval.hits": 1,
    }


def test_a_job_belongs_to_the_request_that_ordered_it(
    api: Api, kept: InMemorySpanExporter, work: Work
) -> None:
    api("alice").call("POST", "/api/memory", {"content": "likes tea", "key": "drink"})
    request = _by_name(kept)["POST /api/memory"].get_span_context()
    assert request is not None
    assert Job.objects.get(kind="reindex").traceparent.split("-")[1] == f"{request.trace_id:032x}"
    work()
    job = _by_name(kept)["job reindex"]
    context = job.get_span_context()
    assert context is not None
    assert context.trace_id == request.trace_id
    assert (job.attributes or {})["job.attempt"] == 1


def test_an_outbound_request_tells_the_host_and_not_the_path(
    api: Api, kept: InMemorySpanExporter, work: Work
) -> None:
    with receiving() as receiver:
        client = api("boss", *SCOPES)
        made = client.call("POST", "/api/webhooks", {"name": "app", "url": receiver.url}).json()
        receiver.secret = made["secret"]
        client.call("POST", "/api/memory", {"content": "likes tea", "key": "drink"})
        work()
    found = _by_name(kept)
    assert _is_child(found["POST"], found["job webhook"])
    assert dict(found["POST"].attributes or {}) == {
        "http.request.method": "POST",
        "server.address": "127.0.0.1",
        "server.port": receiver.provider.port,
        "http.response.status_code": 204,
    }


def test_a_trace_that_comes_from_outside_goes_on_here(api: Api, kept: InMemorySpanExporter) -> None:
    from django.test import Client

    Client().get("/api/memory", headers={"traceparent": PARENT})
    Client().get("/api/keys", headers={"traceparent": "nonsense"})
    first = _by_name(kept)["GET /api/memory"]
    context = first.get_span_context()
    assert context is not None
    assert f"{context.trace_id:032x}" == PARENT.split("-")[1]
    assert _by_name(kept)["GET /api/keys"].parent is None


def test_spans_hold_no_text_no_id_and_no_message(
    api: Api, kept: InMemorySpanExporter, work: Work
) -> None:
    client = api("alice")
    body = {"content": "a secret wish", "key": "dream", "sessionId": "sss-1"}
    memory = client.call("POST", "/api/memory", body).json()["id"]
    client.call("POST", "/api/memory/retrieve-preview", {"query": "wish"})
    client.call("GET", f"/api/memory/{memory}")
    client.call("GET", "/the/secret/wish")
    with pytest.raises(ValueError, match="wish"), spans.span("breaks"):
        raise ValueError("a secret wish")
    work()
    text = "\n".join(span.to_json() for span in kept.get_finished_spans())
    for word in ("wish", "dream", "sss-1", memory, "alice"):
        assert word not in text
    assert (_by_name(kept)["breaks"].attributes or {})["error.type"] == "ValueError"


def test_a_job_that_fails_marks_its_span(kept: InMemorySpanExporter) -> None:
    def fail(_context: jobs.JobContext) -> dict[str, Any]:
        raise ZeroDivisionError("a secret wish")

    job = jobs.enqueue(jobs.Order("count"), dispatch=False)
    jobs.run(job.pk, {"count": fail})
    span = _by_name(kept)["job count"]
    assert (span.attributes or {})["error.type"] == "ZeroDivisionError"
    assert not span.status.is_ok
    assert "wish" not in span.to_json()


def test_spans_reach_a_collector_by_otlp(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving() as collector:
        collector.respond = lambda request: Answer(200)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
        tracing.start()
        try:
            with spans.span("outer", attributes={"count": 2}), spans.span("inner"):
                pass
            tracing.Flusher().stop()
        finally:
            spans.install(None)
    request = collector.requests[0]
    assert (request.path, request.headers["content-type"]) == (
        "/v1/traces",
        "application/x-protobuf",
    )
    sent = ExportTraceServiceRequest.FromString(request.body).resource_spans[0]
    names = {pair.key: pair.value.string_value for pair in sent.resource.attributes}
    assert names["service.name"] == "memory-studio"
    found = [span.name for scope in sent.scope_spans for span in scope.spans]
    assert sorted(found) == ["inner", "outer"]


def test_a_collector_that_does_not_answer_holds_no_stop_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serving() as collector:
        collector.respond = lambda request: Answer(is_silent=True)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{collector.port}")
        tracing.start()
        recorder = spans.recorder()
        with spans.span("never taken"):
            pass
        began = time.monotonic()
        tracing.Flusher(within_s=0.05).stop()
        took_s = time.monotonic() - began
        spans.install(None)
        collector.release.set()
    assert isinstance(recorder, tracing.OpenTelemetry)
    recorder.provider.shutdown()
    assert took_s < 5


SCRIPT = """
import django
django.setup()
import sys
from engine import spans
import memstudio.urls, memory.tasks
print(spans.is_on(), "opentelemetry.sdk" in sys.modules)
"""


@pytest.mark.parametrize(
    ("variables", "answer"),
    [
        ({}, "False False"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9"}, "True True"),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_SDK_DISABLED": "true"},
            "False False",
        ),
    ],
    ids=["not configured", "configured", "switched off"],
)
def test_nothing_is_imported_where_nothing_is_configured(
    variables: dict[str, str], answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=settings.BASE_DIR,
    )
    assert done.stdout.strip() == answer, done.stderr
