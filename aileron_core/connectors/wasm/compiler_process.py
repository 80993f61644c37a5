"""The program that compiles one module: bytes on standard input, machine code on standard output.

    python -I -m aileron_core.connectors.wasm.compiler_process TASK MEMORY_MIB SECONDS NICENESS

TASK is `compile`, or `check`, which writes a `ModuleCheck` in JSON instead of the code.

It exits with `EXIT_REFUSED`, and a sentence on its output, if the module cannot run here, and with
`EXIT_OUT_OF_MEMORY` if Python could allocate no more.
"""

import ctypes
import json
import os
import resource
import sys
from dataclasses import asdict

if __name__ == "__main__" and sys.platform == "linux":
    # PR_SET_DUMPABLE, before the imports, which take a while: what it returns is run by the console.
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)

from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import MIB
from aileron_core.connectors.wasm.compiler import EXIT_OUT_OF_MEMORY, EXIT_REFUSED
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.errors import ConnectorRuntimeError


def _main(task: str, memory_mib: int, seconds: int, niceness: int) -> int:
    os.nice(niceness)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _set_limit(resource.RLIMIT_DATA, memory_mib * MIB)
    _set_limit(resource.RLIMIT_CPU, seconds)  # ends it by SIGXCPU
    outgoing = OutgoingClient()
    engine = WasmEngine(outgoing, optimize=task == "compile")
    try:
        module = sys.stdin.buffer.read()
        if task == "check":
            answer = json.dumps(asdict(engine.check_module(module))).encode()
        else:
            answer = engine.machine_code(module)
    except ConnectorRuntimeError as error:
        sys.stdout.write(error.message)
        return EXIT_REFUSED
    except MemoryError:
        return EXIT_OUT_OF_MEMORY
    finally:
        engine.close()
        outgoing.close()
    sys.stdout.buffer.write(answer)
    return 0


def _set_limit(what: int, wanted: int) -> None:
    _, most = resource.getrlimit(what)
    limit = wanted if most == resource.RLIM_INFINITY else min(wanted, most)
    resource.setrlimit(what, (limit, most))


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1], *map(int, sys.argv[2:])))
