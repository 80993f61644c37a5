"""A home with one gated action over a guest written in WAT, and the service that the guest asks.

The guest makes the same requests whatever its op is, so a preview sends what the action would.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import wasmtime

from aileron_core.connectors.protocol import Route
from aileron_core.connectors.store import ConnectorStore
from tests.support.guests import requesting
from tests.support.http_service import HttpRequest, http_server, reply
from tests.support.tls_service import Request

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
class Answer:
    status: int
    headers: dict[str, str] = field(default_factory=dict[str, str])


@dataclass(slots=True)
class ScriptedService:
    """An HTTP service that notes what reaches it. Each `Host` may have a status of its own, each path an answer."""

    port: int
    seen: list[Request] = field(default_factory=list[Request])
    statuses: dict[str, int] = field(default_factory=dict[str, int])
    answers: dict[str, Answer] = field(default_factory=dict[str, Answer])
    """By path; status 0 hangs up."""

    def route(self, *hosts: str) -> tuple[Route, ...]:
        return tuple(Route(host=host, address="127.0.0.1", port=self.port) for host in hosts)


@contextmanager
def scripted_service() -> Iterator[ScriptedService]:
    service = ScriptedService(0)

    def answer(request: HttpRequest, body: bytes) -> None:
        method, path, headers = request.command, request.path, dict(request.headers)
        service.seen.append(Request(method=method, path=path, headers=headers, body=body))
        status = service.statuses.get(request.headers["Host"], 200)
        said = service.answers.get(request.path) or Answer(status)
        if said.status:
            reply(request, said.status, b"{}", said.headers)
        else:
            request.close_connection = True

    with http_server(answer) as server:
        service.port = server.server_address[1]
        yield service


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

    It makes *requests* in their order and prints what it *says*, unless *module* is its text in WAT.
    """
    text = module or requesting(*(json.dumps(each) for each in requests), say=says)
    hash_ = install_module(home, text, hosts, more, version)
    write_action(home, "act", hash_, _APPROVAL, idempotent=False, version=version)
    write_action(home, "see", hash_, op="see", version=version)
    return hash_


def install_module(
    home: Path, text: str, hosts: Sequence[str], more: str = "", version: str = "1.0.0"
) -> str:
    """Install the connector with a module in WAT and *more* lines in its manifest; return its hash."""
    manifest = _MANIFEST.format(hosts=json.dumps(list(hosts)), version=version) + more
    compiled = bytes(wasmtime.wat2wasm(text))
    return ConnectorStore(home).install_bytes(compiled, manifest.encode()).identity.hash


def write_action(home: Path, name: str, hash_: str, more: str = "", **other: object) -> Path:
    """Write an action over one op of the connector, with *more* tables; *other* values than the usual ones."""
    path = home / "actions" / f"{name}.md"
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    given = {"op": "do", "idempotent": True, "version": "1.0.0"} | other
    given["idempotent"] = json.dumps(given["idempotent"])
    path.write_text(_ACTION.format(name=name, more=more, hash=hash_, **given), encoding="utf-8")
    return path


def install_sleeper(
    home: Path, *, seconds: int, requests: Sequence[dict[str, Any]] = (), more: str = ""
) -> str:
    """Install a guest whose op `do` sleeps, and `see` answers at once; return its hash.

    It makes *requests* in their order, then sleeps for *seconds*, two at a time, as connectors that poll do.
    """
    # The input begins with {"op": " and the op; only that of `do` begins with a d (100).
    first = """(local $left i32)
      (i32.store (i32.const 0) (i32.const 600)) (i32.store (i32.const 4) (i32.const 64))
      (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
      (if (i32.eq (i32.load8_u (i32.const 608)) (i32.const 100)) (then"""
    then = f"""
        (local.set $left (i32.const {seconds // 2}))
        (loop $again
          (i32.store (i32.const 80) (i32.const 1))
          (i64.store (i32.const 88) (i64.const 2000000000))
          (drop (call $poll (i32.const 64) (i32.const 256) (i32.const 1) (i32.const 512)))
          (br_if $again (i32.gt_s (local.tee $left (i32.sub (local.get $left) (i32.const 1))) (i32.const 0))))))"""
    text = requesting(*map(json.dumps, requests), first=first, then=then)
    return install_module(home, text, ["sleeper.test:443"], more)
