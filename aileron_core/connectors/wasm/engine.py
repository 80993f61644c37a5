"""The WASM engine: one wasmtime engine and linker, a fresh store for each call, with limits on its memory and tables.

Threads: a worker of the pool runs a guest from start to end, host calls included. A ticker advances
the epoch every 10 ms while any guest runs; at each tick the guest's own thread checks whether it
has to stop or to yield its turn.

A guest runs through wasmtime's C API. The Python package's own functions cost as much again as the guest of a
small op: they list every export, read types, and pass output through threads of another runtime. They also raise
whatever Python exception any host function left in a global, in whichever thread looks next.
"""

import ctypes
import os
import re
import secrets
import threading
from collections.abc import Callable, Collection, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import wasmtime
from wasmtime import _bindings as bindings
from wasmtime import _ffi as ffi

from aileron_core.clock import Clock
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import MIB
from aileron_core.connectors.wasm.compiler import CLOSING_MESSAGE, Compiler, ModuleCheck
from aileron_core.connectors.wasm.host import check_interface, define_host_functions
from aileron_core.connectors.wasm.invocation import (
    UNKNOWN_EXIT_CODE,
    GuestExit,
    GuestStopped,
    Invocation,
)
from aileron_core.connectors.wasm.modules import CompiledModules
from aileron_core.connectors.wasm.scheduling import EpochTicker, GuestSemaphore
from aileron_core.errors import AileronError, ConnectorRuntimeError, Unavailable

# Programs trust that they have a name: Go's flag package panics without one.
_ARGV: Final = ["connector"]
_MAX_TABLES: Final = 4
_MAX_TABLE_ELEMENTS: Final = 1_000_000
_FUNCTION, _MEMORY = 0, 3  # WASMTIME_EXTERN_FUNC, WASMTIME_EXTERN_MEMORY
_LARGE_EXIT_CODE = "exit with invalid exit status outside of"
_NO_COMMAND = re.compile(r"expected \d+ (arguments|results), got 0")

_raw: Any = bindings
EpochCallback: Any = _raw._wasmtime_store_epoch_deadline_callback.argtypes[1]  # noqa: SLF001
"""The type of a callback at each epoch, which the package has no name for."""
_NO_FINALIZER: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)()
_TrapPointer: Any = ctypes.POINTER(bindings.wasm_trap_t)


def open_store(
    engine: wasmtime.Engine, invocation: Invocation, stdin: bytes, on_epoch: Any
) -> wasmtime.Store:
    """Return a store set up for one run; the caller closes it.

    Args:
        invocation: the run; its clock starts here.
        on_epoch: an `EpochCallback`, called in the guest's thread at each tick.

    Raises:
        wasmtime.WasmtimeError: it cannot be set up.
    """
    wasi = wasmtime.WasiConfig()
    wasi.argv = _ARGV
    data = ffi.bytes_to_capi(stdin)
    bindings.wasi_config_set_stdin_bytes(wasi.ptr(), ctypes.byref(data))
    store = wasmtime.Store(engine)
    try:
        store.set_limits(
            memory_size=invocation.limits.memory_mib * MIB,
            table_elements=_MAX_TABLE_ELEMENTS,
            instances=1,
            tables=_MAX_TABLES,
            memories=1,
        )
        store.set_wasi(wasi)
        store.set_epoch_deadline(1)
        bindings.wasmtime_store_epoch_deadline_callback(store.ptr(), on_epoch, None, _NO_FINALIZER)
    except BaseException:
        store.close()
        raise
    # wasmtime's monotonic clock begins with its surroundings.
    invocation.clock_base = invocation.clock.monotonic()
    return store


