"""How soon after the unlock a connector of 7 MB is ready, from its compiled form that the vault's key signed.

Beside what no program can do without: reading that file, and loading it with wasmtime-py (floor).
"""

import asyncio
import statistics
import tempfile
import time
from pathlib import Path

import wasmtime

from aileron_core.app import App, AppOptions
from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.home.layout import Home
from aileron_core.vault.secret import Secret
from bench.connectors import LARGE, large_module
from bench.support import Aims, amount, core_loop, fill, milliseconds

ROUNDS = amount(7, check=1)
_PASSPHRASE = "correct horse battery"
_MAC_BYTES = 32


async def _ready(app: App) -> None:
    """Wait until the connector is compiled or loaded."""
    while True:
        found = tuple(app.library.accepted_connectors())
        if found and all(each.prepared for each in found):
            return
        await asyncio.sleep(0.0005)


async def _opened(home: Home, *, accept: bool) -> tuple[float, float]:
    """Open *home*; return the seconds that unlocking took, and those from there until the connector is ready."""
    async with App.open(home, AppOptions(accept_installed=accept)) as app:
        if accept:
            await app.vault_service.create(Secret(_PASSPHRASE), way="console")
            await _ready(app)
            return 0.0, 0.0
        began = time.perf_counter()
        await app.vault_service.unlock(Secret(_PASSPHRASE), way="console")
        unlocked = time.perf_counter()
        await _ready(app)
        return unlocked - began, time.perf_counter() - unlocked


def _floor(engine: wasmtime.Engine, file: Path) -> float:
    """Return the seconds of reading the compiled file and loading it with wasmtime-py, and nothing else."""
    began = time.perf_counter()
    wasmtime.Module.deserialize(engine, file.read_bytes()[_MAC_BYTES:])
    return time.perf_counter() - began


def main() -> None:
    """Print the comparison."""
    print("unlock: a connector of 7 MB, from the unlock until it is ready")
    outgoing = OutgoingClient()
    bare = WasmEngine(outgoing)
    engine = bare._engine  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    rows: dict[str, list[float]] = {"unlocking": [], "until ready": [], "floor": []}
    with tempfile.TemporaryDirectory(prefix="aileron-bench-") as folder:
        home = Home(Path(folder) / "home")
        home.path.mkdir(mode=0o700)
        fill(home.path, large_module(LARGE))
        loop = core_loop()
        loop.run_until_complete(_opened(home, accept=True))
        (file,) = (home.path / "store" / "compiled").iterdir()
        for _ in range(ROUNDS):
            rows["floor"].append(_floor(engine, file))
            unlocking, ready = loop.run_until_complete(_opened(home, accept=False))
            rows["unlocking"].append(unlocking)
            rows["until ready"].append(ready)
        loop.close()
        size = file.stat().st_size / 2**20
    bare.close()
    outgoing.close()
    for name, values in rows.items():
        print(f"  {name:<12} {milliseconds(values)}")
    ratios = [
        ready / floor for ready, floor in zip(rows["until ready"], rows["floor"], strict=True)
    ]
    print(
        f"  {size:.0f} MB of machine code; ready after {statistics.median(ratios):.2f} times the floor "
        f"({min(ratios):.2f} to {max(ratios):.2f})"
    )
    aims = Aims()
    aims.at_most("until ready, p50 ms", statistics.median(rows["until ready"]) * 1e3, 30)
    aims.report()


if __name__ == "__main__":
    main()
