"""What a WASM module imports and exports, read from its bytes without compiling it.

Compiling takes seconds for a large module; an install wants to refuse one that could never run at
once. The bytes are hostile: every length is checked, and nothing here is trusted when it runs.
"""

from dataclasses import dataclass

from aileron_core.errors import FileProblems, Problem

__all__ = ["HOST_FUNCTIONS", "HOST_MODULE", "ModuleShape", "check_shape", "read_shape"]

HOST_MODULE = "aileron_host"
HOST_FUNCTIONS = frozenset(
    {"log", "http_request", "http_response_size", "http_response_status", "http_response_read"}
)
_SPAWN_FUNCTIONS = frozenset(
    {"spawn", "spawn_op", "spawn_status", "spawn_output_size", "spawn_output_read"}
)
_WASI = "wasi_snapshot_preview1"
_MAGIC = b"\0asm\x01\0\0\0"
_IMPORT_SECTION, _EXPORT_SECTION = 2, 7
_MAX_ENTRIES = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleShape:
    """A module's outer face: `(module, name)` of each import, name of each export."""

    imports: tuple[tuple[str, str], ...]
    exports: tuple[str, ...]


def read_shape(wasm: bytes) -> ModuleShape:
    """Return the imports and exports of *wasm*.

    Raises:
        ValueError: it is no core WebAssembly module of version 1.
    """
    if not wasm.startswith(_MAGIC):
        raise ValueError("is not a core WebAssembly module (a component or a text file, perhaps)")
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
    return ModuleShape(imports=imports, exports=exports)


def check_shape(shape: ModuleShape, file: str) -> None:
    """Check that the host can run a module of this shape; *file* is its name in messages.

    Raises:
        FileProblems: with every import that the host does not offer and every missing export.
    """
    messages: list[str] = []
    for module, name in shape.imports:
        if module == _WASI or (module == HOST_MODULE and name in HOST_FUNCTIONS):
            continue
        if module == HOST_MODULE and name in _SPAWN_FUNCTIONS:
            messages.append(
                f"imports {name!r}: connectors that start local programs are not supported"
            )
        else:
            messages.append(f"imports {name!r} of {module!r}, which the host does not offer")
    messages.extend(
        f"does not export {name!r}; a connector is a WASI command"
        for name in ("_start", "memory")
        if name not in shape.exports
    )
    if messages:
        raise FileProblems([Problem(file=file, message=message) for message in messages])


class _Reader:
    """A cursor over bytes that never leaves them."""

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
        raise ValueError("holds a number that is too long")

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
            raise ValueError("holds a name that is not UTF-8") from error

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
    found: list[tuple[str, str]] = []
    for _ in range(reader.count()):
        found.append((reader.name(), reader.name()))
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
    return tuple(found)


def _exports(reader: _Reader) -> tuple[str, ...]:
    found: list[str] = []
    for _ in range(reader.count()):
        found.append(reader.name())
        reader.byte()
        reader.u32()
    return tuple(found)
