"""The functions that a guest can import: `aileron_host` (requests, answers, log), and two of WASI that we replace.

A function here never raises: wasmtime keeps the last Python exception in one global, so one raised
in one thread surfaces in another guest's (measured: 8 % of innocent calls). Errors are stored on
the invocation, and the guest gets a number.
"""

import logging
from collections.abc import Callable
from contextlib import closing

import wasmtime

from aileron_core.connectors.capability_checks import (
    READ_METHODS,
    check_credential,
    check_method,
    check_target,
    without_credential_headers,
)
from aileron_core.connectors.http.client import OutgoingClient, OutgoingRequest
from aileron_core.connectors.http.target import parse_target
from aileron_core.connectors.protocol import Credential
from aileron_core.connectors.read_names import OFFER_KEY
from aileron_core.connectors.wasm.compiler import ModuleCheck
from aileron_core.connectors.wasm.envelope import MAX_ENVELOPE, Envelope, read_envelope
from aileron_core.connectors.wasm.invocation import GuestStopped, Invocation
from aileron_core.connectors.wasm.wasi import (
    EVENT_BYTES,
    FAULT,
    INVAL,
    MAX_SUBSCRIPTIONS,
    MAX_VECTORS,
    SUBSCRIPTION_BYTES,
    SUCCESS,
    VECTOR_BYTES,
    GuestMemory,
    poll,
    unsigned,
    write_output,
)
from aileron_core.errors import ConnectorRuntimeError, OpFailed

_log = logging.getLogger(__name__)
_guest_log = logging.getLogger("aileron.connector")

_I32 = wasmtime.ValType.i32()
_OK, _FAILED, _MALFORMED = 0, -1, -2
_MAX_LOG_LINES = 200
_MAX_LOG_LINE = 500
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warn": logging.WARNING,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

CurrentInvocation = Callable[[], Invocation]
"""The invocation of the calling thread."""
HOST_MODULE = "aileron_host"
WASI_MODULE = "wasi_snapshot_preview1"
_SPAWN_FUNCTIONS = frozenset(
    {"spawn", "spawn_op", "spawn_status", "spawn_output_size", "spawn_output_read"}
)
_LONGEST = 200
_MAX_PROBLEMS = 100
# What compilers import unless told to build a WASI command, and how to tell them.
_HINTS = {
    (
        "env",
        "abort",
    ): "AssemblyScript: build with --exportStart _start and --use abort=, or with its WASI shim",
    ("env", "seed"): "AssemblyScript: build with its WASI shim",
    ("env", "trace"): "AssemblyScript: build with its WASI shim",
    ("env", "memory"): "export a memory of its own",
    ("wasi_unstable", ""): "build for WASI preview 1",
    ("wasi", "thread-spawn"): "build without threads",
    ("gojs", ""): "Go: build with GOOS=wasip1 GOARCH=wasm",
    ("go", ""): "Go: build with GOOS=wasip1 GOARCH=wasm",
    ("wbg", ""): "Rust: build for wasm32-wasip1, without wasm-bindgen",
    ("__wbindgen_placeholder__", ""): "Rust: build for wasm32-wasip1, without wasm-bindgen",
}


def define_host_functions(
    linker: wasmtime.Linker, current: CurrentInvocation, outgoing: OutgoingClient
) -> None:
    """Define the host's functions in *linker*, shadowing two of wasmtime's own WASI."""
    functions = _HostFunctions(current, outgoing)
    linker.allow_shadowing = True
    table: tuple[tuple[str, str, int, int, Callable[..., int | None]], ...] = (
        (HOST_MODULE, "log", 4, 0, functions.log),
        (HOST_MODULE, "http_request", 2, 1, functions.http_request),
        (HOST_MODULE, "http_response_size", 0, 1, functions.http_response_size),
        (HOST_MODULE, "http_response_status", 0, 1, functions.http_response_status),
        (HOST_MODULE, "http_response_read", 2, 1, functions.http_response_read),
        (WASI_MODULE, "poll_oneoff", 4, 1, functions.poll_oneoff),
        (WASI_MODULE, "fd_write", 4, 1, functions.fd_write),
    )
    for module, name, parameters, results, function in table:
        type_ = wasmtime.FuncType([_I32] * parameters, [_I32] * results)
        linker.define_func(module, name, type_, function, access_caller=True)


