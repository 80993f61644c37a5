"""The processes of MCP servers: one for all sessions, started at the first call, listed, held after too many ends."""

import json
import logging
import os
import re
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast

from aileron_core.actions.model import ConnectorIdentity
from aileron_core.clock import Clock, SystemClock, rfc3339
from aileron_core.connectors.http.scrubber import Scrubber
from aileron_core.connectors.protocol import MIB, Credential, OpResult
from aileron_core.connectors.servers.call import LIST_SECONDS, PinnedTools, ServerCall, ServerEnd
from aileron_core.connectors.servers.client import (
    ServerEnded,
    ServerFault,
    StdioClient,
)
from aileron_core.connectors.servers.definitions import (
    ToolDefinition,
    from_listing,
)
from aileron_core.connectors.servers.started import Mode, Started, StartServer, close_pipes
from aileron_core.connectors.servers.table import ServerTable
from aileron_core.errors import (
    AileronError,
    ConnectorRuntimeError,
    InternalError,
    Unavailable,
)
from aileron_core.text import escape

_log = logging.getLogger(__name__)
START_SECONDS: Final = 60.0
"""For a start with all that is asked before the first call."""
IDLE_SECONDS: Final = 600.0
_PAUSE_SECONDS: Final = 1.0
"""How long a process may write its files after a call: a person approved that, and not what it does later."""
_RELIST_SECONDS: Final = 1.0
"""How often a server that says that its tools have changed is asked for them without a call."""
_GRACE_SECONDS = _CLOSE_SECONDS = 2.0
_MAX_ENDS, _ENDS_SECONDS = 3, 60.0
LOGS: Final = "servers"
"""The folder of Aileron's home with a log for each server."""
_MAX_LOG = 4 * MIB
_LAST_LINES = 20
_MAX_REFUSED = 64
_NAMES_SECRET = re.compile("auth|cookie|cred|key|pass|secret|token", re.IGNORECASE)
_STAND_IN: Final = "not-given-before-it-is-accepted"
"""Stands for each secret in a first start: some servers list nothing where a variable is not there."""
_NOT_LISTED = "it is not among the server's hosts"

if TYPE_CHECKING:
    from aileron_core.connectors.http.client import OutgoingClient
    from aileron_core.connectors.servers.remote import RemoteServer

    AnyServer: TypeAlias = "ServerProcess | RemoteServer"

