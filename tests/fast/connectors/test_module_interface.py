"""Reading a module's face from hostile bytes."""

from pathlib import Path

import pytest
import wasmtime
from hypothesis import given
from hypothesis import strategies as st

from aileron_core.connectors.module_interface import check_interface, read_interface
from aileron_core.errors import FileProblems

EXAMPLE = (
    Path(__file__).parents[3] / "examples" / "connectors" / "mail-drafts" / "connector.wasm"
).read_bytes()


def test_the_shape_is_what_wasmtime_sees() -> None:
    """Ours and the compiler's reading of the same module agree."""
    engine = wasmtime.Engine()
    text = """(module
      (import "a" "f" (func (param i32))) (import "a" "t" (table 1 2 funcref))
      (import "b" "m" (memory 1 5)) (import "b" "g" (global i64))
      (func (export "_start")) (global (export "x") i32 (i32.const 0)))"""
    for wasm in (bytes(wasmtime.wat2wasm(text)), EXAMPLE):
        module = wasmtime.Module(engine, wasm)
        shape = read_interface(wasm)
        assert list(shape.imports) == [(i.module, i.name) for i in module.imports]
        assert list(shape.exports) == [e.name for e in module.exports]


@given(st.integers(0, len(EXAMPLE) - 1), st.binary(min_size=1, max_size=8))
def test_damaged_modules_are_read_or_refused(at: int, noise: bytes) -> None:
    """Never an index error, never a hang."""
    damaged = EXAMPLE[:at] + noise + EXAMPLE[at + len(noise) :]
    try:
        read_interface(damaged)
    except ValueError:
        return


@given(st.binary(max_size=200))
def test_any_bytes_after_the_magic_are_read_or_refused(rest: bytes) -> None:
    """Every length is held against what is there."""
    try:
        read_interface(b"\0asm\1\0\0\0" + rest)
    except ValueError:
        return


@pytest.mark.parametrize("cut", [0, 4, 8, 9, 11, 40])
def test_a_cut_module_is_refused_or_empty(cut: int) -> None:
    """What ends early has no shape, or none that could run."""
    try:
        shape = read_interface(EXAMPLE[:cut])
    except ValueError:
        return
    assert shape.exports == ()


def problems(text: str) -> list[str]:
    """What is wrong with the shape of a module in WAT."""
    try:
        check_interface(
            read_interface(bytes(wasmtime.wat2wasm(f"(module {text})"))), "connector.wasm"
        )
    except FileProblems as error:
        return [problem.message for problem in error.problems]
    return []


COMMAND = '(memory (export "memory") 1) (func (export "_start"))'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('(import "env" "abort" (func (param i32 i32 i32 i32)))' + COMMAND, "--use abort="),
        ('(import "wasi_unstable" "fd_write" (func))' + COMMAND, "WASI preview 1"),
        ('(import "wasi" "thread-spawn" (func (param i32) (result i32)))' + COMMAND, "threads"),
        ('(import "gojs" "runtime.wasmExit" (func (param i32)))' + COMMAND, "GOOS=wasip1"),
        (
            '(import "wasi_snapshot_preview1" "fd_fly" (func))' + COMMAND,
            "the host does not provide",
        ),
        ('(import "aileron_host" "http_response_header" (func))' + COMMAND, "does not provide"),
        ('(memory (export "memory") 1) (func (export "_initialize"))', "a WASI reactor"),
        ('(memory 1) (func (export "_start"))', "does not export 'memory'"),
    ],
)
def test_a_module_that_was_built_for_something_else_is_refused_with_how_to_build_it(
    text: str, words: str
) -> None:
    """One sentence for what it imports or lacks; with the compiler's switch where that is known."""
    (message,) = problems(text)
    assert words in message


WITX = """
args_get args_sizes_get clock_res_get clock_time_get environ_get environ_sizes_get fd_advise
fd_allocate fd_close fd_datasync fd_fdstat_get fd_fdstat_set_flags fd_fdstat_set_rights
fd_filestat_get fd_filestat_set_size fd_filestat_set_times fd_pread fd_prestat_dir_name
fd_prestat_get fd_pwrite fd_read fd_readdir fd_renumber fd_seek fd_sync fd_tell fd_write
path_create_directory path_filestat_get path_filestat_set_times path_link path_open
path_readlink path_remove_directory path_rename path_symlink path_unlink_file poll_oneoff
proc_exit proc_raise random_get sched_yield sock_accept sock_recv sock_send sock_shutdown
"""
"""Every function of the standard's own interface file, wasi_snapshot_preview1.witx."""


def test_every_function_of_wasi_preview_1_may_be_imported() -> None:
    """A libc imports more than a connector uses: files, sockets, signals."""
    linker = wasmtime.Linker(wasmtime.Engine())
    linker.define_wasi()
    witx = WITX.split()
    for name in witx:
        assert linker.get(wasmtime.Store(linker.engine), "wasi_snapshot_preview1", name)
    imports = "".join(f'(import "wasi_snapshot_preview1" "{name}" (func))' for name in witx)
    assert problems(imports + COMMAND) == []
