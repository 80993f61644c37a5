"""Whether a module compiles within bounds, tried in a process of its own.

A compiler's time and memory are not bounded by the size of what it compiles: 250 kB of loops over
50,000 locals take it minutes and gigabytes. So a module is compiled once in a child that may take
so much and no more, before the home holds it; the console then compiles it in its own memory,
because machine code is taken from no other process.
"""

import os
import resource
import subprocess
import sys
from typing import Final

from aileron_core.connectors.outgoing import OutgoingClient
from aileron_core.connectors.protocol import MIB
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import ConnectorRuntimeError

__all__ = ["compile_problem"]

_SECONDS: Final = 120
_MEMORY_MIB: Final = 3072
_THREADS: Final = "2"
_REFUSED: Final = 3
"""The child's exit code where it has said what is wrong."""


def compile_problem(
    module: bytes, *, seconds: float = _SECONDS, memory_mib: int = _MEMORY_MIB
) -> str:
    """Return why *module* cannot be compiled for this host, or nothing; blocks until that is known.

    Args:
        module: its bytes.
        seconds: how long it may take.
        memory_mib: what the compiler may take with all that it needs itself, in MiB; systems other
            than Linux do not hold it to that.
    """
    try:
        child = subprocess.run(
            [sys.executable, "-I", "-m", "aileron_core.connectors.wasm.compiling", str(memory_mib)],
            input=module,
            capture_output=True,
            check=False,
            timeout=seconds,
            env={**os.environ, "RAYON_NUM_THREADS": _THREADS},
        )
    except subprocess.TimeoutExpired:
        return f"takes longer than {seconds:g} s to be compiled; split its largest functions"
    if child.returncode == _REFUSED:
        return child.stdout.decode("utf-8", "replace")
    if child.returncode != 0:
        return f"needs more than {memory_mib} MiB of memory to be compiled; split its largest functions"
    return ""


def _compile(memory_mib: int) -> int:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    wanted = memory_mib * MIB
    limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, most))
    outgoing = OutgoingClient()
    engine = WasmEngine(outgoing)
    try:
        engine.prepare("sha256:trial", sys.stdin.buffer.read)
    except ConnectorRuntimeError as error:
        sys.stdout.write(error.message)
        return _REFUSED
    finally:
        engine.close()
        outgoing.close()
    return 0


if __name__ == "__main__":
    sys.exit(_compile(int(sys.argv[1])))