OnListed: TypeAlias = Callable[[ConnectorIdentity, tuple[ToolDefinition, ...]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerKey:
    """What one process is for; where any of it differs, another one is started."""

    identity: ConnectorIdentity
    mode: Mode
    secrets: Mapping[str, str] = field(repr=False)
    credential: Credential | None = field(default=None, repr=False, compare=False)
    """Of the call that it is for, to a remote server; `secrets` has its parts."""

    @property
    def name(self) -> str:
        """The server's own name."""
        return self.identity.fqn.rpartition("/")[2]


class ServerLog:
    """What a server writes to its standard error, escaped and without its secrets, in a file of at most 4 MiB."""

    def __init__(self, path: Path | None, scrubber: Scrubber, clock: Clock) -> None:
        self._path, self._scrubber, self._clock = path, scrubber, clock
        self.last: deque[str] = deque(maxlen=_LAST_LINES)
        """Not escaped."""
        self._file = -1
        self._lock = threading.Lock()

    def write(self, line: bytes) -> None:
        """Write one line; from any thread."""
        text = self._scrubber.scrub(line.rstrip(b"\r")).decode("utf-8", "replace")
        self.last.append(text)
        entry = f"{rfc3339(self._clock.now())} {escape(text)}\n".encode()
        with self._lock:
            if self._path is not None:
                self._append(self._path, entry)

    def _append(self, path: Path, entry: bytes) -> None:
        try:
            if self._file < 0:
                self._file = _open_log(path)
            if os.fstat(self._file).st_size + len(entry) > _MAX_LOG:
                os.ftruncate(self._file, 0)
                note = f"What was here before was deleted: the log had {_MAX_LOG // MIB} MiB.\n"
                os.write(self._file, note.encode())
            os.write(self._file, entry)
        except OSError as error:  # a full disk is no reason to end a server
            _log.warning("%s cannot be written: %s", self._path, error.strerror)
            self._path = None

    def close(self) -> None:
        with self._lock:
            self._path = None  # a host that is refused later would open it again
            if self._file >= 0:
                os.close(self._file)
                self._file = -1


def _open_log(path: Path) -> int:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, 0o600)


def _secret_parts(value: str) -> Iterator[str]:
    """Yield what must not come back of a secret: all of it, each line, and what in its JSON is named like one.

    A log has one line after the other; a header in a variable, `{"Authorization": "Bearer KEY"}`, is sent by itself.
    """
    yield value
    yield from value.splitlines()
    stack: list[tuple[Any, bool]] = []
    with suppress(ValueError, RecursionError):
        stack.append((json.loads(value), True))
    while stack:
        item, is_secret = stack.pop()
        if isinstance(item, dict):
            members = cast("Mapping[str, Any]", item).items()
            stack += [(each, _NAMES_SECRET.search(name) is not None) for name, each in members]
        elif isinstance(item, list):
            stack += [(each, is_secret) for each in cast("list[Any]", item)]
        elif isinstance(item, str) and is_secret:
            yield item
            yield from item.split()[-1:]


class ServerProcess:
    """One process and the thread that starts it, speaks with it and ends it.

    Args:
        start: called on that thread.
        on_end: called on that thread once the process is gone, before its calls hear of it.
        pauses: whether it may write its files during calls alone.
    """

    def __init__(
        self,
        name: str,
        start: Callable[[], Started],
        *,
        pins: PinnedTools,
        secrets: Mapping[str, str],
        log: Path | None = None,
        on_end: Callable[["ServerProcess", ServerEnd], None],
        idle_seconds: float = IDLE_SECONDS,
        start_seconds: float = START_SECONDS,
        pauses: bool = False,
        clock: Clock,
    ) -> None:
        self.name, self._pauses = name, pauses
        self._start, self.pins, self._on_end = start, pins, on_end
        self._idle_seconds, self._start_seconds, self._clock = idle_seconds, start_seconds, clock
        parts = {part for each in secrets.values() for part in _secret_parts(each)}
        self._scrubber = Scrubber(part.encode() for part in parts)
        self.log = ServerLog(log, self._scrubber, clock)
        self.ready: Future[AileronError | None] = Future()
        """Done once it can be called, with None, or cannot, with why."""
        self._hosts: Callable[[float], tuple[str, ...]] = lambda since: ()
        self._lock = threading.Lock()
        self._open: set[ServerCall] = set()
        self._inbox: deque[Callable[[StdioClient], None]] = deque()
        self._takes_calls, self._is_over = True, False
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        self._thread = threading.Thread(target=self._run, name=f"mcp server {name}", daemon=True)
        self._thread.start()

    @property
    def takes_calls(self) -> bool:
        return self._takes_calls

    def submit(self, call: ServerCall) -> bool:
        """Have *call* made; False where this process takes no more. From any thread."""
        with self._lock:
            if not self._takes_calls:
                return False
            self._open.add(call)
            self._tell(partial(self._call, call=call))
        return True

    def give_up(self, call: ServerCall, failure: AileronError, *, is_hung: bool) -> OpResult:
        """End *call* with *failure*, unless it has an answer, and return how it ended. From any thread.

        Args:
            is_hung: the server is to blame, so it gets no further call.
        """
        result = call.end(failure)
        with self._lock:
            self._open.discard(call)
            if is_hung or result.writes_unanswered:
                self._takes_calls = False
            self._tell(lambda client: client.give_up(call))
        return result

    def retire(self) -> None:
        """Take no further call, and end once the present ones have."""
        with self._lock:
            self._takes_calls = False
            self._tell(None)

    def close(self) -> None:
        """End it now; `join` waits for that."""
        with self._lock:
            self._takes_calls, self._is_over = False, True
            self._tell(None)

    def join(self, seconds: float) -> None:
        self._thread.join(max(0.0, seconds))

    def _tell(self, what: Callable[[StdioClient], None] | None) -> None:
        if what is not None:
            self._inbox.append(what)
        if self._wake >= 0:
            with suppress(BlockingIOError):  # it has more than enough of them
                os.write(self._wake, b".")

    def _run(self) -> None:
        started: Started | None = None
        client: StdioClient | None = None
        error: AileronError
        end = ServerEnd(message="was ended", is_fault=False)
        try:
            while True:
                deadline = self._clock.monotonic() + self._start_seconds
                self.pins.check()
                started = self._start()
                client = StdioClient(
                    started,
                    wake=self._woken,
                    on_stderr=self.log.write,
                    is_over=lambda: self._is_over,
                    scrubber=self._scrubber,
                    clock=self._clock,
                )
                client.initialize(deadline)
                self._hosts = started.hosts_reached
                self._list(client, deadline)
                if not self.ready.done():
                    self.ready.set_result(None)
                if self._serve(client, started):
                    break
                self._stop(started, client)
                started = client = None
            client.say_goodbye()
            self._let_end(started.process)
            error = Unavailable(f"The MCP server {self.name} was ended. Nothing ran.")
        except ServerFault as fault:
            end = ServerEnd(message=str(fault), is_fault=not isinstance(fault, ServerEnded))
            error = ConnectorRuntimeError(f"The MCP server {self.name} {fault} before it answered.")
        except AileronError as refusal:
            error, end = refusal, ServerEnd(message=refusal.message, is_fault=False)
        except Exception as fault:  # noqa: BLE001 - the edge of a thread; its text may quote a secret
            _log.error("the thread of an MCP server ended with %s", type(fault).__name__)
            error = InternalError("An internal error of Aileron ended an MCP server.")
            end = ServerEnd(message="could not be spoken to", is_fault=True)
        with self._lock:
            self._takes_calls = False
        if started is not None:
            self._stop(started, client)
        self._close()
        self._on_end(self, end)
        if not self.ready.done():
            cannot = f"The MCP server {self.name} {end.message}, so it cannot be called. Nothing was sent."
            self.ready.set_result(Unavailable(cannot) if end.is_fault else error)
        for call in tuple(self._open):
            call.end(error)

    def _stop(self, started: Started, client: StdioClient | None) -> None:
        self._note(started.stop())
        if client is not None:
            client.rest_of_stderr()
        close_pipes(started.process)

    def _note(self, sentences: Iterable[str]) -> None:
        for each in sentences:
            self.log.write(f"Aileron: {each}".encode())

    def _let_end(self, process: "subprocess.Popen[bytes]") -> None:
        """Give a server that did nothing wrong the time to end by itself, as at the end of its input."""
        assert process.stdin is not None
        process.stdin.close()
        deadline = self._clock.monotonic() + _GRACE_SECONDS
        while not self._is_over and self._clock.monotonic() < deadline:
            with suppress(subprocess.TimeoutExpired):
                process.wait(0.1)
                return

    def _close(self) -> None:
        with self._lock:
            os.close(self._wake)
            self._wake = -1
        os.close(self._woken)
        self.log.close()

    def _list(self, client: StdioClient, deadline: float | None = None) -> None:
        self.pins.compare(client.list_tools(deadline or self._clock.monotonic() + LIST_SECONDS))

    def _call(self, client: StdioClient, call: ServerCall) -> None:
        if not call.done.done():
            if call.is_gated or client.is_stale:
                self._list(client)
            if (refusal := self.pins.refusal(call.tool)) is None:
                call.hosts = lambda: self._hosts(call.left_at)
                call.on_answered = partial(self._answered, call)
                client.send("tools/call", {"name": call.tool, "arguments": call.args}, call)
                return
            call.end(refusal)
        self._answered(call, is_answer=True)

    def _answered(self, call: ServerCall, is_answer: bool) -> None:
        with self._lock:
            self._open.discard(call)
            self._takes_calls = self._takes_calls and is_answer

    def _serve(self, client: StdioClient, started: Started) -> bool:
        """Make the calls until it is to end; False where it has to be started anew for the next one."""
        last = listed = self._clock.monotonic()
        is_paused = was_busy = False
        while True:
            if is_paused and self._inbox:
                if not started.resume():
                    return False
                is_paused = False
            while self._inbox:
                self._inbox.popleft()(client)
            now = self._clock.monotonic()
            with self._lock:
                is_busy = bool(self._open or self._inbox)
                last = now if is_busy or was_busy else last
                was_busy = is_busy
                if not is_busy and (not self._takes_calls or now - last >= self._idle_seconds):
                    self._takes_calls = False
                    return True
            wait = self._idle_seconds - (now - last)
            if self._pauses and not is_paused and not is_busy:
                wait = min(wait, _PAUSE_SECONDS - (now - last))
                if wait <= 0:
                    is_paused = started.pause()
                    with self._lock:
                        if not is_paused and self._inbox:
                            return False
                        self._takes_calls = self._takes_calls and is_paused
                    self._is_over = self._is_over or not is_paused  # now, and not in its own time
                    continue
            if client.is_stale:
                if now - listed >= _RELIST_SECONDS:
                    self._list(client)
                    listed = self._clock.monotonic()
                    continue
                wait = min(wait, _RELIST_SECONDS - (now - listed))
            client.pump(max(0.0, wait))


class ServerProcesses:
    """The processes of a console's servers; from any thread.

    Args:
        make_outgoing: returns what sends the requests to remote servers, called once, for the first of them.
        logs: the folder of the servers' logs; None keeps none.
        on_listed: called from any thread with each listing that differs from what was accepted.
        on_held: called from any thread with the name of a server that is not started any more.
    """

    def __init__(
        self,
        start: StartServer,
        *,
        make_outgoing: "Callable[[], OutgoingClient] | None" = None,
        logs: Path | None = None,
        on_listed: OnListed = lambda identity, tools: None,
        on_held: Callable[[str], None] = lambda name: None,
        idle_seconds: float = IDLE_SECONDS,
        start_seconds: float = START_SECONDS,
        clock: Clock | None = None,
    ) -> None:
        self._start, self._logs = start, logs
        self._make_outgoing = make_outgoing
        self._outgoing: OutgoingClient | None = None
        self._on_listed, self._on_held = on_listed, on_held
        self._idle_seconds, self._start_seconds = idle_seconds, start_seconds
        self._clock = clock or SystemClock()
        self._lock = threading.Lock()
        self._current: dict[tuple[str, Mode], tuple[ServerKey, AnyServer]] = {}
        self._alive: set[AnyServer] = set()
        self._ends: dict[str, list[float]] = {}
        self._held: dict[str, str] = {}
        self._refused: dict[str, dict[str, str]] = {}
        self._is_closed = False

    @property
    def held(self) -> Mapping[str, str]:
        """The servers that are not started any more, by name, with how they ended."""
        with self._lock:
            return dict(self._held)

    def host_refused(self, name: str, host: str, problem: str) -> bool:
        """Take note that the box of the server *name* did not let it reach *host*; from any thread.

        Returns:
            Whether that is new.

        Args:
            host, problem: as of `RefusedHost`.
        """
        with self._lock:
            hosts = self._refused.setdefault(name, {})
            is_new = hosts.get(host) != problem
            if is_new and len(hosts) >= _MAX_REFUSED:
                return False
            hosts[host] = problem
            alive = (each for each in self._alive if isinstance(each, ServerProcess))
            process = next((each for each in alive if each.name == name), None)
        if process is not None:
            process.log.write(f"Aileron: {host} was refused: {problem or _NOT_LISTED}".encode())
        return is_new

    def refused_hosts(self, name: str) -> Mapping[str, str]:
        """Return each `host:port` that the server *name* was not let reach, with why a person cannot list it."""
        with self._lock:
            return dict(self._refused.get(name, {}))

    def release(self, name: str) -> None:
        """Have the server *name* started again with its next call: a person's word."""
        with self._lock:
            self._held.pop(name, None)
            self._ends.pop(name, None)

    def process(
        self,
        key: ServerKey,
        table: ServerTable,
        definitions: tuple[ToolDefinition, ...],
        check: Callable[[], None],
    ) -> "AnyServer":
        """Return the process for *key*; it is started if there is none.

        Args:
            check: as of `PinnedTools`.

        Raises:
            Unavailable: the server is held, or the console is closing.
        """
        name = key.name
        with self._lock:
            if self._is_closed:
                raise Unavailable("The console is closing.")
            if (why := self._held.get(name)) is not None:
                raise Unavailable(
                    f"The MCP server {name} ended {_MAX_ENDS} times within a minute; the last time it "
                    f"{why}. A person can have it started again in the console (s on its row)."
                )
            known = self._current.get((name, key.mode))
            if known is not None and known[0] == key and known[1].takes_calls:
                return known[1]
            if known is not None:
                known[1].retire()
            told = partial(self._on_listed, key.identity)
            pins = PinnedTools(name, definitions, on_differs=told, check=check)
            process = self._remote(key, table, pins) if table.url else self._boxed(key, table, pins)
            self._current[name, key.mode] = key, process
            self._alive.add(process)
            return process

    def _boxed(self, key: ServerKey, table: ServerTable, pins: PinnedTools) -> ServerProcess:
        return ServerProcess(
            key.name,
            partial(self._start.start, key.name, table, key.mode, key.secrets),
            pins=pins,
            secrets=key.secrets,
            log=None if self._logs is None else self._logs / f"{key.name}.log",
            on_end=self._ended,
            idle_seconds=self._idle_seconds,
            start_seconds=self._start_seconds,
            pauses=key.mode == "write" and bool(table.files_write),
            clock=self._clock,
        )

    def _remote(self, key: ServerKey, table: ServerTable, pins: PinnedTools) -> "RemoteServer":
        from aileron_core.connectors.servers.remote import RemoteServer

        if self._outgoing is None:
            assert self._make_outgoing is not None
            self._outgoing = self._make_outgoing()
        return RemoteServer(
            key.name,
            table.url,
            self._outgoing,
            pins=pins,
            credential=key.credential,
            on_end=self._ended,
        )

    def _ended(self, process: "AnyServer", end: ServerEnd) -> None:
        name, now = process.name, self._clock.monotonic()
        with self._lock:
            self._alive.discard(process)
            kept = {use: each for use, each in self._current.items() if each[1] is not process}
            self._current = kept  # the key of the process has its secrets
            if not end.is_fault:
                return
            recent = [each for each in self._ends.get(name, ()) if now - each < _ENDS_SECONDS]
            self._ends[name] = [*recent, now]
            if len(recent) + 1 < _MAX_ENDS:
                return
            self._held[name] = end.message
        self._on_held(name)

    def retire_with_secrets(self) -> None:
        """End every process that was given secrets, once its present calls have ended."""
        with self._lock:
            for key, process in self._current.values():
                if key.secrets:
                    process.retire()

    def stop_running(self) -> "tuple[AnyServer, ...]":
        """Have every process end, without waiting for it; calls after that start new ones."""
        with self._lock:
            alive = tuple(self._alive)
        for each in alive:
            each.close()
        return alive

    def close(self) -> None:
        """End every process, and start no more. Blocks, no longer than two seconds."""
        with self._lock:
            self._is_closed = True
        deadline = self._clock.monotonic() + _CLOSE_SECONDS
        for each in self.stop_running():
            each.join(deadline - self._clock.monotonic())
        if self._outgoing is not None:
            self._outgoing.close()


def list_tools(start: StartServer, name: str, table: ServerTable) -> tuple[ToolDefinition, ...]:
    """Start a server once, without a secret, list its tools and end it. Blocks.

    Raises:
        Unavailable: it cannot be started here, does not start, or does not list; the message ends with its last
            lines, which are hostile text.
        HashMismatch: its installed files are not those that were accepted.
    """
    if reason := start.why_not(table):
        raise Unavailable(reason)
    secrets = dict.fromkeys(table.secrets, _STAND_IN)
    process = ServerProcess(
        name,
        partial(start.start, name, table, "read", secrets),
        pins=PinnedTools(name, (), read=from_listing),
        secrets=secrets,
        on_end=lambda process, end: None,
        clock=SystemClock(),
    )
    try:
        error = process.ready.result()
        if isinstance(error, Unavailable) and process.log.last:
            raise Unavailable("\n".join((f"{error.message} It said last:", *process.log.last)))
        if error is not None:
            raise error
        return process.pins.listed
    finally:
        process.close()
        process.join(5.0)
