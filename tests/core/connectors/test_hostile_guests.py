"""Guests that spin, sleep, grow, flood, crash and hand over much: each ends within its limits, as what it was."""

import asyncio
import gc
import json
import logging
import threading
import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from wasmtime._func import FUNCTIONS

from aileron_core.connectors.protocol import MIB, Limits, OpResult
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.connectors.wasm.envelope import read_envelope
from aileron_core.connectors.wasm.guest_result import guest_result
from aileron_core.connectors.wasm.invocation import GuestExit
from tests.fast.property.test_guest_slices import at_once
from tests.support.guests import (
    HOSTS,
    SPIN,
    Guest,
    MakeEngine,
    call,
    escaped,
    failed,
    filling,
    output,
    printing,
    resident,
    wat,
)
from tests.support.making import an_invocation

SHORT = Limits(wall_seconds=0.3)
# One clock subscription at 64: userdata 7, tag 0, monotonic, relative, *n* nanoseconds.
SLEEP = """
  (i64.store (i32.const 64) (i64.const 7)) (i32.store8 (i32.const 72) (i32.const 0))
  (i32.store (i32.const 80) (i32.const 1)) (i64.store (i32.const 88) (i64.const {nanoseconds}))
  (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 512)))"""
GROW = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable"


@pytest.mark.parametrize("before", ["", SLEEP.format(nanoseconds=60 * 10**9)], ids=["", "asleep"])
def test_a_spinning_guest_is_stopped_at_its_wall_limit(guest: Guest, before: str) -> None:
    began = time.monotonic()
    result = call(guest(wat(before + SPIN)), limits=SHORT)
    assert failed(result).class_ == "resource_limit_exceeded"
    assert failed(result).details == {"limit": "wall_time", "configured": "0.3s"}
    assert 0.3 <= time.monotonic() - began < 15


def test_a_guest_sleeps_as_long_as_it_asked(guest: Guest) -> None:
    body = SLEEP.format(nanoseconds=150_000_000) + (
        "(if (i64.ne (i64.load (i32.const 256)) (i64.const 7)) (then unreachable))"
        "(if (i32.ne (i32.load (i32.const 512)) (i32.const 1)) (then unreachable))"
    )
    began = time.monotonic()
    assert call(guest(wat(body))).failure is None
    assert time.monotonic() - began >= 0.15


def test_poll_with_wild_pointers_is_an_error_number(guest: Guest) -> None:
    good, body = (64, 256, 1, 512), ""
    for at, wild in ((0, -8), (1, -8), (3, -1), (2, 0), (2, -1)):
        numbers = (*good[:at], wild, *good[at + 1 :])
        arguments = " ".join(f"(i32.const {number})" for number in numbers)
        body += f"(if (i32.eqz (call $poll {arguments})) (then unreachable))"
    assert call(guest(wat(body))).failure is None


def test_memory_beyond_the_limit_is_told_apart(guest: Guest) -> None:
    """A guest grows until it may not, starts too large, or says so on stderr and exits with 2, as Go."""
    small = Limits(memory_mib=4)
    grown = failed(call(guest(wat(GROW)), limits=small))
    assert grown.class_ == "resource_limit_exceeded"
    assert grown.details == {"limit": "memory", "configured": "4 MiB"}
    large = call(guest(wat("", pages=200)), limits=small)
    out, exits = "fatal error: runtime: out of memory\n", "(call $exit (i32.const 2))"
    for result in (large, call(guest(printing(out, fd=2, then=exits)))):
        assert failed(result).details["limit"] == "memory"


def test_a_flood_on_stdout_is_cut_and_fails(guest: Guest) -> None:
    """Half an output is none, although the guest itself exits 0."""
    text = '{"output": "' + "x" * 30_000 + '"}'
    failure = failed(call(guest(printing(text)), limits=Limits(stdout_bytes=10_000)))
    assert failure.class_ == "resource_limit_exceeded"
    assert failure.details == {"limit": "stdout", "configured": "10000 bytes"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("unreachable", "unreachable"),
        ("(drop (i32.load (i32.const -4)))", "out of bounds"),
        ("(drop (i32.div_u (i32.const 1) (i32.const 0)))", "divide by zero"),
        ("(call $f)", "call stack exhausted"),
    ],
)
def test_a_crash_is_a_runtime_error_with_its_cause(guest: Guest, body: str, words: str) -> None:
    failure = failed(call(guest(wat(body, imports="(func $f (call $f))"))))
    assert failure.class_ == "connector_runtime_error"
    assert words in failure.message


