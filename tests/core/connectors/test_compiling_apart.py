"""Large modules are compiled by a child behind everything else, and nobody waits for another's."""

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

from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.compiler import Compiler
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import ConnectorRuntimeError, Unavailable
from bench.connectors import large_module
from tests.core.connectors.guests import MakeEngine, printing

MANIFEST = b'[connector]\nname = "local://tests/large"\nversion = "1.0.0"\n'
LARGE = large_module(3 * 1024 * 1024)
PATIENCE = 180


@pytest.fixture
def apart(make_engine: MakeEngine) -> WasmEngine:
    return make_engine(separate_compiler=True)


def installed(store: ConnectorStore, engine: WasmEngine, module: bytes) -> WasmConnector:
    entry = store.install_bytes(module, MANIFEST)
    return WasmConnector(
        identity=entry.identity, manifest=entry.manifest, store=store, engine=engine
    )


def compilers() -> Iterator[int]:
    """The processes that this one started to compile."""
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            for pid in (task / "children").read_text(encoding="ascii").split():
                if b"compiler_process" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    yield int(pid)


async def niceness_of_a_compiler() -> int:
    async with asyncio.timeout(PATIENCE):
        while True:
            for pid in compilers():
                if found := os.getpriority(os.PRIO_PROCESS, pid):
                    return found
            await asyncio.sleep(0.005)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize(("background", "niceness"), [(True, 10), (False, 5)])
async def test_a_large_module_is_compiled_by_a_child_that_gives_way(
    store: ConnectorStore, apart: WasmEngine, background: bool, niceness: int
) -> None:
    """More so where nobody waits for it; then it runs from its machine code, and no child is left."""
    connector = installed(store, apart, LARGE)

    preparing = asyncio.create_task(connector.prepare(background=background))
    assert await niceness_of_a_compiler() == os.getpriority(os.PRIO_PROCESS, 0) + niceness
    assert not connector.prepared
    await asyncio.wait_for(preparing, PATIENCE)
    assert connector.prepared
    assert (await connector.call("x", {}, limits=Limits())).output == {}
    assert list(compilers()) == []


async def test_no_call_waits_for_the_module_of_another(
    store: ConnectorStore, apart: WasmEngine, guest: Callable[..., WasmConnector]
) -> None:
    """However many calls wait for one that is being compiled: they took all the threads there were."""
    large, quick = installed(store, apart, LARGE), guest(printing('{"output": 1}'), on=apart)

    calls = [
        asyncio.create_task(large.call("x", {}, limits=Limits(wall_seconds=1))) for _ in range(40)
    ]
    await asyncio.sleep(0)
    assert (await quick.call("x", {}, limits=Limits())).output == 1
    assert not large.prepared
    # Compiling does not count against them.
    for call in calls:
        assert (await asyncio.wait_for(call, PATIENCE)).failure is None


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
async def test_closing_ends_what_is_being_compiled(
    store: ConnectorStore, make_engine: MakeEngine
) -> None:
    """Whoever waits is told, and the child is gone."""
    engine = make_engine(separate_compiler=True)
    connector = installed(store, engine, LARGE)

    call = asyncio.create_task(connector.call("x", {}, limits=Limits()))
    await niceness_of_a_compiler()
    await asyncio.to_thread(engine.close)
    failure = (await asyncio.wait_for(call, PATIENCE)).failure
    assert failure is not None
    assert failure.class_ == "unavailable"
    assert list(compilers()) == []


async def test_a_call_that_is_given_up_leaves_the_compiling_to_the_next(
    store: ConnectorStore, apart: WasmEngine
) -> None:
    """It goes on, and is done once."""
    connector = installed(store, apart, LARGE)

    first = asyncio.create_task(connector.call("x", {}, limits=Limits()))
    await asyncio.sleep(0)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    result = await asyncio.wait_for(connector.call("x", {}, limits=Limits()), PATIENCE)
    assert result.failure is None


def test_what_a_compiler_does_not_do_is_reported(store: ConnectorStore, apart: WasmEngine) -> None:
    """Too long, and no module: the connector cannot run, and the next call tries again."""
    with pytest.raises(ConnectorRuntimeError, match=r"takes longer than 0.05 s to compile"):
        Compiler(seconds=0.05).compile(LARGE)
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
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    connector = installed(store, apart, LARGE)
    seen: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.is_set():
            seen.update(each.name for each in tmp_path.rglob("*") if each.is_file())
            time.sleep(0.01)

    watching = threading.Thread(target=watch)
    watching.start()
    asyncio.run(connector.prepare())
    over.set()
    watching.join()
    assert seen == {"connector.wasm", "manifest.toml"}


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_no_other_program_can_write_into_what_a_compiler_returns() -> None:
    """The console runs that as machine code. A pipe of a child's can be opened by every program of the user."""
    compiler = Compiler()
    tried: list[str] = []

    def write_into_it() -> None:
        while not tried:
            for child in [*compiler._children]:
                for descriptor in (0, 1):
                    try:
                        os.close(os.open(f"/proc/{child.pid}/fd/{descriptor}", os.O_RDWR))
                        tried.append(f"opened {descriptor}")
                    except FileNotFoundError:
                        continue  # it has just ended
                    except OSError as error:
                        tried.append(os.strerror(error.errno or 0))

    trying = threading.Thread(target=write_into_it)
    trying.start()
    compiler.compile(LARGE)
    trying.join(PATIENCE)
    assert set(tried) <= {os.strerror(errno.ENXIO), os.strerror(errno.EACCES)}


def test_a_fault_of_ours_while_compiling_is_an_error_that_every_caller_knows(
    make_engine: MakeEngine,
) -> None:
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


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_compiler_that_something_else_ended_is_not_blamed_on_memory() -> None:
    """What is known is said: the signal, and nothing about its cause."""
    compiler = Compiler()
    over = threading.Event()

    def end_it() -> None:
        while not over.is_set():
            for child in [*compiler._children]:
                child.terminate()
            time.sleep(0.005)

    ending = threading.Thread(target=end_it)
    ending.start()
    try:
        with pytest.raises(ConnectorRuntimeError, match=r"its compiler stopped early \(SIGTERM\)"):
            compiler.compile(LARGE)
    finally:
        over.set()
        ending.join()
