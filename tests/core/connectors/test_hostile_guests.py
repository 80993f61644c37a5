"""Guests that spin, sleep, grow, flood and crash: each ends within its limits, as what it was."""

import asyncio
import gc
import logging
import threading
import time

import pytest
from wasmtime._func import FUNCTIONS

from aileron_core.connectors.protocol import Limits, OpResult
from tests.core.connectors.guests import Guest, MakeEngine, call, escaped, printing, wat

SPIN = "(loop $l (br $l))"
SHORT = Limits(wall_seconds=0.3)
# One clock subscription at 64: userdata 7, tag 0, monotonic, relative, *n* nanoseconds.
SLEEP = """
  (i64.store (i32.const 64) (i64.const 7)) (i32.store8 (i32.const 72) (i32.const 0))
  (i32.store (i32.const 80) (i32.const 1)) (i64.store (i32.const 88) (i64.const {nanoseconds}))
  (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 512)))"""


def failure_of(result: OpResult) -> tuple[str, dict[str, object]]:
    assert result.failure is not None
    return result.failure.class_, dict(result.failure.details)


def test_a_spinning_guest_is_stopped_at_its_wall_limit(guest: Guest) -> None:
    """An endless loop costs its wall time and no more."""
    began = time.monotonic()
    result = call(guest(wat(SPIN)), limits=SHORT)
    assert failure_of(result) == (
        "resource_limit_exceeded",
        {"limit": "wall_time", "configured": "0.3s"},
    )
    assert 0.3 <= time.monotonic() - began < 15


def test_a_sleeping_guest_is_stopped_at_its_wall_limit(guest: Guest) -> None:
    """poll_oneoff ends with the limit, and the guest with it."""
    began = time.monotonic()
    result = call(guest(wat(SLEEP.format(nanoseconds=60 * 10**9) + SPIN)), limits=SHORT)
    assert failure_of(result)[1]["limit"] == "wall_time"
    assert time.monotonic() - began < 15


def test_a_guest_sleeps_as_long_as_it_asked(guest: Guest) -> None:
    """A sleep within the limit is a sleep, and the event names who waited."""
    body = SLEEP.format(nanoseconds=150_000_000) + (
        "(if (i64.ne (i64.load (i32.const 256)) (i64.const 7)) (then unreachable))"
        "(if (i32.ne (i32.load (i32.const 512)) (i32.const 1)) (then unreachable))"
    )
    began = time.monotonic()
    result = call(guest(wat(body)))
    assert result.failure is None
    assert time.monotonic() - began >= 0.15


@pytest.mark.parametrize(
    "arguments",
    [
        "(i32.const -8) (i32.const 256) (i32.const 1) (i32.const 512)",
        "(i32.const 64) (i32.const -8) (i32.const 1) (i32.const 512)",
        "(i32.const 64) (i32.const 256) (i32.const 1) (i32.const -1)",
        "(i32.const 64) (i32.const 256) (i32.const 0) (i32.const 512)",
        "(i32.const 64) (i32.const 256) (i32.const -1) (i32.const 512)",
    ],
)
def test_poll_with_wild_pointers_is_an_error_number(guest: Guest, arguments: str) -> None:
    """The guest gets an errno; nothing else of the process is touched."""
    body = f"(if (i32.eqz (call $poll {arguments})) (then unreachable))"
    assert call(guest(wat(body))).failure is None


def test_memory_beyond_the_limit_is_told_apart(guest: Guest) -> None:
    """A guest that grows until it may not and crashes failed for memory."""
    grow = "(loop $l (br_if $l (i32.ne (memory.grow (i32.const 16)) (i32.const -1)))) unreachable"
    result = call(guest(wat(grow)), limits=Limits(memory_mib=4))
    assert failure_of(result) == (
        "resource_limit_exceeded",
        {"limit": "memory", "configured": "4 MiB"},
    )


def test_a_module_that_starts_too_large_failed_for_memory(guest: Guest) -> None:
    """Refused before its first instruction."""
    result = call(guest(wat("", pages=200)), limits=Limits(memory_mib=4))
    assert failure_of(result)[1]["limit"] == "memory"


