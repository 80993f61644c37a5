"""A real console for the tests of `aileron_mcp`: a core on a home of its own, served on real sockets.

Its actions echo what they are given. It is run either in a thread of the test process
(`ThreadConsole`) or as a process of its own (`ProcessConsole`), which a test may kill. `Control` is
the person, and what the test wants to know of the core.
"""

import asyncio
import contextlib
import errno
import fcntl
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

import wasmtime

from aileron_core.app import App, AppOptions
from aileron_core.connectors.store import ConnectorStore
from aileron_core.console_port.events import CoreEvent, SessionsUpdated
from aileron_core.home.layout import Home
from aileron_core.ids import new_token, token_hash
from aileron_core.runs.run_table import by_approval
from aileron_core.server.agent_api import AgentApi, result_body
from aileron_core.server.asgi import create_app
from aileron_core.server.embedded import EmbeddedServer
from aileron_core.server.sockets import SessionSockets, bind_tcp, bind_unix
from aileron_core.sessions import registry
from aileron_core.sessions.model import Session
from aileron_mcp.lazy_mount import LazyMcpApp
from tests.support.echoes import ECHO, InstalledConnectors, chained, install_connectors
from tests.support.forked import forked
from tests.support.processes import eventually as eventually

if TYPE_CHECKING:
    # A console that a test starts as a process has no use for it: importing it takes longest of all.
    from mcp import Client

ROOT = Path(__file__).resolve().parents[2]
TOKEN = "token-of-the-first-session"
OTHER_TOKEN = "token-of-the-second-session"
RELAY: tuple[str, ...] = (sys.executable, "-m", "aileron_mcp.relay")
_STALLS = "local://tests/stalls"
_STALLING = '(module (memory (export "memory") 1) (func (export "_start") (loop $on (br $on))))'
_MANIFEST = f"""[connector]
name = "{_STALLS}"
version = "1.0.0"
[capabilities.network]
hosts = []
"""


def _action(given: InstalledConnectors, name: str, *, gated: bool, connector: str = ECHO) -> str:
    step = ("do", connector, True, 'text = "${args.text}"')
    used = InstalledConnectors(hashes={connector: given.hashes[connector]})
    return chained(used, step, inputs=[("text", "string", False)], name=name, gated=gated)


def _install_actions(home: Path) -> InstalledConnectors:
    installed = install_connectors(home)
    module = bytes(wasmtime.wat2wasm(_STALLING))
    stalling = ConnectorStore(home).install_bytes(module, _MANIFEST.encode())
    installed.hashes[_STALLS] = stalling.identity.hash
    actions = home / "actions"
    actions.mkdir(mode=0o700, exist_ok=True)
    texts = {
        name: _action(installed, name, gated=name == "send-draft")
        for name in ("read-inbox", "send-draft")
    }
    texts["stall"] = _action(installed, "stall", gated=False, connector=_STALLS)
    for name, text in texts.items():
        (actions / f"{name}.md").write_text(text, encoding="utf-8")
    return installed


class WatchedApi(AgentApi):
    """`AgentApi` that knows how many calls wait for a person now."""

    polls = 0

    async def _wait(self, row: Any, session: Any, id_: str, seconds: float, gone: Any) -> Any:
        self.polls += 1
        try:
            return await super()._wait(row, session, id_, seconds, gone)
        finally:
            self.polls -= 1


