"""A remote MCP server that a test scripts, and the published one of the `mcp` package, both behind TLS."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import starlette.requests
import uvicorn
from mcp.server.mcpserver import MCPServer
from mcp.server.transport_security import TransportSecuritySettings
from starlette.responses import JSONResponse

from aileron_core.connectors.servers.table import ServerTable
from tests.support.http_service import HttpRequest
from tests.support.tls_service import HOST, Reply, Request, TlsService, certificate, tls_service

URL: Final = f"https://{HOST}/mcp"
PLACE: Final = f"{HOST}:443"
Era: TypeAlias = Literal["2025-11-25", "2026-07-28"]


def remote_table(**more: Any) -> ServerTable:
    """Return the table of a server at `URL` that runs `get` unasked and asks for `set`."""
    return ServerTable(url=URL, hosts=(PLACE,), tools={"get": "run", "set": "ask"}, **more)


def events(*messages: object) -> Reply:
    """Return an answer that has each of *messages* as an event."""
    text = "".join(f"event: message\r\ndata: {json.dumps(each)}\r\n\r\n" for each in messages)
    return Reply(body=text.encode(), headers={"Content-Type": "text/event-stream"})


@dataclass(slots=True, kw_only=True)
class ScriptedMcp:
    """What it lists and answers, and what it was asked."""

    service: TlsService
    tools: list[dict[str, Any]] = field(
        default_factory=lambda: [
            {"name": name, "inputSchema": {"type": "object"}} for name in ("get", "set")
        ]
    )
    call: Callable[[Request, int], object] = lambda _, id_: text_result(id_, "done")
    """Answers a call: with a JSON-RPC message, or a `Reply`."""
    session: str = "s-1"
    """Of the old era; where it is another meanwhile, the one that a client has is over."""
    asked: list[str] = field(default_factory=list[str])
    """The methods of the messages that arrived."""

    def answer(self, request: Request) -> object:
        if request.method == "DELETE":
            self.asked.append("DELETE")
            return Reply()
        message = json.loads(request.body)
        method, id_ = message.get("method", "answer"), message.get("id")
        self.asked.append(method)
        if method == "initialize":
            said = {"protocolVersion": "2025-11-25", "serverInfo": {"name": "small"}}
            body = {"jsonrpc": "2.0", "id": id_, "result": said}
            return Reply(body=body, headers={"Mcp-Session-Id": self.session})
        if request.headers.get("mcp-session-id") != self.session:
            return Reply(status=404)
        if method == "tools/list":
            return {"jsonrpc": "2.0", "id": id_, "result": {"tools": self.tools}}
        return self.call(request, id_) if method == "tools/call" else Reply(status=202)


def text_result(id_: int, text: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "result": {"content": [{"type": "text", "text": text}]}}


@contextmanager
def scripted_mcp(folder: Path) -> Generator[ScriptedMcp]:
    with tls_service(folder) as service:
        made = ScriptedMcp(service=service)
        service.answer = made.answer
        yield made


def dropped(asked: HttpRequest, request: Request) -> bool:
    """Take a call and close its connection without a word."""
    if b'"tools/call"' not in request.body:
        return False
    asked.close_connection = True
    return True


@contextmanager
def published_mcp(folder: Path, server: MCPServer, era: Era) -> Generator[TlsService]:
    """Run *server* as its package does; in the new era, as one that knows no `initialize`."""
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    app = server.streamable_http_app(transport_security=security)
    service = TlsService(port=0, trust=ssl.create_default_context())

    async def noting(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await app(scope, receive, send)
            return
        message = await receive()
        asked = starlette.requests.Request(scope)
        said = Request(
            method=asked.method,
            path=asked.url.path,
            headers=dict(asked.headers),
            body=message["body"],
        )
        service.seen.append(said)
        left, given = [message], json.loads(said.body or b"{}")

        async def again() -> Any:
            return left.pop() if left else await receive()

        if era == "2026-07-28" and given.get("method") == "initialize":
            error = {"code": -32022, "message": "unsupported protocol version"}
            body = {"jsonrpc": "2.0", "id": given["id"], "error": error}
            await JSONResponse(body, 400)(scope, receive, send)
            return
        await app(scope, again, send)

    path = certificate(folder, HOST)
    service.trust = ssl.create_default_context(cafile=str(path))
    listener = socket.create_server(("127.0.0.1", 0))
    service.port = listener.getsockname()[1]
    config = uvicorn.Config(noting, ssl_certfile=path, ssl_keyfile=str(path), log_config=None)
    running = uvicorn.Server(config)
    thread = threading.Thread(target=running.run, args=([listener],), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        running.should_exit = True
        thread.join()
