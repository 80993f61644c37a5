"""What a program finds in its surroundings, the calls of WASI that are ours, and what becomes of what it prints."""

import time

import pytest

from aileron_core.connectors.protocol import MIB, Limits
from tests.support.guests import (
    ECHO,
    PRINT,
    Guest,
    MakeEngine,
    call,
    escaped,
    failed,
    filling,
    output,
    printing,
    wat,
)

BADF, FAULT, NOSPC = 8, 21, 51


def wanting(name: str, types: str = "i32 i32") -> str:
    return f'(import "wasi_snapshot_preview1" "{name}" (func ${name} (param {types}) (result i32)))'


def is_(expression: str, number: int) -> str:
    """Crash unless *expression* is *number*."""
    return f"(if (i32.ne {expression} (i32.const {number})) (then unreachable))"


def vectors(*parts: tuple[int, int]) -> str:
    """Put a table of parts (where, how long) at 256."""
    return "".join(
        f"(i32.store (i32.const {256 + 8 * n}) (i32.const {where}))"
        f"(i32.store (i32.const {260 + 8 * n}) (i32.const {size}))"
        for n, (where, size) in enumerate(parts)
    )


def written_by(fd: int, n: int, into: int = 8, at: int = 256) -> str:
    return f"(call $fd_write (i32.const {fd}) (i32.const {at}) (i32.const {n}) (i32.const {into}))"


def test_a_program_has_a_name_and_nothing_else(guest: Guest) -> None:
    """One argument, its own name: Go's flag package and others index argv without a look."""
    body = (
        is_("(call $args_sizes_get (i32.const 16) (i32.const 20))", 0)
        + is_("(i32.load (i32.const 16))", 1)
        + is_("(call $args_get (i32.const 24) (i32.const 64))", 0)
        + "(i64.store (i32.const 96) (i64.load (i32.const 64)))"
        + is_("(i32.load8_u (i32.const 72))", ord("r"))
        + is_("(i32.load8_u (i32.const 73))", 0)
        + is_("(call $environ_sizes_get (i32.const 16) (i32.const 20))", 0)
        + is_("(i32.load (i32.const 16))", 0)
        + is_("(call $fd_prestat_get (i32.const 3) (i32.const 16))", BADF)
    )
    names = ("args_sizes_get", "args_get", "environ_sizes_get", "fd_prestat_get")
    output(call(guest(wat(body, imports="".join(map(wanting, names))))))


def test_nothing_that_a_program_keeps_is_there_in_the_next_call(guest: Guest) -> None:
    """Neither its memory nor its globals: the second call crashes if it finds what the first left."""
    found = is_("(i32.load (i32.const 512))", 0) + is_("(global.get $kept)", 0)
    kept = "(i32.store (i32.const 512) (i32.const 1)) (global.set $kept (i32.const 1))"
    connector = guest(wat(found + kept, imports="(global $kept (mut i32) (i32.const 0))"))
    for _ in range(2):
        output(call(connector))


def test_parts_of_output_are_one_output(guest: Guest) -> None:
    """A libc flushes a buffer and what did not fit it in one call; an empty part is a part."""
    text = '{"output": "one, two"}'
    body = vectors((1024, 10), (1, 0), (1034, len(text) - 10)) + is_(written_by(1, 3), 0)
    body += is_("(i32.load (i32.const 8))", len(text))
    assert output(call(guest(wat(body, data=escaped(text))))) == "one, two"


@pytest.mark.parametrize(
    ("fd", "parts", "count", "into", "error"),
    [
        (0, ((0, 1),), 1, 8, BADF),
        (-1, ((0, 1),), 1, 8, BADF),
        (1, ((-1, 1),), 1, 8, FAULT),
        (2, ((0, 1), (65536, 1)), 2, 8, FAULT),
        (1, ((0, 0),), 1, 65534, FAULT),
        (1, ((0, 0),), -1, 8, 0),
        (1, (), 0, 8, 0),
    ],
)
def test_output_with_wild_numbers_is_an_error_number(guest: Guest, fd: int, parts: tuple[tuple[int, int], ...], count: int, into: int, error: int) -> None:  # fmt: skip
    """A descriptor nobody opened, a part outside memory, a result that has no room: an errno each."""
    output(call(guest(wat(vectors(*parts) + is_(written_by(fd, count, into), error)))))


