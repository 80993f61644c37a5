"""A call that does nothing, through the relay, over HTTP, and straight at the sandbox (the floor).

Aim: p50 under 5 ms through the relay, durable records included.
"""

import asyncio
import http.client
import json
import os
import statistics
import subprocess
import time
from pathlib import Path

from aileron_core.connectors.http.client import OutgoingClient
from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.registry import ConnectorRegistry
from aileron_core.connectors.store import ConnectorStore
from aileron_core.connectors.wasm.engine import WasmEngine
from aileron_core.home.client import HomeClient
from bench.relay_start import _HELLO
from bench.support import RELAY, home, milliseconds, serving

CALLS = 300


def _through_relay(path: Path) -> list[float]:
    process = subprocess.Popen(
        [str(RELAY)],
        env={**os.environ, "AILERON_HOME": str(path)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def ask(id_: int, method: str, params: dict[str, object]) -> dict[str, object]:
        message = {"jsonrpc": "2.0", "id": id_, "method": method, "params": params}
        process.stdin.write(json.dumps(message).encode() + b"\n")
        process.stdin.flush()
        while True:
            answer = json.loads(process.stdout.readline())
            if answer.get("id") == id_:
                return answer

    ask(1, "initialize", _HELLO)
    process.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
    took: list[float] = []
    for number in range(CALLS):
        began = time.perf_counter()
        answer = ask(number + 2, "tools/call", {"name": "nothing", "arguments": {}})
        took.append(time.perf_counter() - began)
        assert not answer["result"]["isError"], answer
    process.stdin.close()
    process.wait()
    return took


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
    connectors, _ = await ConnectorRegistry(ConnectorStore(path), engine).installed()
    took: list[float] = []
    for _ in range(CALLS):
        began = time.perf_counter()
        result = await connectors[0].call("nothing", {}, limits=Limits())
        took.append(time.perf_counter() - began)
        assert result.failure is None, result
    engine.close()
    outgoing.close()
    return took


def main() -> None:
    """Print the three, and the ratios to the floor."""
    print("calls: an action that does nothing")
    with home() as path:
        floor = asyncio.run(_at_the_sandbox(path))
        with serving(path) as server:
            relay = _through_relay(path)  # first: the console imports mcp while it waits
            http_ = _over_http(path, server["url"])
    print(f"  sandbox alone (floor)          {milliseconds(floor)}")
    print(f"  POST /v1/actions/nothing/run   {milliseconds(http_)}")
    print(f"  tools/call through the relay   {milliseconds(relay)}")
    base = statistics.median(floor)
    print(
        f"  ratio to the floor             HTTP {statistics.median(http_) / base:.1f}, "
        f"relay {statistics.median(relay) / base:.1f} (aim: relay p50 under 5 ms)"
    )


if __name__ == "__main__":
    main()