def test_host_functions_bear_wild_pointers(guest: Guest) -> None:
    """Every range is held against the guest's memory; a bad one is -2, -1 or nothing."""
    body = """
      (if (i32.ne (call $request (i32.const -1) (i32.const 10)) (i32.const -2)) (then unreachable))
      (if (i32.ne (call $request (i32.const 0) (i32.const -1)) (i32.const -2)) (then unreachable))
      (if (i32.ne (call $request (i32.const 0) (i32.const 0)) (i32.const -2)) (then unreachable))
      (if (i32.ne (call $size) (i32.const -1)) (then unreachable))
      (if (i32.ne (call $status) (i32.const -1)) (then unreachable))
      (if (i32.ne (call $read (i32.const 0) (i32.const 9)) (i32.const -1)) (then unreachable))
      (call $log (i32.const -1) (i32.const -1) (i32.const -1) (i32.const -1))"""
    failure = failed(call(guest(wat(body))))
    assert failure.class_ == "connector_runtime_error"
    assert "cannot be sent" in failure.message


async def running_calls(
    connector: WasmConnector, *, calls: int = 1, seconds: float = 100
) -> list[asyncio.Task[OpResult]]:
    """Call a guest that does not end by itself, and wait until it runs."""
    await connector.prepare()
    limits = Limits(wall_seconds=seconds)
    running = [asyncio.ensure_future(connector.call("x", {}, limits=limits)) for _ in range(calls)]
    while len(connector.engine._running) < calls:
        await asyncio.sleep(0)
    return running


async def test_a_cancelled_call_has_stopped_its_guest(guest: Guest) -> None:
    """CancelledError comes when the guest is gone, not before."""
    connector = guest(wat(SPIN))
    began = time.monotonic()
    (task,) = await running_calls(connector)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert not connector.engine._running
    assert time.monotonic() - began < 20


async def test_a_spinning_guest_shares_the_processor(make_engine: MakeEngine, guest: Guest) -> None:
    """With one turn to take, another guest gets it long before the spinning one ends."""
    engine = make_engine(max_guests=1)
    quick = guest(printing('{"output": 1}'), on=engine)
    await quick.prepare()
    (spinning,) = await running_calls(guest(wat(SPIN), on=engine), seconds=20)
    assert (await quick.call("x", {}, limits=Limits())).output == 1
    assert not spinning.done()
    spinning.cancel()
    await asyncio.wait({spinning})


async def test_a_call_late_for_its_turn_does_nothing(make_engine: MakeEngine, guest: Guest) -> None:
    """Every thread is taken by guests that sleep; the late one ends with its limit, and says why."""
    engine = make_engine()
    late = guest(printing('{"output": "too late"}'), on=engine)
    await late.prepare()
    sleeper = guest(wat(SLEEP.format(nanoseconds=100_000_000_000)), on=engine)
    sleeping = await running_calls(sleeper, calls=32)
    failure = failed(await late.call("x", {}, limits=SHORT))
    assert failure.details["limit"] == "wall_time"
    assert "did not get to run within 0.3s" in failure.message
    assert not any(each.done() for each in sleeping)
    for each in sleeping:
        each.cancel()
    await asyncio.wait(sleeping)


async def test_closing_stops_guests_and_threads(make_engine: MakeEngine, guest: Guest) -> None:
    """close() comes back with every guest ended; a late call ends so too, and with no exception."""
    before = {thread.ident for thread in threading.enumerate()}
    engine = make_engine()
    late = guest(printing("{}"), on=engine)
    (task,) = await running_calls(guest(wat(SPIN), on=engine))
    await asyncio.to_thread(engine.close)
    assert failed(await task).class_ == "unavailable"
    ours = [t.name for t in threading.enumerate() if t.ident not in before and "aileron" in t.name]
    assert ours == []
    assert failed(await late.call("x", {}, limits=Limits())).class_ == "unavailable"


def test_closing_leaves_nothing_in_wasmtimes_table(make_engine: MakeEngine, guest: Guest) -> None:
    """Host functions are handles in a table of the package; ours are gone."""
    gc.collect()  # what earlier tests left to the collector is not ours to count
    before = len(FUNCTIONS.handles)
    engine = make_engine()
    connector = guest(printing("{}"), on=engine)
    for _ in range(3):
        call(connector)
    engine.close()
    gc.collect()
    assert len(FUNCTIONS.handles) <= before