def test_exit_2_after_out_of_memory_failed_for_memory(guest: Guest) -> None:
    """Go says so on stderr and exits; that is memory, not a crash."""
    text = "fatal error: runtime: out of memory\n"
    result = call(guest(printing(text, fd=2, then="(call $exit (i32.const 2))")))
    assert failure_of(result)[1]["limit"] == "memory"


def test_a_flood_on_stdout_is_cut_and_fails(guest: Guest) -> None:
    """Half an output is none, although the guest itself exits 0."""
    text = '{"output": "' + "x" * 30_000 + '"}'
    result = call(guest(printing(text)), limits=Limits(stdout_bytes=10_000))
    assert failure_of(result) == (
        "resource_limit_exceeded",
        {"limit": "stdout", "configured": "10000 bytes"},
    )


def test_a_flood_on_stderr_is_kept_short(guest: Guest) -> None:
    """A guest may complain without end; what is kept of it is bounded."""
    body = f"""(local $i i32)
      (loop $l (call $print (i32.const 2) (i32.const 1024) (i32.const 60000))
        (br_if $l (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 200))))
      {""}"""
    assert call(guest(wat(body, pages=2))).failure is None


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
    """A trap names what happened."""
    text = wat(body)
    if "$f" in body:
        text = text.replace("(func $print", "(func $f (call $f)) (func $print")
    result = call(guest(text))
    assert failure_of(result)[0] == "connector_runtime_error"
    assert result.failure is not None
    assert words in result.failure.message


def test_an_exit_code_is_reported_with_the_last_words(guest: Guest) -> None:
    """Without a typed error, code and stderr are what there is."""
    result = call(guest(printing("boom", fd=2, then="(call $exit (i32.const 3))")))
    assert result.failure is not None
    assert result.failure.message == "the connector exited with 3; stderr: boom"


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
    result = call(guest(wat(body)))
    assert failure_of(result)[0] == "connector_runtime_error"
    assert result.failure is not None
    assert "cannot be sent" in result.failure.message


def test_a_cancelled_call_has_stopped_its_guest(guest: Guest) -> None:
    """CancelledError comes when the guest is gone, not before."""
    connector = guest(wat(SPIN))
    done = threading.Event()

    async def scenario() -> bool:
        await connector.prepare()
        task = asyncio.ensure_future(connector.call("x", {}, limits=Limits(wall_seconds=60)))
        while not connector._engine._running:
            await asyncio.sleep(0)
        task.cancel()
        try:
            await task
        except asyncio.CancelledError:
            done.set()
        return not connector._engine._running

    began = time.monotonic()
    assert asyncio.run(scenario())
    assert done.is_set()
    assert time.monotonic() - began < 20


def test_innocent_guests_beside_guilty_ones_notice_nothing(
    make_engine: MakeEngine, guest: Guest
) -> None:
    """No trap, exit or host fault of one guest surfaces in another, on one engine."""
    engine = make_engine(max_guests=2)
    good = guest(
        printing('{"output": {"fine": true}}', then="(call $exit (i32.const 0))"), on=engine
    )
    bad = [
        guest(wat("unreachable"), on=engine),
        guest(wat("(drop (call $request (i32.const -1) (i32.const 1))) (call $exit (i32.const 7))"), on=engine),
        guest(printing("noise", then="(call $exit (i32.const 2))"), on=engine),
    ]  # fmt: skip

    async def scenario() -> tuple[list[OpResult], list[OpResult]]:
        rounds = [good, *bad] * 60
        results = await asyncio.gather(*(c.call("x", {}, limits=Limits()) for c in rounds))
        fine = [r for c, r in zip(rounds, results, strict=True) if c is good]
        return fine, [r for c, r in zip(rounds, results, strict=True) if c is not good]

    fine, broken = asyncio.run(scenario())
    assert all(r.failure is None and r.output == {"fine": True} for r in fine)
    assert all(r.failure is not None for r in broken)


