"""What an answer of a service says of the request that it answers: docs/states.md#what-an-answer-says."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final, Literal, TypeAlias

Effect: TypeAlias = Literal["accepted", "refused", "unknown"]
"""Of a request that may change something: it was taken, had no effect, or nobody knows."""

_OPEN: Final = frozenset({HTTPStatus.REQUEST_TIMEOUT})
_DEFERRED: Final = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE})
_AWS_THROTTLING: Final = re.compile(
    rb"Throttl|TooManyRequests|ThroughputExceeded|(Request|Bandwidth)LimitExceeded|SlowDown"
)
"""Of the errors that AWS's own clients repeat as throttling, those that are nothing else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerMeaning:
    """What the host knows of an answer, whatever the connector makes of it."""

    effect: Effect
    is_deferral: bool
    """The service says that it has no room now, and may have later."""


def meaning_of(status: int, headers: Iterable[tuple[bytes, bytes]]) -> AnswerMeaning:
    """Return what *status* and *headers* say; a redirect, that it had no effect where it ends there."""
    named = {name.lower(): value for name, value in headers}
    is_throttled = _AWS_THROTTLING.search(named.get(b"x-amzn-errortype", b"")) is not None
    return AnswerMeaning(
        effect=_effect(status, may_retry=bool(named.get(b"retry-after"))),
        is_deferral=status in _DEFERRED or is_throttled,
    )


def _effect(status: int, *, may_retry: bool) -> Effect:
    if 200 <= status < 300:
        return "accepted"
    is_refusal = 300 <= status < 500 and status not in _OPEN
    if is_refusal or status == HTTPStatus.NOT_IMPLEMENTED:
        return "refused"
    deferred = status == HTTPStatus.SERVICE_UNAVAILABLE and may_retry
    return "refused" if deferred else "unknown"
