"""Cold start of an agent's MCP server: from exec to the answer of `tools/list`.

Ours (`aileron-mcp`, a relay, beside a running console) against a bare stdio server on the `mcp`
package with as many tools. Interleaved rounds; aim: a tenth of the bare server's time.
"""

import json
import os
import statistics
import subprocess
import sys
import time

from bench.support import RELAY, home, milliseconds, serving

ROUNDS = 9
_BARE = """
import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

async def tools(ctx, params):
    schema = {"type": "object", "properties": {}}
    return types.ListToolsResult(tools=[types.Tool(name=n, inputSchema=schema) for n in "abcd"])

async def main():
    server = Server("bare", on_list_tools=tools)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""
_HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def _start(command: list[str], environment: dict[str, str]) -> float:
    began = time.perf_counter()
    process = subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def send(message: dict[str, object]) -> None:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        process.stdin.flush()

    send({"id": 1, "method": "initialize", "params": _HELLO})
    assert b'"result"' in process.stdout.readline()
    send({"method": "notifications/initialized"})
    send({"id": 2, "method": "tools/list", "params": {}})
    while True:
        answer = json.loads(process.stdout.readline())
        if answer.get("id") == 2:
            break
    assert answer["result"]["tools"], answer
    took = time.perf_counter() - began
    process.stdin.close()
    process.wait()
    return took


def main() -> None:
    """Print both, and the ratio."""
    print("relay_start: exec to tools/list answered")
    with home() as path, serving(path):
        environment = {**os.environ, "AILERON_HOME": str(path)}
        ours: list[float] = []
        bare: list[float] = []
        _start(
            [str(RELAY)], environment
        )  # the console's own import of mcp is not the relay's start
        for _ in range(ROUNDS):
            ours.append(_start([str(RELAY)], environment))
            bare.append(_start([sys.executable, "-c", _BARE], environment))
    print(f"  aileron-mcp       {milliseconds(ours)}")
    print(f"  bare mcp server   {milliseconds(bare)}")
    ratios = [one / other for one, other in zip(ours, bare, strict=True)]
    print(
        f"  ratio             {statistics.median(ours) / statistics.median(bare):.3f} "
        f"(pairs {min(ratios):.3f} to {max(ratios):.3f}; aim 0.1)"
    )


if __name__ == "__main__":
    main()
