"""Connectors of `aileron connector new`, one in each language, beside the first of them, in Zig: size, start, a call.

The call fails at its first argument, so what is measured is a language's own start: its runtime, the op's
input read, an error printed. A language whose compiler is not here is left out.
"""

import asyncio
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from bench.support import amount, core_loop, milliseconds

LANGUAGES = ("zig", "python", "rust", "go")
ROUNDS, CALLS = amount((5, 40), check=(1, 2))


def _built(folder: Path, language: str) -> Path | None:
    """Make and build a connector; None where its compiler is missing."""
    words = ("connector", "new", language, "--lang", language, "--home", str(folder / "home"))
    command = [sys.executable, "-I", "-m", "aileron_tui.cli", *words]
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
    made = folder / language
    python = shutil.which("python3") or sys.executable
    command = [python, "build.py"] if language == "python" else ["sh", "build.sh"]
    done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
    if done.returncode:
        print(f"  {language:<7} left out: {done.stderr.strip().splitlines()[-1]}")
        return None
    return made


def main() -> None:
    """Print the comparison."""
    print("languages: a call that fails at its first argument, in a connector of each language")
    with tempfile.TemporaryDirectory(prefix="aileron-bench-") as path:
        folder, loop = Path(path), core_loop()
        store, outgoing = ConnectorStore(folder / "store"), OutgoingClient()
        engine = WasmEngine(outgoing)
        connectors: dict[str, WasmConnector] = {}
        for language in LANGUAGES:
            if (made := _built(folder, language)) is None:
                continue
            entry = store.install(made)
            connectors[language] = WasmConnector(
                identity=entry.identity, manifest=entry.manifest, store=store, engine=engine
            )
            began = time.perf_counter()
            _call(loop, connectors[language])
            first = time.perf_counter() - began
            size = (made / "connector.wasm").stat().st_size
            print(f"  {language:<7} {size / 1000:7.0f} kB, compiled and called once: {first:.2f} s")
        if not connectors:
            return
        base = next(iter(connectors))
        took: dict[str, list[float]] = {language: [] for language in connectors}
        ratios: dict[str, list[float]] = {language: [] for language in connectors}
        for _ in range(ROUNDS):
            for language, connector in connectors.items():
                for _ in range(CALLS):
                    began = time.perf_counter()
                    _call(loop, connector)
                    took[language].append(time.perf_counter() - began)
                last = statistics.median(took[language][-CALLS:])
                ratios[language].append(last / statistics.median(took[base][-CALLS:]))
        for language, values in took.items():
            ratio = statistics.median(ratios[language])
            print(f"  {language:<7} {milliseconds(values)}, to {base} {ratio:.1f}")
        loop.close()
        engine.close()
        outgoing.close()


def _call(loop: asyncio.AbstractEventLoop, connector: WasmConnector) -> None:
    result = loop.run_until_complete(connector.call("get_note", {}, limits=Limits()))
    assert result.failure is not None
    assert "argument id" in result.failure.message, result


if __name__ == "__main__":
    main()
