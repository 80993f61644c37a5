"""The result of an op from what its guest printed, its exit code or trap; which typed errors are kept."""

import re
from typing import Any, cast

from aileron_core.canonical import Json
from aileron_core.connectors.http.host_names import short_host
from aileron_core.connectors.protocol import (
    MAX_DEPTH,
    MIB,
    OpResult,
    is_deeper_than,
)
from aileron_core.connectors.stop_request import stopped_by_person
from aileron_core.connectors.wasm.invocation import (
    UNKNOWN_EXIT_CODE,
    GuestExit,
    GuestStopped,
    Invocation,
)
from aileron_core.connectors.wasm.json_slices import (
    MAX_STRUCTURE_BYTES,
    SLICE_BYTES,
    LongString,
    StructureTooLarge,
    finite,
    load_json,
)
from aileron_core.errors import (
    AileronError,
    BindingFailed,
    ConnectorRuntimeError,
    ExternalApiError,
    Failure,
    NetworkError,
    ResourceLimitExceeded,
    Unavailable,
)

_MAX_MESSAGE = 2000
_STDERR_PART = 256
_OUT_OF_MEMORY = re.compile(
    rb"out of memory|OutOfMemory|bad_alloc|memory allocation of \d+ bytes failed", re.IGNORECASE
)


class _GuestError(Exception):
    """The guest printed an error of its own."""

    def __init__(self, failure: AileronError) -> None:
        super().__init__()
        self.failure = failure


def guest_result(exit_: GuestExit, invocation: Invocation) -> OpResult:
    """Return the op's result. The strongest cause wins: a limit, then the host's error, then the guest's."""
    output: Json = None
    failure: AileronError | None = None
    reported_by_connector = False
    if exit_.ending in {"returned", "exited"} and not _host_decides(invocation):
        try:
            output = _read_stdout(exit_, invocation)
        except _GuestError as reported:
            failure, reported_by_connector = reported.failure, True
        except GuestStopped:
            failure = _host_failure(exit_, invocation)
        except AileronError as error:
            failure = error
    else:
        failure = _host_failure(exit_, invocation) or _trap_failure(exit_, invocation)
    if (
        type(failure) is ConnectorRuntimeError
        and invocation.host_error is None
        and invocation.is_deferred
    ):
        # The service had no room, as the host saw, whatever the guest made of it.
        failure = _external_error(failure.message, invocation)
    if failure is not None:
        return build_result(
            invocation, failure=failure.to_failure(), reported_by_connector=reported_by_connector
        )
    return build_result(invocation, output=output)


def build_result(
    invocation: Invocation,
    *,
    output: Json = None,
    failure: Failure | None = None,
    reported_by_connector: bool = False,
) -> OpResult:
    """Return the result of *invocation*, with what the host observed of its requests."""
    return OpResult(
        output=output,
        failure=failure,
        requests_sent=invocation.requests_sent,
        writes_sent=invocation.writes_sent,
        writes_unanswered=invocation.writes_sent - invocation.writes_answered,
        writes_unsettled=invocation.writes_unsettled,
        writes_refused=invocation.writes_refused,
        writes_deferred=invocation.writes_deferred,
        reported_by_connector=reported_by_connector,
        last_status=invocation.last_status,
        hosts_asked=tuple(invocation.hosts_asked),
        last_status_host=invocation.last_status_host,
        refused_reads=tuple(invocation.refused_reads),
        unanswered_host=invocation.unanswered_host,
    )


def _host_decides(invocation: Invocation) -> bool:
    # A guest that ended by itself in spite of a stop has reported its result, which is better than none.
    # Not so where it was woken from a sleep by the stop: it took the time for over.
    return (
        invocation.stdout_overflow
        or invocation.host_error is not None
        or invocation.sleep_cut_short
    )


def _host_failure(end: GuestExit, invocation: Invocation) -> AileronError | None:
    limits = invocation.limits
    if invocation.stop_reason == "wall":
        configured = f"{limits.wall_seconds:g}s"
        message = f"the connector ran longer than {configured} and was stopped"
        if host := invocation.unanswered_host:
            message = f"{short_host(host)} did not answer before the connector's time of {configured} was over"
        if end.ending == "not_started" and not end.message:
            message = f"the connector did not get to run within {configured} because other connectors were busy; nothing was done"
        return ResourceLimitExceeded(
            message,
            details={"limit": "wall_time", "configured": configured},
        )
    if invocation.stop_reason == "requests":
        configured = f"{limits.requests} requests"
        return ResourceLimitExceeded(
            f"the connector made more than {configured} and was stopped",
            details={"limit": "requests", "configured": configured},
        )
    if invocation.stop_reason in {"cancelled", "closing"}:
        return Unavailable("the call was stopped because the console is closing or cancelled it")
    if invocation.stop_reason == "person":
        return Unavailable("a person stopped everything while it ran")
    if invocation.stop_reason == "stopped":
        return stopped_by_person()
    if invocation.stop_reason == "fault":
        return invocation.host_error or ConnectorRuntimeError(
            "the connector was stopped after an internal error in Aileron; please report it"
        )
    if invocation.stdout_overflow:
        configured = f"{limits.stdout_bytes} bytes"
        return ResourceLimitExceeded(
            f"the connector printed more than {configured}",
            details={"limit": "stdout", "configured": configured},
        )
    return invocation.host_error


