"""Compiled modules: what they may import, and that they are loaded only with our seal, from the bytes that
were checked.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import wasmtime

from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.connectors.wasm.modules import CompiledModules

MODULE = bytes(wasmtime.wat2wasm('(module (func (export "f") (result i32) (i32.const 7)))'))
OTHER = bytes(wasmtime.wat2wasm('(module (func (export "f") (result i32) (i32.const 8)))'))


class Counting(CompiledModules):
    """Counts what it had to compile."""

    compiled = 0

    def _keep(self, name: str, module: wasmtime.Module) -> None:
        self.compiled += 1
        super()._keep(name, module)


Modules = Callable[..., Counting]


@pytest.fixture
def modules(tmp_path: Path) -> Modules:
    engine = wasmtime.Engine()
    return lambda key=b"k" * 32: Counting(engine, tmp_path / "compiled", key)


@pytest.mark.parametrize("at", [0, 31, 32, 200, -1])
def test_one_changed_byte_means_compiling_again(modules: Modules, tmp_path: Path, at: int) -> None:
    """In the seal or in the code, and what was changed is replaced."""
    modules().load("one", lambda: MODULE)
    (file,) = (tmp_path / "compiled").iterdir()
    good = file.read_bytes()
    bad = bytearray(good)
    bad[at] ^= 1
    file.write_bytes(bad)
    again = modules()
    again.load("one", lambda: MODULE)
    assert again.compiled == 1
    fresh = modules()
    fresh.load("one", lambda: MODULE)
    assert fresh.compiled == 0


def test_another_key_means_compiling_again(modules: Modules) -> None:
    """A compiled form of another process, or of whoever wrote the file, is not taken."""
    modules(b"a" * 32).load("one", lambda: MODULE)
    other = modules(b"b" * 32)
    other.load("one", lambda: MODULE)
    assert other.compiled == 1


def test_a_seal_is_for_one_module(modules: Modules, tmp_path: Path) -> None:
    """Well-sealed code of another module under this one's name is not taken."""
    modules().load("other", lambda: OTHER)
    (other_file,) = (tmp_path / "compiled").iterdir()
    taken = other_file.read_bytes()
    modules().load("one", lambda: MODULE)
    (file,) = [p for p in (tmp_path / "compiled").iterdir() if p != other_file]
    file.write_bytes(taken)
    again = modules()
    again.load("one", lambda: MODULE)
    assert again.compiled == 1


def test_a_file_changed_after_loading_changes_nothing(tmp_path: Path) -> None:
    """The module is a copy in memory, no mapping of the file."""
    engine = wasmtime.Engine()
    CompiledModules(engine, tmp_path, b"k" * 32).load("one", lambda: MODULE)
    loaded = CompiledModules(engine, tmp_path, b"k" * 32).load("one", lambda: MODULE)
    (file,) = tmp_path.iterdir()
    with file.open("r+b") as opened:
        opened.write(b"\0" * file.stat().st_size)
    store = wasmtime.Store(engine)
    function = wasmtime.Instance(store, loaded, []).exports(store)["f"]
    assert isinstance(function, wasmtime.Func)
    assert function(store) == 7


def test_a_link_is_not_followed_and_files_are_private(modules: Modules, tmp_path: Path) -> None:
    """0600, and a link in their place is compiled over."""
    modules().load("one", lambda: MODULE)
    (file,) = (tmp_path / "compiled").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600
    moved = tmp_path / "moved"
    file.rename(moved)
    file.symlink_to(moved)
    again = modules()
    again.load("one", lambda: MODULE)
    assert again.compiled == 1
    assert not file.is_symlink()


def test_a_folder_that_cannot_be_written_costs_speed_only(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert (
        CompiledModules(wasmtime.Engine(), blocked, b"k" * 32)
        .load("one", lambda: MODULE)
        .exports[0]
        .name
        == "f"
    )


def test_a_folder_in_the_place_of_a_file_leaves_no_descriptor_open(
    modules: Modules, tmp_path: Path
) -> None:
    """It is compiled anew; a descriptor for each load would use up those of the process."""
    modules().load("one", lambda: MODULE)
    (file,) = (tmp_path / "compiled").iterdir()
    file.unlink()
    file.mkdir()
    again = modules()
    before = len([*Path("/dev/fd").iterdir()])
    again.load("one", lambda: MODULE)
    assert len([*Path("/dev/fd").iterdir()]) == before
    assert again.compiled == 1


@pytest.fixture(scope="module")
def plain_engine() -> Iterator[WasmEngine]:
    outgoing = OutgoingClient()
    made = WasmEngine(outgoing, optimize=False)
    yield made
    made.close()
    outgoing.close()


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
    plain_engine: WasmEngine, text: str, words: str
) -> None:
    """One sentence for what it imports or lacks; with the compiler's switch where that is known."""
    (message,) = plain_engine.check_module(bytes(wasmtime.wat2wasm(f"(module {text})"))).problems
    assert words in message


def test_a_hostile_list_of_imports_makes_no_list_of_its_length(plain_engine: WasmEngine) -> None:
    """What the child sends back is bounded, however many there are and whatever they are called."""
    imports = "".join(f'(import "{"m" * 900}" "{number:0900}" (func))' for number in range(300))
    found = plain_engine.check_module(bytes(wasmtime.wat2wasm(f"(module {imports} {COMMAND})")))
    assert len(found.problems) == 100
    assert all(len(each) < 500 for each in found.problems)
