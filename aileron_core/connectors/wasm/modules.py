"""Compiled modules: which of them a child process compiles, and a cache, used while the vault is unlocked.

Compiling takes up to seconds, loading a compiled module milliseconds. It is machine code, though, so
trusted only with our own seal, whose key is the vault's. A cached file is read once into memory,
its HMAC is verified over exactly those bytes, and they are what is loaded. No file is mapped, and
wasmtime's own cache is off. A large module is compiled by a child process, whose socket is the only
other source of machine code.
"""

import contextlib
import ctypes
import hashlib
import hmac
import logging
import os
import platform
import tempfile
from collections.abc import Callable, Collection
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, NamedTuple

import wasmtime
from wasmtime import _bindings as bindings

from aileron_core.connectors.wasm.compiler import Compiler

_log = logging.getLogger(__name__)
_MAC_BYTES = 32
_SMALL: Final = 128 * 1024
"""Below this many bytes a module is compiled here: a child takes longer to start than its code to make."""
_raw: Any = bindings
_LABEL = b"aileron compiled module v2\0"
_KIND: Final = f"{version('wasmtime')} {platform.machine()} {platform.system()}".encode()
_MAX_STAGED: Final = 64 * 1024 * 1024


class _Cached(NamedTuple):
    seal: bytes
    compiled: bytes
    sha256: bytes
    """Of `compiled`."""


class CompiledModules:
    """Compiles modules, or loads those compiled before.

    Args:
        folder: where compiled modules are cached; None caches none.
        key: the HMAC key, or what returns it; None while there is none, when nothing is cached or loaded.
        compiler: compiles large modules in a separate process; None compiles all of them here.
    """

    def __init__(
        self,
        engine: wasmtime.Engine,
        folder: Path | None,
        key: bytes | Callable[[], bytes | None],
        compiler: Compiler | None = None,
    ) -> None:
        self._engine = engine
        self._compiler = compiler
        self._folder = folder
        self._key = key if callable(key) else lambda: key
        self._staged: dict[str, _Cached] = {}

    def stage(self, names: Collection[str]) -> None:
        """Read the cached files of *names* into memory, and hash them, before there is a key to verify them.

        Only the HMAC is left for the unlock. Of more than 64 MB the rest is read when it is needed.
        """
        for name in names:
            if sum(len(each.compiled) for each in self._staged.values()) > _MAX_STAGED:
                return
            if name not in self._staged and (read := self._read(name)) is not None:
                self._staged[name] = read

    def load(self, name: str, module: Callable[[], bytes], *, niceness: int = 0) -> wasmtime.Module:
        """Return the compiled module of the connector whose hash is *name*.

        Args:
            module: returns its bytes, which are what *name* is the hash of; called only to compile them.

        Raises:
            wasmtime.WasmtimeError: it is not a valid module.
            ConnectorRuntimeError: it cannot be compiled; the message says why.
        """
        if (known := self._verified(name)) is not None:
            try:
                return _deserialized(self._engine, known)
            except wasmtime.WasmtimeError:
                _log.info(
                    "a compiled module was made for another machine or version; compiling again"
                )
        code = module()
        if self._compiler is None or len(code) < _SMALL:
            compiled = wasmtime.Module(self._engine, code)
        else:
            code = self._compiler.compile(code, niceness=niceness)
            compiled = _deserialized(self._engine, code)
        self._keep(name, compiled)
        return compiled

    def _file(self, name: str) -> Path | None:
        return None if self._folder is None else self._folder / cached_file(name)

    def _seal(self, key: bytes, name: str, compiled_sha256: bytes) -> bytes:
        what = _LABEL + name.encode() + b"\0" + _KIND + b"\0" + compiled_sha256
        return hmac.digest(key, what, hashlib.sha256)

    def _read(self, name: str) -> "_Cached | None":
        path = self._file(name)
        if path is None:
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                # `open` refuses a folder, and does not close the descriptor when it does.
                with open(descriptor, "rb", closefd=False) as file:
                    seal, compiled = file.read(_MAC_BYTES), file.read()
            finally:
                os.close(descriptor)
        except OSError:
            return None
        return _Cached(seal, compiled, hashlib.sha256(compiled).digest())

    def _verified(self, name: str) -> bytes | None:
        """Return the cached machine code of *name* if the key sealed exactly these bytes, which are in memory."""
        if (key := self._key()) is None:
            return None
        found = self._staged.pop(name, None) or self._read(name)
        if found is None:
            return None
        expected = self._seal(key, name, found.sha256)
        return found.compiled if hmac.compare_digest(found.seal, expected) else None

    def _keep(self, name: str, module: wasmtime.Module) -> None:
        path, key = self._file(name), self._key()
        if path is None or key is None:
            return
        compiled = bytes(module.serialize())
        seal = self._seal(key, name, hashlib.sha256(compiled).digest())
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, staged = tempfile.mkstemp(prefix="compiled-", dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(seal + compiled)
                Path(staged).replace(path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    Path(staged).unlink()
        except OSError as error:
            # Only speed is lost.
            _log.info("a compiled module could not be kept: %s", error.strerror)

    def collect(self, wanted: Collection[str]) -> None:
        """Remove what is cached of every connector but those whose hashes are *wanted*, and what is staged."""
        self._staged.clear()
        if self._folder is None:
            return
        names = {cached_file(each) for each in wanted}
        with contextlib.suppress(OSError):
            for path in [*self._folder.iterdir()]:
                if path.name not in names:
                    path.unlink()


def cached_file(name: str) -> str:
    """Return the name of the file that caches the connector with the hash *name*."""
    return f"{name.removeprefix('sha256:')}.cwasm"


def _deserialized(engine: wasmtime.Engine, code: bytes) -> wasmtime.Module:
    """Load the module in *code* as `wasmtime.Module.deserialize` does, without its copy of 30 MB."""
    made = ctypes.POINTER(bindings.wasmtime_module_t)()
    data = ctypes.cast(ctypes.c_char_p(code), ctypes.POINTER(ctypes.c_uint8))
    error = _raw.wasmtime_module_deserialize(engine.ptr(), data, len(code), ctypes.byref(made))
    if error:
        raise wasmtime.WasmtimeError._from_ptr(error)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return wasmtime.Module._from_ptr(made)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
