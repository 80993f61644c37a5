"""A home with one gated action over a guest written in WAT, and the service that the guest asks.

The guest makes the same requests whatever its op is, so a preview sends what the action would.
"""

import http.server
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import wasmtime

from aileron_core.connectors.protocol import Route
from aileron_core.connectors.store import ConnectorStore

__all__ = ["Answer", "ScriptedService", "Seen", "furnish_guest", "scripted_service"]

FQN = "local://tests/scripted"

_MANIFEST = """
[connector]
name = "local://tests/scripted"
version = "{version}"
[capabilities.network]
hosts = {hosts}
"""

_ACTION = """+++
name = "{name}"
version = "1.0.0"
source = "local://tests/scripted/actions/{name}@1.0.0"

[[requires.connectors]]
name = "local://tests/scripted"
version = "{version}"
hash = "{hash}"
capabilities = ["do", "see"]

[match]
intent = "act"

[[inputs]]
name = "region"
type = "string"
description = "where"
required = false

[[execute]]
id = "step"
connector = "local://tests/scripted"
op = "{op}"
idempotent = {idempotent}
{more}+++

# Act
"""

_APPROVAL = """
[approval]
required = true
effect = "change"

[approval.preview]
op = "see"
args = { region = "${args.region}" }
render = { "Done" = "done" }
"""


@dataclass(frozen=True, slots=True)
class Seen:
    """One request that reached the service."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Answer:
    """What is answered at a path."""

    status: int
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True)
class ScriptedService:
    """An HTTP service that notes what reaches it. Each `Host` may have a status of its own, each path an answer."""

    port: int
    seen: list[Seen] = field(default_factory=list[Seen])
    statuses: dict[str, int] = field(default_factory=dict[str, int])
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    """By path; status 0 hangs up."""

    def route(self, *hosts: str) -> tuple[Route, ...]:
        """Return routes of `host:port` entries to it."""
        return tuple(Route(host=host, address="127.0.0.1", port=self.port) for host in hosts)


@contextmanager
def scripted_service() -> Iterator[ScriptedService]:
    """Run one on a port of the loopback."""
    found: list[ScriptedService] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            service, printed = found[0], b"{}"
            service.seen.append(Seen(self.command, self.path, dict(self.headers), body))
            answer = service.answers.get(self.path) or Answer(
                service.statuses.get(self.headers["Host"], 200)
            )
            if not answer.status:
                self.close_connection = True
                return
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(printed)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(printed)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = answer  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.append(ScriptedService(server.server_address[1]))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield found[0]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def furnish_guest(
    home: Path,
    requests: Sequence[dict[str, Any]],
    hosts: Sequence[str],
    *,
    more: str = "",
    says: str = '{"output":{"done":true}}',
    version: str = "1.0.0",
    module: str = "",
) -> str:
    """Install the guest, the gated action `act` and the free one `see` over it; return the connector's hash.

    Args:
        home: the home.
        requests: what it asks its host for, in order.
        hosts: what its manifest lists.
        more: further lines of the manifest.
        says: what it prints in the end.
        version: of the connector.
        module: its text in WAT, in place of one that makes *requests*.
    """
    manifest = _MANIFEST.format(hosts=json.dumps(list(hosts)), version=version) + more
    text = module or _wat([json.dumps(each) for each in requests], says)
    compiled = bytes(wasmtime.wat2wasm(text))
    entry = ConnectorStore(home).install_bytes(compiled, manifest.encode())
    folder = home / "actions"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    for name, op, idempotent, rest in (
        ("act", "do", "false", _APPROVAL),
        ("see", "see", "true", ""),
    ):
        text = _ACTION.format(
            name=name,
            op=op,
            idempotent=idempotent,
            more=rest,
            hash=entry.identity.hash,
            version=version,
        )
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return entry.identity.hash


def _wat(envelopes: Sequence[str], says: str) -> str:
    data, calls = b"", ""
    for envelope in envelopes:
        raw = envelope.encode()
        calls += f"(drop (call $request (i32.const {1024 + len(data)}) (i32.const {len(raw)})))"
        data += raw
    printed = says.encode()
    text = "".join(f"\\{byte:02x}" for byte in data + printed)
    return f"""(module
      (import "wasi_snapshot_preview1" "fd_write" (func $fd_write (param i32 i32 i32 i32) (result i32)))
      (import "aileron_host" "http_request" (func $request (param i32 i32) (result i32)))
      (memory (export "memory") {2 + len(data) // 65536})
      (data (i32.const 1024) "{text}")
      (func (export "_start")
        {calls}
        (i32.store (i32.const 0) (i32.const {1024 + len(data)}))
        (i32.store (i32.const 4) (i32.const {len(printed)}))
        (drop (call $fd_write (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 8)))))"""
