"""OpenTelemetry: spans go to the collector that the environment names. Imported only where one is.

The provider is ours alone and not the process's: libraries that would write texts into spans of
their own find none.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from django.conf import settings

from engine import spans
from engine.spans import Opening, Span, Value

if TYPE_CHECKING:
    from opentelemetry import trace
    from opentelemetry.sdk.trace import SpanProcessor, TracerProvider

NAME: Final = "memory-studio"
FLUSH_WITHIN_S: Final = 1.0


def start_if_configured() -> None:
    """Record spans where the environment names a collector; otherwise import nothing."""
    if settings.MEMORY_STUDIO_TRACING and not spans.is_on():
        start()


def start() -> None:
    """Send spans to the collector, in batches, by OTLP over HTTP."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    spans.install(OpenTelemetry(provider(BatchSpanProcessor(OTLPSpanExporter()))))


def provider(processor: SpanProcessor) -> TracerProvider:
    """What makes spans, named as the environment says (``OTEL_SERVICE_NAME``)."""
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider

    made = TracerProvider(resource=Resource.create({"service.name": settings.OTEL_SERVICE_NAME}))
    made.add_span_processor(processor)
    return made


class OpenTelemetry:
    """The recorder (``engine.spans.Recorder``) that makes spans of OpenTelemetry."""

    def __init__(self, provider: TracerProvider) -> None:
        from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

        self.provider = provider
        self._tracer = provider.get_tracer(NAME)
        self._propagator = TraceContextTextMapPropagator()

    @contextmanager
    def open(self, opening: Opening) -> Iterator[Span]:
        """A span; an exception that leaves it is noted by its class, since messages hold texts."""
        from opentelemetry.trace import SpanKind

        parent = {"traceparent": opening.parent}
        with self._tracer.start_as_current_span(
            opening.name,
            context=self._propagator.extract(parent) if opening.parent else None,
            kind=SpanKind[opening.kind.upper()],
            attributes=opening.attributes,
            record_exception=False,
            set_status_on_exception=False,
        ) as made:
            one = _Span(made)
            try:
                yield one
            except Exception as error:
                one.failed(str(getattr(error, "code", type(error).__name__)))
                raise

    def past(self, name: str, started_ns: int, ended_ns: int) -> None:
        """A span that has ended, inside the one that is open."""
        self._tracer.start_span(name, start_time=started_ns).end(end_time=ended_ns)

    def current(self) -> str:
        """The ``traceparent`` of the span that is open here; empty without one."""
        carrier: dict[str, str] = {}
        self._propagator.inject(carrier)
        return carrier.get("traceparent", "")


class _Span:
    def __init__(self, made: trace.Span) -> None:
        self._made = made

    def rename(self, name: str) -> None:
        """Give it the name that is known only now."""
        self._made.update_name(name)

    def set(self, name: str, value: Value) -> None:
        """Add an attribute."""
        self._made.set_attribute(name, value)

    def failed(self, code: str) -> None:
        """Mark it as failed."""
        from opentelemetry.trace import StatusCode

        self._made.set_attribute("error.type", code)
        self._made.set_status(StatusCode.ERROR)


class Flusher:
    """A service of the server: sends the last spans before the process ends."""

    def __init__(self, within_s: float = FLUSH_WITHIN_S) -> None:
        self._within_s = within_s

    def start(self) -> None:
        """Nothing."""

    def stop(self) -> None:
        """Send what waits. A collector that does not answer holds nobody up for long."""
        recorder = spans.recorder()
        if isinstance(recorder, OpenTelemetry):
            # The SDK goes on trying whatever limit it is given.
            flush = threading.Thread(target=recorder.provider.force_flush, daemon=True)
            flush.start()
            flush.join(self._within_s)
