"""The official TypeScript MCP client at a real console: on stdio through the relay, and at `/mcp`.

Its two packages are `sdk` (protocols up to 2025-11-25, in most agents) and `client` (2026-07-28);
both negotiate as they do by themselves. Four clients: each package on each way.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.node.packages import TypeScript
from tests.process.test_accepting import RELAY
from tests.support.server_harness import DRAFT, Console

CLIENTS = ("sdk-stdio", "sdk-http", "client-stdio", "client-http")


@pytest.fixture
def typescript() -> Iterator[TypeScript]:
    with contextlib.closing(TypeScript()) as running:
        yield running


def connect(typescript: TypeScript, console: Console, name: str) -> Any:
    package, _, way = name.partition("-")
    if way == "http":
        token = console.session()["token"]
        where: dict[str, Any] = {"url": f"{console.url}/mcp", "token": token}
    else:
        env = {"PATH": os.environ["PATH"], "AILERON_HOME": str(console.home)}
        where = {"command": RELAY, "env": {**env, "AILERON_AGENT": "test"}}
    return typescript.ask("connect", name, package=package, **where)


@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_lists_the_tools_calls_them_and_reads_what_was_wrong(
    shared: Console, typescript: TypeScript, name: str
) -> None:
    """Tools, capabilities and instructions arrive; results and mistakes are as docs/wire.md#mcp has them."""
    server_info = connect(typescript, shared, name)
    assert server_info["server"]["name"] == "aileron"
    assert server_info["capabilities"]["tools"]["listChanged"] is True
    assert "check_action_status" in server_info["instructions"]
    expected = {"client": ("2026-07-28",), "sdk": ("2025-11-25", None)}  # stdio does not say it
    assert server_info["protocol"] in expected[name.partition("-")[0]]
    tools = {tool["name"]: tool for tool in typescript.ask("tools", name)}
    own = {"check_action_status", "withdraw_action"}
    assert set(tools) == {"list_drafts", "get_draft", "send_draft"} | own
    assert tools["get_draft"]["inputSchema"]["required"] == ["id"]

    found = typescript.call(name, "get_draft", {"id": DRAFT})
    assert not found["isError"]
    assert found["structuredContent"]["status"] == "completed"
    assert "Q3 numbers" in found["content"][0]["text"]

    missing = typescript.call(name, "get_draft", {"id": "r-0"})
    wrong = typescript.call(name, "get_draft", {"id": 5, "extra": True})
    unknown = typescript.call(name, "no_such_tool", {})
    for result, class_, status in (
        (missing, "external_api_error", "failed"),
        (wrong, "invalid_arguments", "invalid"),
        (unknown, "not_found", "invalid"),
    ):
        assert result["isError"] is True
        assert result["structuredContent"]["status"] == status
        assert result["structuredContent"]["error"]["class"] == class_
    assert "extra" in wrong["content"][0]["text"]
