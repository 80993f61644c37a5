"""A console that is killed, stopped and started again while an agent is connected through the relay."""

import signal
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mcp.client.stdio import StdioServerParameters

from tests.process.test_mcp_clients import connected, in_thread
from tests.support import mcp_harness
from tests.support.mcp_harness import NEW, TOKEN, ProcessConsole, RawRelay
from tests.support.processes import eventually
from tests.support.terminal import stop_process
from tests.support.variants import variants

Meta = dict[str, Any] | None
HELD = [(NEW, True), (None, False), (NEW, False), (None, True)]


@pytest.fixture
def killable(tmp_path: Path) -> Iterator[ProcessConsole]:
    running = ProcessConsole(tmp_path / "home", hold_seconds=1000)
    yield running
    if running.process.poll() is None:
        running.stop()


def restart(console: ProcessConsole) -> None:
    console.kill()
    console.start()


def status_of(answer: dict[str, Any]) -> str:
    return answer["result"]["structuredContent"]["status"]


def shaken_relay(home: Path, client: str = "a-test", **extra: str) -> RawRelay:
    relay = RawRelay(home, **{"AILERON_TOKEN": TOKEN} | extra)
    relay.handshake(client=client)
    return relay


def stall(relay: RawRelay, console: ProcessConsole, **more: Any) -> None:
    relay.send("tools/call", 1, name="stall", arguments={}, **more)
    eventually(lambda: console.control.state()["runs"], "the run has begun")


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_list_changes_arrive_after_a_restart(killable: ProcessConsole, era: str) -> None:
    command, *words = mcp_harness.RELAY
    environment = mcp_harness.relay_environment(killable.home, AILERON_TOKEN=TOKEN)
    relay = StdioServerParameters(command=command, args=words, env=environment)
    async with connected(relay, era) as agent:
        await agent.tools()
        await in_thread(lambda: restart(killable))
        await agent.until_list_changes(1)  # the relay's own word: what was known may be out of date
        before = agent.list_changes
        killable.control.add_action("after-restart")
        await agent.until_list_changes(before + 1)
        assert "after_restart" in await agent.tools()


@pytest.mark.parametrize("meta", variants([NEW, None]))
def test_a_call_that_may_have_run_is_never_repeated(killable: ProcessConsole, meta: Meta) -> None:
    """The console dies in the middle of a run: the next one knows the call, and says that its outcome is not known."""
    relay = shaken_relay(killable.home)
    more = {"_meta": meta} if meta else {}
    stall(relay, killable, **more)
    restart(killable)
    answer = relay.answer(1)
    assert answer["result"]["isError"] is True
    assert status_of(answer) == "unknown"
    relay.send("tools/call", 2, name="read_inbox", arguments={}, **more)
    assert status_of(relay.answer(2)) == "completed"
    assert [run["action"] for run in killable.control.state()["runs"]] == ["read-inbox"]
    assert relay.end() == (0, "")


def hold_call(relay: RawRelay, console: ProcessConsole, **params: Any) -> None:
    relay.send("tools/call", 1, name="send_draft", **{"arguments": {}} | params)
    eventually(lambda: console.control.state()["polls"] == 1, "the call is held")


