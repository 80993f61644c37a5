"""The way from the console to a session's workers: its launcher carries frames between both.

All of it runs on the core's loop. What a worker answers is as trustworthy as the sandbox that it is in; no
agent's program runs in that of the files.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, cast

from aileron_core.connectors.stop_request import StopRequest

WorkerName: TypeAlias = Literal["files", "commands"]

WORKERS: tuple[WorkerName, ...] = ("files", "commands")

_ATTACH_SECONDS = 10.0
"""How long a call waits for its launcher, which reconnects after a restart of the console."""
_MAX_MESSAGE = 4000
"""Characters of what a worker says of a failure."""
_CANCEL_SECONDS = 5.0
"""How long a command that was stopped has to say how it ended."""


class WorkerRefused(Exception):
    """A worker answered that the op was refused or failed; `class_` is one of its own."""

    def __init__(self, class_: str, message: str, details: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.class_ = class_
        self.message = message
        self.details = details


class WorkerLost(Exception):
    """No answer came. *sent*: the worker may have begun, so what it did is unknown."""

    def __init__(self, message: str, *, sent: bool) -> None:
        super().__init__(message)
        self.message = message
        self.sent = sent


class ToolChannel:
    """One session's workers."""

    def __init__(self) -> None:
        self.frames: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        """What the launcher is to carry, as `{"worker", "frame"}`; another one for each attachment."""
        self._waiting: dict[int, tuple[WorkerName, asyncio.Future[dict[str, Any]]]] = {}
        self._last_id = 0
        self._attached = asyncio.Event()
        self._ended: dict[WorkerName, str] = {}
        self.features: Mapping[str, Any] = {}
        """What the commands' worker said that it can do."""

    def attach(self, features: Mapping[str, Any]) -> None:
        """Note that the launcher has its workers ready."""
        self.detach(self.frames)
        self.frames = asyncio.Queue()
        self.features = features
        self._attached.set()

    def detach(self, frames: object) -> None:
        """Note that the launcher is away: what it was asked is not answered any more, when it comes back.

        Args:
            frames: of the attachment that has ended; nothing happens if there has been another one since.
        """
        if frames is self.frames:
            self._attached.clear()
            for worker in WORKERS:
                self._fail(worker, "The session's launcher lost its connection to the console.")

    def receive(self, worker: WorkerName, frame: Mapping[str, Any]) -> None:
        """Take what *worker* answered, or that it has ended; what nobody waits for is dropped."""
        if (why := frame.get("ended")) is not None:
            self._lose(worker, str(why)[:500])
            return
        number = frame.get("id")
        waiting = self._waiting.get(number) if isinstance(number, int) else None
        if waiting is not None and waiting[0] == worker and not waiting[1].done():
            waiting[1].set_result(dict(frame))

    def close(self) -> None:
        """Fail what is under way: the session has ended."""
        for worker in WORKERS:
            self._lose(worker, "This session has ended.")

    def _lose(self, worker: WorkerName, why: str) -> None:
        self._ended[worker] = why
        self._fail(worker, why)

    def _fail(self, worker: WorkerName, message: str) -> None:
        for name, answer in self._waiting.values():
            if name == worker and not answer.done():
                answer.set_exception(WorkerLost(message, sent=True))

    async def call(
        self,
        worker: WorkerName,
        op: str,
        args: Mapping[str, Any],
        *,
        seconds: float,
        stop: StopRequest | None = None,
    ) -> dict[str, Any]:
        """Have *worker* do *op* and return its result.

        Args:
            seconds: how long to wait for the answer; then the op is cancelled.
            stop: cancels it when it is made.

        Raises:
            WorkerRefused: it answered that the op was refused or failed.
            WorkerLost: no answer came.
            asyncio.CancelledError: the caller was cancelled; so is the op.
        """
        try:
            async with asyncio.timeout(_ATTACH_SECONDS):
                while not self._attached.is_set():  # it may have gone again before this goes on
                    await self._attached.wait()
        except TimeoutError:
            why = "The session's launcher is not connected. Nothing ran. Try again in a moment."
            raise WorkerLost(why, sent=False) from None
        if (ended := self._ended.get(worker)) is not None:
            raise WorkerLost(ended, sent=False)
        number = self.tell(worker, op, args)
        answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = (worker, answer)

        def cancel() -> None:
            self._send(worker, {"cancel": number})

        try:
            with (stop or StopRequest()).stopping(cancel):
                return _result(await self._answer(answer, seconds, cancel))
        except asyncio.CancelledError:
            cancel()
            raise
        finally:
            del self._waiting[number]

    def tell(self, worker: WorkerName, op: str, args: Mapping[str, Any]) -> int:
        """Have *worker* do *op*, without waiting for the answer, and return its number."""
        self._last_id += 1
        self._send(worker, {"id": self._last_id, "op": op, "args": dict(args)})
        return self._last_id

    async def _answer(
        self, answer: "asyncio.Future[dict[str, Any]]", seconds: float, cancel: Any
    ) -> dict[str, Any]:
        done, _ = await asyncio.wait([answer], timeout=seconds)
        if not done:
            cancel()
            done, _ = await asyncio.wait([answer], timeout=_CANCEL_SECONDS)
        if not done:
            raise WorkerLost(f"The tool did not answer within {seconds:.0f} s.", sent=True)
        return answer.result()

    def _send(self, worker: WorkerName, frame: dict[str, Any]) -> None:
        self.frames.put_nowait({"worker": worker, "frame": frame})


def _result(frame: Mapping[str, Any]) -> dict[str, Any]:
    error = _table(frame.get("error"))
    if error:
        message = str(error.get("message"))[:_MAX_MESSAGE]
        raise WorkerRefused(str(error.get("class")), message, _table(error.get("details")))
    return _table(frame.get("result"))


def _table(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


class ToolChannels:
    """The workers of every session that has some, by its id, and those of the rehearsals of MCP servers."""

    def __init__(self) -> None:
        self._by_session: dict[str, ToolChannel] = {}

    def get(self, session_id: str) -> ToolChannel:
        """Return the session's channel; its launcher may have yet to come."""
        return self._by_session.setdefault(session_id, ToolChannel())

    def close(self, session_id: str) -> None:
        if (channel := self._by_session.pop(session_id, None)) is not None:
            channel.close()
