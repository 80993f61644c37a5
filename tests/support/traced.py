"""A tracer whose spans stay in this process."""

import json

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from aileron_core.tracing.opentelemetry import ExportedTracer

TRACE, PARENT = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
TRACEPARENT = f"00-{TRACE}-{PARENT}-00"
"""Of an agent's own trace, which is not sampled."""


class Traced:
    """What was traced, by the order in which it ended."""

    def __init__(self) -> None:
        self._exporter = InMemorySpanExporter()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self.tracer = ExportedTracer(provider, "0")

    @property
    def spans(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    @property
    def text(self) -> str:
        return "\n".join(json.dumps(json.loads(span.to_json())) for span in self.spans)

    def named(self, name: str) -> ReadableSpan:
        (span,) = (span for span in self.spans if span.name == name)
        return span


def is_child_of_the_agent(span: ReadableSpan) -> bool:
    """Return whether *span* is of the agent's trace, directly below the span that it named."""
    parent, ids = span.parent, (int(TRACE, 16), int(PARENT, 16))
    return parent is not None and (parent.trace_id, parent.span_id) == ids
