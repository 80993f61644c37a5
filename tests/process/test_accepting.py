"""A person accepts files at a real console; a real agent sees exactly that, and at once."""

import contextlib
import os
import re
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from aileron_core.home.owner import lock_owner
from examples.mailbox.server import Mailbox
from tests.process.tmux import Tmux, shell
from tests.support.server_harness import CLI, DRAFT, eventually
from tests.support.variants import variants

OLD, NEW = "legacy", "2026-07-28"
RELAY = str(Path(sys.executable).with_name("aileron-mcp"))
NOTICED = 60.0
"""Seconds; the promise is one, and the rest is for a machine that does many things at once."""


Consoles = Callable[[], Tmux]


@pytest.fixture
def consoles(home: Path, mailbox: Mailbox) -> Iterator[Consoles]:
    running: list[Tmux] = []
    route = f"gmail.googleapis.com:443=127.0.0.1:{mailbox.port}"
    command = shell(*CLI, "console", "--home", str(home), "--route", route)
    foreign = ("COLUMNS", "LINES", "NO_COLOR", "TMUX")
    environment = {name: text for name, text in os.environ.items() if name not in foreign}

    def start() -> Tmux:
        for earlier in running:
            earlier.close()  # it hangs up on the console, which then still has to end
        eventually(lambda: lock_owner(home) is None, "nobody holds the home")
        running.append(Tmux(home.parent / f"t{len(running)}", command, environment, home.parent))
        return running[-1]

    yield start
    for each in running:
        each.close()


class Agent:
    """One MCP client on the relay, and how often it was told that its tools changed."""

    def __init__(self) -> None:
        self.list_changes = 0
        self.client: Client

    async def on_message(self, message: Any) -> None:
        if "list_changed" in str(getattr(message, "method", "")):
            self.list_changes += 1

    async def tools(self) -> set[str]:
        listed = await self.client.list_tools()
        return {tool.name for tool in listed.tools} - {"check_action_status", "withdraw_action"}

    async def until_list_changes(self, times: int) -> None:
        with anyio.fail_after(NOTICED):
            while self.list_changes < times:
                await anyio.sleep(0.01)


def relay_of(home: Path) -> StdioServerParameters:
    env = {"PATH": os.environ["PATH"], "AILERON_HOME": str(home)}
    return StdioServerParameters(command=RELAY, env=env)


@contextlib.asynccontextmanager
async def connected(home: Path, era: str) -> AsyncIterator[Agent]:
    agent = Agent()
    options: Any = {"mode": era, "read_timeout_seconds": 60}
    if era == OLD:
        options["message_handler"] = agent.on_message
    client = Client(relay_of(home), **options)
    async with client as agent.client, anyio.create_task_group() as group:
        if era == NEW:
            listening = anyio.Event()

            async def listen() -> None:
                async with agent.client.listen(tools_list_changed=True) as events:
                    listening.set()
                    async for _ in events:
                        agent.list_changes += 1

            group.start_soon(listen)
            await listening.wait()
        yield agent
        group.cancel_scope.cancel()


async def in_thread(work: Callable[[], Any]) -> Any:
    return await anyio.to_thread.run_sync(work)


def accept(console: Tmux, name: str) -> None:
    what = name.partition(" ")[2]
    console.until(f"Name        ┃ {what}")
    console.read_on(re.compile(rf"^ ✓ All seen\. t accepts the {re.escape(name)}", re.MULTILINE))
    console.press_at_rest("t", f"Accepted: {what}.")


def rewrite_with_its_old_time(path: Path) -> None:
    status, data = path.stat(), path.read_bytes()
    with path.open("r+b") as file:
        file.write(data.replace(b"Nothing in the mailbox", b"Something in a mailbox"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert (path.stat().st_size, path.stat().st_mtime_ns) == (status.st_size, status.st_mtime_ns)


@pytest.mark.parametrize("era", variants([NEW, OLD]))
async def test_agents_see_only_what_was_accepted(home: Path, consoles: Consoles, era: str) -> None:
    console = await in_thread(consoles)
    await in_thread(lambda: console.until("not seen yet"))
    file = home / "actions" / "get-draft.md"
    async with connected(home, era) as agent:
        assert await agent.tools() == set()
        await in_thread(lambda: accept(console, "connector local://aileron/mail-drafts@0.1.0"))
        assert agent.list_changes == 0  # nothing that it could see changed
        assert await agent.tools() == set()
        await in_thread(lambda: accept(console, "action get-draft"))
        await agent.until_list_changes(1)
        assert await agent.tools() == {"get_draft"}
        assert not (await agent.client.call_tool("get_draft", {"id": DRAFT})).is_error

        await in_thread(lambda: rewrite_with_its_old_time(file))
        await in_thread(lambda: console.until("changed just now"))
        assert not (await agent.client.call_tool("get_draft", {"id": DRAFT})).is_error
        assert (agent.list_changes, await agent.tools()) == (1, {"get_draft"})

    console = await in_thread(consoles)  # over a restart too
    await in_thread(lambda: console.until("action, changed"))
    async with connected(home, era) as agent:
        assert await agent.tools() == {"get_draft"}
        await in_thread(file.unlink)
        await agent.until_list_changes(1)
        assert await agent.tools() == set()