class Person:
    """What a test does and asks, on the core's loop."""

    def __init__(self, app: App, agents: WatchedApi, installed: InstalledConnectors) -> None:
        self._app = app
        self._agents = agents
        self._installed = installed
        self._since = app.clock.now()
        self._opened: dict[str, Session] = {}
        self._first: set[str] = set()
        self._forgotten: dict[str, Session] = {}
        app.events.subscribe(self._hear)

    async def begin(self) -> None:
        """Open the two sessions whose tokens the tests know, unless an earlier life did."""
        for token in (TOKEN, OTHER_TOKEN):
            if self._app.sessions.authenticate(token) is None:
                await self.know(token)
        self._first = {each.session_id for each in self._app.sessions.all()}

    async def know(self, token: str) -> None:
        """Have *token* open a session: the one that it opened before, or a new one."""
        known = self._forgotten.pop(token_hash(token), None)
        if known is not None:
            self._app.sessions.add(known)
            return
        with mock.patch.object(registry, "new_token", side_effect=[token, new_token()]):
            terms = {"agent": "a-test", "label": "", "cwd": "/", "claimed_pid": None}
            opened = await self._app.session_service.open(**terms, peer_pid=os.getpid(), ttl=86400)
        self._first.add(opened.session.session_id)
        self._opened.pop(opened.session.session_id, None)

    async def forget(self, token: str | None = None) -> None:
        """Have *token*, or any token, open nothing any more."""
        for each in self._app.sessions.all():
            if token is None or each.token_hash == token_hash(token):
                self._app.sessions.remove(each.session_id)
                self._forgotten[each.token_hash] = each

    async def state(self) -> dict[str, Any]:
        query = "SELECT session_id, action, approval_id FROM runs WHERE requested_at >= ? ORDER BY rowid"
        runs = await self._app.database.read(lambda c: c.execute(query, (self._since,)).fetchall())
        open_ = {each.session_id for each in self._app.sessions.all()}
        said = ("session_id", "agent", "label", "cwd", "pid")
        return {
            "opened": [{name: getattr(s, name) for name in said} for s in self._opened.values()],
            "ended": [each for each in self._opened if each not in open_],
            "holding": [each for each in open_ if self._app.sessions.is_connected(each)],
            "runs": [{"session": session, "action": name} for session, name, _ in runs],
            "polls": self._agents.polls,
            "approvals": [await self._approval(id_) for _, _, id_ in runs if id_],
        }

    async def _approval(self, approval_id: str) -> Any:
        row = await self._app.database.read(lambda c: by_approval(c, approval_id))
        assert row is not None
        return result_body(row)

    async def approve(self) -> None:
        for view in self._waiting():
            await self._app.approvals.approve(view.approval_id, view.digest)

    async def deny(self, reason: str) -> None:
        for view in self._waiting():
            await self._app.approvals.deny(view.approval_id, reason)

    def _waiting(self) -> list[Any]:
        return [view for view in self._app.publisher.approvals() if view.ended_at is None]

    async def add_action(self, name: str) -> None:
        text = _action(self._installed, name, gated=False)
        (self._app.home.actions / f"{name}.md").write_text(text, encoding="utf-8")
        await self._app.library.load()
        await self._app.library.accept_all()

    def _hear(self, event: CoreEvent) -> None:
        if isinstance(event, SessionsUpdated):
            for each in self._app.sessions.all():
                if each.session_id not in self._first:
                    self._opened.setdefault(each.session_id, each)


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
    until = time.monotonic() + 60
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


class Served:
    """A core that is served until `stop` is set."""

    def __init__(self, home: Path, hold_seconds: float, **options: Any) -> None:
        self._home = home
        self._options = AppOptions(accept_installed=True, **options)
        self._hold_seconds = hold_seconds
        self.stop = asyncio.Event()

    async def run(self, ready: Callable[["Served"], None]) -> None:
        self.loop = asyncio.get_running_loop()
        self._home.mkdir(mode=0o700, exist_ok=True)
        installed = _install_actions(self._home)
        async with App.open(Home(self._home), self._options) as app:
            self.app = app
            tcp = bind_tcp("127.0.0.1", await app.address.remembered_port())
            sockets = [tcp, bind_unix(app.home.socket)]
            self.port: int = sockets[0].getsockname()[1]
            app.address.listen_on(self.port)
            agents = WatchedApi(app)
            self.mcp = LazyMcpApp(agents, hold_seconds=self._hold_seconds)
            mounts = {"/mcp": self.mcp.app, "/mcp/": self.mcp.app}
            self.asgi_app = create_app(app, mounts, agents=agents)
            server = EmbeddedServer(self.asgi_app, sockets)
            own = self.asgi_app.state.session_sockets = SessionSockets(app, server.serve_session)
            self.mcp.start()
            self.person = Person(app, agents, installed)
            await self.person.begin()  # before anybody is served: a client may be there already
            async with self.mcp.run(), server, own.listening():
                await app.address.announce(self.port)
                ready(self)
                await self.stop.wait()


class Control:
    """The person, from another thread or process: *ask* calls a method of `Person` there."""

    def __init__(self, ask: Callable[..., Any]) -> None:
        self._ask = ask

    def __getattr__(self, name: str) -> Callable[..., Any]:
        return partial(self._ask, name)