def test_what_guests_log_holds_no_argument(guest: Guest, caplog: pytest.LogCaptureFixture) -> None:
    """Log lines come at DEBUG, with arguments struck out and control characters visible."""
    line = "token=s3cret-arg\x1b[31m"
    body = f"(call $log (i32.const 1024) (i32.const 4) (i32.const 1028) (i32.const {len(line)}))"
    connector = guest(wat(body, data=escaped("warn" + line)))
    with caplog.at_level(logging.DEBUG, logger="aileron.connector"):
        call(connector, args={"a": {"b": ["s3cret-arg"]}})
        call(connector, args={}, read_only=True)
    first, second = [r for r in caplog.records if r.name == "aileron.connector"]
    assert first.levelno == logging.DEBUG
    assert first.getMessage() == "local://tests/guest WARNING: 'token=[argument]\\x1b[31m'"
    assert "token" not in second.getMessage()


def before_start(text: str, body: str) -> str:
    """The same module with a start section that does *body* before `_start` is called."""
    return text.rstrip()[:-1] + f"(func $before {body}) (start $before))"


def test_a_program_may_exit_before_its_main_function(guest: Guest) -> None:
    text = wat("unreachable", data=escaped('{"output": 1}'))
    say = "(call $print (i32.const 1) (i32.const 1024) (i32.const 13)) (call $exit (i32.const {}))"
    assert call(guest(before_start(text, say.format(0)))).output == 1
    failure = failed(call(guest(before_start(text, say.format(3)))))
    assert failure.message == "the connector exited with 3"


def test_a_start_section_runs_before_the_command_within_the_same_limits(guest: Guest) -> None:
    """Constructors of globals run there; host functions and output work as in `_start`."""
    say = "(call $print (i32.const 1) (i32.const {}) (i32.const 9))"
    text = wat(say.format(1033), data=escaped('{"output"' + ": [1, 2]}"))
    assert call(guest(before_start(text, say.format(1024)))).output == [1, 2]
    began = time.monotonic()
    spinning = call(guest(before_start(wat(""), SPIN)), limits=SHORT)
    assert failed(spinning).details["limit"] == "wall_time"
    assert time.monotonic() - began < 15
    trapping = failed(call(guest(before_start(wat(""), "unreachable"))))
    assert trapping.class_ == "connector_runtime_error"
    assert "could not be started" in trapping.message


@pytest.mark.parametrize(
    "start",
    [
        '(func (export "_start") (param i32))',
        '(func (export "_start") (result externref) (ref.null extern))',
        '(func (export "_start") (result v128) (v128.const i64x2 1 2))',
        '(global (export "_start") i32 (i32.const 1))',
        '(table (export "_start") 1 funcref)',
    ],
)
def test_something_else_named_start_is_reported_and_not_run(guest: Guest, start: str) -> None:
    """Never an exception of the host, whatever types it has."""
    failure = failed(call(guest(f'(module (memory (export "memory") 1) {start})')))
    assert failure.class_ == "connector_runtime_error"
    assert "could not be started" in failure.message
    assert call(guest(printing('{"output": 1}'))).output == 1


def test_something_else_under_the_name_of_memory_is_no_memory(guest: Guest) -> None:
    """Every pointer is a bad one then; the host reads and writes nothing."""
    body = """
      (if (i32.ne (call $request (i32.const 0) (i32.const 0)) (i32.const -2)) (then unreachable))
      (if (i32.eqz (call $poll (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 0))) (then unreachable))
      (if (i32.eqz (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 0))) (then unreachable))
      (call $log (i32.const 0) (i32.const 1) (i32.const 0) (i32.const 1))"""
    text = wat(body).replace('(memory (export "memory") 1)', '(memory 1) (func (export "memory"))')
    assert "cannot be sent" in failed(call(guest(text))).message


def test_many_exports_cost_nothing(guest: Guest) -> None:
    """They are looked up by name; a module with 50,000 of them starts like any other."""
    exports = "".join(f'(export "e{n}" (func $f))' for n in range(50_000))
    text = f'(module (memory (export "memory") 1) (func $f) {exports} (export "_start" (func $f)))'
    connector = guest(text)
    call(connector)
    began = time.process_time()
    assert call(connector).failure is None
    assert time.process_time() - began < 1


def test_a_crash_is_told_in_the_hosts_words_and_not_in_the_guests_names(guest: Guest) -> None:
    """Functions can be named like anything, a report of another end included."""
    name = "x\\0a\\0aCaused by:\\0a    exit with invalid exit status outside of [0..126)"
    text = wat("(call $evil)", imports=f'(func $evil (@name "{name}") unreachable)')
    trap = "wasm trap: wasm `unreachable` instruction executed"
    assert failed(call(guest(text))).message == f"the connector crashed: {trap}"


