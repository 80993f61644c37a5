"""The service on a port of this machine, in a thread of its own."""

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from email.message import EmailMessage
from types import TracebackType
from typing import Any

import uvicorn

from examples.mailbox.seed import seed_drafts
from examples.mailbox.service import HOST, build_app
from examples.mailbox.state import State

__all__ = ["Mailbox"]


class _Server(uvicorn.Server):
    """Leaves signals to whoever runs the process, says when it is ready, and sleeps while nobody asks."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop, self._ending = asyncio.get_running_loop(), asyncio.Event()
        await super().startup(sockets=sockets)
        self.ready.set()

    async def main_loop(self) -> None:
        """Wait for the end; uvicorn's own loop looks for it ten times a second."""
        assert self._ending is not None
        await self._ending.wait()

    def end(self) -> None:
        """End it, from another thread."""
        self.should_exit = True
        if self._loop is not None and self._ending is not None:
            self._loop.call_soon_threadsafe(self._ending.set)


class Mailbox:
    """A mailbox that serves on 127.0.0.1 while its `with` block runs.

    with Mailbox() as mailbox:
        mailbox.control(fail={"op": "send", "status": 429, "times": 2})
        ...
        assert mailbox.state()["sent"] == []
    """

    host = HOST
    """The name it answers to, in the Host header."""

    def __init__(
        self,
        *,
        port: int = 0,
        drafts: Iterable[tuple[str, EmailMessage]] | None = None,
        on_sent: Callable[[dict[str, Any]], object] | None = None,
    ) -> None:
        """Take *port* (0: a free one).

        Args:
            drafts: with their ids; without them those of `seed.py`.
            on_sent: called with each sent mail, on the service's thread.
        """
        self._state = State(seed_drafts() if drafts is None else drafts, on_sent)
        self._socket = socket.create_server(("127.0.0.1", port))
        self.port: int = self._socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        config = uvicorn.Config(
            build_app(self._state), log_config=None, access_log=False, lifespan="off", date_header=False,
            timeout_graceful_shutdown=2,
        )  # fmt: skip
        self._server = _Server(config)
        self._thread = threading.Thread(target=self._run, name="mailbox", daemon=True)

    def __enter__(self) -> "Mailbox":
        self._thread.start()
        if not self._server.ready.wait(10):
            raise RuntimeError("the mailbox did not start within 10 s")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._state.closing.set()
        self._server.end()
        self._thread.join(10)
        self._socket.close()

    def _run(self) -> None:
        self._server.run(sockets=[self._socket])

    def state(self) -> dict[str, Any]:
        """Return `{"sent", "drafts", "requests"}`."""
        return self._ask("GET", "/_state", None)

    def control(self, **commands: Any) -> None:
        """Make trouble, as `POST /_control` does; see `State.apply` for what it knows.

        Raises:
            ValueError: it was not understood.
        """
        answer = self._ask("POST", "/_control", json.dumps(commands))
        if "error" in answer:
            raise ValueError(answer["error"])

    def _ask(self, method: str, path: str, body: str | None) -> dict[str, Any]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        try:
            connection.request(method, path, body, {"Content-Type": "application/json"})
            answer: dict[str, Any] = json.loads(connection.getresponse().read())
        finally:
            connection.close()
        return answer
