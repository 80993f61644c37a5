"""MCP clients at a real console: the official TypeScript and Python ones, and the relay where nothing else of Aileron is.

The TypeScript packages are `sdk` (protocols up to 2025-11-25, in most agents) and `client` (2026-07-28);
both negotiate as they do by themselves. Four clients: each package on each way.
Once a person accepts files, a client sees exactly that, and at once.
"""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters

from aileron_core.home.owner import lock_owner
from examples.mailbox.server import Mailbox
from tests.node.packages import TypeScript
from tests.process.tmux import Tmux, shell
from tests.support.making import program
from tests.support.meeting import ROOT as BOX
from tests.support.processes import eventually
from tests.support.server_harness import CLI, DRAFT, Console, Serve, aileron, aileron_json
from tests.support.variants import needs_bubblewrap, variants

OLD, NEW = "legacy", "2026-07-28"
RELAY = str(Path(sys.executable).with_name("aileron-mcp"))
CLIENTS = ("sdk-stdio", "sdk-http", "client-stdio", "client-http")
OWN = {"check_action_status", "withdraw_action"}


def relay_of(home: Path) -> StdioServerParameters:
    env = {"PATH": os.environ["PATH"], "AILERON_HOME": str(home)}
    return StdioServerParameters(command=RELAY, env=env)


@pytest.fixture
def typescript() -> Iterator[TypeScript]:
    with contextlib.closing(TypeScript()) as running:
        yield running


def connect(typescript: TypeScript, console: Console, name: str) -> Any:
    package, _, way = name.partition("-")
    if way == "http":
        where: dict[str, Any] = {"url": f"{console.url}/mcp", "token": console.session()["token"]}
    else:
        env = {"PATH": os.environ["PATH"], "AILERON_HOME": str(console.home)}
        where = {"command": RELAY, "env": {**env, "AILERON_AGENT": "test"}}
    return typescript.ask("connect", name, package=package, **where)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_lists_and_calls_tools(shared: Console, typescript: TypeScript, name: str) -> None:
    server_info = connect(typescript, shared, name)
    assert server_info["server"]["name"] == "aileron"
    assert server_info["capabilities"]["tools"]["listChanged"] is True
    assert "check_action_status" in server_info["instructions"]
    expected = {"client": ("2026-07-28",), "sdk": ("2025-11-25", None)}  # stdio does not say it
    assert server_info["protocol"] in expected[name.partition("-")[0]]
    tools = {tool["name"]: tool for tool in typescript.ask("tools", name)}
    assert set(tools) == {"list_drafts", "get_draft", "send_draft"} | OWN
    assert tools["get_draft"]["inputSchema"]["required"] == ["id"]

    found = typescript.call(name, "get_draft", {"id": DRAFT})
    assert not found["isError"]
    assert found["structuredContent"]["status"] == "completed"
    assert "Q3 numbers" in found["content"][0]["text"]

    for tool, arguments, class_, status in (
        ("get_draft", {"id": "r-0"}, "external_api_error", "failed"),
        ("get_draft", {"id": 5, "extra": True}, "invalid_arguments", "invalid"),
        ("no_such_tool", {}, "not_found", "invalid"),
    ):
        result = typescript.call(name, tool, arguments)
        assert result["isError"] is True
        assert result["structuredContent"]["status"] == status
        assert result["structuredContent"]["error"]["class"] == class_
        assert "extra" not in arguments or "extra" in result["content"][0]["text"]


async def test_a_relay_finds_the_home_that_is_named(shared: Console, tmp_path: Path) -> None:
    """Most pass a few safe ones only: by AILERON_HOME alone the agent would be in another home, unnoticed."""
    words = ["--home", str(shared.home)]
    agent = StdioServerParameters(command=RELAY, args=words, env={"HOME": str(tmp_path)})
    async with Client(agent, mode=NEW, read_timeout_seconds=60) as client:
        assert "send_draft" in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize("words", [["--home"], ["--home", ""], ["--home", "/a", "/b"], ["/a"]])
