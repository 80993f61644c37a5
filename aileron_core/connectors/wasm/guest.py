"""Running one guest, from store to exit, through wasmtime's C API, with limits on its memory and tables.

The Python package's own functions cost as much again as the guest of a small op: they list every
export, read types, and pass output through threads of another runtime. They also raise whatever
Python exception any host function left in a global, in whichever thread looks next.
"""

import ctypes
import re
from typing import Any, Final

import wasmtime
from wasmtime import _bindings as bindings
from wasmtime import _ffi as ffi

from aileron_core.connectors.protocol import MIB
from aileron_core.connectors.wasm.invocation import UNKNOWN_EXIT_CODE, GuestExit, Invocation

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
