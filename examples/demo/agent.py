"""A scripted agent: a real MCP client over `aileron-mcp` that wants to send a mail draft.

    AILERON_HOME=... python -m examples.demo.agent

It does what coding agents do: lists its tools, looks at the drafts, calls `send_draft`, and where
the answer is that a person has to approve, asks with `check_action_status` until it has ended.
"""

import os
import sys
from pathlib import Path
from typing import Any

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

RELAY = Path(sys.executable).with_name("aileron-mcp")


def say(text: str) -> None:
    """Print one line of the agent's."""
    print(f"agent: {text}", flush=True)


def _content(result: Any) -> dict[str, Any]:
    return result.structured_content or {}


async def _until_ended(session: ClientSession, result: dict[str, Any]) -> dict[str, Any]:
    if result.get("status") == "pending_approval":
        say(f"waiting for a person ({result['approval_id']})")
    while result.get("status") == "pending_approval":
        # A console that is closing answers at once, however long one asked it to wait.
        await anyio.sleep(1)
        answer = await session.call_tool(
            "check_action_status", {"approval_id": result["approval_id"], "wait_seconds": 25}
        )
        result = _content(answer)
    return result


def _report(result: dict[str, Any]) -> None:
    if result.get("status") == "completed":
        words = " · ".join(result.get("digest_words") or ())
        say(f"sent. The service answered {result['output']}  [{words}]")
    elif "error" in result:
        say(f"{result.get('status', 'refused')}: {result['error']['message']}")
    else:
        say(f"unexpected answer: {result}")


async def main() -> None:
    """Ask to send the newest draft, and say how that ended."""
    relay = StdioServerParameters(
        command=str(RELAY),
        env={"AILERON_HOME": os.environ["AILERON_HOME"], "AILERON_AGENT": "demo-agent"},
    )
    async with (
        stdio_client(relay, errlog=sys.stdout) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        tools = await session.list_tools()
        say("my tools are " + ", ".join(tool.name for tool in tools.tools))
        drafts = _content(await session.call_tool("list_drafts", {}))["output"]["drafts"]
        draft_id = drafts[0]["id"]
        say(f"there are {len(drafts)} drafts; I want to send {draft_id}")
        _report(
            await _until_ended(
                session, _content(await session.call_tool("send_draft", {"draft_id": draft_id}))
            )
        )
        say("done")


if __name__ == "__main__":
    anyio.run(main)
