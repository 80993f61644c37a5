"""Checks what a compiled module imports and exports against what the host offers.

wasmtime has read the module by then, in the process that compiles it: the console parses no module
of its own accord.
"""

from contextlib import closing

import wasmtime

from aileron_core.connectors.wasm.compiler import ModuleCheck

HOST_MODULE = "aileron_host"
WASI_MODULE = "wasi_snapshot_preview1"
_SPAWN_FUNCTIONS = frozenset(
    {"spawn", "spawn_op", "spawn_status", "spawn_output_size", "spawn_output_read"}
)
_LONGEST = 200
_MAX_PROBLEMS = 100
# What compilers import unless told to build a WASI command, and how to tell them.
_HINTS = {
    (
        "env",
        "abort",
    ): "AssemblyScript: build with --exportStart _start and --use abort=, or with its WASI shim",
    ("env", "seed"): "AssemblyScript: build with its WASI shim",
    ("env", "trace"): "AssemblyScript: build with its WASI shim",
    ("env", "memory"): "export a memory of its own",
    ("wasi_unstable", ""): "build for WASI preview 1",
    ("wasi", "thread-spawn"): "build without threads",
    ("gojs", ""): "Go: build with GOOS=wasip1 GOARCH=wasm",
    ("go", ""): "Go: build with GOOS=wasip1 GOARCH=wasm",
    ("wbg", ""): "Rust: build for wasm32-wasip1, without wasm-bindgen",
    ("__wbindgen_placeholder__", ""): "Rust: build for wasm32-wasip1, without wasm-bindgen",
}


def check_interface(
    module: wasmtime.Module, linker: wasmtime.Linker, engine: wasmtime.Engine
) -> ModuleCheck:
    """Return what *module* imports of `aileron_host`, and each import and export that does not fit.

    Of a module with more problems only the first hundred, each of a length that can be read.
    """
    refused: list[str] = []
    offered: set[str] = set()
    with closing(wasmtime.Store(engine)) as store:
        for each in module.imports:
            source, name = each.module, each.name or ""
            try:
                linker.get(store, source, name)
            except wasmtime.WasmtimeError:
                refused.append(_import_problem(source[:_LONGEST], name[:_LONGEST]))
                if len(refused) == _MAX_PROBLEMS:
                    break
            else:
                offered |= {name} if source == HOST_MODULE else set()
    exports = {export.name for export in module.exports}
    if "_start" not in exports and "_initialize" in exports:
        refused.append(
            "exports '_initialize' and no '_start': it is a WASI reactor, but a connector must be a "
            "WASI command; give it a main function"
        )
    elif "_start" not in exports:
        refused.append("does not export '_start'; a connector must be a WASI command")
    if "memory" not in exports:
        refused.append("does not export 'memory'; a connector must be a WASI command")
    return ModuleCheck(problems=tuple(refused), imports=tuple(sorted(offered)))


def _import_problem(module: str, name: str) -> str:
    if module == HOST_MODULE and name in _SPAWN_FUNCTIONS:
        return f"imports {name!r}: connectors that start local programs are not supported"
    hint = _HINTS.get((module, name)) or _HINTS.get((module, ""))
    problem = f"imports {name!r} from {module!r}, which the host does not provide"
    return f"{problem} ({hint})" if hint else problem
