"""Cold start of an agent's MCP server.

The program alone: `python -I -m aileron_mcp.relay`, until it has seen its standard input's end, and a
launch's copy of it, against a Python that imports the same modules of the standard library and ends.

From exec to the answer of `tools/list`: `aileron-mcp`, beside a running console, against a bare stdio
server on the `mcp` package with as many tools.

Interleaved rounds.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from aileron_mcp.relay_copies import compiled_folder
from bench.support import RELAY, Aims, amount, home, milliseconds, serving

ROUNDS = amount(9, check=1)
STARTS = amount(60, check=1)
_LOADED = """
import sys
before = {*sys.modules}
import aileron_mcp.relay.relay
print(*(name for name in sys.modules if name not in before and name.partition(".")[0] in sys.stdlib_module_names))
"""
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


def _run(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


def _program_alone(aims: Aims) -> None:
    """Print what the relay's own modules cost beside those of the standard library."""
    python = [sys.executable, "-I"]
    loaded = subprocess.run([*python, "-c", _LOADED], check=True, capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as folder:
        for name, content in compiled_folder().items():
            file = Path(folder, name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
        commands = {
            "the same standard modules": [
                *python,
                "-c",
                f"import {', '.join(loaded.stdout.split())}",
            ],
            "the relay": [*python, "-m", "aileron_mcp.relay"],
            "a launch's copy of it": [*python, folder],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(STARTS):
            for name, command in commands.items():
                times[name].append(_run(command))
    print("relay_start: exec to exit, standard input empty")
    base = times["the same standard modules"]
    for name, each in times.items():
        pairs = statistics.median(one / other for one, other in zip(each, base, strict=True))
        print(
            f"  {name:<26} {milliseconds(each)}  ratio {statistics.median(each) / statistics.median(base):.2f}"
            f" (of pairs {pairs:.2f})"
        )
        if each is not base:
            aims.at_most(f"{name}, times the same standard modules", pairs, 1.25)


def main() -> None:
    """Print each beside what it is held against, and the ratio."""
    aims = Aims()
    _program_alone(aims)
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
    ratio = statistics.median(ours) / statistics.median(bare)
    print(f"  ratio             {ratio:.3f} (pairs {min(ratios):.3f} to {max(ratios):.3f})")
    aims.at_most("start to tools/list, times a bare mcp server", ratio, 0.1)
    aims.report()


if __name__ == "__main__":
    main()
