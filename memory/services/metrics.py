"""``/metrics``: what this process has counted, and what the database holds, for Prometheus.

The library is imported by the first scrape. Counts of the database are kept for ten seconds, in
the cache that processes share, so that scraping costs next to nothing.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from django.db import DatabaseError
from django.db.models import Count, Min, Q

from memory import measured, remembered, subscriptions, wiring
from memory.clock import now
from memory.models import Job, Memory, Webhook, WebhookDelivery
from memory.principal import Principal
from memory.services import access, embedding

if TYPE_CHECKING:
    from prometheus_client.core import Metric

logger = logging.getLogger("memory.metrics")

PREFIX: Final = "memory_studio_"
CACHE: Final = "metrics.database"
KEPT_S: Final = 10

_lock = threading.Lock()


def exposition(principal: Principal | None, accept: str = "") -> tuple[bytes, str]:
    """The metrics in the form that a scraper accepts, and its content type.

    ``principal`` needs the scope ``manage``; None is who holds the token of the configuration.
    """
    if principal is not None:
        access.require(principal, "manage")
    from prometheus_client import CollectorRegistry, GCCollector, ProcessCollector
    from prometheus_client.exposition import choose_encoder

    registry = CollectorRegistry()
    registry.register(_Studio())
    ProcessCollector(registry=registry)
    GCCollector(registry=registry)
    encode, content_type = choose_encoder(accept)
    return encode(registry), content_type


class _Studio:
    """The collector that the library asks for everything of ours."""

    def collect(self) -> Iterator[Metric]:
        """Every family."""
        yield from _counted()
        yield from _held()


def database_counts() -> Mapping[str, Any]:
    """What the database holds, read every ten seconds at most."""
    kept = remembered.recall(CACHE)
    if kept is None:
        with _lock:
            kept = remembered.recall(CACHE)
            if kept is None:
                kept = _count()
                remembered.remember(CACHE, kept, KEPT_S)
    found: Mapping[str, Any] = kept
    return found


def _count() -> dict[str, Any]:
    coverage = embedding.coverage()
    jobs = Job.objects.order_by().values_list("kind", "state").annotate(count=Count("pk"))
    queued = Job.objects.filter(state=Job.State.QUEUED).aggregate(at=Min("created_at"))["at"]
    waiting = WebhookDelivery.objects.filter(state=WebhookDelivery.State.WAITING)
    due = waiting.aggregate(count=Count("pk"), at=Min("created_at"))
    failing = Q(is_enabled=True, failures__gt=0)
    hooks = Webhook.objects.aggregate(
        on=Count("pk", filter=subscriptions.serving() & ~failing),
        failing=Count("pk", filter=failing),
        off=Count("pk", filter=Q(is_enabled=False)),
    )
    live = Memory.objects.filter(archived_at__isnull=True, trashed_at__isnull=True)
    return {
        "memories": live.count(),
        "passages": coverage.passages,
        "waiting": coverage.pending,
        "failed": coverage.failed,
        "covered": coverage.indexed / coverage.passages if coverage.passages else 1,
        "jobs": [[kind, state, count] for kind, state, count in jobs],
        "queued_s": (now() - queued).total_seconds() if queued else 0,
        "hooks": hooks,
        "deliveries": due["count"],
        "delivery_s": (now() - due["at"]).total_seconds() if due["at"] else 0,
    }


def _counted() -> Iterator[Metric]:
    """What this process has counted and timed."""
    from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily

    for counter in measured.COUNTERS:
        family = CounterMetricFamily(PREFIX + counter.name, counter.text, labels=counter.labels)
        for labels, amount in sorted(counter.read().items()):
            family.add_metric(labels, amount)
        if not counter.labels and not counter.read():
            family.add_metric((), 0)
        yield family
    for timer in measured.TIMERS:
        spread_of = HistogramMetricFamily(PREFIX + timer.name, timer.text, labels=timer.labels)
        for labels, spread in sorted(timer.read().items()):
            spread_of.add_metric(labels, _summed(timer.buckets, spread.counts), spread.total)
        yield spread_of


def _summed(buckets: tuple[float, ...], counts: list[int]) -> list[tuple[str, float]]:
    """Buckets as Prometheus has them: each with everything below it."""
    rows: list[tuple[str, float]] = []
    total = 0
    for bound, count in zip((*(str(bound) for bound in buckets), "+Inf"), counts, strict=True):
        total += count
        rows.append((bound, total))
    return rows


def _cached() -> Iterator[Metric]:
    """The cache of query vectors of this process."""
    from prometheus_client.core import CounterMetricFamily

    source = wiring.resolve_source().source
    stats = source.stats if source is not None else None
    hits = CounterMetricFamily(
        f"{PREFIX}query_cache", "Look-ups of query vectors.", labels=("result",)
    )
    hits.add_metric(("hit",), stats.hits if stats else 0)
    hits.add_metric(("miss",), stats.misses if stats else 0)
    yield hits


def _held() -> Iterator[Metric]:
    """What needs the database, and whether it answers."""
    from prometheus_client.core import GaugeMetricFamily

    found: list[Metric] = []
    try:
        found = [*_cached(), *_gauges(database_counts())]
    except DatabaseError as error:
        logger.warning("the database did not answer a scrape: %s", type(error).__name__)
    yield GaugeMetricFamily(f"{PREFIX}database_up", "Whether it answers.", value=bool(found))
    yield from found


def _gauges(counts: Mapping[str, Any]) -> Iterator[Metric]:
    """What the database holds; the same from every process."""
    from prometheus_client.core import GaugeMetricFamily

    for name, key, text in (
        ("memories", "memories", "Live memories."),
        ("passages", "passages", "Indexed passages."),
        ("passages_waiting", "waiting", "Passages that wait for a vector."),
        ("passages_failed", "failed", "Passages whose embedding failed."),
        ("vector_coverage_ratio", "covered", "Share of the passages that have a vector."),
        ("jobs_oldest_queued_seconds", "queued_s", "Age of the oldest queued job."),
        ("webhook_deliveries_waiting", "deliveries", "Events that are still to be sent."),
        ("webhook_oldest_waiting_seconds", "delivery_s", "Age of the oldest of them."),
    ):
        yield GaugeMetricFamily(PREFIX + name, text, value=counts[key])
    jobs = GaugeMetricFamily(f"{PREFIX}jobs", "Rows of jobs.", labels=("kind", "state"))
    for kind, state, count in counts["jobs"]:
        jobs.add_metric((kind, state), count)
    yield jobs
    hooks = GaugeMetricFamily(f"{PREFIX}webhooks", "Webhooks.", labels=("state",))
    for state, count in counts["hooks"].items():
        hooks.add_metric((state,), count)
    yield hooks
