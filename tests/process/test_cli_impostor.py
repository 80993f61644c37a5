"""The command line against listeners that are not the console: none of them is told anything."""

import fcntl
import json
import os
from pathlib import Path

import pytest

from tests.support.impostors import listening, locked_by_another_process
from tests.support.mcp_harness import listen_tcp, listen_unix
from tests.support.server_harness import Console, aileron, aileron_json

COMMANDS = [
    ("status",),
    ("action", "run", "get-draft", "--arg", "id=the-secret-argument"),
    ("open", "approval", "act-20260101T000000-0123456789abcdef"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_socket_of_another_process_than_the_owner_gets_not_one_byte(
    home: Path, command: tuple[str, ...]
) -> None:
    """It is connected to, the kernel says whose it is, and nothing is sent. Exit 69."""
    with (
        locked_by_another_process(home),
        listening(listen_unix(home / "run" / "console.sock")) as listener,
    ):
        done = aileron(*command, home=home, code=69)
    assert listener.heard == [b""]
    assert "does not own" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_a_socket_in_a_home_that_nobody_owns_is_not_connected_to(
    home: Path, command: tuple[str, ...]
) -> None:
    """Nor in one whose lock is only shared: anybody who may read can hold that. Exit 69."""
    with listening(listen_unix(home / "run" / "console.sock")) as listener:
        done = aileron(*command, home=home, code=69)
        handle = os.open(home, os.O_RDONLY)
        fcntl.flock(handle, fcntl.LOCK_SH)
        aileron(*command, home=home, code=69)
        os.close(handle)
    assert listener.heard == []
    assert "No console is running on" in done.stderr


@pytest.mark.parametrize("command", COMMANDS)
def test_who_listens_on_the_old_port_is_never_asked(
    console: Console, command: tuple[str, ...]
) -> None:
    """The console stopped; its port, its name and its address file are in other hands."""
    port = console.port
    console.end()
    content = {
        "version": 1,
        "url": f"http://127.0.0.1:{port}",
        "socket": str(console.home.parent / "elsewhere.sock"),
        "pid": os.getpid(),
        "started_at": "2026-01-01T00:00:00.000Z",
    }
    (console.home / "daemon.json").write_text(json.dumps(content))
    with (
        listening(listen_tcp(port)) as on_port,
        listening(listen_unix(console.home.parent / "elsewhere.sock")) as on_socket,
    ):
        aileron(*command, home=console.home, code=69)
    assert on_port.heard == on_socket.heard == []


def test_an_edited_daemon_json_leads_nobody_astray(console: Console) -> None:
    """The running console is found by its lock; what the file says is not asked."""
    with (
        listening(listen_tcp()) as on_port,
        listening(listen_unix(console.home.parent / "elsewhere.sock")) as on_socket,
    ):
        content = json.loads((console.home / "daemon.json").read_text())
        content["url"] = f"http://127.0.0.1:{on_port.port}"
        content["socket"] = str(console.home.parent / "elsewhere.sock")
        content["pid"] = os.getpid()
        (console.home / "daemon.json").write_text(json.dumps(content))
        assert aileron_json("status", home=console.home)["url"] == console.url
        assert aileron_json("action", "run", "list-drafts", home=console.home)["status"]
        opened = aileron_json(
            "open", "approval", "act-20260101T000000-0123456789abcdef", home=console.home,
            env={"DISPLAY": ""},
        )  # fmt: skip
    assert opened["url"].startswith(console.url + "/review/")
    assert on_port.heard == on_socket.heard == []
