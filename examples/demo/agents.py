"""A scripted agent: an MCP client over `aileron-mcp`, as coding agents are."""

import json
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

__all__ = ["Agent", "Answer"]

_WAIT_SECONDS = 50
"""The longest that one `check_action_status` is asked to wait; a client of no special name has 60."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """How a call ended, and what the agent says to that."""

    status: str
    words: str


class Agent:
    """One MCP session under *name*, once `connect` has opened it."""

    def __init__(self, name: str, session: ClientSession) -> None:
        self.name = name
        self._session = session

    @classmethod
    async def connect(cls, name: str, home: Path, log: TextIO, until: AsyncExitStack) -> "Agent":
        """Return an agent that is connected to the console of *home* until *until* is left.

        What its relay prints goes to *log*.
        """
        relay = StdioServerParameters(
            command=sys.executable,
            args=["-I", "-m", "aileron_mcp.relay"],
            env={"AILERON_HOME": str(home), "AILERON_AGENT": name},
        )
        read, write = await until.enter_async_context(stdio_client(relay, errlog=log))
        session = await until.enter_async_context(ClientSession(read, write))
        await session.initialize()
        await session.list_tools()
        return cls(name, session)

    async def begin(self, tool: str, arguments: Mapping[str, str]) -> "Call":
        """Call *tool*; a console that holds no call says at once that this one waits for a person."""
        return Call(self, await self.ask(tool, arguments))

    async def ask(self, tool: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the structured result of *tool*."""
        answer: Any = await self._session.call_tool(tool, dict(arguments))
        return answer.structured_content or {}


class Call:
    """A call whose first answer was *result*."""

    def __init__(self, agent: Agent, result: dict[str, Any]) -> None:
        self._agent = agent
        self._result = result
        self._approval_id = str(result.get("approval_id", ""))

    async def ended(self) -> Answer:
        """Wait until the call has ended, however that is, and return how."""
        while self._result.get("status") == "pending_approval":
            self._result = await self._agent.ask(
                "check_action_status",
                {"approval_id": self._approval_id, "wait_seconds": _WAIT_SECONDS},
            )
        return _answer(self._result)

    async def withdraw(self) -> None:
        """Take the call back if it still waits."""
        await self._agent.ask("withdraw_action", {"approval_id": self._approval_id})


def _answer(result: Mapping[str, Any]) -> Answer:
    status = str(result.get("status", "refused"))
    if status == "completed":
        return Answer(status=status, words=f"completed, {json.dumps(result.get('output'))}")
    message = str(result.get("error", {}).get("message", "no reason given"))
    reaction = " So I leave it alone." if status == "denied" else ""
    return Answer(status=status, words=f'{status}: "{message}"{reaction}')