def test_parts_that_overlap_cost_no_more_than_there_is_room(guest: Guest) -> None:
    """A table of 8 kB names 64 GiB: the host copies what it keeps and nothing else."""
    table = """(local $i i32) (loop $next
      (i32.store (i32.add (i32.const 4096) (i32.mul (local.get $i) (i32.const 8))) (i32.const 0))
      (i32.store (i32.add (i32.const 4100) (i32.mul (local.get $i) (i32.const 8))) (i32.const 60000000))
      (br_if $next (i32.lt_u (local.tee $i (i32.add (local.get $i) (i32.const 1))) (i32.const 1024))))"""
    flood = is_(written_by(2, 1024, at=4096), 0) + is_(written_by(1, 1024, at=4096), NOSPC)
    connector = guest(wat(table + flood, pages=1000))
    call(guest(wat("")))
    call(connector)
    began = time.process_time()
    result = call(connector)
    assert time.process_time() - began < 0.5
    assert failed(result).details == {"limit": "stdout", "configured": f"{8 * MIB} bytes"}


def test_what_fits_is_taken_before_what_does_not(guest: Guest) -> None:
    """The number of bytes taken is told, as of any write."""
    body = vectors((1024, 30), (1024, 100)) + is_(written_by(1, 2), NOSPC)
    body += is_("(i32.load (i32.const 8))", 30)
    result = call(guest(wat(body)), limits=Limits(stdout_bytes=120))
    assert failed(result).details["limit"] == "stdout"


def test_a_sleep_until_a_time_of_the_guests_own_clock_lasts_until_then(
    guest: Guest, make_engine: MakeEngine
) -> None:
    """Although it was compiled, and waited, between its call and its start."""
    body = (
        is_("(call $clock_time_get (i32.const 1) (i64.const 1) (i32.const 16))", 0)
        + "(i64.store (i32.const 64) (i64.const 7)) (i32.store (i32.const 80) (i32.const 1))"
        + "(i64.store (i32.const 88) (i64.add (i64.load (i32.const 16)) (i64.const 300000000)))"
        + "(i32.store16 (i32.const 104) (i32.const 1))"
        + is_("(call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 512))", 0)
        + is_("(call $clock_time_get (i32.const 1) (i64.const 1) (i32.const 24))", 0)
        + "(if (i64.lt_u (i64.load (i32.const 24)) (i64.load (i32.const 88))) (then unreachable))"
    )
    padding = "".join(f"(func (result i32) (i32.const {n}))" for n in range(4000))
    text = wat(body, imports=wanting("clock_time_get", "i32 i64 i32") + padding)
    connector = guest(text, on=make_engine())
    began = time.monotonic()
    output(call(connector))
    assert time.monotonic() - began >= 0.3


def test_input_is_text_as_it_is_and_half_a_pair_as_json_spells_it(guest: Guest) -> None:
    """UTF-8, so that the simplest reader of JSON can read it; what has no UTF-8 form arrives too."""
    args = {"é": "ü€😀\u2028\u0000"}
    echo = guest(wat(ECHO, data=escaped('{"output":}'), pages=2))
    assert output(call(echo, args=args))["args"] == args
    lengths = wat(
        """(local $n i32)
        (i32.store (i32.const 0) (i32.const 4096)) (i32.store (i32.const 4) (i32.const 30000))
        (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (call $exit (i32.load (i32.const 8)))"""
    )

    def size(args: dict[str, str]) -> str:
        failure = failed(call(guest(lengths), args=args))
        return failure.message.removeprefix("the connector exited with ")

    raw, spelled = '{"op": "x", "args": {"a": "ü"}}', r'{"op": "x", "args": {"a": "\ud800"}}'
    assert (size({"a": "ü"}), size({"a": "\ud800"})) == (str(len(raw.encode())), str(len(spelled)))


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ("\n", {}),
        ('{"output": {"a": [1, "x", null, true]}}\n', {"a": [1, "x", None, True]}),
        ('{"output": null}', None),
        ('{"output": 1, "error": null}', 1),
    ],
)
def test_an_output_is_handed_on_exactly(guest: Guest, text: str, output: object) -> None:
    """Integers keep every digit; nothing printed is success with {}."""
    result = call(guest(printing(text)))
    assert (result.failure, result.output) == (None, output)


