"""The model's calls: the accepted actions as its tools, each call through the gate, and its result."""

import contextlib
import signal
import time
from collections.abc import Generator, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from threading import Thread
from typing import Any
from urllib.parse import quote

import click

from aileron_core.errors import (
    AileronError,
    ConsoleErrorResponse,
    ConsoleUnavailable,
    ModelFormatError,
)
from aileron_core.home.client import HomeClient
from aileron_core.models.neutral import Tool, ToolCall, ToolResult
from aileron_core.server import tool_results
from aileron_core.server.bodies import PendingBody
from aileron_core.text import escape
from aileron_mcp import translate

_POLL_SECONDS = 30
_RESTART_SECONDS = 60
"""How long a console that has gone may take to come back while a call waits there."""
_WITHDRAW_SECONDS = 20.0
"""How long the console may take to answer a call, or its withdrawal, after an interrupt."""
_NOT_MADE = "This call was not made: the user interrupted, or an error ended the turn before it."
_UNKNOWN = "The result of this call did not come. It may have run: do not repeat it unless the user wants that."
_CUT_OFF = "The answer was cut off before this call was complete. It did not run."


def say(lines: Iterable[str]) -> None:
    """Print *lines* to stderr: standard output is the model's."""
    for line in lines:
        click.echo(f"aileron: {escape(line)}", err=True)


@dataclass(slots=True, kw_only=True)
class Call:
    """One call of the model's, from its beginning to what the model reads of it."""

    asked: ToolCall
    action: str
    status: str = "not_made"
    """How it ended, as the console says; `unknown`: it was sent, and no result came."""
    id: str = ""
    """Of its approval or its run, once the console has said it."""
    pending: PendingBody | None = None
    text: str = _NOT_MADE
    is_error: bool = True

    def waits(self, body: PendingBody) -> None:
        self.pending, self.id, self.status = body, body["approval_id"], body["status"]

    def ended(self, result: tool_results.ToolResult) -> None:
        said: dict[str, Any] = result["structuredContent"]
        error: dict[str, Any] = said.get("error") or {}
        self.status = str(said["status"])
        self.text, self.is_error = result["content"][0]["text"], bool(result["isError"])
        self.id = str(said.get("audit_id") or error.get("audit_id") or self.id)
        self.pending = None

    def result(self) -> ToolResult:
        return ToolResult(call_id=self.asked.id, text=self.text, is_error=self.is_error)

    def line(self) -> str:
        return f"{self.action}: {self.status}" + (f" ({self.id})" if self.id else "")


class Calls:
    """The catalogue as tools, and the model's calls of them through the gate."""

    def __init__(self, console: HomeClient, token: str, *, quiet: bool) -> None:
        self._console = console
        self._token = token
        self._quiet = quiet
        self._actions: dict[str, str] = {}
        self.made: list[Call] = []
        """Those that reached the gate since the person's last prompt."""

    def tools(self) -> list[Tool]:
        """Return the session's actions as tools; a later call is of one of these."""
        items = self._request("GET", "/v1/actions")[1]["items"]
        self._actions = {item["tool"]: item["name"] for item in items}
        found = [translate.action_tool(item) for item in items]
        return [
            Tool(name=each["name"], description=each["description"], schema=each["inputSchema"])
            for each in found
        ]

    def prepare(self, asked: Sequence[ToolCall], *, cut_off: bool) -> list[Call]:
        """Return one turn's calls, none of them made.

        Args:
            cut_off: the model's answer was cut off, so its calls may not be what it meant.
        """
        calls = [Call(asked=each, action=self._actions.get(each.name, "")) for each in asked]
        if cut_off:
            for call in calls:
                call.text = _CUT_OFF
        return calls

    def make(self, calls: Sequence[Call]) -> None:
        """Make *calls*; those that wait for a person wait at the same time.

        However this ends, no call stays pending: nobody would see what a later approval did.
        """
        try:
            for call in calls:
                self._begin(call)
            for call in calls:
                self._await_person(call)
        except BaseException as error:
            with _uninterrupted():
                for call in calls:
                    self._withdraw(call)
            if isinstance(error, KeyboardInterrupt):
                for call in calls:  # a person approved it at this very moment
                    self._await_person(call)
            raise

    def summary(self) -> list[str]:
        """Return what was called since the last prompt, as lines."""
        if not self.made:
            return ["No action was called."]
        return ["What was called:", *(f"  {call.line()}" for call in self.made)]

    def _tell(self, line: str) -> None:
        if not self._quiet:
            say([line])

    def _request(
        self, method: str, path: str, body: object = None, **more: float
    ) -> tuple[int, Any]:
        return self._console.request(method, path, body, token=self._token, **more)

    def _begin(self, call: Call) -> None:
        if not call.action:
            call.text = (
                f"There is no tool {call.asked.name[:128]!r}. Use the tools that are offered."
            )
            return
        try:
            args = call.asked.parsed_arguments()
        except ModelFormatError as error:
            call.text = error.message
            return
        self.made.append(call)
        call.status, call.text = "unknown", _UNKNOWN
        sent = self._sent(call.action, args)
        try:
            _take(call, sent)
        except BaseException:
            with _uninterrupted(), contextlib.suppress(AileronError, TimeoutError):
                _take(call, sent, _WITHDRAW_SECONDS)
            raise
        if call.pending is not None:
            self._tell(f"{call.action} is waiting for your answer in the console ({call.id}).")
        else:
            self._tell(call.line())

    def _sent(self, action: str, args: object) -> "Future[tuple[int, Any]]":
        """Send a call on a thread of its own: an interrupt must not lose the id by which it is withdrawn."""
        answer: Future[tuple[int, Any]] = Future()

        def send() -> None:
            try:
                path = f"/v1/actions/{quote(action, safe='')}/run"
                answer.set_result(self._request("POST", path, {"args": args}))
            except BaseException as error:  # noqa: BLE001 - whoever waits for it raises it
                answer.set_exception(error)

        Thread(target=send, name="call", daemon=True).start()
        return answer

    def _await_person(self, call: Call) -> None:
        deadline = time.monotonic() + _RESTART_SECONDS
        while call.pending is not None:
            path = f"/v1/action-approvals/{call.pending['approval_id']}/result?wait={_POLL_SECONDS}"
            try:
                body = self._request("GET", path)[1]
            except ConsoleUnavailable:
                if time.monotonic() > deadline:
                    raise
                time.sleep(1)
                continue
            deadline = time.monotonic() + _RESTART_SECONDS
            if body["status"] != "pending_approval":
                call.ended(tool_results.approval_result(body, call.pending))
                self._tell(call.line())

    def _withdraw(self, call: Call) -> None:
        """Withdraw *call* if it is pending; the console refuses that once it has been decided."""
        if call.pending is None:
            return
        path = f"/v1/action-approvals/{call.pending['approval_id']}/withdraw"
        with contextlib.suppress(AileronError):
            body = self._request("POST", path, timeout=_WITHDRAW_SECONDS)[1]
            call.ended(tool_results.approval_result(body, call.pending))


def _take(call: Call, answer: "Future[tuple[int, Any]]", seconds: float | None = None) -> None:
    """Put the console's first answer into *call*."""
    try:
        status, body = answer.result(seconds)
    except ConsoleErrorResponse as refused:
        call.ended(tool_results.error_result(refused.failure))
        return
    if status == 202:
        call.waits(body)
    else:
        call.ended(tool_results.run_result(body))


@contextlib.contextmanager
def _uninterrupted() -> Generator[None]:
    """Ignore signals: a second Ctrl-C would leave calls pending. What runs in it takes seconds at most."""
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
