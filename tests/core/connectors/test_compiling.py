"""Modules that cost a compiler more than they weigh, and where they are found out."""

import os
import sys
import time
from pathlib import Path

import pytest
import wasmtime

from aileron_core.connectors.check import check_connector, install_checked
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.compiler import compile_problem
from aileron_core.errors import FileProblems

COMMAND = '(module (memory (export "memory") 1) (func (export "_start")))'
MANIFEST = '[connector]\nname = "local://tests/guest"\nversion = "1.0.0"\n'


def bomb(variables: int, loops: int) -> bytes:
    """A valid module of a few kilobytes: at the end of all loops, each variable is asked for."""
    asked = "".join(f"(drop (local.get {number}))" for number in range(variables))
    body = f"(local{' i32' * variables}) {'(loop (br_if 0 (local.get 0)))' * loops} {asked}"
    return bytes(
        wasmtime.wat2wasm(f'(module (memory (export "memory") 1) (func (export "_start") {body}))')
    )


def test_a_module_that_compiles_has_no_problem() -> None:
    """In a process of its own, which leaves nothing behind."""
    assert compile_problem(bytes(wasmtime.wat2wasm(COMMAND))) == ""


def test_a_module_that_is_none_or_asks_for_what_is_not_there_is_reported() -> None:
    """The compiler's word, also for an import whose type is another."""
    assert "not a module that can run here" in compile_problem(b"\0asm\1\0\0\0\xff")
    wrong = COMMAND.replace(
        "(memory", '(import "aileron_host" "log" (func (param i64))) (memory', 1
    )
    assert "incompatible import type" in compile_problem(bytes(wasmtime.wat2wasm(wrong)))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the time is bounded")
def test_a_small_module_that_would_take_gigabytes_is_refused() -> None:
    """160 kB for which the compiler wants more than it is given; this process does not feel it."""
    module = bomb(30_000, 1_000)
    assert len(module) < 200_000
    before = _resident()
    problem = compile_problem(module, memory_mib=400)
    assert problem == "needs more than 400 MiB of memory to compile; split its largest functions"
    assert _resident() - before < 50 * 1024 * 1024


def test_a_module_that_takes_too_long_is_refused() -> None:
    """And its compiler is stopped then."""
    began = time.monotonic()
    problem = compile_problem(bomb(30_000, 1_000), seconds=0.5)
    assert problem == "takes longer than 0.5 s to compile; split its largest functions"
    assert time.monotonic() - began < 20


def test_install_checked_installs_nothing_that_would_not_run(
    tmp_path: Path, store: ConnectorStore
) -> None:
    """Everything that is wrong is told as by a check, and the store stays empty."""
    (tmp_path / "manifest.toml").write_text(MANIFEST, encoding="utf-8")
    wrong = COMMAND.replace(
        "(memory", '(import "aileron_host" "log" (func (param i64))) (memory', 1
    )
    (tmp_path / "connector.wasm").write_bytes(bytes(wasmtime.wat2wasm(wrong)))
    assert not check_connector(tmp_path).ok
    with pytest.raises(FileProblems, match="incompatible import type"):
        install_checked(store, tmp_path)
    assert store.list() == ()
    (tmp_path / "connector.wasm").write_bytes(bytes(wasmtime.wat2wasm(COMMAND)))
    installed = install_checked(store, tmp_path)
    assert [each.identity for each in store.list()] == [installed.identity]


def _resident() -> int:
    with Path("/proc/self/statm").open() as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
