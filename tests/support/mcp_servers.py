"""MCP servers as small programs of the standard library, and what starts them without a box."""

import contextlib
import os
import re
import signal
import sys
import textwrap
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any

from aileron_core.actions.model import ConnectorIdentity
from aileron_core.canonical import Json
from aileron_core.connectors.manifest import Manifest
from aileron_core.connectors.protocol import CredentialRequirement
from aileron_core.connectors.servers.connector import ServerConnector
from aileron_core.connectors.servers.definitions import definitions_bytes, from_listing
from aileron_core.connectors.servers.process import ServerProcesses
from aileron_core.connectors.servers.propose import manifest_bytes
from aileron_core.connectors.servers.started import Mode
from aileron_core.connectors.servers.table import ServerTable, Word
from aileron_core.connectors.store import ConnectorStore, InstalledConnector
from aileron_core.errors import Unavailable

_PROGRAM = '''
import json, os, signal, sys, time

STATE = os.environ["STATE"]

def write(value):
    sys.stdout.write(value + "\\n")
    sys.stdout.flush()

def send(**message):
    write(json.dumps({"jsonrpc": "2.0", **message}))

def note(line):
    """Leave a line where the test finds it: what the server did."""
    with open(STATE, "a") as file:
        file.write(line + "\\n")

def noted(line):
    return os.path.exists(STATE) and line in open(STATE).read().split("\\n")

def read():
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    return json.loads(line)

def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}

def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}

def initialize(id, params):
    send(id=id, result={
        "protocolVersion": params.get("protocolVersion"), "capabilities": {"tools": {}},
        "serverInfo": {"name": "small", "version": "1"},
    })

def tools():
    return [tool("get"), tool("set")]

def listing(id, params):
    send(id=id, result={"tools": tools()})

def call(id, name, args):
    send(id=id, result=text(json.dumps(args)))

def other(message):
    pass

def serve():
    note(f"start {os.getpid()}")
    while True:
        message = read()
        id, method, params = message.get("id"), message.get("method"), message.get("params") or {}
        if method == "initialize":
            initialize(id, params)
        elif method == "tools/list":
            listing(id, params)
        elif method == "tools/call":
            note("call " + params["name"])
            call(id, params["name"], params.get("arguments"))
        else:
            note(f"got {method} {json.dumps(message.get('error') or message.get('result'))}")
            other(message)
'''
TOOLS: list[Json] = [{"name": name, "inputSchema": {"type": "object"}} for name in ("get", "set")]
"""What it lists where a test does not say otherwise."""
IDENTITY = ConnectorIdentity(fqn="mcp://local/small", version="1.0.0", hash=f"sha256:{'0' * 64}")


@dataclass
class Unboxed:
    """A process without a box; its own process group is ended with it."""

    process: "Popen[bytes]"
    servers: "UnboxedServers"

    def hosts_reached(self, since: float) -> tuple[str, ...]:
        return self.servers.reached if since <= time.monotonic() else ()

    def pause(self) -> bool:
        self.servers.pauses.append(self.process.pid)
        return self.servers.can_pause

    def resume(self) -> bool:
        return self.servers.can_resume

    def stop(self) -> Sequence[str]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        return ()


@dataclass
class UnboxedServers:
    """Starts each server's program as it stands, with nothing around it: for tests that run as root."""

    started: list[Mode] = field(default_factory=list[Mode])
    """The mode of each process, in the order of their starts."""
    processes: "list[Popen[bytes]]" = field(default_factory=list)
    reached: tuple[str, ...] = ()
    """What each process is said to have been connected to."""
    pauses: list[int] = field(default_factory=list[int])
    """The process of each pause."""
    can_pause: bool = True
    can_resume: bool = True
    """Whether it can be kept from writing, and goes on then; else it is ended, or started anew."""
    refusal: str = ""
    """Why none is started any more."""

    def why_not(self, table: ServerTable) -> str:
        return ""

    def start(
        self, name: str, table: ServerTable, mode: Mode, secrets: Mapping[str, str]
    ) -> Unboxed:
        if self.refusal:
            raise Unavailable(self.refusal)
        self.started.append(mode)
        words = [
            re.sub(r"\$\{secret\.(\w+)\}", lambda found: secrets[found[1]], word)
            for word in table.program
        ]
        env = {"PATH": "/usr/bin:/bin", "MODE": mode, **table.env, **secrets}
        process = Popen(
            words, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=env, start_new_session=True, bufsize=0
        )
        self.processes.append(process)
        return Unboxed(process, self)


def server_program(folder: Path, source: str = "") -> tuple[str, ...]:
    """Return the words that run a server of two tools, `get` and `set`, that answer with their arguments.

    The functions of *source* are in place of those of `_PROGRAM`.
    """
    path = folder / "server.py"
    path.write_text(_PROGRAM + textwrap.dedent(source) + "\n\nserve()\n")
    return (sys.executable, "-I", "-S", str(path))


def table(folder: Path, source: str = "", **more: Any) -> ServerTable:
    """Return a server's table: it runs *source*, `get` unasked and `set` asked; its notes are in `state`."""
    words: dict[str, Word] = {"get": "run", "set": "ask"}
    given = {"tools": words, "env": {"STATE": str(folder / "state")}, **more}
    return ServerTable(program=server_program(folder, source), **given)


def server_notes(folder: Path) -> list[str]:
    path = folder / "state"
    return path.read_text().splitlines() if path.exists() else []


def server_connector(
    servers: ServerProcesses, table: ServerTable, tools: Sequence[Json] = TOOLS
) -> ServerConnector:
    """Return a server's connector, *tools* accepted as they are listed."""
    needs = CredentialRequirement(kind="environment", names=table.secrets)
    given: dict[str, Any] = {"hosts": table.hosts, "server": table}
    given["credential"] = needs if table.secrets else None
    manifest = Manifest(name=IDENTITY.fqn, version=IDENTITY.version, **given)
    return ServerConnector(
        identity=IDENTITY, manifest=manifest, definitions=from_listing(tools), servers=servers
    )


def install(home: Path, table: ServerTable, tools: Sequence[Json] = TOOLS) -> InstalledConnector:
    """Install the server `small` in *home* as one that lists *tools*; nobody has accepted it."""
    manifest = manifest_bytes("small", table)
    return ConnectorStore(home).install_server(definitions_bytes(from_listing(tools)), manifest)
