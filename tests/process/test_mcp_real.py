"""The official MCP client, at the real console and through the real relay, in both protocol eras.

The same promises are proven in detail against a small server in tests/core/mcp; here nothing is
small: gate, WASM, mail service, SQLite, and a person in the console.
"""

import contextlib
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from tests.process.test_accepting import NEW, OLD, RELAY, relay_of
from tests.support.server_harness import Attended


async def test_a_client_that_passes_no_variables_on_finds_the_home_that_is_named(
    attended: Attended, tmp_path: Path
) -> None:
    """Most pass a few safe ones only: by AILERON_HOME alone the agent would be in another home, unnoticed."""
    agent = StdioServerParameters(
        command=RELAY, args=["--home", str(attended.home)], env={"HOME": str(tmp_path)}
    )
    async with Client(agent, mode=NEW, read_timeout_seconds=60) as client:
        assert "send_draft" in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("words", [["--home"], ["--home", ""], ["--home", "/a", "/b"], ["/a"]])
def test_a_home_is_named_once_and_by_its_option(words: list[str]) -> None:
    done = subprocess.run([RELAY, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: aileron-mcp [--home DIR ")


@pytest.mark.parametrize("era", [OLD, NEW])
async def test_the_tool_list_changes_when_an_accepted_file_does(
    attended: Attended, era: str
) -> None:
    """A changed file counts no more within a second: its tool goes, and the client is told."""
    list_changed = anyio.Event()

    async def on_message(message: Any) -> None:
        if "list_changed" in str(getattr(message, "method", "")):
            list_changed.set()

    agent = relay_of(attended.home, AILERON_AGENT="test")
    async with Client(
        agent, mode=era, read_timeout_seconds=60, message_handler=on_message
    ) as client:
        before = {tool.name for tool in (await client.list_tools()).tools}
        assert "list_drafts" in before
        async with contextlib.AsyncExitStack() as stack:
            if era == NEW:
                listening = await stack.enter_async_context(client.listen(tools_list_changed=True))
            path = attended.home / "actions" / "list-drafts.md"
            path.write_bytes(path.read_bytes() + b"\nchanged\n")
            with anyio.fail_after(60):
                if era == NEW:
                    async for _ in listening:
                        break
                else:
                    await list_changed.wait()
        after = {tool.name for tool in (await client.list_tools()).tools}
        late = await client.call_tool("list_drafts", {})  # by an agent that has not looked again
    assert before - after == {"list_drafts"}
    assert late.is_error
    assert late.structured_content["error"]["class"] == "conflict"
