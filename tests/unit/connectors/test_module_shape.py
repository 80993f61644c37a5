"""Reading a module's face from hostile bytes."""

from pathlib import Path

import pytest
import wasmtime
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.connectors.module_shape import read_shape

EXAMPLE = (Path(__file__).parents[3] / "examples" / "connector" / "connector.wasm").read_bytes()


def test_the_shape_is_what_wasmtime_sees() -> None:
    """Ours and the compiler's reading of the same module agree."""
    engine = wasmtime.Engine()
    text = """(module
      (import "a" "f" (func (param i32))) (import "a" "t" (table 1 2 funcref))
      (import "b" "m" (memory 1 5)) (import "b" "g" (global i64))
      (func (export "_start")) (global (export "x") i32 (i32.const 0)))"""
    for wasm in (bytes(wasmtime.wat2wasm(text)), EXAMPLE):
        module = wasmtime.Module(engine, wasm)
        shape = read_shape(wasm)
        assert list(shape.imports) == [(i.module, i.name) for i in module.imports]
        assert list(shape.exports) == [e.name for e in module.exports]


@given(st.integers(0, len(EXAMPLE) - 1), st.binary(min_size=1, max_size=8))
def test_damaged_modules_are_read_or_refused(at: int, noise: bytes) -> None:
    """Never an index error, never a hang."""
    damaged = EXAMPLE[:at] + noise + EXAMPLE[at + len(noise) :]
    try:
        read_shape(damaged)
    except ValueError:
        return


@given(st.binary(max_size=200))
def test_any_bytes_after_the_magic_are_read_or_refused(rest: bytes) -> None:
    """Every length is held against what is there."""
    try:
        read_shape(b"\0asm\1\0\0\0" + rest)
    except ValueError:
        return


@pytest.mark.parametrize("cut", [0, 4, 8, 9, 11, 40])
def test_a_cut_module_is_refused_or_empty(cut: int) -> None:
    """What ends early has no shape, or none that could run."""
    try:
        shape = read_shape(EXAMPLE[:cut])
    except ValueError:
        return
    assert shape.exports == ()
