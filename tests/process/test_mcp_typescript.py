"""The official TypeScript MCP client at a real console: on stdio through the relay, and at `/mcp`.

Its two packages are `sdk` (protocols up to 2025-11-25, in most agents) and `client` (2026-07-28);
both negotiate as they do by themselves. Four clients: each package on each way.
"""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from examples.mailbox.server import Mailbox
from tests.node.packages import TypeScript
from tests.support.server_harness import Attend, Attended, Console

RELAY = str(Path(sys.executable).with_name("aileron-mcp"))
CLIENTS = ("sdk-stdio", "sdk-http", "client-stdio", "client-http")
EACH = pytest.mark.parametrize("name", CLIENTS)
DRAFTS = ("r-8842190447", "r-8842190312", "r-8842189950", "r-8842189771")


@pytest.fixture
def typescript() -> Iterator[TypeScript]:
    """A Node process for the clients of one test."""
    running = TypeScript()
    yield running
    running.close()


@pytest.fixture(scope="module")
def person(furnished: Path) -> Iterator[Attended]:
    """One console with a person in it, for the tests that leave it as they found it."""
    with tempfile.TemporaryDirectory(prefix="ail-") as folder, Mailbox() as mailbox:
        home = Path(folder) / "home"
        shutil.copytree(furnished, home)
        console = Attended(home, mailbox)
        yield console
        console.close()


def connect(typescript: TypeScript, console: Console, name: str, token: str | None = None) -> Any:
    """Connect client *name*; return what it was told at its start."""
    package, _, way = name.partition("-")
    if way == "http":
        token = token or console.session()["token"]
        where: dict[str, Any] = {"url": f"{console.url}/mcp", "token": token}
    else:
        env = {"PATH": os.environ["PATH"], "AILERON_HOME": str(console.home)}
        where = {"command": RELAY, "env": {**env, "AILERON_AGENT": "test"}}
    return typescript.ask("connect", name, package=package, **where)


def newcomer(console: Attended, known: set[str]) -> str:
    """Return the approval that is not one of *known*, once a person could answer it."""
    assert console.until(lambda: bool(set(console.views) - known))
    (approval_id,) = set(console.views) - known
    assert console.ready(approval_id)
    return approval_id


@EACH
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

    found = typescript.call(name, "get_draft", {"id": DRAFTS[0]})
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
    assert typescript.events_of(name, "error") == []


@EACH
def test_a_held_call_shows_progress_and_ends_as_the_person_decided(
    person: Attended, typescript: TypeScript, name: str
) -> None:
    """Progress while a person thinks; after the key, the result of the run and its three words."""
    connect(typescript, person, name)
    known = set(person.views)
    draft = DRAFTS[CLIENTS.index(name)]
    result = typescript.begin("call", name, tool="send_draft", arguments={"draft_id": draft})
    approval_id = newcomer(person, known)
    typescript.until(lambda: bool(typescript.events_of(name, "progress")), "progress")
    assert person.approve(approval_id)
    sent = result()
    assert not sent["isError"]
    assert sent["structuredContent"]["status"] == "completed"
    assert len(sent["structuredContent"]["digest_words"]) == 3
    assert "person" in typescript.events_of(name, "progress")[0]["message"]
    assert typescript.events_of(name, "error") == []


@EACH
def test_a_cancelled_call_leaves_the_approval_which_can_be_asked_after_and_withdrawn(
    person: Attended, typescript: TypeScript, name: str
) -> None:
    """An abort ends the wait alone; the request is still there, until the agent takes it back."""
    connect(typescript, person, name)
    known = set(person.views)
    arguments = {"draft_id": "r-8842188204"}
    held = typescript.begin("call", name, tool="send_draft", arguments=arguments, **{"as": "it"})
    approval_id = newcomer(person, known)
    typescript.until(lambda: bool(typescript.events_of(name, "progress")), "progress")
    typescript.ask("cancel", name, **{"as": "it"})
    with pytest.raises(AssertionError, match="not wanted"):
        held()
    about = {"approval_id": approval_id}
    pending = typescript.call(name, "check_action_status", about)
    assert not pending["isError"]
    assert pending["structuredContent"]["status"] == "pending_approval"
    withdrawn = typescript.call(name, "withdraw_action", about)
    assert withdrawn["structuredContent"]["status"] == "withdrawn"
    assert person.state(approval_id, "withdrawn")
    after = typescript.call(name, "check_action_status", about)
    assert after["isError"]
    assert after["structuredContent"]["error"]["class"] == "approval_withdrawn"


