"""Spans as OpenTelemetry's; imported only where there is an exporter."""

from typing import Unpack

from opentelemetry.context import Context
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    TracerProvider,
    set_span_in_context,
)
from opentelemetry.trace import Span as OpenTelemetrySpan
from opentelemetry.trace import Tracer as OpenTelemetryTracer

from aileron_core.tracing.spans import Facts, RemoteSpan, Span, Tracer

_NAMES = {
    "action": "aileron.action",
    "run": "aileron.run",
    "session": "aileron.session",
    "decision": "aileron.decision",
    "state": "aileron.state",
    "status": "http.response.status_code",
}


class ExportedTracer(Tracer):
    """Begins spans of *provider*."""

    def __init__(self, provider: TracerProvider, version: str) -> None:
        self._tracer = provider.get_tracer("aileron", version)

    def begin(self, name: str, parent: RemoteSpan | None, **facts: Unpack[Facts]) -> Span:
        # An empty context: whatever span another library has opened is not the parent.
        context = Context() if parent is None else _context(parent)
        return _ExportedSpan(self._tracer, name, context, facts)


class _ExportedSpan(Span):
    """A span; its children say which action, run and session they are of as well."""

    def __init__(
        self, tracer: OpenTelemetryTracer, name: str, context: Context, facts: Facts
    ) -> None:
        self._tracer = tracer
        self._facts = facts
        self._span: OpenTelemetrySpan = tracer.start_span(
            f"aileron.{name}", context, attributes=_attributes(facts)
        )

    def child(self, name: str, **facts: Unpack[Facts]) -> Span:
        context = set_span_in_context(self._span, Context())
        return _ExportedSpan(self._tracer, name, context, {**self._facts, **facts})

    def end(self, **facts: Unpack[Facts]) -> None:
        if self._span.is_recording():
            self._span.set_attributes(_attributes(facts))
            self._span.end()


def _context(parent: RemoteSpan) -> Context:
    flags = TraceFlags(TraceFlags.SAMPLED)
    remote = SpanContext(parent.trace_id, parent.span_id, is_remote=True, trace_flags=flags)
    return set_span_in_context(NonRecordingSpan(remote), Context())


def _attributes(facts: Facts) -> dict[str, str | int]:
    values = {name: facts.get(key) for key, name in _NAMES.items()}
    return {name: value for name, value in values.items() if isinstance(value, str | int)}
