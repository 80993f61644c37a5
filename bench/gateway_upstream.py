"""The model service of the gateway measurement: answers what the request's model names.

A process of its own. It prints its port and ends when its standard input does. The streams with a
gap keep to one grid, a hundredth of the gap apart, so that every gateway gets the same
schedule however fast it let the requests through.
"""

import asyncio
import itertools
import re
import sys
import time
from collections.abc import Iterator
from functools import cache
from typing import cast

import httptools
import uvloop

from bench.gateway_wire import FIRST, JSON_BYTES, LAST, answer, chunk

_MODEL = re.compile(rb'"model":\s*"([^"]{1,40})"')
_JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
_SSE = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


@cache
def _whole(model: str) -> bytes:
    body = answer(model)
    return _JSON % len(body) + body


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


class Upstream(asyncio.Protocol):
    """One connection; requests come one after the other."""

    transport: asyncio.Transport

    def __init__(self, numbers: Iterator[int]) -> None:
        self._numbers = numbers
        self._loop = asyncio.get_running_loop()
        self._begin()

    def _begin(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._model = b""
        self._timer: asyncio.Handle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Take the connection."""
        self.transport = cast("asyncio.Transport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Write no more chunks."""
        if self._timer is not None:
            self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Feed the parser."""
        self._parser.feed_data(data)

    def on_body(self, data: bytes) -> None:
        """Keep the model, which stands near the beginning; nothing else of the body is needed."""
        if not self._model and (found := _MODEL.search(data)):
            self._model = found[1]

    def on_message_complete(self) -> None:
        """Answer."""
        model = self._model.decode() or f"json-{JSON_BYTES}"
        self._model = b""
        if not model.startswith("sse-"):
            self.transport.write(_whole(model))
            return
        chunks, gap = (int(part) for part in model.removeprefix("sse-").split("-"))
        self.transport.write(_SSE + _framed(FIRST))
        if gap:
            now = time.monotonic()
            step = gap / 1000
            due = now - now % step + step * (next(self._numbers) % 100 / 100)
            self._paced(chunks, step, due + step)
        else:
            self._burst(chunks)

    def _burst(self, left: int) -> None:
        """Write a chunk in each turn of the loop: a write of its own for each."""
        if left:
            self.transport.write(_framed(chunk(time.monotonic_ns())))
            self._timer = self._loop.call_soon(self._burst, left - 1)
        else:
            self._last()

    def _paced(self, left: int, step: float, due: float) -> None:
        if left:
            self._timer = self._loop.call_later(
                max(0.0, due - time.monotonic()), self._tick, left, step, due
            )
        else:
            self._last()

    def _tick(self, left: int, step: float, due: float) -> None:
        self.transport.write(_framed(chunk(time.monotonic_ns())))
        self._paced(left - 1, step, due + step)

    def _last(self) -> None:
        self.transport.write(_framed(LAST) + b"0\r\n\r\n")


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    numbers = itertools.count()
    server = await loop.create_server(lambda: Upstream(numbers), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)
    server.close()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve())
