"""How long after its wall limit a guest that spins is stopped, alone and beside others.

The floor is the tick by which guests are interrupted, 10 ms: on the average half of it is lost.
"""

import asyncio
import tempfile
import time
from pathlib import Path

import wasmtime

from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.connector import WasmConnector
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.connectors.wasm.scheduling import TICK_SECONDS
from bench.support import MANIFEST, Aims, amount, milliseconds

WALL = 0.3
ROUNDS = amount(20, check=1)
_WAT = '(module (memory (export "memory") 1) (func (export "_start") (loop $l (br $l))))'


async def _late(connector: WasmConnector, at_once: int) -> list[float]:
    async def one() -> float:
        began = time.perf_counter()
        result = await connector.call("spin", {}, limits=Limits(wall_seconds=WALL))
        assert result.failure is not None
        assert result.failure.details["limit"] == "wall_time", result
        return time.perf_counter() - began - WALL

    await connector.prepare()
    late: list[float] = []
    for _ in range(ROUNDS):
        late += await asyncio.gather(*(one() for _ in range(at_once)))
    return late


def main() -> None:
    """Print how late they end."""
    print(f"spinning: a guest with {WALL} s to live, how long after that its call ends")
    aims = Aims()
    with tempfile.TemporaryDirectory(prefix="aileron-bench-") as folder:
        store = ConnectorStore(Path(folder))
        installed = store.install_bytes(wasmtime.wat2wasm(_WAT), MANIFEST.encode())
        outgoing = OutgoingClient()
        engine = WasmEngine(outgoing)
        connector = WasmConnector(
            identity=installed.identity, manifest=installed.manifest, store=store, engine=engine
        )
        for at_once in (1, 2, 16):
            late = asyncio.run(_late(connector, at_once))
            within = sum(value <= 0.02 for value in late) / len(late)
            aims.at_most(f"{at_once} at once, the latest, ms", max(late) * 1e3, 20)
            print(f"  {at_once:>2} at once  {milliseconds(late)}  within 20 ms: {within:.0%}")
        print(f"  the tick (floor): {TICK_SECONDS * 1e3:.0f} ms")
        engine.close()
        outgoing.close()
    aims.report()


if __name__ == "__main__":
    main()
