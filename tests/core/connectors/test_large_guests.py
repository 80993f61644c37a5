"""Guests that hand over as much as they may, while others want the interpreter."""

import asyncio
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import pytest

from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.connectors.wasm.envelope import read_envelope
from aileron_core.connectors.wasm.guest_result import guest_result
from aileron_core.connectors.wasm.invocation import GuestExit
from tests.fast.property.test_guest_slices import at_once
from tests.support.guests import HOSTS, Guest, call, escaped, failed, filling, wat
from tests.support.making import an_invocation

MIB = 1024 * 1024
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
