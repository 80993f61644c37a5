"""What a compiled module may import and has to export."""

from collections.abc import Iterator

import pytest
import wasmtime

from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.wasm.engine import WasmEngine


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


def test_a_hostile_list_of_imports_makes_no_list_of_its_length(
    plain_engine: WasmEngine,
) -> None:
    """What the child sends back is bounded, however many there are and whatever they are called."""
    imports = "".join(f'(import "{"m" * 900}" "{number:0900}" (func))' for number in range(300))
    found = plain_engine.check_module(bytes(wasmtime.wat2wasm(f"(module {imports} {COMMAND})")))
    assert len(found.problems) == 100
    assert all(len(each) < 500 for each in found.problems)
