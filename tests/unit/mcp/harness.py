"""A small console for the tests of `aileron_mcp`: WIRE.md's agent routes on real sockets.

It holds the home's lock as the real one does, mounts the real MCP server, and is run either in a
thread of the test process (`ThreadConsole`) or as a process of its own (`ProcessConsole`), which a
test may kill. Only the routes under `/test` are not WIRE.md's: they play the person.
"""

import argparse
import asyncio
import contextlib
import errno
import fcntl
import hashlib
import hmac
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import httpx2
import uvicorn
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from aileron_mcp.lazy_mount import LazyMcpApp, asgi_call

ROOT = Path(__file__).resolve().parents[3]
TOKEN = "token-of-the-first-session"
OTHER_TOKEN = "token-of-the-second-session"


@dataclass
class Approval:
    """A run that waits for the test's person."""

    id: str
    session: str
    action: str
    args: dict[str, Any]
    outcome: dict[str, Any] = field(default_factory=lambda: {"status": "pending_approval"})
    settled: asyncio.Event = field(default_factory=asyncio.Event)

    def settle(self, **outcome: Any) -> None:
        self.outcome = outcome
        self.settled.set()

    def body(self) -> dict[str, Any]:
        return {
            "approval_id": self.id,
            "action": self.action,
            "audit_id": "run-" + "0" * 26,
            "requested_at": "2026-01-01T00:00:00.000Z",
            "expires_at": "2026-01-01T00:30:00.000Z",
            **self.outcome,
        }


def action(name: str, *, gated: bool) -> dict[str, Any]:
    properties = {"text": {"type": "string", "description": "anything"}}
    return {
        "name": name,
        "tool": name.replace("-", "_"),
        "version": "1.0.0",
        "description": f"The action {name}.",
        "gated": gated,
        "input_schema": {
            "type": "object",
            "properties": properties,
            "required": [],
            "additionalProperties": False,
        },
    }


class State:
    """What the console of the tests knows."""

    def __init__(self, tokens: dict[str, str], hold_seconds: float) -> None:
        self.sessions = dict(tokens)  # token -> session id
        self.opened: list[dict[str, Any]] = []
        self.ended: list[str] = []
        self.holding: set[str] = set()
        self.approvals: dict[str, Approval] = {}
        self.runs: list[dict[str, Any]] = []
        self.requests: list[dict[str, Any]] = []
        self.actions = [
            action("read-inbox", gated=False),
            action("send-draft", gated=True),
            action("stall", gated=False),
        ]
        self.polls = 0  # long polls that are open now
        self.waits: list[int] = []  # seconds that each long poll asked for
        self.closing = asyncio.Event()
        self.port = 0
        self.loop: asyncio.AbstractEventLoop | None = None
        self.mcp = LazyMcpApp(self.call, hold_seconds=hold_seconds)
        self.app = build_app(self)
        self._call = asgi_call(self.app)

    async def call(self, *arguments: Any, **options: Any) -> Any:
        return await self._call(*arguments, **options)

    def session_of(self, request: Request) -> str | None:
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        return self.sessions.get(token) if scheme == "Bearer" else None


def problem(status: int, class_: str, message: str, **details: Any) -> JSONResponse:
    error = {
        "class": class_,
        "message": message,
        "retriable": False,
        "boundary": "gate",
        "audit_id": None,
        "details": details,
    }
    return JSONResponse({"error": error}, status)


async def hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def first_of(*waits: Any, seconds: float) -> None:
    """Wait for the first of *waits*, at most *seconds*."""
    tasks = [asyncio.get_running_loop().create_task(wait) for wait in waits]
    await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        task.cancel()


def unauthorized() -> JSONResponse:
    return problem(401, "unauthorized", "no such session")


def build_app(state: State) -> Starlette:
    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with state.mcp.run():
            state.mcp.start()
            yield

    app = Starlette(
        routes=[*agent_routes(state), *session_routes(state), *person_routes(state)],
        lifespan=lifespan,
    )
    app.router.redirect_slashes = False
    app.routes.append(Route("/mcp", _Asgi(state.mcp)))
    app.routes.append(Mount("/mcp", state.mcp.app))
    return app


class _Asgi:
    """An object, because Starlette takes a coroutine function for a request handler."""

    def __init__(self, mcp: LazyMcpApp) -> None:
        self._mcp = mcp

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await self._mcp.app(scope, receive, send)


