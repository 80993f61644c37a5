"""A person's MCP server as a connector, beside its bare pipe and the `mcp` package's client; the start of its box.

The server answers with what it gets, on the standard library alone. Run by an ordinary user (the tests' one
where this is root's): nobody boxes a server of root's.
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

from aileron_core.connectors.builtin.channel import ToolChannels
from aileron_core.connectors.protocol import Limits
from aileron_core.connectors.servers.box import BoxedServers
from aileron_core.connectors.servers.connector import ServerConnector
from aileron_core.connectors.servers.definitions import definitions_bytes, from_listing
from aileron_core.connectors.servers.process import ServerProcesses
from aileron_core.connectors.servers.propose import manifest_bytes
from aileron_core.connectors.servers.rehearsal import Rehearsals, RehearsingConnector
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.connectors.store import ConnectorStore
from aileron_tui.cli.runtime import TURN_SECONDS
from bench.support import Aims, amount, core_loop, milliseconds
from tests.support.ordinary import AS_ORDINARY, OWNS, ordinary_folder

ROUNDS, CALLS = amount(6, check=1), amount(100, check=5)
STARTS = amount(20, check=2)
SETTLED = amount(2.5, check=0.0)
"""Seconds after which the store believes the times of a file that nobody touched."""
_PYTHON: Final = "/usr/bin/python3"
_ECHO: Final = """\
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        answer = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "e", "version": "1"}}
    elif asked["method"] == "tools/list":
        answer = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("read", "write")]}
    elif asked["method"] == "tools/call":
        if "file" in asked["params"]["arguments"]:
            open(asked["params"]["arguments"]["file"], "a").write("a line\\n")
        answer = {"content": [{"type": "text", "text": str(asked["params"]["arguments"])}]}
    else:
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": {"code": -32601, "message": ""}}), flush=True)
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer}), flush=True)
"""
_TOOLS: Final[Any] = [
    {"name": name, "inputSchema": {"type": "object"}} for name in ("read", "write")
]
_ARGS: Final[Any] = {"path": "/notes/a", "n": 1}


class _Bench:
    """A person's folder with the server, its package's folder, and what starts it in boxes."""

    def __init__(self, folder: Path) -> None:
        self.home, self.tree, self.notes = folder / "aileron", folder / "tree", folder / "notes"
        for each in (self.home, self.tree, self.notes):
            each.mkdir()
        (self.tree / "echo.py").write_text(_ECHO)
        self.program = (_PYTHON, "-I", "-S", str(self.tree / "echo.py"))
        self.boxes = BoxedServers(self.home, folder, os.environ, tree=lambda _: self.tree)
        self.table = ServerTable(
            program=(*self.program[:-1], "{tree}/echo.py"),
            package="npm:echo@1.0.0",
            tree="sha256:" + "0" * 64,
            tools={"read": "run", "write": "ask"},
        )

    @contextmanager
    def bare(self) -> Generator[Callable[[Any], None]]:
        """Yield what writes a request to the program's pipe, and reads its answer."""
        process = subprocess.Popen(self.program, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdin is not None
        assert process.stdout is not None
        stdin, stdout = process.stdin, process.stdout

        def call(args: Any) -> None:
            params = {"name": "read", "arguments": args}
            asked = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
            stdin.write(json.dumps(asked).encode() + b"\n")
            stdin.flush()
            assert "result" in json.loads(stdout.readline())

        try:
            yield call
        finally:
            process.kill()
            process.communicate()

    @contextmanager
    def connector(self) -> Generator[ServerConnector]:
        """Yield the server in its box, as the gate calls it."""
        tools, manifest = from_listing(_TOOLS), manifest_bytes("e", self.table)
        store = ConnectorStore(self.home)
        installed = store.install_server(definitions_bytes(tools), manifest)
        time.sleep(SETTLED)
        servers = ServerProcesses(self.boxes)
        try:
            yield ServerConnector(
                identity=installed.identity,
                manifest=installed.manifest,
                definitions=installed.tools,
                servers=servers,
                check=lambda: store.verify(installed.identity.hash),
            )
        finally:
            servers.close()

    def seconds_to_start(self, table: ServerTable) -> float:
        """Return how long a box takes until the first line of its program."""
        began = time.perf_counter()
        started = self.boxes.start("e", table, "write", {})
        assert started.process.stdout is not None
        assert started.process.stdout.readline() == b"here\n"
        took = time.perf_counter() - began
        started.stop()
        return took


async def _calls(bench: _Bench) -> dict[str, list[float]]:
    """Return the seconds of each call, by how it is made: in turn, so that all meet the same machine."""
    took: dict[str, list[float]] = {"bare pipe": [], "connector": [], "gated": [], "mcp client": []}
    server = StdioServerParameters(command=bench.program[0], args=[*bench.program[1:]])
    with bench.bare() as bare, bench.connector() as connector:
        async with Client(stdio_client(server)) as client:

            async def by_connector(tool: str) -> None:
                result = await connector.call(tool, _ARGS, limits=Limits())
                assert result.failure is None, result

            async def by_client() -> None:
                assert not (await client.call_tool("read", _ARGS)).is_error

            async def by_pipe() -> None:
                bare(_ARGS)

            ways = {
                "bare pipe": by_pipe,
                "connector": lambda: by_connector("read"),
                "gated": lambda: by_connector("write"),
                "mcp client": by_client,
            }
            for way in ways.values():
                await way()  # starts what is not started yet
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    for _ in range(CALLS):
                        began = time.perf_counter()
                        await way()
                        took[name].append(time.perf_counter() - began)
    return took


def _say_calls(bench: _Bench, aims: Aims) -> None:
    sys.setswitchinterval(TURN_SECONDS)
    loop = core_loop()
    took = loop.run_until_complete(_calls(bench))
    loop.close()
    middle = {name: statistics.median(times) * 1e3 for name, times in took.items()}
    floor = middle["bare pipe"]
    for name, times in took.items():
        print(f"  {name:11} {milliseconds(times)}  over the pipe {middle[name] - floor:.2f} ms: {middle[name] / floor:.1f}")  # fmt: skip
    aims.at_most("connector, ms over its bare pipe", middle["connector"] - floor, 0.5)
    aims.at_most("connector over the mcp client", middle["connector"] / middle["mcp client"], 1.0)


def _say_starts(bench: _Bench, aims: Aims) -> None:
    words = ("/bin/sh", "-c", "echo here; exec cat")
    bare: list[float] = []
    plain = ServerTable(program=words)
    tables = {
        "box": plain,
        "box with files": ServerTable(program=words, files_write=(str(bench.notes),)),
        "box with hosts": ServerTable(program=words, hosts=("api.example:443",)),
    }
    boxed: dict[str, list[float]] = {name: [] for name in tables}
    for _ in range(STARTS):
        began = time.perf_counter()
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        bare.append(time.perf_counter() - began)
        process.kill()
        process.communicate()
        for name, table in tables.items():
            boxed[name].append(bench.seconds_to_start(table))
    middle = statistics.median(bare)
    print(f"  start, bare            {milliseconds(bare)}")
    for name, times in boxed.items():
        over = statistics.median(times) - middle
        print(
            f"  start, {name:15} {milliseconds(times)}  over bare {over * 1e3:.0f} ms: {over / middle + 1:.0f}"
        )
        aims.at_most(f"{name}, ms over a bare start", over * 1e3, 300 if "hosts" in name else 60)


async def _rehearsals(bench: _Bench) -> tuple[list[float], list[float]]:
    """Return how long a rehearsal of a call that changes a file takes, and the bare server's start with that call."""
    table = replace(bench.table, files_write=(str(bench.notes),), rehearse=True)
    rehearsals = Rehearsals(
        "e", table, from_listing(_TOOLS), boxes=bench.boxes, home=bench.home, channels=ToolChannels(),
        differs=lambda _: None, ended=lambda _: None,
    )  # fmt: skip
    args: Any = {"file": str(bench.notes / "a")}
    rehearsed: list[float] = []
    bare: list[float] = []
    with bench.connector() as connector:
        for _ in range(STARTS):
            call = RehearsingConnector(connector, rehearsals)
            began = time.perf_counter()
            result = await call.call("write", args, limits=Limits(), read_only=True)
            rehearsed.append(time.perf_counter() - began)
            assert "changes" in (result.output or {}), result
            call.call_ended()
            began = time.perf_counter()
            with bench.bare() as by_pipe:
                by_pipe(args)
                bare.append(time.perf_counter() - began)
    await rehearsals.close()
    return rehearsed, bare


def _say_rehearsals(bench: _Bench, aims: Aims) -> None:
    rehearsed, bare = asyncio.run(_rehearsals(bench))
    over = statistics.median(rehearsed) - statistics.median(bare)
    print(f"  start and call, bare   {milliseconds(bare)}")
    print(f"  rehearsal              {milliseconds(rehearsed)}  over bare {over:.2f} s: {over / statistics.median(bare) + 1:.0f}")  # fmt: skip
    aims.at_most("rehearsal, s over the server's own start", over, 0.5)


def main() -> None:
    """Print the comparisons, as an ordinary user."""
    if AS_ORDINARY:
        with ordinary_folder() as folder:
            own = {OWNS: str(folder), "TMPDIR": str(folder), "HOME": str(folder)}
            command = [*AS_ORDINARY, sys.executable, "-m", "bench.servers", *sys.argv[1:]]
            subprocess.run(command, env={**os.environ, **own}, check=True)
        return
    print("servers: a call of an MCP server that answers with what it gets; the start of its box")
    aims = Aims()
    with ordinary_folder() as folder:
        bench = _Bench(folder)
        _say_calls(bench, aims)
        _say_starts(bench, aims)
        _say_rehearsals(bench, aims)
    aims.report()


if __name__ == "__main__":
    main()
