"""What is traced, without OpenTelemetry: a span may say only what `Facts` has, which is no content.

Without a tracer every span is `NO_SPAN`, and costs an empty call.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict, Unpack

_TRACEPARENT = re.compile(r"00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}")


class Facts(TypedDict, total=False):
    """Everything that a span may say."""

    action: str
    run: str
    session: str
    decision: str
    """How it was decided (`aileron_core.runs.store.how_decided`)."""
    state: str
    status: int | None
    """The status of an HTTP answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteSpan:
    """A span of an agent's own trace, as the agent claims. It is the parent of others, and nothing else."""

    trace_id: int
    span_id: int


def remote_span(claimed: Sequence[object]) -> RemoteSpan | None:
    """Return the span that a `traceparent` of W3C's Trace Context, version 00, names.

    Its flags are not read: an agent does not decide whether its calls are traced.

    Args:
        claimed: each value that was sent; several name none.
    """
    if len(claimed) != 1 or not isinstance(claimed[0], str):
        return None
    if (match := _TRACEPARENT.fullmatch(claimed[0])) is None:
        return None
    trace_id, span_id = (int(digits, 16) for digits in match.groups())
    return RemoteSpan(trace_id=trace_id, span_id=span_id) if trace_id and span_id else None


class Span:
    """A span that is kept nowhere."""

    def child(self, name: str, **facts: Unpack[Facts]) -> "Span":
        """Begin a span below this one, which may have ended."""
        del name, facts
        return self

    def end(self, **facts: Unpack[Facts]) -> None:
        """End it; a second time is ignored."""

    def __enter__(self) -> "Span":
        return self

    def __exit__(self, *_error: object) -> None:
        self.end()


NO_SPAN = Span()


class Tracer:
    """Begins spans that are kept nowhere."""

    def begin(self, name: str, parent: RemoteSpan | None, **facts: Unpack[Facts]) -> Span:
        """Begin a span: of *parent*'s trace, or of a trace of its own."""
        del name, parent, facts
        return NO_SPAN


NO_TRACER = Tracer()