def agent_routes(state: State) -> list[Route]:
    async def health(request: Request) -> Response:
        answer: dict[str, Any] = {"status": "ok"}
        key_id, _, nonce = request.headers.get("aileron-challenge", "").partition(":")
        for token in state.sessions:
            known = hashlib.sha256(token.encode()).hexdigest()
            if hashlib.sha256(known.encode()).hexdigest()[:16] == key_id:
                said = f"{nonce}:127.0.0.1:{state.port}".encode()
                answer["proof"] = hmac.new(known.encode(), said, "sha256").hexdigest()
        return JSONResponse(answer)

    async def actions(request: Request) -> Response:
        if state.session_of(request) is None:
            return unauthorized()
        return JSONResponse({"items": state.actions, "load_errors": []})

    async def run(request: Request) -> Response:
        session = state.session_of(request)
        if session is None:
            return unauthorized()
        name = request.path_params["name"]
        args = (await request.json())["args"]
        state.runs.append({"session": session, "action": name, "args": args})
        found = next((a for a in state.actions if a["name"] == name), None)
        if found is None:
            return problem(404, "not_found", f"no action {name}")
        if "nonsense" in args:
            listed = [{"argument": "nonsense", "problem": "is not an input"}]
            return problem(400, "invalid_arguments", "arguments do not fit", problems=listed)
        if found["gated"]:
            return pend(session, name, args)
        if name == "stall":
            await state.closing.wait()
        output = {"echo": args, "session": session}
        return JSONResponse(
            {
                "status": "completed",
                "audit_id": "run-" + "1" * 26,
                "output": output,
            }
        )

    def pend(session: str, name: str, args: dict[str, Any]) -> Response:
        id_ = f"act-20260101T000000-{secrets.token_hex(8)}"
        state.approvals[id_] = Approval(id=id_, session=session, action=name, args=args)
        url = f"http://127.0.0.1:{state.port}/review/{id_}"
        return JSONResponse(
            {
                **state.approvals[id_].body(),
                "review_url": url,
                "message": f"A person must decide at {url} or: aileron open approval {id_};"
                " then check_action_status",
            },
            202,
        )

    async def result(request: Request) -> Response:
        session = state.session_of(request)
        if session is None:
            return unauthorized()
        approval = state.approvals.get(request.path_params["id"])
        if approval is None or approval.session != session:
            return problem(404, "not_found", "no such approval")
        wait = int(request.query_params.get("wait", "0"))
        assert 0 <= wait <= 60
        if wait:
            state.polls += 1
            state.waits.append(wait)
            try:
                await first_of(approval.settled.wait(), hung_up(request), seconds=wait)
            finally:
                state.polls -= 1
        return JSONResponse(approval.body())

    async def withdraw(request: Request) -> Response:
        session = state.session_of(request)
        approval = state.approvals.get(request.path_params["id"])
        if session is None:
            return unauthorized()
        if approval is None or approval.session != session:
            return problem(404, "not_found", "no such approval")
        if approval.settled.is_set():
            return problem(409, "conflict", "it has ended", outcome=approval.outcome["status"])
        approval.settle(status="withdrawn")
        return JSONResponse(approval.body())

    return [
        Route("/v1/health", health),
        Route("/v1/actions", actions),
        Route("/v1/actions/{name}/run", run, methods=["POST"]),
        Route("/v1/action-approvals/{id}/result", result),
        Route("/v1/action-approvals/{id}/withdraw", withdraw, methods=["POST"]),
    ]


def session_routes(state: State) -> list[Route]:
    async def open_session(request: Request) -> Response:
        asked = await request.json()
        if asked["agent"] == "forbidden-agent":
            return problem(403, "forbidden", "this agent may not open a session")
        session, token = f"ses-{len(state.opened)}", secrets.token_urlsafe(32)
        state.opened.append({"session_id": session, **asked})
        state.sessions[token] = session
        return JSONResponse({"session_id": session, "token": token}, 201)

    async def hold(request: Request) -> Response:
        session = state.session_of(request)
        if session is None:
            return unauthorized()

        async def stream() -> AsyncIterator[bytes]:
            state.holding.add(session)
            try:
                yield b":\n"
                await state.closing.wait()
            finally:
                state.holding.discard(session)

        return StreamingResponse(stream())

    async def end(request: Request) -> Response:
        if state.session_of(request) is None:
            return unauthorized()
        state.ended.append(request.path_params["id"])
        return Response(status_code=204)

    return [
        Route("/v1/sessions", open_session, methods=["POST"]),
        Route("/v1/sessions/{id}/hold", hold),
        Route("/v1/sessions/{id}/end", end, methods=["POST"]),
    ]


