"""What the gateway and `[gateway] inspect` are to each other, and what keeps a failure there from a stream."""

import logging
from typing import Protocol

from aileron_core.server.gateway.providers import Header

_log = logging.getLogger(__name__)


class AnswerCopy(Protocol):
    """Takes a copy of one answer after it was passed on. Nothing that it does comes back to the stream."""

    def begin(self, status: int, headers: list[Header]) -> bool:
        """Take the head; return whether the body is wanted."""
        ...

    def take(self, data: bytes) -> None: ...

    def end(self, outcome: str) -> None:
        """Note how the answer ended; nothing comes after it."""
        ...


class Inspector(Protocol):
    """What `aileron_core.server.inspection` is to the gateway."""

    def copy_of(self, session_id: str, method: bytes, path: bytes) -> AnswerCopy | None:
        """Return the copy of a request's answer; None if such an answer has no tool calls."""
        ...

    def close(self) -> None: ...


class SafeCopy:
    """A copy whose failures, whatever they are, stay its own: it is dropped, and the stream goes on."""

    def __init__(self, copy: AnswerCopy) -> None:
        self._copy: AnswerCopy | None = copy

    def begin(self, status: int, headers: list[Header]) -> bool:
        try:
            return self._copy is not None and self._copy.begin(status, headers)
        except Exception as error:  # noqa: BLE001 - nothing may come back to the stream
            self._drop(error)
            return False

    def take(self, data: bytes) -> None:
        try:
            if self._copy is not None:
                self._copy.take(data)
        except Exception as error:  # noqa: BLE001
            self._drop(error)

    def end(self, outcome: str) -> None:
        try:
            if self._copy is not None:
                self._copy.end(outcome)
        except Exception as error:  # noqa: BLE001
            self._drop(error)

    def _drop(self, error: Exception) -> None:
        self._copy = None
        # Type only: the message may quote what passed.
        _log.warning("inspecting a model's answer failed with %s", type(error).__name__)


def safe_copy(inspector: Inspector, session_id: str, method: bytes, path: bytes) -> SafeCopy | None:
    """Return the copy of a request's answer; None if such an answer has no tool calls."""
    copy = inspector.copy_of(session_id, method, path)
    return SafeCopy(copy) if copy is not None else None