@pytest.mark.parametrize(
    "class_", ["external_api_error", "binding_failed", "capability_denied", "internal_error"]
)
@pytest.mark.parametrize("code", [0, 1, -1])
def test_a_typed_error_keeps_only_classes_that_a_connector_can_know(
    guest: Guest, class_: str, code: int
) -> None:
    """Also after a non-zero exit, and one above 125, which wasmtime calls a trap."""
    text = f'{{"error": {{"class": "{class_}", "message": "no such team"}}}}'
    failure = failed(call(guest(printing(text, then=f"(call $exit (i32.const {code}))"))))
    known = class_ in ("external_api_error", "binding_failed")
    kept = class_ if known else "connector_runtime_error"
    assert (failure.class_, failure.message) == (kept, "no such team")


@pytest.mark.parametrize("error_json", ["3", "{}", '{"class": 5, "message": ["x"]}', '"words"'])
def test_a_malformed_error_is_still_an_error(guest: Guest, error_json: str) -> None:
    result = call(guest(printing(f'{{"output": 1, "error": {error_json}}}')))
    assert (result.output, failed(result).class_) == (None, "connector_runtime_error")
    assert failed(result).message


NO_JSON = (
    *(b"hello", b"{} {}", b'{"output": NaN}', b'{"output": 1e999}', b'{"output": {"a":'),
    *(b'{"output": "\\ud800"}', b'{"output": "\xff"}', b'{"output": "\xed\xa0\x80"}'),
    *(b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}", b'{"output": 1}\x00'),
    b'{"output": ' + b"9" * 5000 + b"}",
    b'{"output": ' + b'{"a":' * 300 + b"1" + b"}" * 300 + b"}",
    b'{"error": {"message": "' + b"[" * 100 + b'"',
)


@pytest.mark.parametrize("raw", NO_JSON)
def test_bytes_that_are_no_json_of_ours_are_a_runtime_error(guest: Guest, raw: bytes) -> None:
    """Half a JSON, wrong UTF-8, a byte order mark, more than 200 levels: told, never guessed at."""
    failure = failed(call(guest(printing(raw))))
    assert failure.class_ == "connector_runtime_error"
    assert "not one JSON object" in failure.message


def test_an_output_of_two_hundred_levels_is_an_output(guest: Guest) -> None:
    """The bound is the executor's, which a stored output has to keep."""
    assert call(guest(printing('{"output": ' + "[" * 200 + "]" * 200 + "}"))).failure is None


@pytest.mark.parametrize("code", [0, 1, 255])
def test_a_guest_that_prints_nothing_is_judged_by_its_exit_code(guest: Guest, code: int) -> None:
    """Nothing and 0 is success with {}; nothing and another code is a failure that names it."""
    result = call(guest(wat(f"(call $exit (i32.const {code}))")))
    if code == 0:
        assert (result.failure, result.output) == (None, {})
    else:
        named = "a code above 125" if code == 255 else code
        assert failed(result).message == f"the connector exited with {named}"


def test_a_long_complaint_is_reported_by_its_beginning_and_its_end(guest: Guest) -> None:
    """Go says why it panics first, Rust last; what is left out between is counted."""
    said = "panic: first" + "." * 5000 + "last words"
    message = failed(call(guest(printing(said, fd=2, then="(call $exit (i32.const 3))")))).message
    assert message.startswith("the connector exited with 3; stderr: panic: first...")
    assert message.endswith("...last words")
    assert f"[... {len(said) - 512} bytes ...]" in message


@pytest.mark.parametrize("value", ["1,", '"k":1,', '"\\"",'], ids=["int", "key", "quote"])
def test_a_million_small_values_are_refused_before_parsing(guest: Guest, value: str) -> None:
    """Parsing 8 MiB of them stops every other thread for a second, and costs 40 times their size."""
    failure = failed(call(guest(filling("", value, 7_000_000, "", PRINT))))
    assert failure.class_ == "resource_limit_exceeded"
    assert failure.details["limit"] == "output_values"
