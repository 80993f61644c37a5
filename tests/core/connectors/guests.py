"""Guests written in WAT, and how a test calls an op of theirs."""

import asyncio
from collections.abc import Callable
from typing import Any

from aileron_core.connectors.protocol import Limits, OpResult
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine

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


def escaped(text: str) -> str:
    """*text* as a WAT string literal, byte by byte."""
    return "".join(f"\\{byte:02x}" for byte in text.encode())


def printing(text: str, *, fd: int = 1, then: str = "") -> str:
    """A guest that prints *text* and then does *then*."""
    length = len(text.encode())
    body = f"(call $print (i32.const {fd}) (i32.const 1024) (i32.const {length})) {then}"
    return wat(body, data=escaped(text), pages=1 + (1024 + length) // 65536)


def printing_bytes(raw: bytes) -> str:
    """A guest that prints exactly these bytes."""
    data = "".join(f"\\{byte:02x}" for byte in raw)
    body = f"(call $print (i32.const 1) (i32.const 1024) (i32.const {len(raw)}))"
    return wat(body, data=data, pages=1 + (1024 + len(raw)) // 65536)


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


def requesting(envelope: str, *, times: int = 1, say: str = '{"output":{"done":true}}') -> str:
    """A guest that makes the request in *envelope*, *times* over, and then prints *say*."""
    first, second = len(envelope.encode()), len(say.encode())
    once = f"(drop (call $request (i32.const 1024) (i32.const {first})))"
    body = f"{once * times} (call $print (i32.const 1) (i32.const {1024 + first}) (i32.const {second}))"
    return wat(body, data=escaped(envelope) + escaped(say))


def call(connector: WasmConnector, op: str = "x", **kwargs: Any) -> OpResult:
    """Call an op from a loop of its own, as a test without a loop does."""
    args = kwargs.pop("args", {})
    limits = kwargs.pop("limits", Limits(wall_seconds=10))
    return asyncio.run(connector.call(op, args, limits=limits, **kwargs))
