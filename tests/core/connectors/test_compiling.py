"""Compilers are children: what costs them too much, who waits for whom, what they leave behind."""

import asyncio
import contextlib
import errno
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import wasmtime

from aileron_core.connectors.check import check_connector, install_checked
from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.compiler import Compiler
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import ConnectorRuntimeError, FileProblems, Unavailable
from bench.connectors import large_module
from tests.support.guests import MakeEngine, failed, install_guest, printing, resident

COMMAND = '(module (memory (export "memory") 1) (func (export "_start")))'
WRONG = COMMAND.replace("(memory", '(import "aileron_host" "log" (func (param i64))) (memory', 1)
MANIFEST = b'[connector]\nname = "local://tests/guest"\nversion = "1.0.0"\n'
LARGE = large_module(5 * 1024 * 1024 // 4)
"""Compiling it takes longer than another compiler's whole life."""
MEDIUM = large_module(5 * 1024 * 1024 // 16)
PATIENCE = 180
reads_proc = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def bomb(variables: int = 30_000, loops: int = 1_000) -> bytes:
    """A valid module of a few kilobytes: at the end of all loops, each variable is asked for."""
    asked = "".join(f"(drop (local.get {number}))" for number in range(variables))
    body = f"(local{' i32' * variables}) {'(loop (br_if 0 (local.get 0)))' * loops} {asked}"
    return bytes(wasmtime.wat2wasm(COMMAND.replace('"_start")', f'"_start") {body}')))


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere only the time is bounded")
def test_a_small_module_that_would_take_gigabytes_is_refused() -> None:
    """160 kB for which the compiler wants more than it is given; this process does not feel it."""
    module = bomb()
    assert len(module) < 200_000
    before = resident()
    (problem,) = Compiler(memory_mib=400).check(module).problems
    assert problem == "needs more than 400 MiB of memory to compile; split its largest functions"
    assert resident() - before < 50 * 1024 * 1024


def test_a_module_that_takes_too_long_is_refused() -> None:
    began = time.monotonic()
    (problem,) = Compiler(seconds=0.5).check(bomb()).problems
    assert problem == "takes longer than 0.5 s to compile; split its largest functions"
    assert time.monotonic() - began < 20


def test_install_checked_installs_only_what_runs(tmp_path: Path, store: ConnectorStore) -> None:
    """Everything that is wrong is told as by a check, and the store stays empty."""
    (tmp_path / "manifest.toml").write_bytes(MANIFEST)
    (tmp_path / "connector.wasm").write_bytes(bytes(wasmtime.wat2wasm(WRONG)))
    assert not check_connector(tmp_path).ok
    with pytest.raises(FileProblems, match="incompatible import type"):
        install_checked(store, tmp_path)
    assert store.list() == ()
    (tmp_path / "connector.wasm").write_bytes(bytes(wasmtime.wat2wasm(COMMAND)))
    installed = install_checked(store, tmp_path)
    assert [each.identity for each in store.list()] == [installed.identity]


@pytest.fixture
def apart(make_engine: MakeEngine) -> WasmEngine:
    return make_engine(separate_compiler=True)


def compilers() -> Iterator[int]:
    """The processes that this one started to compile."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for pid in (task / "children").read_text(encoding="ascii").split():
                if b"compiler_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    yield int(pid)


async def niceness_of_a_compiler() -> int:
    own = os.getpriority(os.PRIO_PROCESS, 0)
    async with asyncio.timeout(PATIENCE):
        while True:
            for pid in compilers():
                if (found := os.getpriority(os.PRIO_PROCESS, pid)) != own:
                    return found
            await asyncio.sleep(0.005)


@contextlib.contextmanager
def meanwhile(act: Callable[[], object]) -> Iterator[None]:
    """Have a thread do *act* over and over."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(0.002):
            act()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


@reads_proc
@pytest.mark.parametrize(("background", "niceness"), [(True, 10), (False, 5)])
async def test_a_large_module_is_compiled_by_a_child_that_gives_way(
    store: ConnectorStore, apart: WasmEngine, background: bool, niceness: int
) -> None:
    """More so where nobody waits for it; then it runs from its machine code, and no child is left."""
    connector = install_guest(store, apart, LARGE, MANIFEST)
    preparing = asyncio.create_task(connector.prepare(background=background))
    assert await niceness_of_a_compiler() == min(19, os.getpriority(os.PRIO_PROCESS, 0) + niceness)
    assert not connector.prepared
    await asyncio.wait_for(preparing, PATIENCE)
    assert connector.prepared
    assert (await connector.call("x", {}, limits=Limits())).output == {}
    assert list(compilers()) == []


async def test_no_call_waits_for_the_module_of_another(
    store: ConnectorStore, apart: WasmEngine, guest: Callable[..., WasmConnector]
) -> None:
    """However many calls wait for one that is being compiled: they took all the threads there were."""
    large = install_guest(store, apart, LARGE, MANIFEST)
    quick = guest(printing('{"output": 1}'), on=apart)
    short = Limits(wall_seconds=1)
    calls = [asyncio.create_task(large.call("x", {}, limits=short)) for _ in range(40)]
    await asyncio.sleep(0)
    assert (await quick.call("x", {}, limits=Limits())).output == 1
    assert not large.prepared
    # Compiling does not count against them.
    for call in calls:
        assert (await asyncio.wait_for(call, PATIENCE)).failure is None


@reads_proc
async def test_closing_ends_compilations(store: ConnectorStore, apart: WasmEngine) -> None:
    connector = install_guest(store, apart, LARGE, MANIFEST)
    call = asyncio.create_task(connector.call("x", {}, limits=Limits()))
    await niceness_of_a_compiler()
    await asyncio.to_thread(apart.close)
    assert failed(await asyncio.wait_for(call, PATIENCE)).class_ == "unavailable"
    assert list(compilers()) == []


async def test_a_call_that_is_given_up_leaves_the_compiling_to_the_next(
    store: ConnectorStore, apart: WasmEngine
) -> None:
    connector = install_guest(store, apart, MEDIUM, MANIFEST)
    first = asyncio.create_task(connector.call("x", {}, limits=Limits()))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    result = await asyncio.wait_for(connector.call("x", {}, limits=Limits()), PATIENCE)
    assert result.failure is None


def test_what_a_compiler_does_not_do_is_reported() -> None:
    """Too long, and no module: the connector cannot run, and the next call tries again."""
    with pytest.raises(ConnectorRuntimeError, match=r"takes longer than 0.05 s to compile"):
        Compiler(seconds=0.05).compile(bomb())
    with pytest.raises(ConnectorRuntimeError, match="is not a module that can run here"):
        Compiler().compile(LARGE[:-100] + b"\xff" * 100)
    closed = Compiler()
    closed.close()
    with pytest.raises(Unavailable):
        closed.compile(LARGE)


def test_the_machine_code_lies_in_no_file(
    store: ConnectorStore, apart: WasmEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes over a socket; neither the home nor the folder for temporary files sees it."""
    (tmp_path / "temporary").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    connector = install_guest(store, apart, LARGE, MANIFEST)
    seen: set[str] = set()
    with meanwhile(
        lambda: seen.update(each.name for each in tmp_path.rglob("*") if each.is_file())
    ):
        asyncio.run(connector.prepare())
    assert seen == {"connector.wasm", "manifest.toml"}


@reads_proc
def test_no_other_program_can_write_into_what_a_compiler_returns() -> None:
    """The console runs that as machine code. A pipe of a child's can be opened by every program of the user."""
    compiler = Compiler()
    tried: list[str] = []

    def write_into_it() -> None:
        for child in [*compiler._children]:
            for descriptor in (0, 1):
                try:
                    os.close(os.open(f"/proc/{child.pid}/fd/{descriptor}", os.O_RDWR))
                    tried.append(f"opened {descriptor}")
                except FileNotFoundError:
                    continue  # it has just ended
                except OSError as error:
                    tried.append(os.strerror(error.errno or 0))

    with meanwhile(write_into_it):
        compiler.compile(MEDIUM)
    assert tried
    assert set(tried) <= {os.strerror(errno.ENXIO), os.strerror(errno.EACCES)}


def test_our_fault_while_compiling_is_an_error_to_each_caller(make_engine: MakeEngine) -> None:
    """A preview that waits for it would else be fetched for ever."""

    def broken() -> bytes:
        raise MemoryError

    engine = make_engine()
    with pytest.raises(ConnectorRuntimeError, match="MemoryError"):
        engine.prepare("sha256:broken", broken).result(PATIENCE)
    assert not engine.is_ready("sha256:broken")


def test_a_thread_that_cannot_be_started_leaves_nobody_waiting(
    make_engine: MakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever waits is told, the next call tries again, and closing does not wait for it."""
    engine = make_engine()

    def refused(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refused)
        waiting = engine.prepare("sha256:x", lambda: b"")
    with pytest.raises(Unavailable, match="no thread could be started"):
        waiting.result(PATIENCE)
    with pytest.raises(ConnectorRuntimeError):
        engine.prepare("sha256:x", lambda: b"").result(PATIENCE)


@reads_proc
def test_a_compiler_that_something_else_ended_is_not_blamed_on_memory() -> None:
    """What is known is said: the signal, and nothing about its cause."""
    compiler = Compiler()
    with (
        meanwhile(lambda: [child.terminate() for child in [*compiler._children]]),
        pytest.raises(ConnectorRuntimeError, match=r"its compiler stopped early \(SIGTERM\)"),
    ):
        compiler.compile(LARGE)
