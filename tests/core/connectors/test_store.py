"""The store: what is in it is what was put in, or an error. And compilers are children: what they cost, who waits."""

import asyncio
import contextlib
import errno
import os
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import wasmtime

from aileron_core.clock import SystemClock
from aileron_core.connectors.check import check_connector, install_checked
from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import ConnectorStore, InstalledConnector, identity_hash
from aileron_core.connectors.wasm.compiler import Compiler
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import (
    ConnectorRuntimeError,
    FileProblems,
    HashMismatch,
    HomeError,
    NotFound,
    Unavailable,
)
from bench.connectors import large_module
from tests.support.frozen_clock import FrozenClock
from tests.support.guests import MakeEngine, failed, install_guest, printing, resident

MODULE = bytes(wasmtime.wat2wasm('(module (memory (export "memory") 1) (func (export "_start")))'))
MANIFEST = b'[connector]\nname = "local://a/b"\nversion = "1.0.0"\n'
EXAMPLE = Path(__file__).parents[3] / "examples" / "connectors" / "mail-drafts"


@pytest.fixture
def entry(store: ConnectorStore) -> InstalledConnector:
    return store.install_bytes(MODULE, MANIFEST)


@pytest.fixture
def folder(tmp_path: Path, entry: InstalledConnector) -> Path:
    """Where the store has it."""
    digest = entry.identity.hash.removeprefix("sha256:")
    return tmp_path / "home" / "store" / "connectors" / "sha256" / digest


def test_what_was_installed_comes_back_byte_for_byte(store: ConnectorStore) -> None:
    entry = store.install(EXAMPLE)
    parts = tuple((EXAMPLE / name).read_bytes() for name in ("connector.wasm", "manifest.toml"))
    assert entry.identity.hash == identity_hash(*parts)
    assert store.read(entry.identity.hash) == parts
    assert store.list() == (entry,)


def test_files_are_for_their_owner_only_and_nothing_is_left_in_staging(
    store: ConnectorStore, entry: InstalledConnector, folder: Path, tmp_path: Path
) -> None:
    """0600 in 0700; neither a second install nor a removal leaves a trace."""
    modes = [stat.S_IMODE(p.stat().st_mode) for p in (folder, *sorted(folder.iterdir()))]
    assert modes == [0o700, 0o600, 0o600]
    store.install_bytes(MODULE, MANIFEST)
    assert store.remove(entry.identity.hash)
    assert not store.remove(entry.identity.hash)
    assert list((tmp_path / "home" / "store" / "connectors" / "tmp").iterdir()) == []
    assert store.list() == ()


@pytest.mark.parametrize("name", ["connector.wasm", "manifest.toml"])
def test_a_changed_byte_is_found_and_mended_by_installing_again(
    store: ConnectorStore, entry: InstalledConnector, folder: Path, name: str
) -> None:
    """Module and manifest are one identity; bytes that do not fit it make way for those that do."""
    with (folder / name).open("ab") as file:
        file.write(b" ")
    with pytest.raises(HashMismatch, match="changed on disk"):
        store.read(entry.identity.hash)
    assert store.list() == ()
    assert [p.class_ for p in store.scan()[1]] == ["hash_mismatch"]
    assert store.install_bytes(MODULE, MANIFEST) == entry
    assert store.read(entry.identity.hash) == (MODULE, MANIFEST)


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="counts descriptors in /proc")
@pytest.mark.parametrize("is_link", [True, False])
def test_a_link_or_folder_in_place_of_a_file_is_not_read_and_leaves_no_descriptor_open(
    store: ConnectorStore, entry: InstalledConnector, folder: Path, tmp_path: Path, is_link: bool
) -> None:
    """A file of the store is a file, even if a link leads to the same bytes."""
    module = (folder / "connector.wasm").rename(tmp_path / "aside")
    if is_link:
        (folder / "connector.wasm").symlink_to(module)
    else:
        (folder / "connector.wasm").mkdir()
    before = len([*Path("/proc/self/fd").iterdir()])
    for _ in range(3):
        with pytest.raises(HashMismatch, match="cannot be read from the store"):
            store.read(entry.identity.hash)
    assert len([*Path("/proc/self/fd").iterdir()]) == before


@pytest.mark.parametrize(
    "text", ["sha256:bound-at-release", "", "sha256:../../x", "md5:" + "0" * 64]
)
def test_what_is_no_hash_reaches_no_path(store: ConnectorStore, text: str) -> None:
    """A hash from an action file is hostile text."""
    with pytest.raises(NotFound):
        store.read(text)


PROGRAMS = (
    b'[[capabilities.spawn.programs]]\npath = "/bin/x"\n'
    b'[capabilities.spawn.operations.go]\nargv = ["x"]\n'
)


@pytest.mark.parametrize(
    ("module", "more", "words"),
    [
        (b"(module)", b"", "perhaps it is a text file"),
        (b"\0asm\x0d\0\1\0", b"", "it is a component"),
        (b"", b"", "perhaps it is a text file"),
        (MODULE, PROGRAMS, "local programs"),
    ],
)
def test_what_is_no_module_or_starts_programs_is_refused(
    store: ConnectorStore, module: bytes, more: bytes, words: str
) -> None:
    """By its first bytes: nothing that wasmtime takes as text is ever compiled."""
    with pytest.raises(FileProblems, match=words):
        store.install_bytes(module, MANIFEST + more)


def test_a_store_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("a file where the folder should be")
    with pytest.raises(HomeError, match="cannot be written"):
        ConnectorStore(tmp_path / "home").install_bytes(MODULE, MANIFEST)


class Counting(ConnectorStore):
    """Counts how often bytes were read."""

    reads = 0

    def read(self, hash_: str) -> tuple[bytes, bytes]:
        self.reads += 1
        return super().read(hash_)


