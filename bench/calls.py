"""A call that does nothing, through the relay, over HTTP, and straight at the sandbox (the floor).

Durable records included. With `AILERON_BENCH_BESIDE`, also call by call in turn with another version.
"""

import asyncio
import contextlib
import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.home.client import HomeClient
from bench.relay_start import _HELLO
from bench.support import RELAY, Aims, amount, home, milliseconds, serving

CALLS = amount(300, check=3)


BESIDE = "AILERON_BENCH_BESIDE"
"""Names the `bin` folder of an environment with another version, to be measured in the same run."""


class _Agent:
    """A relay of the console at *path*, after the handshake."""

    def __init__(self, path: Path, relay: Path = RELAY) -> None:
        self._process = subprocess.Popen(
            [str(relay)],
            env={**os.environ, "AILERON_HOME": str(path)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self._number = 0
        self._ask("initialize", _HELLO)
        self._write({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _write(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdout is not None
        self._number += 1
        self._write({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            answer = json.loads(self._process.stdout.readline())
            if answer.get("id") == self._number:
                return answer

    def call(self) -> float:
        """Return how long a call takes."""
        began = time.perf_counter()
        answer = self._ask("tools/call", {"name": "nothing", "arguments": {}})
        took = time.perf_counter() - began
        assert not answer["result"]["isError"], answer
        return took

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def _through_relay(path: Path) -> list[float]:
    agent = _Agent(path)
    took = [agent.call() for _ in range(CALLS)]
    agent.end()
    return took


def _beside(other: Path, aims: Aims) -> None:
    """Print the relay's calls of this version and of another one, call by call in turn."""
    with contextlib.ExitStack() as stack:
        agents: list[_Agent] = []
        for folder in (other, Path(sys.executable).parent):
            path = stack.enter_context(home())
            stack.enter_context(serving(path, python=str(folder / "python")))
            agents.append(_Agent(path, folder / "aileron-mcp"))
            stack.callback(agents[-1].end)
        for agent in agents:
            agent.call()
        rounds = [[agent.call() for agent in agents] for _ in range(4 * CALLS)]
    old, new = ([each[at] for each in rounds] for at in (0, 1))
    print(f"  the other's, through its relay {milliseconds(old)}")
    print(f"  this one's                     {milliseconds(new)}")
    ratio = statistics.median(new) / statistics.median(old)
    print(f"  ratio of the medians           {ratio:.2f}")
    aims.at_most("times the other version", ratio, 0.7)


def _over_http(path: Path, url: str) -> list[float]:
    opened = HomeClient(path).request("POST", "/v1/sessions", {"agent": "bench", "cwd": "/"})[1]
    headers = {
        "Authorization": f"Bearer {opened['token']}",
        "Content-Type": "application/json",
    }
    connection = http.client.HTTPConnection(url.removeprefix("http://"))
    took: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        connection.request("POST", "/v1/actions/nothing/run", b'{"args":{}}', headers)
        response = connection.getresponse()
        body = response.read()
        took.append(time.perf_counter() - began)
        assert response.status == 200, body
    return took


async def _at_the_sandbox(path: Path) -> list[float]:
    outgoing = OutgoingClient()
    engine = WasmEngine(outgoing)
    (connector, _), *_ = (await ConnectorRegistry(ConnectorStore(path), lambda: engine).scan())[0]
    took: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        result = await connector.call("nothing", {}, limits=Limits())
        took.append(time.perf_counter() - began)
        assert result.failure is None, result
    engine.close()
    outgoing.close()
    return took


def main() -> None:
    """Print the three, and the ratios to the floor."""
    print("calls: an action that does nothing")
    aims = Aims()
    with home() as path:
        floor = asyncio.run(_at_the_sandbox(path))
        with serving(path) as server:
            relay = _through_relay(path)  # first: the console imports mcp while it waits
            http_ = _over_http(path, server["url"])
    print(f"  sandbox alone (floor)          {milliseconds(floor)}")
    print(f"  POST /v1/actions/nothing/run   {milliseconds(http_)}")
    print(f"  tools/call through the relay   {milliseconds(relay)}")
    if other := os.environ.get(BESIDE):
        _beside(Path(other), aims)
    base = statistics.median(floor)
    print(
        f"  ratio to the floor             HTTP {statistics.median(http_) / base:.1f}, "
        f"relay {statistics.median(relay) / base:.1f}"
    )
    aims.at_most("through the relay, p50 ms", statistics.median(relay) * 1e3, 5)
    aims.report()


if __name__ == "__main__":
    main()
