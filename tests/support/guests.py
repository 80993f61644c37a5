"""Guests written in WAT, and how a test calls an op of theirs."""

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from aileron_core.connectors.protocol import Limits, OpResult
from aileron_core.connectors.store import ConnectorStore, InstalledConnector
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import Failure

HOSTS = ("api.example:443",)
SPIN = "(loop $l (br $l))"
MakeEngine = Callable[..., WasmEngine]
"""The fixture `make_engine`."""
Guest = Callable[..., WasmConnector]
"""The fixture `guest`: it installs a module in WAT."""


def wat(body: str, *, data: str = "", pages: int = 1, imports: str = "") -> str:
    """A command with one memory, the imports most guests want, and *body* as its `_start`."""
    return f"""(module
      (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "fd_read" (func $fd_read (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "poll_oneoff" (func $poll (param i32 i32 i32 i32) (result i32)))
      (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
      (import "aileron_host" "http_request" (func $request (param i32 i32) (result i32)))
      (import "aileron_host" "http_response_size" (func $size (result i32)))
      (import "aileron_host" "http_response_status" (func $status (result i32)))
      (import "aileron_host" "http_response_read" (func $read (param i32 i32) (result i32)))
      (import "aileron_host" "log" (func $log (param i32 i32 i32 i32)))
      {imports}
      (memory (export "memory") {pages})
      (data (i32.const 1024) "{data}")
      (func $print (param $fd i32) (param $at i32) (param $len i32)
        (i32.store (i32.const 0) (local.get $at)) (i32.store (i32.const 4) (local.get $len))
        (drop (call $fd_write (local.get $fd) (i32.const 0) (i32.const 1) (i32.const 8))))
      (func (export "_start") {body}))"""


def escaped(text: str | bytes) -> str:
    raw = text.encode() if isinstance(text, str) else text
    return "\\" + raw.hex("\\") if raw else ""


def printing(said: str | bytes, *, fd: int = 1, then: str = "") -> str:
    length = len(said.encode() if isinstance(said, str) else said)
    body = f"(call $print (i32.const {fd}) (i32.const 1024) (i32.const {length})) {then}"
    return wat(body, data=escaped(said), pages=1 + (1024 + length) // 65536)


# Prints {"output": its whole input}.
ECHO = """
  (local $end i32)
  (local.set $end (i32.const 4096))
  (loop $more
    (i32.store (i32.const 0) (local.get $end)) (i32.store (i32.const 4) (i32.const 30000))
    (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
    (local.set $end (i32.add (local.get $end) (i32.load (i32.const 8))))
    (br_if $more (i32.load (i32.const 8))))
  (call $print (i32.const 1) (i32.const 1024) (i32.const 10))
  (call $print (i32.const 1) (i32.const 4096) (i32.sub (local.get $end) (i32.const 4096)))
  (call $print (i32.const 1) (i32.const 1034) (i32.const 1))"""


def requesting(
    *envelopes: str, say: str = '{"output":{"done":true}}', first: str = "", then: str = ""
) -> str:
    """A guest that does *first*, makes the requests in *envelopes*, does *then* and prints *say*."""
    at, body = 1024, first
    for envelope in envelopes:
        length = len(envelope.encode())
        body += f"(drop (call $request (i32.const {at}) (i32.const {length})))"
        at += length
    body += f"{then}(call $print (i32.const 1) (i32.const {at}) (i32.const {len(say.encode())}))"
    return wat(body, data=escaped("".join(envelopes) + say), pages=2 + at // 65536)


def filling(begin: str, unit: str, size: int, end: str, act: str) -> str:
    """A guest that writes *begin*, *unit* over *size* bytes, *end*, and does *act* with those."""
    one, at = len(unit), 65536
    first = at + len(begin)
    last = first + size // one * one
    total = last + len(end) - at
    body = f"""(local $at i32)
      (memory.copy (i32.const {at}) (i32.const {1024 + one}) (i32.const {len(begin)}))
      (local.set $at (i32.const {first}))
      (loop $fill
        (memory.copy (local.get $at) (i32.const 1024) (i32.const {one}))
        (local.set $at (i32.add (local.get $at) (i32.const {one})))
        (br_if $fill (i32.lt_u (local.get $at) (i32.const {last}))))
      (memory.copy (local.get $at) (i32.const {1024 + one + len(begin)}) (i32.const {len(end)}))
      {act.format(at=at, total=total)}"""
    return wat(body, data=escaped(unit + begin + end), pages=3 + total // 65536)


PRINT = "(call $print (i32.const 1) (i32.const {at}) (i32.const {total}))"
"""The *act* of `filling` that prints what was written."""


def running_guest(
    made: InstalledConnector, store: ConnectorStore, engine: WasmEngine
) -> WasmConnector:
    """Return what is installed as a connector that can be called."""
    return WasmConnector(identity=made.identity, manifest=made.manifest, store=store, engine=engine)


def install_guest(
    store: ConnectorStore, engine: WasmEngine, module: bytes, manifest: bytes
) -> WasmConnector:
    return running_guest(store.install_bytes(module, manifest), store, engine)


def call(connector: WasmConnector, op: str = "x", **kwargs: Any) -> OpResult:
    """Call an op from a loop of its own, as a test without a loop does."""
    args = kwargs.pop("args", {})
    limits = kwargs.pop("limits", Limits(wall_seconds=10))
    return asyncio.run(connector.call(op, args, limits=limits, **kwargs))


def failed(result: OpResult) -> Failure:
    assert result.failure is not None, result.output
    return result.failure


def output(result: OpResult) -> Any:
    assert result.failure is None, result.failure
    return result.output


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