class _HostFunctions:
    """The imported functions; they access the caller's memory only within its bounds."""

    def __init__(self, current: CurrentInvocation, outgoing: OutgoingClient) -> None:
        self._current = current
        self._outgoing = outgoing

    def log(self, caller: wasmtime.Caller, *where: int) -> None:
        invocation = self._current()
        try:
            memory = GuestMemory(caller)
            level = memory.read(where[0], where[1], 16)
            line = memory.read(where[2], where[3], _MAX_LOG_LINE)
            if level is not None and line is not None:
                _log_line(invocation, level, line, unsigned(where[3]))
        except BaseException as error:  # noqa: BLE001 - see the module: nothing may pass
            _fault(invocation, error)

    def http_request(self, caller: wasmtime.Caller, pointer: int, length: int) -> int:
        """Send a request; return 0 for any response, -1 if refused or failed, -2 if malformed."""
        invocation = self._current()
        try:
            return self._http_request(caller, invocation, pointer, length)
        except BaseException as error:  # noqa: BLE001 - see the module: nothing may pass
            _fault(invocation, error)
            return _FAILED

    def http_response_size(self, caller: wasmtime.Caller) -> int:
        """Return the size of the last response's body, -1 if there is none."""
        del caller
        response = self._current().response
        return -1 if response is None else len(response)

    def http_response_status(self, caller: wasmtime.Caller) -> int:
        """Return the status of the last response, -1 if there is none."""
        del caller
        return self._current().response_status

    def http_response_read(self, caller: wasmtime.Caller, pointer: int, length: int) -> int:
        """Copy the last response's body; -1 if there is none or it does not fit in memory."""
        invocation = self._current()
        try:
            if invocation.response is None:
                return _FAILED
            part = memoryview(invocation.response)[: unsigned(length)]
            return len(part) if GuestMemory(caller).write(pointer, part) else _FAILED
        except BaseException as error:  # noqa: BLE001 - see the module: nothing may pass
            _fault(invocation, error)
            return _FAILED

    def poll_oneoff(
        self, caller: wasmtime.Caller, source: int, target: int, count: int, written: int
    ) -> int:
        """Wait as WASI's function does, but no longer than the run's deadline."""
        invocation = self._current()
        try:
            number_of_subscriptions = unsigned(count)
            if not 1 <= number_of_subscriptions <= MAX_SUBSCRIPTIONS:
                return INVAL
            memory, size = GuestMemory(caller), number_of_subscriptions * SUBSCRIPTION_BYTES
            subscriptions = memory.read(source, size, size)
            if subscriptions is None:
                return FAULT
            events = poll(invocation, subscriptions)
            number = (len(events) // EVENT_BYTES).to_bytes(4, "little")
            fits = memory.write(target, events) and memory.write(written, number)
        except BaseException as error:  # noqa: BLE001 - see the module: nothing may pass
            _fault(invocation, error)
            return FAULT
        return SUCCESS if fits else FAULT

    def fd_write(
        self, caller: wasmtime.Caller, descriptor: int, vectors: int, count: int, written: int
    ) -> int:
        """Take output; of too many parts only the first are written, as POSIX allows."""
        invocation = self._current()
        try:
            memory, size = GuestMemory(caller), min(unsigned(count), MAX_VECTORS) * VECTOR_BYTES
            table = memory.read(vectors, size, size)
            if table is None:
                return FAULT
            error, taken = write_output(invocation, descriptor, memory, table)
            fits = memory.write(written, taken.to_bytes(4, "little"))
        except BaseException as error:  # noqa: BLE001 - see the module: nothing may pass
            _fault(invocation, error)
            return FAULT
        return error if fits else FAULT

    def _http_request(
        self, caller: wasmtime.Caller, invocation: Invocation, pointer: int, length: int
    ) -> int:
        invocation.response = None
        invocation.response_status = -1
        if not invocation.count_request():
            return _FAILED
        try:
            yield_control = invocation.yield_control
            data = GuestMemory(caller).read(pointer, length, MAX_ENVELOPE, yield_control)
            if data is None or len(data) != unsigned(length):
                raise ValueError("the request is outside the connector's memory or is too large")
            envelope = read_envelope(data, yield_control)
            credential = self._check(invocation, envelope)
            self._send(invocation, envelope, credential)
        except ValueError as error:
            invocation.host_error = ConnectorRuntimeError(
                f"the connector made a request that cannot be sent: {error}"
            )
            return _MALFORMED
        except GuestStopped:
            return _FAILED  # why it has to end is kept on the invocation
        except OpFailed as error:
            invocation.host_error = error
            if read := error.details.get(OFFER_KEY):
                invocation.refused_reads[str(read)] = None
            invocation.must_stop()
            return _FAILED
        invocation.host_error = None
        return _OK

    def _check(self, invocation: Invocation, envelope: Envelope) -> Credential | None:
        """Check the request against the manifest, and return the credential that it is to carry."""
        target = parse_target(envelope.url)
        manifest = invocation.manifest
        check_target(manifest, target, invocation.hosts)
        check_method(
            envelope.method,
            envelope.headers,
            envelope.body,
            target,
            op=invocation.op,
            accepted_reads=invocation.accepted_reads,
        )
        routed = self._outgoing.is_routed(target.host_port)
        return check_credential(
            manifest, target, envelope.credential, invocation.credential, routed=routed
        )

    def _send(
        self, invocation: Invocation, envelope: Envelope, credential: Credential | None
    ) -> None:
        call = invocation.open_call()
        invocation.leave_guest()
        try:
            answer = self._outgoing.send(
                OutgoingRequest(
                    method=envelope.method,
                    url=envelope.url,
                    headers=without_credential_headers(invocation.manifest, envelope.headers),
                    body=envelope.body,
                ),
                call,
                allowed=invocation.hosts,
                max_redirects=_redirects(invocation, envelope),
                max_body=invocation.limits.response_bytes,
                credential=credential,
                scrubber=invocation.scrubber,
            )
        finally:
            invocation.close_call()
            invocation.enter_guest()
        invocation.response = answer.body
        invocation.response_status = answer.status
        invocation.last_status = answer.status


def _redirects(invocation: Invocation, envelope: Envelope) -> int:
    """Return how many redirects to follow: none for a POST of a preview, checked for one target."""
    is_checked_post = invocation.read_only and envelope.method not in READ_METHODS
    return 0 if is_checked_post else invocation.limits.redirects


def _fault(invocation: Invocation, error: BaseException) -> None:
    """Store an internal error by type only: its message may quote the guest's data."""
    _log.error("a host function of a connector failed with %s", type(error).__name__)
    invocation.host_error = ConnectorRuntimeError(
        f"the host of the connector failed ({type(error).__name__}); please report this bug in Aileron"
    )
    invocation.stop("fault")


def _log_line(invocation: Invocation, level: bytes, line: bytes, length: int) -> None:
    """Log a line of the guest's at DEBUG, with the guest's own level as a word.

    The text itself is left out during a preview, which is for one person's eyes. Otherwise it is
    bounded and without control characters, and arguments that occur in it are redacted.
    """
    invocation.log_line_count += 1
    if invocation.log_line_count > _MAX_LOG_LINES or not _guest_log.isEnabledFor(logging.DEBUG):
        return
    word = logging.getLevelName(_LEVELS.get(level.decode("ascii", "replace").lower(), logging.INFO))
    if invocation.read_only:
        text = f"({length} bytes)"
    else:
        text = ascii(invocation.redact(line.decode("utf-8", "replace")))
    _guest_log.debug("%s %s: %s", invocation.manifest.name, word, text)


def check_interface(
    module: wasmtime.Module, linker: wasmtime.Linker, engine: wasmtime.Engine
) -> ModuleCheck:
    """Return what *module* imports of `aileron_host`, and each import and export that does not fit.

    wasmtime has read the module by then, in the process that compiles it: the console parses no module
    of its own accord. Of a module with more problems only the first hundred, each of a length that can be read.
    """
    refused: list[str] = []
    offered: set[str] = set()
    with closing(wasmtime.Store(engine)) as store:
        for each in module.imports:
            source, name = each.module, each.name or ""
            try:
                linker.get(store, source, name)
            except wasmtime.WasmtimeError:
                refused.append(_import_problem(source[:_LONGEST], name[:_LONGEST]))
                if len(refused) == _MAX_PROBLEMS:
                    break
            else:
                offered |= {name} if source == HOST_MODULE else set()
    exports = {export.name for export in module.exports}
    if "_start" not in exports and "_initialize" in exports:
        refused.append(
            "exports '_initialize' and no '_start': it is a WASI reactor, but a connector must be a "
            "WASI command; give it a main function"
        )
    elif "_start" not in exports:
        refused.append("does not export '_start'; a connector must be a WASI command")
    if "memory" not in exports:
        refused.append("does not export 'memory'; a connector must be a WASI command")
    return ModuleCheck(problems=tuple(refused), imports=tuple(sorted(offered)))


def _import_problem(module: str, name: str) -> str:
    if module == HOST_MODULE and name in _SPAWN_FUNCTIONS:
        return f"imports {name!r}: connectors that start local programs are not supported"
    hint = _HINTS.get((module, name)) or _HINTS.get((module, ""))
    problem = f"imports {name!r} from {module!r}, which the host does not provide"
    return f"{problem} ({hint})" if hint else problem