class ThreadConsole:
    """The console in a thread."""

    def __init__(self, home: Path, *, hold_seconds: float = 25.0, **options: Any) -> None:
        import mcp  # noqa: F401 - the console does in a thread, and two at once see each other's halves

        self.home = home
        started = threading.Event()
        self.served = Served(home, hold_seconds, **options)
        work = self.served.run(lambda _: started.set())
        self._thread = threading.Thread(target=asyncio.run, args=(work,))
        self._thread.start()
        assert started.wait(60)
        self.port, person = self.served.port, self.served.person
        self.control = Control(lambda name, *given: self.on_loop(getattr(person, name)(*given)))

    def on_loop(self, work: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self.served.loop).result(60)

    def stop(self) -> None:
        self.served.loop.call_soon_threadsafe(self.served.stop.set)
        self._thread.join(60)
        assert not self._thread.is_alive()


class ProcessConsole:
    """The console as a process, which may be killed and started again."""

    def __init__(self, home: Path, *, hold_seconds: float = 25.0) -> None:
        self.home = home
        self._hold_seconds = hold_seconds
        self.control = Control(self._ask)
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-I", str(ROOT / "tests" / "process" / "mcp_console.py")]
        command += [str(self.home), str(self._hold_seconds)]
        self.process = forked(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port: int = self._read()

    def _read(self) -> Any:
        assert self.process.stdout is not None
        return json.loads(self.process.stdout.readline())

    def _ask(self, *asked: Any) -> Any:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return self._read()

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        self.process.send_signal(number)
        self.process.wait(60)
        for stream in (self.process.stdin, self.process.stdout):
            assert stream is not None
            stream.close()


def relay_environment(home: Path, **extra: str) -> dict[str, str]:
    """Return an environment without anything of the test run's own agent variables."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("AILERON_")}
    return {**kept, "PYTHONPATH": str(ROOT), "AILERON_HOME": str(home), **extra}


class RawRelay:
    """The relay with its pipes in the test's hands, line by line."""

    def __init__(self, home: Path, **extra: str) -> None:
        pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
        self.process = subprocess.Popen(RELAY, env=relay_environment(home, **extra), **pipes)

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

    def answer(self, *ids: Any) -> dict[str, Any]:
        while (message := self.read()).get("id") not in ids or "method" in message:
            pass
        return message

    def initialize(self, version: str = "2025-11-25", client: str = "a-test") -> dict[str, Any]:
        said = {"capabilities": {}, "clientInfo": {"name": client, "version": "1"}}
        self.send("initialize", "hello", protocolVersion=version, **said)
        return self.answer("hello")

    def handshake(self, version: str = "2025-11-25", client: str = "a-test") -> dict[str, Any]:
        answer = self.initialize(version, client)
        self.send("notifications/initialized")
        return answer

    def end(self) -> tuple[int, str]:
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.outcome()

    def outcome(self, timeout: float = 60) -> tuple[int, str]:
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
) -> "AsyncIterator[Client]":
    """Connect the official client: *how* is "http" or "relay", *era* its `mode`."""
    import httpx2
    from mcp import Client, StdioServerParameters
    from mcp.client.streamable_http import streamable_http_client

    async with contextlib.AsyncExitStack() as stack:
        server: Any
        if how == "relay":
            command, *arguments = RELAY
            environment = relay_environment(console.home, AILERON_TOKEN=TOKEN)
            server = StdioServerParameters(command=command, args=arguments, env=environment)
        else:
            bearer = {"Authorization": f"Bearer {TOKEN}"}
            opened = httpx2.AsyncClient(headers=bearer, timeout=httpx2.Timeout(30))
            http = await stack.enter_async_context(opened)
            url = f"http://127.0.0.1:{console.port}/mcp"
            server = streamable_http_client(url, http_client=http)
        client = Client(server, mode=era, read_timeout_seconds=30, **options)
        yield await stack.enter_async_context(client)


NEW = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "a-test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


def be_console() -> None:
    served = Served(Path(sys.argv[1]), float(sys.argv[2]))

    def answer() -> None:
        for line in sys.stdin:
            name, *given = json.loads(line)
            work = getattr(served.person, name)(*given)
            value = asyncio.run_coroutine_threadsafe(work, served.loop).result()
            print(json.dumps(value), flush=True)
        os._exit(1)  # a test run that is killed takes its console along

    def ready(_: Served) -> None:
        served.loop.add_signal_handler(signal.SIGTERM, served.stop.set)
        print(served.port, flush=True)
        threading.Thread(target=answer, daemon=True).start()

    asyncio.run(served.run(ready))
    os._exit(0)  # the thread that reads would be waited for