def test_an_uncaught_exception_is_a_crash_and_a_heap_of_them_a_memory_limit(guest: Guest) -> None:
    """Exceptions lie in a heap beside the memory, bounded by the same limit."""
    tag = "(tag $t (param exnref))"
    assert "crashed" in failed(call(guest(wat("(throw $t (ref.null exn))", imports=tag)))).message
    chain = """(local $e exnref) (loop $l
      (block $h (result exnref exnref)
        (try_table (catch_ref $t $h) (throw $t (local.get $e))) unreachable)
      (local.set $e) (drop) (br $l))"""
    limits = Limits(memory_mib=8, wall_seconds=20)
    failure = failed(call(guest(wat(chain, imports=tag)), limits=limits))
    assert failure.details == {"limit": "memory", "configured": "8 MiB"}


def repeated(what: str, times: int) -> str:
    return f"""(local $i i32) (loop $again {what}
      (br_if $again (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const {times}))))"""


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
        assert failed(result).details == {"limit": "stdout", "configured": f"{8 * MIB} bytes"}
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
    assert (failed(result).details["limit"], result.requests_sent) == ("requests", 0)


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


def hostile_guests(guest: Guest, on: WasmEngine) -> list[WasmConnector]:
    """One guest of each kind, each with an end of its own."""
    bodies = [
        SPIN,
        SLEEP.format(nanoseconds=60 * 10**9) + " unreachable",
        GROW,
        "(call $print (i32.const 2) (i32.const 0) (i32.const 9)) unreachable",
        "(drop (i32.load (i32.const -4)))",
        "(call $exit (i32.const 1))",
        "(call $exit (i32.const 2))",
        "(drop (call $request (i32.const -1) (i32.const -1)))",
        repeated("(call $print (i32.const 1) (i32.const 0) (i32.const 60000))", 1700),
        repeated("(drop (call $request (i32.const 1024) (i32.const 30)))", 10_000),
    ]
    texts = [wat(body) for body in bodies]
    texts += [wat("(call $f)", imports="(func $f (call $f))"), wat("unreachable")]
    texts += [printing(said) for said in ('{"output": {', "noise", '{"error": {}}')]
    texts.append(printing("{}").replace("\\7b\\7d", "\\ff\\fe"))
    texts.append(printing('{"output": ' + "[" * 5000 + "]" * 5000 + "}"))
    return [guest(text, on=on) for text in texts]


