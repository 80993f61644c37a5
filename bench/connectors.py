"""A connector's call beside the same module through the C API of the same library, and beside bare wasmtime-py.

The module reads nothing and prints nothing, so what is measured is the host's part of a call:
surroundings, instantiation, `_start`, the end.
And: how long a module of 7 MB takes until its first call, cold and from its sealed compiled form.
Measured as the console runs calls: on its kind of loop, with its switch interval (for every row), and
with a connector that was installed a while ago, so that its bytes are not read for each call.
"""

import asyncio
import ctypes
import secrets
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import wasmtime
from wasmtime import _bindings as c

from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_tui.cli.runtime import TURN_SECONDS
from bench.support import MANIFEST, Aims, amount, core_loop, milliseconds

ROUNDS = amount(5, check=1)
CALLS = amount(200, check=5)
LARGE = amount(7 * 1024 * 1024, check=200_000)
AT_ONCE = (1, 2, 16)
SETTLED = amount(2.5, check=0.0)
"""Seconds after which the store believes the times of a file that nobody touched."""
_RAW: Any = c
# Reads its input to the end and prints {} as a real connector would.
_WAT = """(module
  (import "wasi_snapshot_preview1" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
  (import "wasi_snapshot_preview1" "fd_write" (func $write (param i32 i32 i32 i32) (result i32)))
  (memory (export "memory") 1)
  (data (i32.const 0) "\\00\\01\\00\\00\\00\\10\\00\\00") (data (i32.const 16) "\\20\\00\\00\\00\\02\\00\\00\\00")
  (data (i32.const 32) "{}")
  (func (export "_start")
    (loop $more (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 64)))
      (br_if $more (i32.load (i32.const 64))))
    (drop (call $write (i32.const 1) (i32.const 16) (i32.const 1) (i32.const 64)))))"""
_STDIN = b'{"op": "nothing", "args": {}}'


class _Bare:
    """The same module by the package's public API: a store, WASI with files, instantiate, `_start`."""

    def __init__(self, module: bytes, folder: Path) -> None:
        config = wasmtime.Config()
        config.epoch_interruption = True
        self.engine = wasmtime.Engine(config)
        self.linker = wasmtime.Linker(self.engine)
        self.linker.define_wasi()
        self.pre = self.linker.instantiate_pre(wasmtime.Module(self.engine, module))
        self.stdin = folder / "stdin"
        self.stdin.write_bytes(_STDIN)

    def call(self) -> None:
        said: list[bytes] = []
        wasi = wasmtime.WasiConfig()
        wasi.stdin_file = self.stdin
        wasi.stdout_custom = said.append
        store = wasmtime.Store(self.engine)
        store.set_wasi(wasi)
        store.set_epoch_deadline(1_000_000)
        start = self.pre.instantiate(store).exports(store)["_start"]
        assert isinstance(start, wasmtime.Func)
        start(store)
        store.close()
        assert said == [b"{}"]


class _Floor:
    """The same module by the C API of the library in the wheel, nothing of the package in between."""

    def __init__(self, bare: _Bare) -> None:
        self.engine, self.pre = bare.engine.ptr(), bare.pre.ptr()
        self.data = (ctypes.c_uint8 * len(_STDIN))(*_STDIN)

    def call(self) -> None:
        stdin = c.wasm_byte_vec_t()
        c.wasm_byte_vec_new(ctypes.byref(stdin), len(_STDIN), self.data)
        wasi = c.wasi_config_new()
        c.wasi_config_set_stdin_bytes(wasi, ctypes.byref(stdin))
        store = c.wasmtime_store_new(self.engine, None, _NO_FINALIZER)
        context = c.wasmtime_store_context(store)
        assert not c.wasmtime_context_set_wasi(context, wasi)
        c.wasmtime_context_set_epoch_deadline(context, 1_000_000)
        trap = ctypes.POINTER(c.wasm_trap_t)()
        instance, start = c.wasmtime_instance_t(), c.wasmtime_extern_t()
        assert not c.wasmtime_instance_pre_instantiate(
            self.pre, context, ctypes.byref(instance), ctypes.byref(trap)
        )
        found = c.wasmtime_instance_export_get(
            context, ctypes.byref(instance), b"_start", 6, ctypes.byref(start)
        )
        assert found
        assert not c.wasmtime_func_call(
            context, ctypes.byref(start.of.func), None, 0, None, 0, ctypes.byref(trap)
        )
        c.wasmtime_store_delete(store)


_NO_FINALIZER: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)()


def _threads(call: Callable[[], None], at_once: int) -> list[float]:
    """Return the seconds of each of CALLS calls, *at_once* under way in as many threads."""

    def one(_number: int) -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    if at_once == 1:
        return [one(number) for number in range(CALLS)]
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, range(CALLS)))


async def _tasks(call: Callable[[], Awaitable[None]], at_once: int) -> list[float]:
    took: list[float] = []
    left = iter(range(CALLS))

    async def work() -> None:
        for _ in left:
            began = time.perf_counter()
            await call()
            took.append(time.perf_counter() - began)

    await asyncio.gather(*(work() for _ in range(at_once)))
    return took


