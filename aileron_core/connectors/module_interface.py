"""Which imports and exports a WASM module may have, read from its bytes without compiling it.

Compiling a large module takes seconds; this way an install refuses one that could never run at
once. The bytes are hostile: every length is checked, and nothing read here is trusted at run time.
"""

from dataclasses import dataclass

from aileron_core.errors import FileProblems, Problem

HOST_MODULE = "aileron_host"
HOST_FUNCTIONS = frozenset(
    {"log", "http_request", "http_response_size", "http_response_status", "http_response_read"}
)
_SPAWN_FUNCTIONS = frozenset(
    {"spawn", "spawn_op", "spawn_status", "spawn_output_size", "spawn_output_read"}
)
WASI_MODULE = "wasi_snapshot_preview1"
# Every function of WASI preview 1 (its witx file), `fd_` and `path_` as groups.
_WASI_FUNCTIONS = frozenset(
    {
        *("args_get", "args_sizes_get", "environ_get", "environ_sizes_get", "poll_oneoff"),
        *("clock_res_get", "clock_time_get", "proc_exit", "proc_raise", "random_get"),
        *("sched_yield", "sock_accept", "sock_recv", "sock_send", "sock_shutdown"),
    }
    | {
        f"fd_{name}"
        for name in (
            *("advise", "allocate", "close", "datasync", "fdstat_get", "fdstat_set_flags"),
            *("fdstat_set_rights", "filestat_get", "filestat_set_size", "filestat_set_times"),
            *("pread", "prestat_dir_name", "prestat_get", "pwrite", "read", "readdir", "renumber"),
            *("seek", "sync", "tell", "write"),
        )
    }
    | {
        f"path_{name}"
        for name in (
            *("create_directory", "filestat_get", "filestat_set_times", "link", "open"),
            *("readlink", "remove_directory", "rename", "symlink", "unlink_file"),
        )
    }
)
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
_MAGIC = b"\0asm\x01\0\0\0"
_IMPORT_SECTION, _EXPORT_SECTION = 2, 7
_MAX_ENTRIES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleInterface:
    """A module's interface: `(module, name)` of each import, and the name of each export."""

    imports: tuple[tuple[str, str], ...]
    exports: tuple[str, ...]


def read_interface(wasm: bytes) -> ModuleInterface:
    """Return the imports and exports of *wasm*.

    Raises:
        ValueError: it is not a core WebAssembly module of version 1.
    """
    if not wasm.startswith(_MAGIC):
        hint = "it is a component: build a core module for WASI preview 1 (wasm32-wasip1)"
        if wasm[:4] != _MAGIC[:4]:
            hint = "perhaps it is a text file"
        raise ValueError(f"is not a core WebAssembly module ({hint})")
    reader = _Reader(wasm, len(_MAGIC))
    imports: tuple[tuple[str, str], ...] = ()
    exports: tuple[str, ...] = ()
    while not reader.ended:
        section = reader.byte()
        body = reader.sub(reader.u32())
        if section == _IMPORT_SECTION:
            imports = _imports(body)
        elif section == _EXPORT_SECTION:
            exports = _exports(body)
    return ModuleInterface(imports=imports, exports=exports)


def check_interface(interface: ModuleInterface, file: str) -> None:
    """Check that the host can run a module with these imports and exports; *file* is its name in messages.

    Raises:
        FileProblems: lists every import that the host does not offer and every missing export.
    """
    messages = [
        message for module, name in interface.imports if (message := _import_problem(module, name))
    ]
    if "_start" not in interface.exports and "_initialize" in interface.exports:
        messages.append(
            "exports '_initialize' and no '_start': it is a WASI reactor, but a connector must be a "
            "WASI command; give it a main function"
        )
    elif "_start" not in interface.exports:
        messages.append("does not export '_start'; a connector must be a WASI command")
    if "memory" not in interface.exports:
        messages.append("does not export 'memory'; a connector must be a WASI command")
    if messages:
        raise FileProblems([Problem(file=file, message=message) for message in messages])


def _import_problem(module: str, name: str) -> str | None:
    if module == WASI_MODULE and name in _WASI_FUNCTIONS:
        return None
    if module == HOST_MODULE and name in HOST_FUNCTIONS:
        return None
    if module == HOST_MODULE and name in _SPAWN_FUNCTIONS:
        return f"imports {name!r}: connectors that start local programs are not supported"
    hint = _HINTS.get((module, name)) or _HINTS.get((module, ""))
    problem = f"imports {name!r} from {module!r}, which the host does not provide"
    return f"{problem} ({hint})" if hint else problem


class _Reader:
    """A bounds-checked cursor over bytes."""

    def __init__(self, data: bytes, start: int = 0, end: int | None = None) -> None:
        self._data = data
        self._at = start
        self._end = len(data) if end is None else end

    @property
    def ended(self) -> bool:
        return self._at >= self._end

    def byte(self) -> int:
        if self.ended:
            raise ValueError("ends in the middle of a section")
        self._at += 1
        return self._data[self._at - 1]

    def u32(self) -> int:
        """Read an unsigned LEB128 number of at most five bytes."""
        value = 0
        for shift in range(0, 35, 7):
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise ValueError("contains a number that is too long")

    def count(self) -> int:
        value = self.u32()
        if value > _MAX_ENTRIES:
            raise ValueError("lists more entries than any connector needs")
        return value

    def sub(self, length: int) -> "_Reader":
        start, self._at = self._at, self._at + length
        if self._at > self._end:
            raise ValueError("ends in the middle of a section")
        return _Reader(self._data, start, self._at)

    def name(self) -> str:
        length = self.u32()
        start = self._at
        self.sub(length)
        try:
            return self._data[start : start + length].decode()
        except UnicodeDecodeError as error:
            raise ValueError("contains a name that is not UTF-8") from error

    def limits(self) -> None:
        flags = self.byte()
        self.u32()
        if flags & 1:
            self.u32()

    def value_type(self) -> None:
        # A reference type with an index (0x63, 0x64) takes a number more.
        if self.byte() in (0x63, 0x64):
            self.u32()


def _imports(reader: _Reader) -> tuple[tuple[str, str], ...]:
    imports: list[tuple[str, str]] = []
    for _ in range(reader.count()):
        imports.append((reader.name(), reader.name()))
        kind = reader.byte()
        if kind == 0:  # a function and its type
            reader.u32()
        elif kind == 1:  # a table
            reader.value_type()
            reader.limits()
        elif kind == 2:  # a memory
            reader.limits()
        elif kind == 3:  # a global
            reader.value_type()
            reader.byte()
        elif kind == 4:  # a tag
            reader.byte()
            reader.u32()
        else:
            raise ValueError("imports something of an unknown kind")
    return tuple(imports)


def _exports(reader: _Reader) -> tuple[str, ...]:
    exports: list[str] = []
    for _ in range(reader.count()):
        exports.append(reader.name())
        reader.byte()
        reader.u32()
    return tuple(exports)
