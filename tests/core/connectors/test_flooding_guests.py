"""Guests that flood: output, requests, tables, sheer number. Each has its bound, and the next call works."""

import asyncio
import gc
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.protocol import MIB, Limits, OpResult
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from tests.support.guests import (
    HOSTS,
    SPIN,
    Guest,
    MakeEngine,
    call,
    escaped,
    failed,
    output,
    printing,
    resident,
    wat,
)


def repeated(what: str, times: int) -> str:
    return f"""(local $i i32) (loop $again {what}
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {times}))))"""


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize("fd", [1, 2])
def test_a_hundred_megabytes_of_output_are_not_kept(guest: Guest, fd: int) -> None:
    """stdout past 8 MiB is a failure with its limit, stderr past 64 KiB is dropped; memory stays."""
    body = repeated(f"(call $print (i32.const {fd}) (i32.const 0) (i32.const 1048576))", 100)
    connector = guest(wat(body, pages=17))
    call(guest(wat("")))
    before = resident()
    result = call(connector)
    assert resident() - before < 48 * MIB
    if fd == 1:
        limit = {"limit": "stdout", "configured": f"{8 * MIB} bytes"}
        assert failed(result).details == limit
    else:
        assert (result.failure, result.output) == (None, {})


def test_ten_thousand_requests_end_at_a_thousand(guest: Guest, routed: WasmEngine, service: Any) -> None:  # fmt: skip
    """No service is flooded by one call; what had gone out is counted."""
    service.reply("/x")
    envelope = json.dumps({"url": "https://api.example/x"})
    ask = f"(drop (call $request (i32.const 1024) (i32.const {len(envelope)})))"
    asking = guest(wat(repeated(ask, 10_000), data=escaped(envelope)), HOSTS, on=routed)
    result = call(asking, limits=Limits(wall_seconds=60))
    assert failed(result).class_ == "resource_limit_exceeded"
    assert failed(result).details == {"limit": "requests", "configured": "1000 requests"}
    assert result.requests_sent == len(service.seen) == 1000


def test_ten_thousand_refused_requests_end_as_soon(guest: Guest) -> None:
    """Asking costs the host something even where nothing leaves."""
    envelope = json.dumps({"url": "https://evil.example/x"})
    ask = f"(drop (call $request (i32.const 1024) (i32.const {len(envelope)})))"
    result = call(guest(wat(repeated(ask, 10_000) + SPIN, data=escaped(envelope)), HOSTS))
    assert failed(result).details["limit"] == "requests"
    assert result.requests_sent == 0


def test_many_large_tables_are_refused(guest: Guest) -> None:
    """Tables lie outside the guest's memory, so their number is bounded like their size."""

    def with_tables(*sizes: int) -> OpResult:
        tables = "".join(f"(table {size} funcref)" for size in sizes)
        text = printing('{"output": 1}').replace("(func $print", tables + "(func $print", 1)
        return call(guest(text))

    assert failed(with_tables(*[1_000_000] * 5)).class_ == "connector_runtime_error"
    assert failed(with_tables(1_000_001))
    assert output(with_tables(30_000)) == 1
    grow = "(table.grow $t (ref.null func) (i32.const 2000000))"
    body = f"(if (i32.ne {grow} (i32.const -1)) (then unreachable))"
    assert call(guest(wat(body, imports="(table $t 1 funcref)"))).failure is None


SLEEP = """
  (i32.store8 (i32.const 72) (i32.const 0)) (i32.store (i32.const 80) (i32.const 1))
  (i64.store (i32.const 88) (i64.const 60000000000))
  (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 512))) unreachable"""
GROW = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable"


def hostile_guests(guest: Guest, on: WasmEngine) -> list[WasmConnector]:
    """One guest of each kind, each with an end of its own."""
    ask = "(drop (call $request (i32.const 1024) (i32.const 30)))"
    bodies = [
        SPIN,
        SLEEP,
        GROW,
        "(call $print (i32.const 2) (i32.const 0) (i32.const 9)) unreachable",
        "(drop (i32.load (i32.const -4)))",
        "(call $exit (i32.const 1))",
        "(call $exit (i32.const 2))",
        "(drop (call $request (i32.const -1) (i32.const -1)))",
        repeated("(call $print (i32.const 1) (i32.const 0) (i32.const 60000))", 1700),
        repeated(ask, 10_000),
    ]
    texts = [wat(body) for body in bodies]
    texts += [wat("(call $f)", imports="(func $f (call $f))"), wat("unreachable")]
    texts += [printing(said) for said in ('{"output": {', "noise", '{"error": {}}')]
    texts.append(printing("{}").replace("\\7b\\7d", "\\ff\\fe"))
    texts.append(printing('{"output": ' + "[" * 5000 + "]" * 5000 + "}"))
    return [guest(text, on=on) for text in texts]


def test_two_hundred_calls_of_sixteen_threads_leave_nothing(
    make_engine: MakeEngine, guest: Guest
) -> None:
    """No thread, no file descriptor, no memory; and no innocent call is harmed on the way."""
    limits = Limits(wall_seconds=0.5, memory_mib=8)

    def round_of_calls() -> None:
        engine = make_engine()
        good = guest(printing('{"output": {"fine": true}}'), on=engine)
        bad = hostile_guests(guest, engine)
        mixed = [good if n % 2 else bad[n // 2 % len(bad)] for n in range(200)]

        async def some(mine: list[WasmConnector]) -> list[OpResult]:
            wide = Limits(wall_seconds=60, memory_mib=8)
            return await asyncio.gather(
                *(c.call("x", {}, limits=wide if c is good else limits) for c in mine)
            )

        with ThreadPoolExecutor(16) as threads:
            parts = [mixed[n::16] for n in range(16)]
            ended = list(threads.map(lambda part: asyncio.run(some(part)), parts))
        for part, results in zip(parts, ended, strict=True):
            for connector, result in zip(part, results, strict=True):
                assert (result.output == {"fine": True}) is (connector is good), result
        engine.close()

    round_of_calls()
    gc.collect()
    threads, files, grown = threading.active_count(), open_files(), list[int]()
    # The allocator of sixteen threads takes its share in the first rounds; a leak takes it in each.
    while len(grown) < 10 and not (grown and grown[-1] < 16 * MIB):
        memory = resident()
        round_of_calls()
        gc.collect()
        grown.append(resident() - memory)
    # Not equal: a thread or socket of an earlier test's service may end meanwhile.
    assert threading.active_count() <= threads
    assert open_files() <= files
    assert grown[-1] < 16 * MIB, grown