def _compared(
    connector: WasmConnector, bare: _Bare, loop: asyncio.AbstractEventLoop, aims: Aims
) -> None:
    floor = _Floor(bare)

    async def ours() -> None:
        result = await connector.call("nothing", {}, limits=Limits())
        assert result.failure is None, result

    for at_once in AT_ONCE:
        rows: dict[str, list[float]] = {
            "C API (floor)": [],
            "bare wasmtime-py": [],
            "connector": [],
        }
        ratios: list[float] = []
        for _ in range(ROUNDS):
            rows["C API (floor)"] += _threads(floor.call, at_once)
            rows["bare wasmtime-py"] += _threads(bare.call, at_once)
            rows["connector"] += loop.run_until_complete(_tasks(ours, at_once))
            last = {name: statistics.median(values[-CALLS:]) for name, values in rows.items()}
            ratios.append(last["connector"] / last["bare wasmtime-py"])
        print(f"  {at_once} at once")
        for name, values in rows.items():
            print(f"    {name:<18} {milliseconds(values)}")
        median = statistics.median(ratios)
        to_floor = statistics.median(rows["connector"]) / statistics.median(rows["C API (floor)"])
        print(
            f"    ratio to bare {median:.2f} ({min(ratios):.2f} to {max(ratios):.2f}), to the floor "
            f"{to_floor:.2f}"
        )
        aims.at_most(f"a call, {at_once} at once, times bare wasmtime-py", median, 1.5)


def large_module(size: int) -> bytes:
    """Return a valid module of about *size* bytes: many functions of plain arithmetic."""

    def leb(number: int) -> bytes:
        out = bytearray()
        while number > 0x7F:
            out.append(number & 0x7F | 0x80)
            number >>= 7
        out.append(number)
        return bytes(out)

    def section(kind: int, body: bytes) -> bytes:
        return bytes([kind]) + leb(len(body)) + body

    # local.get 0; local.get 0; i32.const n; i32.mul; i32.xor; local.set 0; over and over
    step = bytes([0x20, 0, 0x20, 0, 0x41, 0x2B, 0x6C, 0x73, 0x21, 0])
    code = b"\x00" + step * 60 + bytes([0x20, 0, 0x0B])
    function = leb(len(code)) + code
    count = size // (len(function) + 1)
    types = b"\x02\x60\x00\x00\x60\x01\x7f\x01\x7f"
    functions = leb(count + 1) + b"\x00" + b"\x01" * count
    exports = b"\x02\x06_start\x00\x00\x06memory\x02\x00"
    codes = leb(count + 1) + b"\x02\x00\x0b" + function * count
    parts = ((1, types), (3, functions), (5, b"\x01\x00\x01"), (7, exports), (10, codes))
    return b"\0asm\x01\0\0\0" + b"".join(section(kind, body) for kind, body in parts)


def _first_call(store: ConnectorStore, module: bytes, folder: Path, key: bytes) -> float:
    installed = store.install_bytes(module, MANIFEST.encode())
    outgoing = OutgoingClient()
    began = time.perf_counter()
    engine = WasmEngine(outgoing, cache_folder=folder, key=key)
    connector = WasmConnector(
        identity=installed.identity, manifest=installed.manifest, store=store, engine=engine
    )
    result = asyncio.run(connector.call("nothing", {}, limits=Limits()))
    took = time.perf_counter() - began
    assert result.failure is None, result
    engine.close()
    outgoing.close()
    return took


def _large(path: Path) -> None:
    module, key = large_module(LARGE), secrets.token_bytes(32)
    store = ConnectorStore(path)
    began = time.perf_counter()
    wasmtime.Module(wasmtime.Engine(), module)
    bare = time.perf_counter() - began
    cold = _first_call(store, module, path / "compiled", key)
    warm = [_first_call(store, module, path / "compiled", key) for _ in range(3)]
    print(f"  a module of {len(module) / 2**20:.1f} MB, from nothing to the end of its first call")
    print(f"    compiled            {cold:6.2f} s (compiling it by bare wasmtime-py: {bare:.2f} s, ratio {cold / bare:.2f})")  # fmt: skip
    print(f"    sealed compiled form {milliseconds(warm)}")


def main() -> None:
    """Print the comparisons."""
    print("connectors: a call that does nothing, beside the same module without Aileron")
    with tempfile.TemporaryDirectory(prefix="aileron-bench-") as folder:
        path = Path(folder)
        module = bytes(wasmtime.wat2wasm(_WAT))
        store = ConnectorStore(path)
        installed = store.install_bytes(module, MANIFEST.encode())
        outgoing = OutgoingClient()
        engine = WasmEngine(outgoing)
        connector = WasmConnector(
            identity=installed.identity, manifest=installed.manifest, store=store, engine=engine
        )
        time.sleep(SETTLED)
        sys.setswitchinterval(TURN_SECONDS)
        loop = core_loop()
        aims = Aims()
        _compared(connector, _Bare(module, path), loop, aims)
        loop.close()
        engine.close()
        outgoing.close()
        _large(path)
    aims.report()


if __name__ == "__main__":
    main()