def settled_store(tmp_path: Path) -> tuple[Counting, str, Path]:
    """A store whose files have been left alone for longer than a file system's clock ticks."""
    store = Counting(tmp_path / "home")
    hash_ = store.install_bytes(MODULE, MANIFEST).identity.hash
    store._clock = FrozenClock(SystemClock().now() + 3600)
    store.reads = 0
    (module,) = (tmp_path / "home").rglob("connector.wasm")
    return store, hash_, module


@pytest.mark.parametrize(("changed_now", "reads"), [(False, 1), (True, 3)])
def test_files_are_read_once_unless_changed(tmp_path: Path, changed_now: bool, reads: int) -> None:
    """No call of a 7 MB module hashes them; two changes within one tick of a clock would look like one."""
    store, hash_, module = settled_store(tmp_path)
    if changed_now:
        store._clock = FrozenClock(module.stat().st_ctime)
    for _ in range(3):
        store.verify(hash_)
    assert store.reads == reads


def test_a_change_of_the_same_length_and_time_is_seen_after_a_check(tmp_path: Path) -> None:
    """Whoever sets the time of modification back cannot set the time of change."""
    store, hash_, module = settled_store(tmp_path)
    store.verify(hash_)
    before = module.stat()
    data = bytearray(module.read_bytes())
    data[-1] ^= 1
    module.write_bytes(bytes(data))
    os.utime(module, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(HashMismatch):
        store.verify(hash_)
    module.unlink()
    with pytest.raises(NotFound):
        store.verify(hash_)


async def test_an_installed_connector_is_found_by_all_three(
    store: ConnectorStore, registry: ConnectorRegistry
) -> None:
    identity = store.install(EXAMPLE).identity
    found = await registry.get(identity.fqn, identity.version, identity.hash)
    assert (found.identity, found.hosts) == (identity, ("gmail.googleapis.com:443",))
    listed, problems = await registry.scan()
    assert ([c.identity for c, _ in listed], problems) == ([identity], ())


async def test_what_is_missing_is_said_with_what_is_there(
    store: ConnectorStore, registry: ConnectorRegistry
) -> None:
    """A hash alone does not make a connector the one that the action names."""
    name, nothing = "local://aileron/mail-drafts", "sha256:" + "0" * 64
    with pytest.raises(NotFound, match="install it from its folder first"):
        await registry.get(name, "0.1.0", nothing)
    installed = store.install(EXAMPLE)
    with pytest.raises(NotFound, match="a different hash"):
        await registry.get(name, "0.1.0", nothing)
    with pytest.raises(NotFound, match=r"installed versions: 0\.1\.0"):
        await registry.get(name, "0.2.0", "sha256:bound-at-release")
    with pytest.raises(HashMismatch, match="not local://else/where"):
        await registry.get("local://else/where", "0.1.0", installed.identity.hash)


@pytest.mark.parametrize("damage", ["change", "remove"])
async def test_bytes_are_checked_before_every_run(
    guest: Callable[..., WasmConnector], store: ConnectorStore, tmp_path: Path, damage: str
) -> None:
    """Also of a module that ran before and is in memory."""
    connector = guest(printing('{"output": 1}'))
    assert (await connector.call("x", {}, limits=Limits())).output == 1
    if damage == "remove":
        store.remove(connector.identity.hash)
    else:
        digits = connector.identity.hash.removeprefix("sha256:")
        folder = tmp_path / "home" / "store" / "connectors" / "sha256" / digits
        (folder / "manifest.toml").write_bytes(b"# changed")
    with pytest.raises(HashMismatch):
        await connector.call("x", {}, limits=Limits())


@pytest.mark.parametrize(
    ("imported", "named"),
    [
        ('(import "aileron_host" "http_request" (func (param i64)))', "http_request"),
        ('(import "env" "system" (func))', "unknown import: `env::system`"),
    ],
)
def test_an_import_that_the_host_does_not_offer_is_an_error_that_names_it(
    guest: Callable[..., WasmConnector], imported: str, named: str
) -> None:
    """Another signature, another function: nothing of it runs, however it came into the store."""
    text = f'(module {imported} (memory (export "memory") 1) (func (export "_start")))'
    with pytest.raises(ConnectorRuntimeError, match=named):
        asyncio.run(guest(text).prepare())


COMMAND = '(module (memory (export "memory") 1) (func (export "_start")))'
WRONG = COMMAND.replace("(memory", '(import "aileron_host" "log" (func (param i64))) (memory', 1)
OF_GUEST = b'[connector]\nname = "local://tests/guest"\nversion = "1.0.0"\n'
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
    (tmp_path / "manifest.toml").write_bytes(OF_GUEST)
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
    connector = install_guest(store, apart, LARGE, OF_GUEST)
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
    large = install_guest(store, apart, LARGE, OF_GUEST)
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
    connector = install_guest(store, apart, LARGE, OF_GUEST)
    call = asyncio.create_task(connector.call("x", {}, limits=Limits()))
    await niceness_of_a_compiler()
    await asyncio.to_thread(apart.close)
    assert failed(await asyncio.wait_for(call, PATIENCE)).class_ == "unavailable"
    assert list(compilers()) == []


async def test_a_call_that_is_given_up_leaves_the_compiling_to_the_next(
    store: ConnectorStore, apart: WasmEngine
) -> None:
    connector = install_guest(store, apart, MEDIUM, OF_GUEST)
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
    connector = install_guest(store, apart, LARGE, OF_GUEST)
    seen: set[str] = set()
    with meanwhile(lambda: seen.update(p.name for p in tmp_path.rglob("*") if p.is_file())):
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
