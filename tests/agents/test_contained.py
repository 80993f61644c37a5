"""The sandbox as a hostile agent finds it: one promise a test."""

import ctypes
import errno
import json
import secrets
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agents_bench import DRAFT, Bench, ScriptedLlm, found_by, silent, workbench
from tests.support.processes import running_with
from tests.support.variants import variants

PROBE = Path(__file__).parent / "probe.py"


def _make_project(bench: Bench) -> None:
    subprocess.run(["git", "init", "-q", str(bench.project)], check=True)
    bench.write(".codex/auth.json", '{"token": "old"}')
    bench.write(".ssh/id_ed25519", "a key")


def _probe(bench: Bench, given: dict[str, Any], *options: str) -> tuple[dict[str, Any], str]:
    hostile = {
        "CODEX_API_KEY": json.dumps(given),
        "TMUX": "/tmp/tmux-0/default,1,0",
        "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/0/bus",
        "SSH_AUTH_SOCK": given["pathname"],
        "AILERON_VAULT_PASSPHRASE": "open sesame",
        "DISPLAY": ":0",
        "WAYLAND_DISPLAY": "wayland-0",
    }
    program = f"#!/usr/bin/env python3\n{PROBE.read_text()}"
    output = bench.launch(program, options=options, **hostile).output
    return found_by("PROBE", output), output


@pytest.fixture(scope="module", params=variants(("on", "offline", "hosts"), usual=2))
def found(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What the probe could do, once for each kind of sandbox, beside a victim that waits for a person."""
    folder = Path(tempfile.mkdtemp(prefix="ail-"))
    abstract, key = f"aileron-test-{secrets.token_hex(8)}", secrets.token_hex(8)
    ctypes.CDLL(None).syscall(248, b"user", key.encode(), b"secret", 6, -3)
    listeners = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.socket()]
    listeners[0].bind("\0" + abstract)
    listeners[1].bind(str(folder / "agent.sock"))
    listeners[2].bind(("127.0.0.1", 0))
    for listener in listeners:
        listener.listen()
    with workbench(folder, ScriptedLlm(silent)) as bench:
        _make_project(bench)
        victim = bench.console.session()
        asked = bench.console.run("send-draft", {"draft_id": DRAFT}, victim["token"]).json
        given = {
            "abstract": abstract,
            "pathname": str(folder / "agent.sock"),
            "console": str(bench.console.home / "run" / "console.sock"),
            "home": str(bench.console.home),
            "pid": bench.console.process.pid,
            "port": listeners[2].getsockname()[1],
            "approval": asked["approval_id"],
            "session": victim["session_id"],
            "token": victim["token"],
            "gateway": victim["gateway_token"],
            "key": key,
        }
        before = bench.fingerprint()
        probed, output = _probe(bench, given, f"--sandbox={request.param}")
        probed["kind"] = request.param
        probed["output"] = output
        probed["left"] = running_with(f"start.py\0{bench.console.port}\0")
        probed["sent"] = bench.mailbox.state()["sent"]
        probed["changed"] = {
            name
            for name in {*before, *bench.fingerprint()}
            if before.get(name) != bench.fingerprint().get(name)
        }
        probed["victim lives"] = bench.console.get(
            f"/v1/action-approvals/{asked['approval_id']}/result", token=victim["token"]
        ).status
        yield probed
    for listener in listeners:
        listener.close()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    ("attempt", "outcome"),
    [
        ("own socket: actions", 200),
        ("own socket: health", 200),
        ("own socket: status of the console", 403),
        ("own socket: open a session", 403),
        ("own socket: decide", 403),
        ("own socket: accept a project's settings", 403),
        ("own socket: read the audit", 403),
        ("own socket: another session's result", 404),
        ("own socket: another session's token", 404),
        ("own socket: end another session", 404),
        ("own socket: model through the gateway", 200),
        ("own socket: another session's gateway", 401),
        ("own socket: a gateway without a token", 401),
        ("model through the gateway", 200),
        ("abstract socket", "PermissionError 1"),
        ("socket under /tmp", "FileNotFoundError 2"),
        ("console's socket", "FileNotFoundError 2"),
        ("signal to the console", "ProcessLookupError 3"),
        ("console in /proc", False),
        ("aileron's home", False),
        ("person's ssh key", False),
        ("session bus", False),
        ("docker", False),
        ("environment", []),
        ("keyring", False),
        ("refused calls", [errno.ENOSYS]),
        ("lists of keys", "PermissionError 13"),
        ("lists of keys' users", "PermissionError 13"),
        ("write a setting of the kernel", "OSError 30"),
        ("open what is the whole machine's", []),
        ("/sys", False),
        ("capabilities", "0000000000000000"),
        ("no new privileges", "1"),
        ("write .git/config", "written"),  # a folder of its own: see what changed, below
        ("write .git/hooks/pre-commit", "written"),
        ("move .git away", "OSError 16"),
        ("write outside", "OSError 30"),
        ("write in the project", 4),
        ("pathname sockets", ["/run/aileron/session/s.sock"]),
    ],
)
def test_the_sandbox_holds(found: dict[str, Any], attempt: str, outcome: object) -> None:
    """A contained session's socket opens nothing but what an agent may ask for."""
    expected = outcome
    if found["kind"] != "on" and attempt == "abstract socket":
        assert str(found[attempt]).endswith(("Error 1", "Error 111"))
        return
    assert found[attempt] == expected


@pytest.mark.parametrize("attempt", ["new user namespace", "mount"])
def test_no_new_namespace_and_no_mount(found: dict[str, Any], attempt: str) -> None:
    """`--disable-userns`, no capability: the agent builds no sandbox of its own to hide in."""
    assert found[attempt] != 0


def test_offline_has_no_common_network(found: dict[str, Any]) -> None:
    """Offline, the only way out is the session's socket; else loopback is shared, and said so."""
    reached = found["host's loopback"]
    if found["kind"] != "on":
        assert reached == "ConnectionRefusedError 111"
        assert found["somewhere else"] == "OSError 101"
    else:
        assert reached == "connected"


def test_the_consoles_port_opens_what_the_session_may_and_nothing_else(
    found: dict[str, Any],
) -> None:
    """Offline it leads to the session's own socket; else to the console, as for anybody."""
    offline = found["kind"] != "on"
    assert found["console's port: decide"] == (403 if offline else 401)
    # Over the port alone a gateway token is all that is asked for; the agent knows its own only.
    assert found["console's port: another session's gateway"] == (401 if offline else 200)


def test_what_carries_its_bytes_ends_with_the_sandbox(found: dict[str, Any]) -> None:
    assert found["left"] == []


def test_nothing_of_it_outlives_the_session(found: dict[str, Any]) -> None:
    """Hooks and settings that it wrote are gone or moved aside and told; its work stays."""
    assert found["changed"] == {"project/work.txt"}
    assert ".mcp.json is new. It was moved to" in found["output"]
    assert ".envrc is new. It was moved to" in found["output"]