def test_a_home_is_named_once_and_by_its_option(words: list[str]) -> None:
    done = subprocess.run([RELAY, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("Usage: aileron-mcp [--home DIR ")


@pytest.mark.parametrize("era", variants([NEW, OLD]))
async def test_agents_get_the_tools_that_the_settings_name_and_call_no_other(
    home: Path, serve: Serve, mailbox: Mailbox, era: str
) -> None:
    (home / "config.toml").write_text('[mcp]\ntools = ["list-*", "send_draft", "none-*"]\n')
    serve(mailbox)
    async with Client(relay_of(home), mode=era, read_timeout_seconds=60) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == {"list_drafts", "send_draft"} | OWN
        refused = await client.call_tool("get_draft", {"id": DRAFT})
        assert refused.is_error
        assert refused.structured_content["error"]["class"] == "not_found"
        assert not (await client.call_tool("list_drafts", {})).is_error
    taken = sum(len(each.model_dump_json(by_alias=True, exclude_none=True)) + 1 for each in tools)
    action_list = aileron_json("action", "list", home=home)
    assert action_list["tools"] == {"count": 4, "bytes": taken}
    offered = {each["name"]: each["offered"] for each in action_list["items"]}
    assert offered == {"get-draft": False, "list-drafts": True, "send-draft": True}
    text = aileron("action", "list", home=home).stdout
    assert "contains none-*, which matches no action." in text
    get_draft = next(line for line in text.splitlines() if "get-draft" in line)
    assert get_draft.endswith("no tool")
    assert text.splitlines()[-1] == f"Agents get 4 tools ({taken / 1000:,.1f} kB)."


@needs_bubblewrap
def test_a_sessions_socket_is_all_that_a_container_needs(home: Path, tmp_path: Path) -> None:
    """The recipe of docs/containers.md#containers: one file, any Python; no token, no home, no network.

    The container is bubblewrap's: a root of its own, no process of ours.
    """
    relay_file = tmp_path / "relay.pyz"
    aileron("mcp-relay", "--zip", str(relay_file), home=home)
    console = Console(home)
    opened = console.session(launched=True, contained=True)
    folder = Path(opened["socket"]).parent
    command = [
        *(*BOX, "--unshare-all", "--clearenv", "--setenv", "HOME", "/"),
        *("--ro-bind", str(relay_file), "/relay.pyz", "--ro-bind", str(folder), "/run/aileron"),
        *("--setenv", "AILERON_URL", "unix:/run/aileron/s.sock"),
        *("/usr/bin/python3", "-I", "/relay.pyz"),
    ]
    info = {"name": "in-a-container", "version": "1"}
    told = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    asked: list[tuple[int | None, str, dict[str, Any]]] = [(1, "initialize", told)]
    asked += [(None, "notifications/initialized", {}), (2, "tools/list", {})]
    with subprocess.Popen(command, stdin=-1, stdout=-1, text=True) as relay:
        assert relay.stdin is not None
        assert relay.stdout is not None
        said: Any = None
        for id_, method, params in asked:
            message = {"jsonrpc": "2.0", "method": method, "params": params}
            relay.stdin.write(json.dumps(message | ({"id": id_} if id_ else {})) + "\n")
            relay.stdin.flush()
            while id_ and (said := json.loads(relay.stdout.readline())).get("id") != id_:
                pass
        relay.stdin.close()
        relay.wait(60)
    assert "send_draft" in {tool["name"] for tool in said["result"]["tools"]}
    console.end()


@pytest.mark.parametrize("isolated", [["-I", "-S"], []])
def test_the_one_file_needs_no_package(home: Path, tmp_path: Path, isolated: list[str]) -> None:
    """It knows its version and its use where Aileron is not installed; without -I it isolates itself."""
    file = tmp_path / "relay.pyz"
    assert aileron_json("mcp-relay", "--zip", str(file), home=home) == {"file": str(file)}
    planted = program(tmp_path / "planted" / "json.py", "raise SystemExit('planted')").parent

    def said(word: str) -> str:
        command, env = [sys.executable, *isolated, str(file), word], {"PYTHONPATH": str(planted)}
        return subprocess.check_output(command, text=True, timeout=20, env=env)

    assert said("--version") == f"aileron-mcp {metadata.version('aileron')}\n"
    assert "AILERON_TOKEN_FILE" in said("--help")
    done = aileron("mcp-relay", "--zip", str(home / "no" / "relay.pyz"), home=home, code=1)
    assert "relay.pyz" in done.stderr


NOTICED = 120.0
"""Seconds; the promise is one, and the rest is for a machine that does many things at once."""


@pytest.fixture
def consoles(home: Path, mailbox: Mailbox) -> Iterator[Callable[[], Tmux]]:
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


@contextlib.asynccontextmanager
async def connected(server: StdioServerParameters, era: str) -> AsyncIterator[Agent]:
    agent = Agent()
    options: Any = {"mode": era, "read_timeout_seconds": 60}
    if era == OLD:
        options["message_handler"] = agent.on_message
    async with Client(server, **options) as agent.client, anyio.create_task_group() as group:
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


def accept_at_terminal(console: Tmux, name: str) -> None:
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


@pytest.mark.real
@pytest.mark.parametrize("era", variants([NEW, OLD]))
async def test_agents_see_only_what_was_accepted(home: Path, consoles: Any, era: str) -> None:
    console = await in_thread(consoles)
    await in_thread(lambda: console.until("not seen yet"))
    file = home / "actions" / "get-draft.md"
    async with connected(relay_of(home), era) as agent:
        assert await agent.tools() == set()
        await in_thread(
            lambda: accept_at_terminal(console, "connector local://aileron/mail-drafts@0.1.0")
        )
        assert agent.list_changes == 0  # nothing that it could see changed
        assert await agent.tools() == set()
        await in_thread(lambda: accept_at_terminal(console, "action get-draft"))
        await agent.until_list_changes(1)
        assert await agent.tools() == {"get_draft"}
        assert not (await agent.client.call_tool("get_draft", {"id": DRAFT})).is_error

        await in_thread(lambda: rewrite_with_its_old_time(file))
        await in_thread(lambda: console.until("changed just now"))
        assert not (await agent.client.call_tool("get_draft", {"id": DRAFT})).is_error
        assert (agent.list_changes, await agent.tools()) == (1, {"get_draft"})

    console = await in_thread(consoles)  # over a restart too
    await in_thread(lambda: console.until("action, changed"))
    async with connected(relay_of(home), era) as agent:
        assert await agent.tools() == {"get_draft"}
        await in_thread(file.unlink)
        await agent.until_list_changes(1)
        assert await agent.tools() == set()