def person_routes(state: State) -> list[Route]:
    async def decide(request: Request) -> Response:
        outcome = await request.json()
        for approval in state.approvals.values():
            if not approval.settled.is_set():
                approval.settle(**outcome)
        return Response(status_code=204)

    async def add_action(request: Request) -> Response:
        state.actions.append(action((await request.json())["name"], gated=False))
        state.mcp.tools_changed()
        return Response(status_code=204)

    async def facts(_: Request) -> Response:
        return JSONResponse(
            {
                "opened": state.opened,
                "ended": state.ended,
                "holding": sorted(state.holding),
                "runs": state.runs,
                "polls": state.polls,
                "waits": state.waits,
                "approvals": [a.body() for a in state.approvals.values()],
            }
        )

    async def forget(_: Request) -> Response:
        state.sessions.clear()
        return Response(status_code=204)

    return [
        Route("/test/decide", decide, methods=["POST"]),
        Route("/test/actions", add_action, methods=["POST"]),
        Route("/test/facts", facts),
        Route("/test/forget", forget, methods=["POST"]),
    ]


class _Server(uvicorn.Server):
    """uvicorn, telling the standing streams first, as a console that stops does."""

    def __init__(self, config: uvicorn.Config, state: State) -> None:
        super().__init__(config)
        self._state = state

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._state.closing.set()
        self._state.mcp.close_streams()
        await super().shutdown(sockets)