def _trap_failure(end: GuestExit, invocation: Invocation) -> AileronError:
    if _ran_out_of_memory(end, invocation):
        return _memory_failure(end, invocation)
    if end.ending == "not_started":
        return ConnectorRuntimeError(f"the connector could not be started: {end.message}")
    return ConnectorRuntimeError(
        f"the connector crashed: {end.message}{_stderr_clause(invocation)}"
    )


def _memory_failure(end: GuestExit, invocation: Invocation) -> ResourceLimitExceeded:
    configured = f"{invocation.limits.memory_mib} MiB"
    used = f" ({end.memory_bytes / MIB:.1f} MiB in use at the end)" if end.memory_bytes else ""
    return ResourceLimitExceeded(
        f"the connector needed more than {configured} of memory{used}",
        details={"limit": "memory", "configured": configured},
    )


def _ran_out_of_memory(end: GuestExit, invocation: Invocation) -> bool:
    """Guess from traces whether memory was the cause: wasmtime does not report a refused growth.

    Programs abort with `unreachable` when an allocation fails, usually one that would double a
    buffer.
    """
    if end.ending == "not_started":
        return "exceeds memory limits" in end.message
    if _OUT_OF_MEMORY.search(invocation.stderr) or "heap out of memory" in end.message:
        return True
    half = invocation.limits.memory_mib * MIB / 2
    return end.ending == "trapped" and "unreachable" in end.message and end.memory_bytes >= half


def _read_stdout(end: GuestExit, invocation: Invocation) -> Json:
    """Return the output that the guest printed, or raise the failure that its output or exit reports.

    Output is read first, even after a non-zero exit: some connectors exit 1 with a typed error.
    """
    text = invocation.stdout
    if len(text) <= SLICE_BYTES:  # a large one is not copied; it is not a blank one
        text = text.strip()
    failed = end.ending == "exited" and end.code != 0
    if not text and not failed:
        return {}
    try:
        parsed = _parse(text, invocation)
    except StructureTooLarge as error:
        configured = f"{MAX_STRUCTURE_BYTES} bytes"
        raise ResourceLimitExceeded(
            f"the connector printed more than {configured}, not counting long strings; print fewer "
            "fields, or request less at once",
            details={"limit": "output_values", "configured": configured},
        ) from error
    except ValueError as error:
        if failed:
            raise _exit_failure(end, invocation) from error
        raise ConnectorRuntimeError(
            f"the connector printed something that is not one JSON object: {error}"
        ) from error
    if (error_value := parsed.get("error")) is not None:
        raise _GuestError(_own_failure(error_value, invocation))
    if failed:
        raise _exit_failure(end, invocation)
    return cast("Json", parsed.get("output", {}))


def _exit_failure(end: GuestExit, invocation: Invocation) -> AileronError:
    if _ran_out_of_memory(end, invocation):
        return _memory_failure(end, invocation)
    code = "a code above 125" if end.code == UNKNOWN_EXIT_CODE else end.code
    return ConnectorRuntimeError(f"the connector exited with {code}{_stderr_clause(invocation)}")


def _own_failure(value: Any, invocation: Invocation) -> AileronError:
    """Return the connector's own error; classes of errors that a connector cannot know become a runtime error."""
    fields = cast("dict[str, Any]", value) if isinstance(value, dict) else {"message": value}
    words = fields.get("message")
    message = words[:_MAX_MESSAGE] if isinstance(words, str) and words else "the connector failed and gave no reason"  # fmt: skip
    class_ = fields.get("class")
    if class_ == ExternalApiError.class_:
        return _external_error(message, invocation)
    details = {} if invocation.last_status is None else {"status": invocation.last_status}
    if class_ == NetworkError.class_:
        return NetworkError(message, details=details)
    if class_ == BindingFailed.class_:
        return BindingFailed(message, details=details)
    return ConnectorRuntimeError(message, details=details)


def _external_error(message: str, invocation: Invocation) -> ExternalApiError:
    error = ExternalApiError(message, status=invocation.last_status)
    error.retriable |= invocation.is_deferred
    return error


def _stderr_clause(invocation: Invocation) -> str:
    """Return the content of stderr; of a long one beginning and end, either of which may be the cause."""
    text = bytes(invocation.stderr).strip()
    if len(text) > 2 * _STDERR_PART:
        left_out = len(text) - 2 * _STDERR_PART
        text = text[:_STDERR_PART] + b" [... %d bytes ...] " % left_out + text[-_STDERR_PART:]
    return f"; stderr: {text.decode('utf-8', 'replace')}" if text else ""


def _parse(text: bytearray, invocation: Invocation) -> dict[str, Any]:
    """Return the JSON object in *text*, with exact integers.

    Raises:
        ValueError: it is not one, or holds what cannot be written as JSON again: infinities, lone
            surrogates.
        GuestStopped: the run ended before it was read.
    """

    def decoded(long: LongString) -> str:
        return long.text(invocation.yield_control)

    try:
        parsed: object = load_json(
            text, invocation.yield_control, convert_long_string=decoded, parse_float=finite
        )
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    if not isinstance(parsed, dict):
        raise ValueError("it is JSON, but not an object")
    # Counted from the output, so one level more for the object around it.
    if is_deeper_than(MAX_DEPTH + 1, cast("Json", parsed)):
        raise ValueError(f"it is nested more than {MAX_DEPTH} levels deep")
    return cast("dict[str, Any]", parsed)
