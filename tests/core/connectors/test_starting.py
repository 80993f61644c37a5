"""Ways to begin and to end that compilers and hostile hands have: start sections, odd `_start`s, odd names."""

import time

import pytest

from aileron_core.connectors.protocol import Limits, OpResult
from aileron_core.errors import Failure
from tests.core.connectors.guests import Guest, call, escaped, printing, wat

SPIN = "(loop $l (br $l))"


def failed(result: OpResult) -> Failure:
    assert result.failure is not None
    return result.failure


def before_start(text: str, body: str) -> str:
    """The same module with a start section that does *body* before `_start` is called."""
    return text.rstrip()[:-1] + f"(func $before {body}) (start $before))"


def test_a_start_section_runs_before_the_command(guest: Guest) -> None:
    """Constructors of globals run there; host functions and output work as in `_start`."""
    say = "(call $print (i32.const 1) (i32.const {}) (i32.const 9))"
    text = wat(say.format(1033), data=escaped('{"output"' + ": [1, 2]}"))
    assert call(guest(before_start(text, say.format(1024)))).output == [1, 2]


@pytest.mark.parametrize("code", [0, 3])
def test_a_program_may_exit_before_its_main_function(guest: Guest, code: int) -> None:
    """What it said and its code count, as of any exit."""
    said = '{"output": 1}'
    body = f"(call $print (i32.const 1) (i32.const 1024) (i32.const 13)) (call $exit (i32.const {code}))"
    result = call(guest(before_start(wat("unreachable", data=escaped(said)), body)))
    if code == 0:
        assert (result.failure, result.output) == (None, 1)
    else:
        assert failed(result).message == "the connector exited with 3"


def test_a_start_section_that_spins_is_stopped_and_one_that_traps_is_reported(guest: Guest) -> None:
    """The limits begin with the first instruction, wherever it stands."""
    began = time.monotonic()
    spinning = call(guest(before_start(wat(""), SPIN)), limits=Limits(wall_seconds=0.3))
    assert failed(spinning).details["limit"] == "wall_time"
    assert time.monotonic() - began < 15
    trapping = failed(call(guest(before_start(wat(""), "unreachable"))))
    assert (trapping.class_, "could not be started" in trapping.message) == ("connector_runtime_error", True)  # fmt: skip


@pytest.mark.parametrize(
    "start",
    [
        '(func (export "_start") (param i32))',
        '(func (export "_start") (result i32) (i32.const 1))',
        '(func (export "_start") (result externref) (ref.null extern))',
        '(func (export "_start") (result v128) (v128.const i64x2 1 2))',
        '(func (export "_start") (param funcref) (result i64 f64) unreachable)',
        '(global (export "_start") i32 (i32.const 1))',
        '(table (export "_start") 1 funcref)',
    ],
)
def test_something_else_under_the_name_of_start_is_reported_and_not_run(
    guest: Guest, start: str
) -> None:
    """Never an exception of the host, whatever types it has."""
    text = f'(module (memory (export "memory") 1) {start})'
    failure = failed(call(guest(text)))
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


def test_a_crash_is_described_in_the_hosts_words_and_not_in_names_that_the_guest_chose(
    guest: Guest,
) -> None:
    """Functions can be named like anything, a report of another end included."""
    name = "x\\0a\\0aCaused by:\\0a    exit with invalid exit status outside of [0..126)"
    text = wat("(call $evil)").replace("(func $print", f'(func $evil (@name "{name}") unreachable) (func $print', 1)  # fmt: skip
    failure = failed(call(guest(text)))
    assert failure.message == "the connector crashed: wasm trap: wasm `unreachable` instruction executed"  # fmt: skip


def test_an_uncaught_exception_is_a_crash_and_a_heap_of_them_a_memory_limit(guest: Guest) -> None:
    """Exceptions lie in a heap beside the memory, bounded by the same limit."""
    throw = wat("(throw $t (ref.null exn))").replace("(func $print", "(tag $t (param exnref)) (func $print", 1)  # fmt: skip
    assert "crashed" in failed(call(guest(throw))).message
    chain = """(local $e exnref) (loop $l
      (block $h (result exnref exnref)
        (try_table (catch_ref $t $h) (throw $t (local.get $e))) unreachable)
      (local.set $e) (drop) (br $l))"""
    text = wat(chain).replace("(func $print", "(tag $t (param exnref)) (func $print", 1)
    failure = failed(call(guest(text), limits=Limits(memory_mib=8, wall_seconds=20)))
    assert failure.details == {"limit": "memory", "configured": "8 MiB"}