@pytest.mark.parametrize(("meta", "allowed"), variants(HELD, 2))
def test_a_call_that_is_held_while_the_console_is_killed_gets_its_outcome(
    killable: ProcessConsole, meta: Meta, allowed: bool
) -> None:
    relay = shaken_relay(killable.home, "claude-code")
    info = {"io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "1"}}
    mine = {**meta, **info} if meta else {}
    hold_call(relay, killable, _meta={"progressToken": "p", **mine})
    (asked,) = killable.control.state()["approvals"]
    for _ in range(2):
        restart(killable)
        eventually(lambda: killable.control.state()["polls"] == 1, "it is held again")
    (killable.control.approve if allowed else lambda: killable.control.deny("no"))()
    progress: list[float] = []
    while (message := relay.read()).get("id") != 1:
        assert message["method"] != "notifications/message", "that is for the relay alone"
        if message["method"] == "notifications/progress":
            progress.append(message["params"]["progress"])
    assert status_of(message) == ("completed" if allowed else "denied")
    assert len(progress) >= 3
    assert all(before < after for before, after in pairwise(progress))
    status = {"name": "check_action_status", "arguments": {"approval_id": asked["approval_id"]}}
    relay.send("tools/call", 2, **status, **({"_meta": meta} if meta else {}))
    assert status_of(relay.answer(2)) == status_of(message)
    assert killable.control.state()["approvals"] == [], "no other was asked for"
    assert relay.end() == (0, "")


def test_a_call_with_its_end_lost_is_answered_by_the_next_console(killable: ProcessConsole) -> None:
    """It had completed just before the kill."""
    relay = shaken_relay(killable.home, "claude-code")
    hold_call(relay, killable)
    stop_process(relay.process.pid)  # what is said to it now stays unread
    killable.control.approve()
    eventually(lambda: killable.control.state()["approvals"][0]["status"] == "completed")
    restart(killable)
    relay.process.send_signal(signal.SIGCONT)
    assert status_of(relay.answer(1)) == "completed"
    assert killable.control.state()["runs"] == []
    assert relay.end() == (0, "")


def test_a_call_is_not_made_again_in_another_session(killable: ProcessConsole) -> None:
    """Its key is of the session before: in another one it would run a second time."""
    relay = RawRelay(killable.home, AILERON_AGENT="self")
    relay.handshake(client="claude-code")
    stall(relay, killable)
    stop_process(relay.process.pid)
    restart(killable)
    killable.control.forget()
    relay.process.send_signal(signal.SIGCONT)
    answer = relay.answer(1)
    assert status_of(answer) == "unknown"
    assert "Do not repeat it" in answer["result"]["content"][0]["text"]
    assert killable.control.state()["runs"] == []
    relay.end()


def test_a_held_call_of_a_console_that_is_gone_names_its_approval(killable: ProcessConsole) -> None:
    """The agent has what it needs to ask after it, once there is a console."""
    relay = shaken_relay(killable.home, "claude-code", AILERON_WAIT_SECONDS="1")
    hold_call(relay, killable)
    (asked,) = killable.control.state()["approvals"]
    killable.kill()
    answer = relay.answer(1)["result"]
    assert asked["approval_id"] in answer["content"][0]["text"]
    assert answer["structuredContent"]["error"]["details"] == {"approval_id": asked["approval_id"]}
    assert relay.outcome()[0] == 69


@pytest.mark.parametrize("how", ["a kill", "another call"])
def test_a_call_that_no_console_took_is_safe_to_repeat(killable: ProcessConsole, how: str) -> None:
    """And none that is on its way, though its own connection still stands where another call ends the relay."""
    relay = shaken_relay(killable.home, AILERON_WAIT_SECONDS="1")
    stall(relay, killable)
    if how == "a kill":
        killable.kill()
    else:
        for name in ("run/console.sock", "daemon.json"):  # nobody finds the console any more
            (killable.home / name).rename(killable.home / f"{name}.away")
    relay.send("tools/call", 2, name="read_inbox", arguments={})
    answers = {answer["id"]: answer for answer in (relay.answer(1, 2), relay.answer(1, 2))}
    assert "may have run. Do not repeat it" in answers[1]["result"]["content"][0]["text"]
    assert "safe to repeat" in answers[2]["error"]["message"]
    assert relay.outcome()[0] == 69


@pytest.mark.parametrize("meta", variants([NEW, None]))
def test_a_stopped_consoles_held_call_is_pending(killable: ProcessConsole, meta: Meta) -> None:
    relay = shaken_relay(killable.home)
    more = {"_meta": meta} if meta else {}
    hold_call(relay, killable, **more)
    killable.stop()
    assert status_of(relay.answer(1)) == "pending_approval"
    killable.start()
    relay.send("ping" if meta is None else "tools/list", 2, **more)
    assert "result" in relay.answer(2)
    assert relay.end() == (0, "")


@pytest.mark.parametrize("asking", [True, False])
def test_a_console_that_stays_away_ends_the_relay(killable: ProcessConsole, asking: bool) -> None:
    relay = shaken_relay(killable.home, AILERON_WAIT_SECONDS="1")
    relay.send("tools/list", 1)
    relay.answer(1)
    if asking:
        # Asked of a console that stands still: once it is gone, the relay ends within a second.
        stop_process(killable.process.pid)
        relay.send("tools/list", 2)
    killable.kill()
    if asking:
        assert "aileron console" in relay.answer(2)["error"]["message"]
    code, said = relay.outcome()
    assert code == 69
    assert said.count("\n") == 1
    assert "Traceback" not in said
