"""Compiled modules: what they may import, and that they are loaded only with our seal, from the bytes checked."""

from collections.abc import Iterator
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


class Loader:
    """Loads modules through a folder of compiled ones, each time as another process would."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._engine = wasmtime.Engine()

    def compiles(self, name: str = "one", module: bytes = MODULE, key: bytes = b"k" * 32) -> bool:
        """Load a module; return whether it had to be compiled."""
        modules = Counting(self._engine, self.folder, key)
        modules.load(name, lambda: module)
        return modules.compiled == 1

    def file(self) -> Path:
        """Return the one compiled file."""
        (file,) = self.folder.iterdir()
        return file


@pytest.fixture
def loader(tmp_path: Path) -> Loader:
    return Loader(tmp_path / "compiled")


@pytest.mark.parametrize("at", [0, 31, 32, 200, -1])
def test_one_changed_byte_means_compiling_again(loader: Loader, at: int) -> None:
    """In the seal or in the code, and what was changed is replaced."""
    loader.compiles()
    bad = bytearray(loader.file().read_bytes())
    bad[at] ^= 1
    loader.file().write_bytes(bad)
    assert [loader.compiles(), loader.compiles()] == [True, False]


def test_a_seal_is_of_one_key_and_for_one_module(loader: Loader) -> None:
    """A form of another process, or of whoever wrote the file, is not taken, nor another module's."""
    loader.compiles(key=b"a" * 32)
    assert loader.compiles(key=b"b" * 32)
    loader.file().unlink()
    loader.compiles("other", OTHER)
    other = loader.file()
    taken = other.read_bytes()
    loader.compiles()
    (file,) = [path for path in loader.folder.iterdir() if path != other]
    file.write_bytes(taken)
    assert loader.compiles()


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


def test_a_link_is_not_followed_and_files_are_private(loader: Loader) -> None:
    """0600, and a link in their place is compiled over."""
    loader.compiles()
    file = loader.file()
    assert file.stat().st_mode & 0o777 == 0o600
    file.symlink_to(file.rename(loader.folder.parent / "moved"))
    assert loader.compiles()
    assert not file.is_symlink()


def test_a_folder_that_cannot_be_written_costs_speed_only(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    modules = CompiledModules(wasmtime.Engine(), tmp_path / "file", b"k" * 32)
    assert modules.load("one", lambda: MODULE).exports[0].name == "f"


def test_a_folder_in_the_place_of_a_file_leaves_no_descriptor_open(loader: Loader) -> None:
    """It is compiled anew; a descriptor for each load would use up those of the process."""
    loader.compiles()
    file = loader.file()
    file.unlink()
    file.mkdir()
    before = len([*Path("/dev/fd").iterdir()])
    assert loader.compiles()
    assert len([*Path("/dev/fd").iterdir()]) == before


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
        ('(import "wasi_snapshot_preview1" "fd_fly" (func))' + COMMAND, "host does not provide"),
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