def test_a_spinning_guest_shares_the_processor(make_engine: MakeEngine, guest: Guest) -> None:
    """With one turn to take, another guest gets it long before the spinning one ends."""
    engine = make_engine(max_guests=1)
    spinner, quick = guest(wat(SPIN), on=engine), guest(printing('{"output": 1}'), on=engine)

    async def scenario() -> tuple[OpResult, bool]:
        await asyncio.gather(spinner.prepare(), quick.prepare())
        spinning = asyncio.ensure_future(spinner.call("x", {}, limits=Limits(wall_seconds=20)))
        while not engine._running:
            await asyncio.sleep(0)
        result = await quick.call("x", {}, limits=Limits())
        still = not spinning.done()
        spinning.cancel()
        await asyncio.wait({spinning})
        return result, still

    result, still_spinning = asyncio.run(scenario())
    assert result.output == 1
    assert still_spinning


def test_a_call_whose_time_is_over_before_its_turn_does_nothing(
    make_engine: MakeEngine, guest: Guest
) -> None:
    """Every thread is taken by guests that sleep; the late one ends with its limit, and says why."""
    engine = make_engine()
    sleeper = guest(wat(SLEEP.format(nanoseconds=100_000_000_000)), on=engine)
    late = guest(printing('{"output": "too late"}'), on=engine)

    async def scenario() -> tuple[OpResult, bool]:
        await asyncio.gather(sleeper.prepare(), late.prepare())
        long = Limits(wall_seconds=100)
        sleeping = [asyncio.ensure_future(sleeper.call("x", {}, limits=long)) for _ in range(32)]
        while len(engine._running) < 32:
            await asyncio.sleep(0.01)
        result = await late.call("x", {}, limits=SHORT)
        still = not any(each.done() for each in sleeping)
        for each in sleeping:
            each.cancel()
        await asyncio.wait(sleeping)
        return result, still

    result, still_asleep = asyncio.run(scenario())
    assert failure_of(result)[1]["limit"] == "wall_time"
    assert result.failure is not None
    assert "did not get to run within 0.3s" in result.failure.message
    assert still_asleep


def test_closing_the_engine_stops_guests_and_leaves_no_thread(
    make_engine: MakeEngine, guest: Guest
) -> None:
    """close() comes back with every guest ended and every thread of ours gone."""
    before = {thread.ident for thread in threading.enumerate()}
    engine = make_engine()
    connector = guest(wat(SPIN), on=engine)

    async def scenario() -> OpResult:
        await connector.prepare()
        task = asyncio.ensure_future(connector.call("x", {}, limits=Limits(wall_seconds=60)))
        while not engine._running:
            await asyncio.sleep(0)
        await asyncio.to_thread(engine.close)
        return await task

    assert failure_of(asyncio.run(scenario()))[0] == "unavailable"
    ours = [t.name for t in threading.enumerate() if t.ident not in before and "aileron" in t.name]
    assert ours == []


def test_closing_the_engine_leaves_nothing_in_wasmtimes_table(
    make_engine: MakeEngine, guest: Guest
) -> None:
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


def test_a_call_on_a_closed_engine_is_an_answer(make_engine: MakeEngine, guest: Guest) -> None:
    """A late call ends as unavailable, not as an exception of the pool."""
    engine = make_engine()
    connector = guest(printing("{}"), on=engine)
    engine.close()
    assert failure_of(call(connector))[0] == "unavailable"


def test_no_tick_while_no_guest_runs(make_engine: MakeEngine, guest: Guest) -> None:
    """The ticker waits without end between calls."""
    engine = make_engine()
    call(guest(printing("{}"), on=engine))
    ticker = engine.ticker
    ticks = 0

    def count() -> None:
        nonlocal ticks
        ticks += 1

    with ticker._changed:
        ticker._tick = count
        ticker._changed.wait(0.1)
    assert ticks <= 1


def test_what_a_guest_logs_holds_no_argument(
    guest: Guest, caplog: pytest.LogCaptureFixture
) -> None:
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
