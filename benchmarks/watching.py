"""``make bench ARGS=watching``: what counting, tracing and webhooks cost a request."""

from __future__ import annotations

import os
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import django

TURNS = 600
MEMORIES = 500
COUNTER = "memory.observing.Observing"


def main() -> None:
    """Measure on a SQLite file; with ``DATABASE_URL`` on that (empty) database."""
    with tempfile.TemporaryDirectory(prefix="memory-studio-bench-") as home:
        os.environ |= {
            "MEMORY_STUDIO_HOME": home,
            "MEMORY_STUDIO_SECRET_KEY": secrets.token_urlsafe(48),
            "DJANGO_SETTINGS_MODULE": "memstudio.settings",
        }
        django.setup()
        from django.core.management import call_command
        from django.test.utils import setup_test_environment

        setup_test_environment()
        call_command("migrate", verbosity=0)
        _measure()


def _measure() -> None:
    from memory.principal import SYSTEM
    from memory.services import exchange, keys

    _key, secret = keys.create(SYSTEM, "bench", scopes=("read", "write", "manage"))
    records = [{"content": f"note {n} of green tea", "key": f"k{n}"} for n in range(MEMORIES)]
    exchange.import_records(keys.authenticate(secret), records, owner=None)
    body = {"query": "green tea", "strategy": "exact"}
    searches = {
        "a search, neither counted nor traced": _asking(secret, body, counted=False),
        "a search, counted for /metrics": _asking(secret, body),
        "a search, counted and traced": _traced(_asking(secret, body)),
    }
    _tell(_in_turn(searches))
    hook = _webhook()
    writes = {
        "a write, no webhook": _quiet(hook, _storing(secret)),
        "a write, one webhook": _heard(hook, _storing(secret)),
    }
    _tell(_in_turn(writes))
    _tell(_in_turn({"a scrape of /metrics": _asking(secret, None, path="/metrics")}))


def _asking(
    secret: str,
    body: dict[str, Any] | None,
    *,
    counted: bool = True,
    path: str = "/api/memory/retrieve-preview",
) -> Callable[[], object]:
    """A request through every middleware, or every one but that which counts."""
    from django.conf import settings
    from django.test import Client, override_settings

    client = Client(headers={"Authorization": f"Bearer {secret}"})
    kept = [name for name in settings.MIDDLEWARE if counted or name != COUNTER]

    def ask() -> object:
        if body is None:
            return client.get(path)
        return client.post(path, body, content_type="application/json")

    with override_settings(MIDDLEWARE=kept):
        # A client keeps the middleware of its first request.
        ask()
    return ask


def _storing(secret: str) -> Callable[[], object]:
    from django.test import Client

    client = Client(headers={"Authorization": f"Bearer {secret}"})
    count = iter(range(10**9))

    def store() -> object:
        body = {"content": f"another note {next(count)}", "key": secrets.token_hex(8)}
        return client.post("/api/memory", body, content_type="application/json")

    return store


def _traced(ask: Callable[[], object]) -> Callable[[], object]:
    """The same with spans that are batched and thrown away."""
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import (
        BatchSpanProcessor,
        SpanExporter,
        SpanExportResult,
    )

    from engine import spans
    from memory import tracing

    class Discarded(SpanExporter):
        def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
            return SpanExportResult.SUCCESS

    recorder = tracing.OpenTelemetry(tracing.provider(BatchSpanProcessor(Discarded())))

    def traced() -> object:
        spans.install(recorder)
        try:
            return ask()
        finally:
            spans.install(None)

    return traced


def _webhook() -> Any:
    from memory.principal import SYSTEM
    from memory.services.webhooks import hooks

    return hooks.create(SYSTEM, hooks.WebhookDraft("bench", "http://127.0.0.1:1/"))[0]


def _heard(hook: Any, store: Callable[[], object]) -> Callable[[], object]:
    return _switched(hook, store, is_enabled=True)


def _quiet(hook: Any, store: Callable[[], object]) -> Callable[[], object]:
    return _switched(hook, store, is_enabled=False)


def _switched(hook: Any, store: Callable[[], object], *, is_enabled: bool) -> Callable[[], object]:
    from memory import subscriptions
    from memory.models import Webhook

    def prepared() -> object:
        Webhook.objects.filter(pk=hook.pk).update(is_enabled=is_enabled)
        subscriptions.reset()
        subscriptions.current()
        with _clock():
            return store()

    return prepared


_took: list[float] = []


@contextmanager
def _clock() -> Iterator[None]:
    began = time.perf_counter()
    yield
    _took[:] = [time.perf_counter() - began]


def _in_turn(work: dict[str, Callable[[], object]]) -> dict[str, list[float]]:
    """Microseconds of each; one after another, so that noise is shared."""
    taken: dict[str, list[float]] = {name: [] for name in work}
    for _turn in range(TURNS):
        for name, do in work.items():
            _took.clear()
            began = time.perf_counter()
            do()
            whole = time.perf_counter() - began
            taken[name].append((_took[0] if _took else whole) * 1e6)
    return taken


def _tell(measured: dict[str, list[float]]) -> None:
    first = statistics.median(next(iter(measured.values())))
    for name, times in measured.items():
        middle = statistics.median(times)
        print(f"{name:40} p50 {middle:6.0f} µs   × {middle / first:.3f}")
