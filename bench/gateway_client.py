"""The load client of the gateway measurement: a process of its own, one for all targets.

Each line of its standard input is a job (`Job`, as JSON), each line of its output what came of it
(`Outcome`). It ends when its input does. What a target answers is compared with what the upstream
says; a difference is an error, not a figure.
"""

import asyncio
import gc
import itertools
import json
import sys
import time
from dataclasses import asdict, dataclass
from typing import Any, cast

import httptools
import uvloop

from bench.gateway_wire import CHUNK_BYTES, FIRST, LAST, NUMBER, PATH, STAMP, Load, answer, question

_PATIENCE = 30.0
"""Seconds for one request: a gateway that answers none shall not stop the run."""
_LONGEST_MARK = 40
"""Bytes that a stamp with what surrounds it cannot exceed: so much of a read is looked at again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A load, and the target it is put on."""

    port: int
    prefix: str
    """Before `/v1/messages`."""
    load: Load


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """Times in seconds: of whole requests, and of chunks from the upstream's write to our read."""

    error: str = ""
    requests: tuple[float, ...] = ()
    delays: tuple[float, ...] = ()
    firsts: tuple[float, ...] = ()
    """From a request's first byte to the first chunk of its answer."""
    lasted: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """One answer, and the seconds until it was whole."""

    took: float
    status: int
    body: bytes
    chunks: int
    """Stamped ones."""


class Broken(Exception):
    """What came is not what was expected."""


class Connection(asyncio.Protocol):
    """One keep-alive connection."""

    transport: asyncio.Transport
    _done: "asyncio.Future[float]"

    def __init__(self) -> None:
        self.delays: list[float] = []
        self.firsts: list[float] = []
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        self._began = 0
        self._read_at = 0
        self._streams = False
        self._has_first = False
        self._parts: list[bytes] = []
        self._rest = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail what is still awaited."""
        if hasattr(self, "_done") and not self._done.done():
            self._done.set_exception(Broken(f"the connection ended before the answer did ({exc})"))

    def data_received(self, data: bytes) -> None:
        """Feed the parser; what it finds was read now."""
        self._read_at = time.monotonic_ns()
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserError as error:
            self._done.set_exception(Broken(f"not HTTP: {error}"))
            self.transport.abort()

    def on_message_begin(self) -> None:
        """Begin a new body."""
        self._parts, self._rest = [], b""

    def on_body(self, data: bytes) -> None:
        """Note the delay of each chunk whose stamp is whole now."""
        self._parts.append(data)
        if not self._streams:
            return
        text, end = self._rest + data, 0
        for found in STAMP.finditer(text):
            if not self._has_first:
                self._has_first = True
                self.firsts.append((self._read_at - self._began) / 1e9)
            self.delays.append((self._read_at - int(found[1])) / 1e9)
            end = found.end()
        self._rest = text[max(end, len(text) - _LONGEST_MARK) :]

    def on_message_complete(self) -> None:
        """Note how long it took."""
        if not self._done.done():
            self._done.set_result((time.monotonic_ns() - self._began) / 1e9)

    async def ask(self, request: bytes, *, streams: bool) -> Answer:
        """Send *request* and wait for the whole answer."""
        self._done = self._loop.create_future()
        self._streams = streams
        self._has_first = False
        chunks = len(self.delays)
        self._began = time.monotonic_ns()
        self.transport.write(request)
        async with asyncio.timeout(_PATIENCE):
            took = await self._done
        return Answer(
            took=took,
            status=self._parser.get_status_code(),
            body=b"".join(self._parts),
            chunks=len(self.delays) - chunks,
        )


def _request(job: Job) -> bytes:
    body = question(job.load)
    head = (
        f"POST {job.prefix}{PATH} HTTP/1.1\r\nhost: 127.0.0.1:{job.port}\r\n"
        "x-api-key: sk-bench\r\nanthropic-version: 2023-06-01\r\nuser-agent: bench\r\n"
        f"accept: */*\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _check(load: Load, expected: bytes, answered: Answer) -> None:
    body = answered.body
    if answered.status != 200:
        raise Broken(f"status {answered.status}: {body[:200]!r}")
    if load.streams:
        wanted = int(load.model.split("-")[1])
        size = len(FIRST) + wanted * CHUNK_BYTES + len(LAST)
        whole = body.startswith(FIRST) and body.endswith(LAST)
        if not whole or answered.chunks != wanted or len(body) != size:
            raise Broken(f"{answered.chunks} of {wanted} chunks came, {len(body)} bytes")
    elif body != expected:
        raise Broken(f"another body: {len(body)} bytes, {body[:100]!r}")


async def _work(job: Job) -> Outcome:
    loop = asyncio.get_running_loop()
    load = job.load
    request = _request(job)
    expected = b"" if load.streams else answer(load.model)
    connections = [
        (await loop.create_connection(Connection, "127.0.0.1", job.port))[1]
        for _ in range(load.connections)
    ]
    took: list[float] = []
    left, numbers = itertools.count(load.requests, -1), itertools.count()
    began = time.monotonic()

    async def one_after_the_other(connection: Connection) -> None:
        while next(left) > 0 and time.monotonic() - began < load.seconds:
            own = request.replace(NUMBER, b"%08d" % next(numbers)) if load.conversation else request
            answered = await connection.ask(own, streams=load.streams)
            _check(load, expected, answered)
            took.append(answered.took)

    try:
        async with asyncio.TaskGroup() as group:
            for connection in connections:
                group.create_task(one_after_the_other(connection))
        lasted = time.monotonic() - began
    finally:
        for connection in connections:
            connection.transport.abort()
    delays = itertools.chain.from_iterable(connection.delays for connection in connections)
    firsts = itertools.chain.from_iterable(connection.firsts for connection in connections)
    return Outcome(requests=tuple(took), delays=tuple(delays), firsts=tuple(firsts), lasted=lasted)


async def _outcome(job: Job) -> Outcome:
    gc.collect()
    gc.disable()  # a pause of the client's is nobody's latency
    try:
        return await _work(job)
    except* (Broken, OSError, TimeoutError) as errors:
        first: BaseException = errors
        while isinstance(first, BaseExceptionGroup):
            first = cast("BaseExceptionGroup[BaseException]", first).exceptions[0]
        outcome = Outcome(error=f"{type(first).__name__}: {first}")
    finally:
        gc.enable()
    return outcome


def _job(line: str) -> Job:
    given: dict[str, Any] = json.loads(line)
    return Job(port=given["port"], prefix=given["prefix"], load=Load(**given["load"]))


def main() -> None:
    """Do the jobs that come."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        for line in sys.stdin:
            print(json.dumps(asdict(runner.run(_outcome(_job(line))))), flush=True)


if __name__ == "__main__":
    main()
