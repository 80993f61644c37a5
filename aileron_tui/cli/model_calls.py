"""The model's calls: the accepted actions as its tools, each call through the gate, and what came of it."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import click

from aileron_core.errors import ConsoleErrorResponse, ModelFormatError
from aileron_core.home.client import HomeClient
from aileron_core.models.neutral import Tool, ToolCall, ToolResult
from aileron_core.server.bodies import PendingBody
from aileron_core.text import escape
from aileron_mcp import translate

_POLL_SECONDS = 30
_NOT_MADE = "The user interrupted before this call was made. It did not run."
_NO_RESULT = (
    "The user interrupted before the result of this call came. It may have run, so do not repeat it "
    "unasked."
)


def say(lines: Iterable[str]) -> None:
    """Print *lines* to stderr: standard output is the model's."""
    for line in lines:
        click.echo(f"aileron: {escape(line)}", err=True)


@dataclass(slots=True, kw_only=True)
class _Call:
    """One call of the model's, from its begin to what the model reads of it."""

    asked: ToolCall
    action: str
    status: str = "interrupted, it may have run"
    """How it ended, as the console says."""
    id: str = ""
    """Of its approval or its run, once the console has said it."""
    pending: PendingBody | None = None
    text: str = _NOT_MADE
    is_error: bool = True

    def ended(self, result: translate.ToolResult) -> None:
        said: dict[str, Any] = result.get("structuredContent") or {}
        error: dict[str, Any] = said.get("error") or {}
        self.status = str(said.get("status", "completed"))
        self.text, self.is_error = result["content"][0]["text"], bool(result["isError"])
        self.id = str(said.get("audit_id") or error.get("audit_id") or self.id)

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
        self._results: list[ToolResult] = []
        self.made: list[_Call] = []
        """Since the person's last prompt."""

    def tools(self) -> list[Tool]:
        """Return the session's actions as tools; a later call is of one of these."""
        items = self._request("GET", "/v1/actions")[1]["items"]
        self._actions = {item["tool"]: item["name"] for item in items}
        found = [translate.action_tool(item) for item in items]
        return [
            Tool(name=each["name"], description=each["description"], schema=each["inputSchema"])
            for each in found
        ]

    def run(self, asked: Sequence[ToolCall]) -> list[ToolResult]:
        """Run one turn's calls; those that wait for a person wait at the same time.

        Raises:
            KeyboardInterrupt: what waited is withdrawn; `results` has what came of each.
        """
        mine = [_Call(asked=each, action=self._actions.get(each.name, "")) for each in asked]
        try:
            for call in mine:
                self._begin(call)
            for call in mine:
                self._await_person(call)
        except KeyboardInterrupt:
            for call in mine:
                self._withdraw(call)
            raise
        finally:
            self._results = [call.result() for call in mine]
        return self._results

    def results(self) -> list[ToolResult]:
        """Return what came of the last turn's calls, in their order."""
        return self._results

    def summary(self, *, interrupted: bool) -> list[str]:
        """Return what was called since the last prompt, as lines."""
        first = "Interrupted. " if interrupted else ""
        if not self.made:
            return [f"{first}No action was called."]
        return [f"{first}What was called:", *(f"  {call.line()}" for call in self.made)]

    def _tell(self, line: str) -> None:
        if not self._quiet:
            say([line])

    def _request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        return self._console.request(method, path, body, token=self._token)

    def _begin(self, call: _Call) -> None:
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
        call.text = _NO_RESULT
        try:
            path = f"/v1/actions/{quote(call.action, safe='')}/run"
            status, body = self._request("POST", path, {"args": args})
        except ConsoleErrorResponse as refused:
            call.ended(translate.error_result(refused.failure))
        else:
            if status == 202:
                call.pending, call.id, call.status = body, body["approval_id"], "pending"
                self._tell(f"{call.action} is waiting for your answer in the console ({call.id}).")
                return
            call.ended(translate.run_result(body))
        self._tell(call.line())

    def _await_person(self, call: _Call) -> None:
        while call.pending is not None:
            path = f"/v1/action-approvals/{call.pending['approval_id']}/result?wait={_POLL_SECONDS}"
            body = self._request("GET", path)[1]
            if body["status"] != "pending_approval":
                call.ended(translate.approval_result(body, call.pending))
                call.pending = None
                self._tell(call.line())

    def _withdraw(self, call: _Call) -> None:
        """Take back what still waits; of what a person approved at this very moment, wait for the end."""
        if call.pending is None:
            return
        path = f"/v1/action-approvals/{call.pending['approval_id']}/withdraw"
        try:
            body = self._request("POST", path)[1]
        except ConsoleErrorResponse:
            self._await_person(call)
        else:
            call.ended(translate.approval_result(body, call.pending))
            call.pending = None