def run_command(pre: wasmtime.InstancePre, store: wasmtime.Store) -> GuestExit:
    """Instantiate a WASI command and run it to its end; never raises for what the guest does."""
    context = _raw.wasmtime_store_context(store.ptr())
    instance, trap = bindings.wasmtime_instance_t(), _TrapPointer()
    error = _raw.wasmtime_instance_pre_instantiate(
        pre.ptr(), context, ctypes.byref(instance), ctypes.byref(trap)
    )
    if (problem := _problem(error, trap)) is not None:
        return _guest_exit(problem, "not_started", 0)
    start = _export(context, instance, b"_start")
    if start is None or start.kind != _FUNCTION:
        return GuestExit(ending="not_started", message="it does not export a function _start")
    error = _raw.wasmtime_func_call(
        context, ctypes.byref(start.of.func), None, 0, None, 0, ctypes.byref(trap)
    )
    if (problem := _problem(error, trap)) is None:
        return GuestExit(ending="returned")
    if _NO_COMMAND.fullmatch(str(problem)):
        message = "its _start has parameters or results, but that of a WASI command has none"
        return GuestExit(ending="not_started", message=message)
    return _guest_exit(problem, "trapped", _memory_bytes(context, instance))


def _guest_exit(problem: Exception, how: Any, memory_bytes: int) -> GuestExit:
    if isinstance(problem, wasmtime.ExitTrap):
        return GuestExit(ending="exited", code=problem.code, memory_bytes=memory_bytes)
    message = error_summary(problem)
    if _LARGE_EXIT_CODE in message:
        return GuestExit(ending="exited", code=UNKNOWN_EXIT_CODE, memory_bytes=memory_bytes)
    return GuestExit(ending=how, message=message, memory_bytes=memory_bytes)


def _problem(error: Any, trap: Any) -> wasmtime.WasmtimeError | wasmtime.Trap | None:
    """Take ownership of a call's error or trap, so that it is freed."""
    if error:
        return wasmtime.WasmtimeError._from_ptr(error)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    if trap:
        return wasmtime.Trap._from_ptr(trap)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return None


def _export(context: Any, instance: Any, name: bytes) -> Any:
    export = bindings.wasmtime_extern_t()
    exists = bindings.wasmtime_instance_export_get(
        context, ctypes.byref(instance), name, len(name), ctypes.byref(export)
    )
    return export if exists else None


def _memory_bytes(context: Any, instance: Any) -> int:
    memory = _export(context, instance, b"memory")
    if memory is None or memory.kind != _MEMORY:
        return 0
    return int(bindings.wasmtime_memory_data_size(context, ctypes.byref(memory.of.memory)))


def error_summary(error: Exception) -> str:
    """Return message and cause from wasmtime's report, without its backtrace."""
    report = str(error)
    # The last one: the backtrace comes before it, with names that the guest chose.
    happened, found, why = report.rpartition("Caused by:")
    happened = happened if found else report
    lines = [line.strip() for line in happened.splitlines() if line.strip()]
    causes = [line.strip() for line in why.splitlines() if found and line.strip()]
    # A trap is wrapped in its backtrace; its cause alone says what it was.
    first = lines[:1] if lines and "backtrace" not in lines[0] else []
    return ": ".join([*first, *causes[-1:]])[:300] or "no reason given"


_THREADS = 32
_NICENESS = 5
"""Of the compiler of a module that somebody waits for: the screen and other calls go first."""
_BACKGROUND_NICENESS = 10
_CANNOT_RUN = "the connector is not a module that can run here"
_CONTINUE = 0  # WASMTIME_UPDATE_DEADLINE_CONTINUE

_T = TypeVar("_T")


