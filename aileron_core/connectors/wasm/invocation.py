"""The state of one run of a guest: its output, its count of requests, and what stops it at a limit."""

import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from aileron_core.clock import Clock
from aileron_core.connectors.capability_checks import READ_METHODS
from aileron_core.connectors.http.call import AnswerMeaning, OutgoingCall
from aileron_core.connectors.http.scrubber import Scrubber
from aileron_core.connectors.manifest import Manifest
from aileron_core.connectors.protocol import Credential, Limits
from aileron_core.connectors.wasm.scheduling import EpochTicker, GuestSemaphore
from aileron_core.errors import OpFailed

StopReason: TypeAlias = Literal[
    "wall", "requests", "cancelled", "closing", "person", "stopped", "fault"
]
GuestEnding: TypeAlias = Literal["returned", "exited", "trapped", "not_started"]

SLICE_SECONDS: Final = 0.05
"""How long a run keeps its turn on the processor while others want one."""
_GIL_HELD_SECONDS: Final = 0.0003
_GIL_RELEASED_SECONDS: Final = 0.00005

UNKNOWN_EXIT_CODE: Final = -1
"""Stands for an exit code above 125, which wasmtime does not report exactly."""


class GuestStopped(Exception):
    """The run has to end while the host processes the guest's data; `stop_reason` says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuestExit:
    """How the guest itself ended."""

    ending: GuestEnding
    code: int = 0
    message: str = ""
    memory_bytes: int = 0
    """The size of its memory at the end."""


class Invocation:
    """State of one run. It belongs to the guest's thread; others only call `stop`.

    Args:
        op: which op runs, for the reads by POST that are accepted of it alone.
        hosts: those of its hosts that this run may reach.
        read_only: a preview: only GET, HEAD and the accepted reads by POST may be sent.
        accepted_reads: what a person accepted as reads by POST (`posted_reads`).
        credential: what is added to the requests that name its kind.
        on_request: called before the first byte of each request may be sent.
        deadline: monotonic seconds at which the run is over.
        secrets: returns the strings in the arguments, redacted from what the guest logs.
        stop_count_at_start: how many times all guests had been stopped when it was called.
    """

    def __init__(
        self,
        *,
        manifest: Manifest,
        op: str = "",
        hosts: tuple[str, ...],
        limits: Limits,
        read_only: bool,
        on_request: Callable[[], None] | None,
        clock: Clock,
        slots: GuestSemaphore,
        ticker: EpochTicker,
        deadline: float,
        accepted_reads: Collection[str] = (),
        credential: Credential | None = None,
        secrets: Callable[[], frozenset[str]] = frozenset,
        stop_count_at_start: int = 0,
    ) -> None:
        self.manifest = manifest
        self.op = op
        self.hosts = hosts
        self.limits = limits
        self.read_only = read_only
        self.accepted_reads = frozenset(accepted_reads) if read_only else None
        self.credential = credential
        self.scrubber = Scrubber(credential.secrets()) if credential is not None else None
        self.clock = clock
        self.deadline = deadline
        self.stop_count_at_start = stop_count_at_start
        self._on_request = on_request
        self._find_secrets = secrets
        self._secrets: list[str] | None = None
        self._slots = slots
        self._ticker = ticker
        self._in_guest = False
        self._holds_slot = False
        self._lock = threading.Lock()
        self._stop_reason: StopReason | None = None
        self._stop = threading.Event()
        self._call: OutgoingCall | None = None
        self.sleep_cut_short = False
        """Its last sleep was ended by what stops the run."""
        self.slice_end = 0.0
        self._release_gil_at = 0.0
        self.clock_base = clock.monotonic()
        self.stdout = bytearray()
        self.stdout_overflow = False
        self.stderr = bytearray()
        self.log_line_count = 0
        self.response: bytes | None = None
        self.response_status = -1
        self.last_status: int | None = None
        self.last_status_host = ""
        self.unanswered_host = ""
        self.hosts_asked: dict[str, None] = {}
        self.refused_reads: dict[str, None] = {}
        self.requests_attempted = 0
        self.requests_sent = 0
        self.writes_sent = 0
        self.writes_answered = 0
        self.writes_refused = 0
        self.writes_unsettled = 0
        self.writes_deferred = 0
        self._last_is_deferral = self._last_write_is_deferral = False
        self.host_error: OpFailed | None = None
        """The true cause of the last failed host call; a later success clears it."""

    @property
    def stop_reason(self) -> StopReason | None:
        return self._stop_reason

    def stop(self, reason: StopReason) -> None:
        """Stop the guest wherever it is; callable from any thread. The first reason stays."""
        with self._lock:
            if self._stop_reason is None:
                self._stop_reason = reason
            call = self._call
        self._stop.set()
        if call is not None:
            call.stop()

    def must_stop(self) -> bool:
        """Check the deadline, and tell whether the run has to end."""
        if self._stop_reason is None and self.clock.monotonic() >= self.deadline:
            self.stop("wall")
        return self._stop_reason is not None

    def sleep(self, seconds: float) -> None:
        """Wait on behalf of the guest, at most until the deadline."""
        left = self.deadline - self.clock.monotonic()
        self._stop.wait(max(0.0, min(seconds, left)))
        if seconds >= left:
            self.stop("wall")  # also where the wait ended a moment early: it is not to go on
        # It wakes before the time that it asked for, and must not pass that off as an answer.
        self.sleep_cut_short = self.must_stop()

    def enter_guest(self) -> None:
        """Wait for a turn on the processor; continues without one only if the run is over."""
        self._holds_slot = self._slots.acquire(self.must_stop)
        self._ticker.add_guest()
        self._in_guest = True
        self._release_gil_at = self.clock.monotonic() + _GIL_HELD_SECONDS

    def leave_guest(self) -> None:
        """Give up the turn while the guest waits for something."""
        if self._in_guest:
            self._in_guest = False
            self._ticker.remove_guest()
        if self._holds_slot:
            self._holds_slot = False
            self._slots.release()

    def yield_slot(self) -> None:
        """Give another guest the slot if one waits for it."""
        if self._holds_slot and self._slots.has_waiters:
            self.leave_guest()
            self.enter_guest()

    def yield_control(self) -> None:
        """Let other threads run between two slices of the host's work for the guest.

        Raises:
            GuestStopped: the run has to end; this work counts against its time.
        """
        if self.must_stop():
            raise GuestStopped
        self.release_gil()
        now = self.clock.monotonic()
        if now >= self.slice_end:
            self.yield_slot()
            self.slice_end = self.clock.monotonic() + SLICE_SECONDS

    def release_gil(self) -> None:
        """Release the interpreter lock for a moment if it was held for a while.

        A waiting thread requests it only after a while, and another call may take it a dozen times
        first, so it is released without a request.
        """
        if self.clock.monotonic() >= self._release_gil_at:
            time.sleep(_GIL_RELEASED_SECONDS)
            self._release_gil_at = self.clock.monotonic() + _GIL_HELD_SECONDS

    def open_call(self) -> OutgoingCall:
        """Start one HTTP call of the host's, limited by its own timeout and the run's deadline."""
        now = self.clock.monotonic()
        until = min(now + self.limits.http_seconds, self.deadline)
        call = OutgoingCall(self.clock, until, self._sending, self._answered)
        with self._lock:
            self._call = call
        if self._stop_reason is not None:
            call.stop()
        return call

    def close_call(self) -> None:
        """End the current HTTP call, and note which host did not respond."""
        with self._lock:
            if self._call is not None:
                self.unanswered_host = self._call.outstanding_host
                self.writes_refused -= self._call.became_get  # that was how it was taken
            self._call = None

    def count_request(self) -> bool:
        """Count a request of the guest's; beyond the limit, stop the run and return False."""
        self.requests_attempted += 1
        if self.requests_attempted > self.limits.requests:
            self.stop("requests")
        return self.requests_attempted <= self.limits.requests

    @property
    def stdout_room(self) -> int:
        """How many more bytes of output are accepted."""
        return self.limits.stdout_bytes - len(self.stdout)

    @property
    def stderr_room(self) -> int:
        """How many more bytes of stderr are stored: its beginning, where the cause usually is."""
        return self.limits.stderr_bytes - len(self.stderr)

    def redact(self, text: str) -> str:
        if self._secrets is None:
            # Longest first, so that no text hides a part of a longer one.
            self._secrets = sorted(filter(None, self._find_secrets()), key=len, reverse=True)
        for secret in self._secrets:
            text = text.replace(secret, "[argument]")
        return text

    @property
    def is_deferred(self) -> bool:
        """Whether its last answer, or that to its last write, says that the service may have room later."""
        return self._last_is_deferral or self._last_write_is_deferral

    def _answered(self, method: str, place: str, said: AnswerMeaning) -> None:
        self.last_status_host = place
        self._last_is_deferral = said.is_deferral
        if method not in READ_METHODS:
            self.writes_answered += 1
            self.writes_refused += said.effect == "refused"
            self.writes_unsettled += said.effect == "unknown"
            self.writes_deferred += said.effect == "refused" and said.is_deferral
            self._last_write_is_deferral = said.is_deferral

    def _sending(self, method: str, place: str) -> None:
        # Counted first: whatever the listener does, the request counts as possibly sent.
        self.requests_sent += 1
        self.writes_sent += method not in READ_METHODS
        self.hosts_asked[place] = None
        if self._on_request is not None:
            self._on_request()
