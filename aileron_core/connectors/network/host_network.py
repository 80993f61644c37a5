"""The network of one sandbox that reaches listed hosts only: names are answered and connections forwarded here.

A listed name is resolved outside, its addresses are checked and become the sandbox's own; any other
name does not exist. A connection has to begin with TLS that names a host for which its address was
answered, since one address serves many names; it is forwarded to that host as it is. Nothing in it is
decrypted.
"""

import asyncio
import contextlib
import queue
import socket
import struct
import threading
import time
import traceback
from collections.abc import Awaitable, Callable, Generator
from pathlib import Path

from aileron_core.connectors.http.addresses import AddressGuard, Resolver, SystemResolver
from aileron_core.connectors.network.client_hello import MAX_HELLO, NotTls, server_name
from aileron_core.connectors.network.host_resolver import (
    HTTPS_PORT,
    IPV4,
    IPV6,
    NOT_A_NAME,
    HostList,
    HostResolver,
    NotAQuery,
    Query,
    is_host_name,
)
from aileron_core.console_port.view_models import RefusedHost
from aileron_core.containment.sandbox_network import (
    DNS_PORT,
    SandboxSockets,
    open_sandbox_sockets,
)

_CHUNK = 65536
_HELLO_SECONDS, _CONNECT_SECONDS = 15.0, 10.0
_REPORT_AGAIN_SECONDS = 30.0
_MAX_REPORTS = 256
_MAX_CONNECTIONS, _MAX_QUERIES = 192, 64
"""At once; more wait. This process has to keep files that it can open for itself."""
_ACCEPT_AGAIN_SECONDS = 0.5
_MAX_ANSWERED, _MAX_ADDRESSES = 8, 2048
"""Addresses in one answer, and of the sandbox in all."""
_LINGER_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER with no time: what is closed so is seen as broken, not as a clean end."""


class _Refused(Exception):
    """A connection that is not forwarded."""


class HostNetwork:
    """Answers and forwards for one sandbox, on threads of its own.

    Args:
        hosts: what may be reached.
        report: called on a thread of this object with every host that was refused, about twice a
            minute at most; returns whether it arrived.
        resolver, guard: other ones are for tests, in process only.
    """

    def __init__(
        self,
        hosts: HostList,
        report: Callable[[RefusedHost], bool],
        *,
        resolver: Resolver | None = None,
        guard: AddressGuard | None = None,
    ) -> None:
        self.hosts = hosts
        self._report = report
        self._guard = guard or AddressGuard()
        self._host_resolver = HostResolver(hosts, resolver or SystemResolver(), self._guard)
        self._names: dict[str, set[str]] = {}
        """Address of the sandbox -> the names that it was answered for."""
        self._reported: dict[RefusedHost, float] = {}
        self._reports: queue.SimpleQueue[RefusedHost | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop
        self._stopped = asyncio.Event()
        self._slots = asyncio.Semaphore(_MAX_CONNECTIONS)
        self._sockets: SandboxSockets | None = None
        self._thread: threading.Thread | None = None
        self.opened = threading.Event()
        """Set once it answers, or `failure` says why it does not."""
        self._reached: dict[str, float] = {}
        """`name:port` -> when bytes last went to it or came from it, on the monotonic clock."""
        self.failure = ""
        """Why there was no network, empty if there was."""
        self.bugs: set[str] = set()
        """What ended a connection or a question and should not have: which error and where."""
        self.refused: dict[str, str] = {}
        """What was refused, `name:port` -> why; hostile text."""

    def start(self, bwrap: int) -> None:
        """Open the sandbox's sockets and serve them until `stop`.

        Args:
            bwrap: the process that starts the sandbox.
        """
        self._loop = asyncio.new_event_loop()  # not before: it has descriptors, which `stop` closes
        self._thread = threading.Thread(
            target=self._run, args=(bwrap,), name="network", daemon=True
        )
        self._thread.start()
        threading.Thread(target=self._report_all, name="network-reports", daemon=True).start()

    def stop(self) -> None:
        """End every connection; what the sandbox asks from now on gets no answer."""
        if self._thread is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._stopped.set)
            self._thread.join()
            self._reports.put(None)

    def reached_since(self, since: float) -> tuple[str, ...]:
        """Return the `name:port` that bytes went to or came from since then, on the monotonic clock."""
        return tuple(host for host, last in self._reached.copy().items() if last >= since)

    def _run(self, bwrap: int) -> None:
        try:
            self._sockets = open_sandbox_sockets(bwrap, self.hosts.ports)
            self.opened.set()
            self._loop.run_until_complete(self._serve(self._sockets))
        except OSError as error:
            self.failure = error.strerror or str(error)
        finally:
            self.opened.set()
            if self._sockets is not None:
                self._sockets.close()
            self._loop.close()

    async def _serve(self, sockets: SandboxSockets) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._answer_datagrams(sockets.queries, group))
            for port, listener in sockets.listeners.items():
                handle = self._answer_stream if port == DNS_PORT else self._forward
                group.create_task(self._accept(listener, handle, group))
            await self._stopped.wait()
            for task in asyncio.all_tasks() - {asyncio.current_task()}:
                task.cancel()

    async def _accept(
        self,
        listener: socket.socket,
        handle: Callable[[socket.socket], Awaitable[None]],
        group: asyncio.TaskGroup,
    ) -> None:
        listener.setblocking(False)

        async def handled(client: socket.socket) -> None:
            try:
                with self._ending_alone(), client:
                    await handle(client)
            finally:
                self._slots.release()

        while True:
            try:
                client, _ = await self._loop.sock_accept(listener)
            except OSError:  # this process has as many files open as it may
                await asyncio.sleep(_ACCEPT_AGAIN_SECONDS)
                continue
            client.setblocking(False)
            await self._slots.acquire()
            group.create_task(handled(client))

    @contextlib.contextmanager
    def _ending_alone(self) -> Generator[None]:
        """End one exchange without the others, whatever it meets; what nobody foresaw is kept for the person."""
        try:
            yield
        except (OSError, NotAQuery, _Refused):  # how one ends; what was refused is reported already
            pass
        except Exception as error:  # noqa: BLE001
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f"{Path(last.filename).name}, line {last.lineno}"
            # Without the error's words: the agent may have chosen them.
            self.bugs.add(f"{type(error).__name__} in {place}")

    # Names

    async def _answer_datagrams(self, queries: socket.socket, group: asyncio.TaskGroup) -> None:
        queries.setblocking(False)
        slots = asyncio.Semaphore(_MAX_QUERIES)

        async def answered(message: bytes, asker: tuple[str, int]) -> None:
            try:
                with self._ending_alone():
                    await self._loop.sock_sendto(queries, await self._answer(message), asker)
            finally:
                slots.release()

        while True:
            await slots.acquire()
            message, asker = await self._loop.sock_recvfrom(queries, _CHUNK)
            group.create_task(answered(message, asker))

    async def _answer_stream(self, client: socket.socket) -> None:
        """Answer the questions of one TCP connection, each after its length."""
        while True:
            async with asyncio.timeout(_HELLO_SECONDS):
                size = int.from_bytes(await self._exactly(client, 2), "big")
                message = await self._exactly(client, size)
            answer = await self._answer(message)
            await self._loop.sock_sendall(client, len(answer).to_bytes(2, "big") + answer)

    async def _exactly(self, client: socket.socket, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = await self._loop.sock_recv(client, count - len(data))
            if not more:
                raise ConnectionResetError
            data += more
        return data

    async def _answer(self, message: bytes) -> bytes:
        """Return the answer to one question.

        Raises:
            NotAQuery: it gets none.
        """
        query = Query.parse(message)
        last = query.name.rpartition(".")[2]
        if last in ("", "arpa"):  # the root, or the name of an address: nothing depends on them
            return query.no_such_name()
        if not self.hosts.is_named(query.name) and last != "localhost":
            named = is_host_name(query.name)
            self._refuse(f"{query.name}:{HTTPS_PORT}", "" if named else NOT_A_NAME)
            return query.no_such_name()
        if last == "localhost":
            return query.answer(("127.0.0.1",) if query.kind == IPV4 else ())
        if query.kind not in (IPV4, IPV6):
            return query.answer(())
        found = await self._host_resolver.resolve(query.name)
        if found.problem:
            self._refuse(f"{query.name}:{HTTPS_PORT}", found.problem)
            return query.no_such_name() if found.addresses else query.failure()
        if query.kind == IPV6:
            return query.answer(())
        own = [each for each in found.addresses if ":" not in each][:_MAX_ANSWERED]
        own = [each for each in own if self._add_address(each, query.name)]
        return query.answer(own) if own else query.failure()

    def _add_address(self, address: str, name: str) -> bool:
        assert self._sockets is not None
        if address not in self._names:
            if len(self._names) >= _MAX_ADDRESSES:
                return False
            try:
                self._sockets.add_address(address, len(self._names) + 1)
            except OSError:
                return False
            self._names[address] = set()
        self._names[address].add(name)
        return True

    # Connections

    async def _forward(self, client: socket.socket) -> None:
        """Forward one connection, once its first message names a host that it may reach."""
        address, port = client.getsockname()[:2]
        try:
            hello, name = await self._hello(client, address, port)
            upstream = await self._connect(name, address, port)
        except BaseException:
            _reset(client)
            raise
        with upstream:
            await self._loop.sock_sendall(upstream, hello)
            self._reached[f"{name}:{port}"] = time.monotonic()
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(self._copy(client, upstream, f"{name}:{port}"))
                    both.create_task(self._copy(upstream, client, f"{name}:{port}"))
            except* OSError:
                _reset(upstream)
                _reset(client)

    async def _hello(self, client: socket.socket, address: str, port: int) -> tuple[bytes, str]:
        """Return what the client sent first, and which host it names there.

        Raises:
            _Refused: that host is not listed, or it names none.
        """
        names = self._names.get(address)
        if not names:
            raise _Refused
        data, found = b"", None
        try:
            async with asyncio.timeout(_HELLO_SECONDS):
                while found is None:
                    more = await self._loop.sock_recv(client, _CHUNK)
                    data += more
                    if not more or len(data) > MAX_HELLO:
                        raise NotTls
                    found = server_name(data)
            if not found:
                raise NotTls
            name = found.lower().removesuffix(".")
            if not is_host_name(name):
                raise NotTls
        except NotTls:
            if data:
                self._refuse(f"{min(names)}:{port}", "the connection does not name its host in TLS")
            raise _Refused from None
        entry = f"{name}:{port}"
        if entry not in self.hosts:
            self._refuse(entry)
            raise _Refused
        if name not in names:
            self._refuse(entry, f"the connection went to an address of {min(names)}")
            raise _Refused
        return data, name

    async def _connect(self, name: str, address: str, port: int) -> socket.socket:
        """Return a connection to *name*: at *address* if it still has that one, else at another of its own.

        Raises:
            _Refused: it leads where it must not.
            OSError: it cannot be reached.
        """
        found = await self._host_resolver.resolve(name)
        if found.problem:
            self._refuse(f"{name}:{port}", found.problem)
            raise _Refused
        error: OSError = ConnectionRefusedError()
        for each in sorted(found.addresses, key=lambda one: one != address):
            family = socket.AF_INET6 if ":" in each else socket.AF_INET
            upstream = socket.socket(family, socket.SOCK_STREAM)
            upstream.setblocking(False)
            upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                async with asyncio.timeout(_CONNECT_SECONDS):
                    await self._loop.sock_connect(upstream, (each, port))
                local, peer = upstream.getsockname()[0], upstream.getpeername()[0]
                if problem := self._guard.own_address_problem(local, peer):
                    self._refuse(f"{name}:{port}", f"it leads to {peer}, which {problem}")
                    raise _Refused
                return upstream
            except OSError as failed:
                upstream.close()
                error = failed
            except BaseException:
                upstream.close()
                raise
        raise error

    async def _copy(self, source: socket.socket, target: socket.socket, host: str) -> None:
        """Copy bytes until *source* ends, then end *target*'s input; *host* is reached with each of them."""
        while data := await self._loop.sock_recv(source, _CHUNK):
            self._reached[host] = time.monotonic()
            await self._loop.sock_sendall(target, data)
        with contextlib.suppress(OSError):
            target.shutdown(socket.SHUT_WR)

    # Reports

    def _refuse(self, host: str, problem: str = "") -> None:
        """Have a refused host reported, unless it just was."""
        one, now = RefusedHost(host, problem), time.monotonic()
        if len(self.refused) < _MAX_REPORTS:
            self.refused.setdefault(host, problem)
        if now - self._reported.get(one, -_REPORT_AGAIN_SECONDS) < _REPORT_AGAIN_SECONDS:
            return
        if len(self._reported) >= _MAX_REPORTS:
            del self._reported[next(iter(self._reported))]
        self._reported.pop(one, None)
        self._reported[one] = now
        self._reports.put(one)

    def _report_all(self) -> None:
        while (one := self._reports.get()) is not None:
            if not self._report(one):
                self._reported.pop(one, None)  # it is reported when it is tried again


def _reset(end: socket.socket) -> None:
    with contextlib.suppress(OSError):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_RESET)