def test_calls_of_sixteen_threads_leave_nothing(make_engine: MakeEngine, guest: Guest) -> None:
    """No thread, no file descriptor, no memory; and no innocent call is harmed on the way."""
    limits = Limits(wall_seconds=0.5, memory_mib=8)

    def round_of_calls() -> None:
        engine = make_engine()
        good = guest(printing('{"output": {"fine": true}}'), on=engine)
        bad = hostile_guests(guest, engine)
        mixed = [good if n % 2 else bad[n // 2 % len(bad)] for n in range(200)]

        async def some(mine: list[WasmConnector]) -> list[OpResult]:
            wide = Limits(wall_seconds=60, memory_mib=8)
            calls = (c.call("x", {}, limits=wide if c is good else limits) for c in mine)
            return await asyncio.gather(*calls)

        with ThreadPoolExecutor(16) as threads:
            parts = [mixed[n::16] for n in range(16)]
            ended = list(threads.map(lambda part: asyncio.run(some(part)), parts))
        for part, results in zip(parts, ended, strict=True):
            for connector, result in zip(part, results, strict=True):
                assert (result.output == {"fine": True}) is (connector is good), result
        engine.close()

    round_of_calls()
    gc.collect()
    threads, grown = threading.active_count(), list[int]()
    open_files = Path("/proc/self/fd")
    files = len([*open_files.iterdir()])
    # The allocator of sixteen threads takes its share in the first rounds; a leak takes it in each.
    while len(grown) < 10 and not (grown and grown[-1] < 16 * MIB):
        memory = resident()
        round_of_calls()
        gc.collect()
        grown.append(resident() - memory)
    # Not equal: a thread or socket of an earlier test's service may end meanwhile.
    assert threading.active_count() <= threads
    assert len([*open_files.iterdir()]) <= files
    assert grown[-1] < 16 * MIB, grown


REQUEST = "(drop (call $request (i32.const {at}) (i32.const {total})))"
ENVELOPE = '{"url": "https://api.example/x", "body": "'


@contextmanager
def longest_wait() -> Generator[list[float]]:
    """Measure how long at most a thread that wants the interpreter all the time had to wait for it.

    In processor time of this process: while another program has the processor, nobody holds the interpreter.
    """
    gaps, over = [0.0], threading.Event()

    def beat() -> None:
        last = time.process_time()
        while not over.is_set():
            time.sleep(0.001)
            now = time.process_time()
            gaps[0] = max(gaps[0], now - last)
            last = now

    thread = threading.Thread(target=beat)
    thread.start()
    try:
        yield gaps
    finally:
        over.set()
        thread.join()


@pytest.mark.parametrize("unit", ["\\ud800", "\\udc00\\n"])
def test_a_large_request_of_half_pairs_is_refused_and_stops_nobody(
    guest: Guest, routed: WasmEngine, service: Any, unit: str
) -> None:
    """It was read in one step, which took seconds for which no other call and no key was answered."""
    connector = guest(filling(ENVELOPE, unit, 15 * MIB, '"}', REQUEST), HOSTS, on=routed)
    with longest_wait() as gaps:
        result = call(connector)
    assert gaps[0] < 0.5
    assert "body cannot be read: a string in it contains a lone surrogate" in failed(result).message
    assert service.seen == []


def test_a_large_body_of_escapes_arrives_whole_and_stops_nobody(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """Pairs of surrogates are characters; what is sent is their UTF-8."""
    service.reply("/x")
    text = filling(ENVELOPE, "\\ud83d\\ude00", 15 * MIB, '"}', REQUEST)
    with longest_wait() as gaps:
        result = call(guest(text, HOSTS, on=routed), limits=Limits(wall_seconds=60))
    assert (result.failure, result.requests_sent) == (None, 1)
    assert service.seen[0][3] == "😀".encode() * (15 * MIB // 12)
    assert gaps[0] < 0.5


@pytest.mark.parametrize("why", ["wall", "person"])
def test_reading_what_it_printed_counts_against_the_run(leaping: Any, why: Any) -> None:
    """A large output is read within the wall limit, and a stop of everything ends the reading."""
    run = an_invocation(leaping, 5)
    run.stdout += b'{"output": "' + b"\\n" * MIB + b'"}'
    if why == "wall":
        leaping.leap(6)
    else:
        run.stop("person")
    failure = failed(guest_result(GuestExit(ending="returned"), run))
    assert failure.class_ == ("resource_limit_exceeded" if why == "wall" else "unavailable")
    leaping.level()


def test_a_request_has_16_mib_of_body_and_little_else() -> None:
    """A body counts as it is spelled; everything else together may take 256 KiB."""

    def read(head: bytes, body: bytes) -> Any:
        envelope = b'{"url": "https://a/"' + head + b', "body": "' + body + b'"}'
        return read_envelope(envelope, at_once)

    assert len(read(b"", b"x" * 16 * MIB).body or b"") == 16 * MIB
    with pytest.raises(ValueError, match="body is larger than 16777216 bytes"):
        read(b"", b"x" * (16 * MIB + 1))
    header = b', "headers": {"A": "' + b"x" * 255 * 1024 + b'"}'
    assert len(read(header, b"x" * MIB).headers["A"]) == 255 * 1024
    for head in (
        b', "headers": {"A": "' + b"x" * 257 * 1024 + b'"}',
        b', "credential": "' + b"x" * 257 * 1024 + b'"',
        b', "y": "' + b"x" * 257 * 1024 + b'"',
        b', "y": [' + b"{}," * 90_000 + b"1]",
    ):
        with pytest.raises(ValueError, match="the request without its body is larger"):
            read(head, b"x" * MIB)


def test_an_answer_is_read_again_and_again_without_stopping_anybody(
    guest: Guest, routed: WasmEngine, service: Any
) -> None:
    """Each reading copies 8 MiB into the guest, in parts."""
    service.reply("/x", body=b"x" * 8 * MIB)
    envelope = '{"url": "https://api.example/x"}'
    body = f"""(local $n i32)
      (drop (call $request (i32.const 1024) (i32.const {len(envelope)})))
      (loop $again
        (drop (call $read (i32.const 65536) (i32.const {8 * MIB - 1})))
        (local.set $n (i32.add (local.get $n) (i32.const 1)))
        (br_if $again (i32.lt_u (local.get $n) (i32.const 20))))"""
    connector = guest(wat(body, data=escaped(envelope), pages=140), HOSTS, on=routed)
    with longest_wait() as gaps:
        result = asyncio.run(connector.call("x", {}, limits=Limits(wall_seconds=60)))
    assert result.failure is None
    assert gaps[0] < 0.5