def lock_home(home: Path) -> int:
    home.mkdir(mode=0o700, exist_ok=True)
    descriptor = os.open(home, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return descriptor


def listen_unix(path: Path) -> socket.socket:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    sock = socket.socket(socket.AF_UNIX)
    sock.bind(f"/proc/self/fd/{folder}/{path.name}")  # whatever its length
    os.close(folder)
    sock.listen(64)
    return sock


def listen_tcp(port: int = 0) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    until = time.monotonic() + 10
    while True:
        try:
            sock.bind(("127.0.0.1", port))
            break
        except OSError as error:  # a connection of another test may have come by this very port
            if error.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise
            time.sleep(0.05)
    sock.listen(64)
    return sock


async def serve(
    home: Path, tokens: dict[str, str], hold_seconds: float, ready: Any, *, port: int = 0
) -> None:
    """Serve until the server is told to exit; *ready* gets the server and its state."""
    sockets = [listen_unix(home / "run" / "console.sock"), listen_tcp(port)]
    state = State(tokens, hold_seconds)
    state.port = sockets[1].getsockname()[1]
    (home / "daemon.json").write_text(
        json.dumps({"version": 1, "url": f"http://127.0.0.1:{state.port}", "pid": os.getpid()})
    )
    config = uvicorn.Config(
        state.app, log_level="error", lifespan="on", ws="none", timeout_graceful_shutdown=3
    )
    server = _Server(config, state)
    state.loop = asyncio.get_running_loop()
    ready(server, state)
    await server.serve(sockets=sockets)
    for sock in sockets:
        sock.close()


class Control:
    """The person, over the console's own socket."""

    def __init__(self, home: Path) -> None:
        # The folder's handle keeps the socket's name short, whatever the home's path.
        self._folder = os.open(home / "run", os.O_PATH | os.O_DIRECTORY)
        # No connection is kept: the console may close it just as the next question is asked.
        transport = httpx.HTTPTransport(
            uds=f"/proc/self/fd/{self._folder}/console.sock",
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self._client = httpx.Client(transport=transport, base_url="http://127.0.0.1", timeout=10)

    def facts(self) -> dict[str, Any]:
        return self._client.get("/test/facts").raise_for_status().json()

    def decide(self, **outcome: Any) -> None:
        self._client.post("/test/decide", json=outcome).raise_for_status()

    def approve(self, output: Any = "sent") -> None:
        words = ["amber", "basil", "cedar"]
        self.decide(status="completed", output=output, steps={"one": output}, digest_words=words)

    def add_action(self, name: str) -> None:
        self._client.post("/test/actions", json={"name": name}).raise_for_status()

    def forget_sessions(self) -> None:
        self._client.post("/test/forget").raise_for_status()

    def close(self) -> None:
        self._client.close()
        os.close(self._folder)


class ThreadConsole:
    """The console in a thread; the test process holds the lock."""

    def __init__(self, home: Path, *, hold_seconds: float = 25.0, port: int = 0) -> None:
        self.home = home
        self._lock = lock_home(home)
        started = threading.Event()

        def ready(server: _Server, state: State) -> None:
            self._server, self.state = server, state
            started.set()

        tokens = {TOKEN: "ses-a", OTHER_TOKEN: "ses-b"}
        work = serve(home, tokens, hold_seconds, ready, port=port)
        self._thread = threading.Thread(target=asyncio.run, args=(work,))
        self._thread.start()
        started.wait(10)
        self.port = self.state.port
        self.control = Control(home)
        self.control.facts()  # answered once it is up

    def loop(self) -> asyncio.AbstractEventLoop:
        assert self.state.loop is not None
        return self.state.loop

    def stop(self) -> None:
        self.control.close()
        self._server.should_exit = True
        self._thread.join(15)
        assert not self._thread.is_alive()
        os.close(self._lock)


class ProcessConsole:
    """The console as a process, which may be killed and started again."""

    def __init__(self, home: Path, *, hold_seconds: float = 25.0) -> None:
        self.home = home
        self._hold_seconds = hold_seconds
        self.port = 0
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.unit.mcp.harness", str(self.home)]
        command += [str(self._hold_seconds), str(self.port)]
        self.process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.port = int(self.process.stdout.readline())
        self.control = Control(self.home)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        self.control.close()
        self.process.send_signal(number)
        self.process.wait(15)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


def relay_command() -> list[str]:
    return [sys.executable, "-m", "aileron_mcp.relay"]


def relay_environment(home: Path, **extra: str) -> dict[str, str]:
    """Return an environment without anything of the test run's own agent variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AILERON_")}
    return {**kept, "PYTHONPATH": str(ROOT), "AILERON_HOME": str(home), **extra}


class RawRelay:
    """The relay with its pipes in the test's hands, line by line."""

    def __init__(self, home: Path, **extra: str) -> None:
        self.process = subprocess.Popen(
            relay_command(),
            env=relay_environment(home, **extra),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def send_line(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def send(self, method: str, id_: Any = None, **params: Any) -> None:
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": params}
        if id_ is not None:
            message["id"] = id_
        self.send_line(json.dumps(message).encode())

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.process.stderr and self.process.stderr.read()
        return json.loads(line)

    def read_until(self, wanted: Any) -> dict[str, Any]:
        while not wanted(message := self.read()):
            pass
        return message

    def answer(self, id_: Any) -> dict[str, Any]:
        return self.read_until(lambda m: m.get("id") == id_ and "method" not in m)

    def initialize(self, version: str = "2025-11-25", client: str = "a-test") -> dict[str, Any]:
        self.send(
            "initialize",
            "hello",
            protocolVersion=version,
            capabilities={},
            clientInfo={"name": client, "version": "1"},
        )
        return self.answer("hello")

    def handshake(self, version: str = "2025-11-25", client: str = "a-test") -> dict[str, Any]:
        answer = self.initialize(version, client)
        self.send("notifications/initialized")
        return answer

    def end(self) -> tuple[int, str]:
        """Close stdin; return the exit code and what was said on stderr."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.outcome()

    def outcome(self, timeout: float = 15) -> tuple[int, str]:
        code = self.process.wait(timeout)
        assert self.process.stderr is not None
        said = self.process.stderr.read().decode()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        return code, said


@contextlib.asynccontextmanager
async def official_client(
    console: "ThreadConsole | ProcessConsole", how: str, era: str, **options: Any
) -> AsyncIterator[Client]:
    """Connect the official client: *how* is "http" or "relay", *era* its `mode`."""
    async with contextlib.AsyncExitStack() as stack:
        server: Any
        if how == "relay":
            command, *arguments = relay_command()
            environment = relay_environment(console.home, AILERON_TOKEN=TOKEN)
            server = StdioServerParameters(command=command, args=arguments, env=environment)
        else:
            bearer = {"Authorization": f"Bearer {TOKEN}"}
            http = await stack.enter_async_context(
                httpx2.AsyncClient(headers=bearer, timeout=httpx2.Timeout(30))
            )
            url = f"http://127.0.0.1:{console.port}/mcp"
            server = streamable_http_client(url, http_client=http)
        yield await stack.enter_async_context(
            Client(server, mode=era, read_timeout_seconds=30, **options)
        )


NEW = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "a-test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def eventually(check: Any, what: str, seconds: float = 10.0) -> None:
    """Wait until *check* holds; for what a process does without telling the test."""
    deadline = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}"
        threading.Event().wait(0.02)


def _main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=Path)
    parser.add_argument("hold_seconds", type=float)
    parser.add_argument("port", type=int)
    asked = parser.parse_args()
    lock = lock_home(asked.home)
    # A test run that is killed takes its console along.
    threading.Thread(target=lambda: os._exit(len(sys.stdin.read())), daemon=True).start()

    def ready(_: _Server, state: State) -> None:
        print(state.port, flush=True)

    tokens = {TOKEN: "ses-a", OTHER_TOKEN: "ses-b"}
    asyncio.run(serve(asked.home, tokens, asked.hold_seconds, ready, port=asked.port))
    os.close(lock)


if __name__ == "__main__":
    _main()