def test_a_call_that_outlasts_the_hold_is_pending_and_its_end_is_found_by_its_id(
    home: Path, attend: Attend, typescript: TypeScript
) -> None:
    """All four at once: each gets its pending message, then its own person's reason."""
    (home / "config.toml").write_text("[mcp]\nhold_seconds = 1\n")
    console = attend()
    for name in CLIENTS:
        connect(typescript, console, name)
    calls = {
        name: typescript.begin("call", name, tool="send_draft", arguments={"draft_id": draft})
        for name, draft in zip(CLIENTS, DRAFTS, strict=True)
    }
    ids: dict[str, str] = {}
    for name, call in calls.items():
        pending = call()
        facts = pending["structuredContent"]
        assert not pending["isError"]
        assert facts["status"] == "pending_approval"
        assert facts["review_url"].endswith(facts["approval_id"])
        assert "check_action_status" in pending["content"][0]["text"]
        ids[name] = facts["approval_id"]
    ends = {
        name: typescript.begin(
            "call", name, tool="check_action_status",
            arguments={"approval_id": approval_id, "wait_seconds": 30},
        )
        for name, approval_id in ids.items()
    }  # fmt: skip
    for name, approval_id in ids.items():
        assert console.ready(approval_id)
        console.tell(deny=approval_id, reason=f"not for {name}")
        denied = ends[name]()
        assert denied["isError"]
        assert denied["structuredContent"]["status"] == "denied"
        assert f"not for {name}" in denied["content"][0]["text"]


def test_every_client_hears_at_once_that_the_tools_changed(
    home: Path, console: Console, typescript: TypeScript
) -> None:
    """A changed file counts no more: each client is told, lists again, and the tool is gone."""
    for name in CLIENTS:
        connect(typescript, console, name)
        assert "list_drafts" in {tool["name"] for tool in typescript.ask("tools", name)}
    path = home / "actions" / "list-drafts.md"
    path.write_bytes(path.read_bytes() + b"\nchanged\n")

    def server_info(name: str) -> bool:
        lists = [event["tools"] for event in typescript.events_of(name, "tools")]
        return bool(lists) and "list_drafts" not in lists[-1] and "get_draft" in lists[-1]

    typescript.until(lambda: all(map(server_info, CLIENTS)), "every client has the new list")
    for name in CLIENTS:
        gone = typescript.call(name, "list_drafts", {})
        assert gone["isError"], name
        assert typescript.events_of(name, "error") == []


def test_a_restart_of_the_console_is_no_error_but_where_the_client_holds_the_session_itself(
    attended: Attended, typescript: TypeScript
) -> None:
    """The relay hides it in both eras; the new era has nothing to lose; the old one reconnects."""
    tokens = {name: attended.session()["token"] for name in CLIENTS}
    for name in CLIENTS:
        connect(typescript, attended, name, tokens[name])
        assert not typescript.call(name, "list_drafts", {})["isError"]
    attended.end()
    attended.start()
    for name in ("sdk-stdio", "client-stdio", "client-http"):
        assert not typescript.call(name, "list_drafts", {})["isError"], name
    # It has an MCP session of its own, which the new console does not know: it must say so plainly.
    with pytest.raises(AssertionError, match="code 404"):
        typescript.call("sdk-http", "list_drafts", {})
    typescript.ask("close", "sdk-http")
    connect(typescript, attended, "sdk-http", tokens["sdk-http"])
    assert not typescript.call("sdk-http", "list_drafts", {})["isError"]
