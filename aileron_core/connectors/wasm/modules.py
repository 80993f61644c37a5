"""Compiled modules: which of them a child process compiles, and a cache, which the console does not use yet.

Compiling takes up to seconds, loading a compiled module milliseconds. It is machine code, though, so
trusted only with our own seal, whose key is to be the vault's. A cached file is read once into memory,
its HMAC is verified over exactly those bytes, and they are what is loaded. No file is mapped, and
wasmtime's own cache is off. A large module is compiled by a child process, whose pipe is the only
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
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

import wasmtime
from wasmtime import _bindings as bindings

from aileron_core.connectors.wasm.compiler import Compiler

_log = logging.getLogger(__name__)
_MAC_BYTES = 32
_SMALL: Final = 128 * 1024
"""Below this many bytes a module is compiled here: a child takes longer to start than its code to make."""
_raw: Any = bindings
_LABEL = b"aileron compiled module v1\0"


class CompiledModules:
    """Compiles modules, or loads those compiled before.

    Args:
        folder: where compiled modules are cached; None caches none.
        key: the HMAC key: from the vault, or random for the life of the process.
        compiler: compiles large modules in a separate process; None compiles all of them here.
    """

    def __init__(
        self,
        engine: wasmtime.Engine,
        folder: Path | None,
        key: bytes,
        compiler: Compiler | None = None,
    ) -> None:
        self._engine = engine
        self._compiler = compiler
        self._folder = folder
        self._key = key
        self._kind = f"{version('wasmtime')} {platform.machine()} {platform.system()}".encode()

    def load(self, module: bytes, *, niceness: int = 0) -> wasmtime.Module:
        """Return the compiled *module*.

        Raises:
            wasmtime.WasmtimeError: it is not a valid module.
            ConnectorRuntimeError: it cannot be compiled; the message says why.
        """
        digest = hashlib.sha256(module).digest()
        if (known := self._sealed(digest)) is not None:
            try:
                return _deserialized(self._engine, known)
            except wasmtime.WasmtimeError:
                _log.info(
                    "a compiled module was made for another machine or version; compiling again"
                )
        if self._compiler is None or len(module) < _SMALL:
            compiled = wasmtime.Module(self._engine, module)
        else:
            code = self._compiler.compile(module, niceness=niceness)
            compiled = _deserialized(self._engine, code)
        self._keep(digest, compiled)
        return compiled

    def _file(self, digest: bytes) -> Path | None:
        return None if self._folder is None else self._folder / f"{digest.hex()}.cwasm"

    def _seal(self, digest: bytes, compiled: bytes) -> bytes:
        mac = hmac.new(self._key, _LABEL + digest + self._kind + b"\0", hashlib.sha256)
        mac.update(compiled)
        return mac.digest()

    def _sealed(self, digest: bytes) -> bytes | None:
        path = self._file(digest)
        if path is None:
            return None
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                # `open` refuses a folder, and does not close the descriptor when it does.
                with open(descriptor, "rb", closefd=False) as file:
                    data = file.read()
            finally:
                os.close(descriptor)
        except OSError:
            return None
        seal, compiled = data[:_MAC_BYTES], data[_MAC_BYTES:]
        return compiled if hmac.compare_digest(seal, self._seal(digest, compiled)) else None

    def _keep(self, digest: bytes, module: wasmtime.Module) -> None:
        path = self._file(digest)
        if path is None:
            return
        compiled = bytes(module.serialize())
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, staged = tempfile.mkstemp(prefix="compiled-", dir=path.parent)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    file.write(self._seal(digest, compiled) + compiled)
                Path(staged).replace(path)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    Path(staged).unlink()
        except OSError as error:
            # Only speed is lost.
            _log.info("a compiled module could not be kept: %s", error.strerror)


def _deserialized(engine: wasmtime.Engine, code: bytes) -> wasmtime.Module:
    """Load the module in *code* as `wasmtime.Module.deserialize` does, without its copy of 30 MB."""
    made = ctypes.POINTER(bindings.wasmtime_module_t)()
    data = ctypes.cast(ctypes.c_char_p(code), ctypes.POINTER(ctypes.c_uint8))
    error = _raw.wasmtime_module_deserialize(engine.ptr(), data, len(code), ctypes.byref(made))
    if error:
        raise wasmtime.WasmtimeError._from_ptr(error)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    return wasmtime.Module._from_ptr(made)  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