class WasmEngine:
    """Compiles modules and runs them, each call in its own store.

    Args:
        cache_folder: the folder for compiled modules, under the home; None keeps them in memory only.
        key: seals compiled modules, or returns what does; None for a random one, valid for this process.
        max_guests: how many run at once; None for one per core.
        separate_compiler: whether large modules are compiled in a separate low-priority process.
        optimize: False compiles faster to slower code, for a trial.
    """

    def __init__(
        self,
        outgoing: OutgoingClient,
        *,
        cache_folder: Path | None = None,
        key: bytes | Callable[[], bytes | None] | None = None,
        max_guests: int | None = None,
        separate_compiler: bool = False,
        optimize: bool = True,
    ) -> None:
        config = wasmtime.Config()
        config.cranelift_opt_level = "speed" if optimize else "none"
        config.epoch_interruption = True
        # One memory of 32 bits that no other thread shares: what the limits are about.
        config.wasm_threads = False
        config.wasm_multi_memory = False
        config.wasm_memory64 = False
        # A garbage-collected heap would be a second memory beside it; no compiler's WASI target needs one.
        config.wasm_gc = False
        self._engine = wasmtime.Engine(config)
        self._linker = wasmtime.Linker(self._engine)
        self._linker.define_wasi()
        self._local = threading.local()
        define_host_functions(self._linker, self._current, outgoing)
        self.outgoing = outgoing
        self._compiler = Compiler() if separate_compiler else None
        self._modules = CompiledModules(
            self._engine, cache_folder, key or secrets.token_bytes(32), self._compiler
        )
        self._ready: dict[str, Future[wasmtime.InstancePre]] = {}
        self._lock = threading.Lock()
        self._running: set[Invocation] = set()
        self._closed = False
        self.stop_count = 0
        """How many times all guests were stopped; an invocation started before the last stop must not run."""
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="aileron-guest")
        self.ticker = EpochTicker(self._engine.increment_epoch)
        self.slots = GuestSemaphore(max_guests or os.cpu_count() or 1)
        self._on_epoch = EpochCallback(self._epoch)

    @property
    def clock(self) -> Clock:
        return self.outgoing.clock

    def submit(self, work: Callable[[], _T]) -> Future[_T]:
        """Run *work* in a thread of the pool.

        Raises:
            Unavailable: the engine is closed.
        """
        try:
            return self._pool.submit(work)
        except RuntimeError as error:
            raise Unavailable(CLOSING_MESSAGE) from error

    def is_ready(self, hash_: str) -> bool:
        existing = self._ready.get(hash_)
        return existing is not None and existing.done()

    def prepare(
        self,
        hash_: str,
        module: Callable[[], bytes],
        *,
        check: Callable[[], None] = lambda: None,
        background: bool = False,
    ) -> Future[wasmtime.InstancePre]:
        """Return a future of the compiled module; each *hash_* is compiled once.

        Compiling uses a thread of its own, so that no call waits for another call's module.

        Args:
            module: returns its verified bytes; called only if no compiled form of them is kept.
            check: raises if what is installed is not what *hash_* says; called first.
            background: nobody waits for it yet, so it runs at the lowest priority.

        The future raises:
            Unavailable: the engine is closed.
            ConnectorRuntimeError: the module is invalid, or imports what the host does not offer.
        """
        with self._lock:
            if (existing := self._ready.get(hash_)) is not None:
                return existing
            future: Future[wasmtime.InstancePre] = Future()
            future.set_running_or_notify_cancel()  # the caller may stop waiting; the compilation goes on
            if self._closed:
                future.set_exception(Unavailable(CLOSING_MESSAGE))
                return future
            self._ready[hash_] = future
        niceness = _BACKGROUND_NICENESS if background else _NICENESS

        def fail(error: AileronError) -> None:
            with self._lock:
                self._ready.pop(hash_, None)
            future.set_exception(error)

        def compile_() -> None:
            try:
                with _wasmtime_errors(_CANNOT_RUN):
                    check()
                    loaded = self._modules.load(hash_, module, niceness=niceness)
                    future.set_result(self._linker.instantiate_pre(loaded))
            except AileronError as error:
                fail(error)
            except BaseException as error:  # noqa: BLE001 - passed on to the caller that waits
                fail(ConnectorRuntimeError(f"{_CANNOT_RUN}: {type(error).__name__}"))

        try:
            threading.Thread(target=compile_, name="aileron-compile", daemon=True).start()
        except RuntimeError:  # the system gives no more threads
            fail(
                Unavailable("no thread could be started to compile the connector; try again later")
            )
        return future

    def machine_code(self, module: bytes) -> bytes:
        """Return the compiled form of *module*, after checking that it links with this host.

        Raises:
            ConnectorRuntimeError: the module is invalid, or imports what the host does not offer.
        """
        with _wasmtime_errors(_CANNOT_RUN):
            loaded = self._modules.load("", lambda: module)
            self._linker.instantiate_pre(loaded)
            return bytes(loaded.serialize())

    def check_module(self, module: bytes) -> ModuleCheck:
        """Return what *module* imports from the host, and why it cannot run here, if so.

        Raises:
            ConnectorRuntimeError: it is not valid, or imports something as what it is not.
        """
        with _wasmtime_errors(_CANNOT_RUN):
            loaded = self._modules.load("", lambda: module)
            found = check_interface(loaded, self._linker, self._engine)
            if not found.problems:
                self._linker.instantiate_pre(loaded)
            return found

    def stage_modules(self, hashes: Collection[str]) -> None:
        """Read what is cached of these connectors before the key is there that verifies it."""
        self._modules.stage(hashes)

    def collect_modules(self, wanted: Collection[str]) -> None:
        """Remove what is cached of every connector but those with these hashes."""
        self._modules.collect(wanted)

    @contextmanager
    def guest_slot(self, invocation: Invocation) -> Generator[None]:
        """Hold a turn on the processor, to run a guest and to parse what it printed.

        Until the end of the turn an emergency stop reaches the run.
        """
        with self._lock:
            if self._closed:
                invocation.stop("closing")
            elif invocation.stop_count_at_start != self.stop_count:
                invocation.stop("person")
            self._running.add(invocation)
        self._local.invocation = invocation
        invocation.enter_guest()
        try:
            yield
        finally:
            invocation.leave_guest()
            self._local.invocation = None
            with self._lock:
                self._running.discard(invocation)

    def stop_running(self) -> None:
        """Stop every guest that runs or waits for a thread; later calls are not affected."""
        with self._lock:
            self.stop_count += 1
            running = tuple(self._running)
        for invocation in running:
            invocation.stop("person")

    def close(self) -> None:
        """Stop every guest, end every thread and free every module; blocks."""
        with self._lock:
            self._closed = True
            running = tuple(self._running)
        for invocation in running:
            invocation.stop("closing")
        if self._compiler is not None:
            self._compiler.close()
        with self._lock:
            compiling = tuple(self._ready.values())
        for each in compiling:
            each.exception()  # waits: what it compiles with is about to go
        self._pool.shutdown(wait=True, cancel_futures=True)
        self.ticker.close()
        self._ready.clear()
        self._linker.close()
        self._engine.close()

    def run(self, pre: wasmtime.InstancePre, invocation: Invocation, stdin: bytes) -> GuestExit:
        """Run a guest to its end on the calling thread, which has to hold its `guest_slot`.

        Raises:
            ConnectorRuntimeError: its store could not be set up.
        """
        if invocation.must_stop():
            return GuestExit(ending="not_started")
        with _wasmtime_errors("the connector could not be set up"):
            store = open_store(self._engine, invocation, stdin, self._on_epoch)
        try:
            return run_command(pre, store)
        finally:
            store.close()

    def _current(self) -> Invocation:
        invocation: Invocation = self._local.invocation
        return invocation

    def _epoch(self, _context: object, _data: object, delta: Any, kind: Any) -> int:
        """Let this thread's guest run until the next tick, or end it with an error."""
        try:
            invocation = self._current()
            invocation.yield_control()
            if not invocation.must_stop():
                delta[0] = 1
                kind[0] = _CONTINUE
                return 0
        except GuestStopped:
            pass
        except BaseException:  # noqa: BLE001 - ctypes would print it and let the guest run on
            self._current().stop("fault")
        stop = wasmtime.WasmtimeError("stopped")
        return ctypes.cast(stop._consume(), ctypes.c_void_p).value or 0  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]


@contextmanager
def _wasmtime_errors(what: str) -> Generator[None]:
    """Turn wasmtime's errors into ours."""
    try:
        yield
    except (wasmtime.WasmtimeError, wasmtime.Trap) as error:
        raise ConnectorRuntimeError(f"{what}: {error_summary(error)}") from error
