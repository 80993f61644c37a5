"""The relay as one file where nothing else of Aileron is: the recipe of docs/containers.md#containers.

The container is bubblewrap's: a root of its own with an interpreter, the file and the session's
socket, no network, no process of ours.
"""

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

from tests.support.server_harness import Console, aileron, aileron_json
from tests.support.variants import needs_bubblewrap

PYTHON = Path("/usr/bin/python3")
SAY: list[dict[str, Any]] = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "in-a-container", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
]


@needs_bubblewrap
def test_a_sessions_socket_is_all_that_a_container_needs(home: Path, tmp_path: Path) -> None:
    """One file, any Python, `AILERON_URL=unix:...`; no token, no home, no network."""
    relay_file = tmp_path / "relay.pyz"
    aileron("mcp-relay", "--zip", str(relay_file), home=home)
    console = Console(home)
    opened = console.session(launched=True, contained=True)
    folder = Path(opened["socket"]).parent
    command = [
        *("bwrap", "--unshare-all", "--clearenv", "--die-with-parent"),
        *("--ro-bind", "/usr", "/usr", "--symlink", "usr/lib", "/lib"),
        *("--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev"),
        *("--ro-bind", str(relay_file), "/relay.pyz"),
        *("--ro-bind", str(folder), "/run/aileron"),
        *("--setenv", "AILERON_URL", "unix:/run/aileron/s.sock"),
        *("--setenv", "HOME", "/"),
        *(str(PYTHON), "-I", "/relay.pyz"),
    ]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as relay:
        assert relay.stdin is not None
        assert relay.stdout is not None
        assert relay.stderr is not None
        names: set[str] = set()
        relay.stdin.write(json.dumps(SAY[0]) + "\n")
        relay.stdin.flush()
        assert json.loads(relay.stdout.readline())["id"] == 1
        for message in SAY[1:]:
            relay.stdin.write(json.dumps(message) + "\n")
        relay.stdin.flush()
        while not names:
            said = json.loads(relay.stdout.readline())
            if said.get("id") == 2:
                names = {tool["name"] for tool in said["result"]["tools"]}
        relay.stdin.close()
        relay.wait(60)
    assert "send_draft" in names
    console.end()


@pytest.mark.parametrize("isolated", [["-I", "-S"], []])
def test_the_one_file_needs_no_package_and_takes_none_from_the_environment(
    home: Path, tmp_path: Path, isolated: list[str]
) -> None:
    """It knows its version and its use where Aileron is not installed; without -I it isolates itself."""
    file = tmp_path / "relay.pyz"
    assert aileron_json("mcp-relay", "--zip", str(file), home=home) == {"file": str(file)}
    planted = tmp_path / "planted"
    planted.mkdir()
    (planted / "json.py").write_text("raise SystemExit('planted')")

    def said(word: str) -> str:
        return subprocess.run(
            [sys.executable, *isolated, str(file), word],
            capture_output=True, text=True, check=True, timeout=20, env={"PYTHONPATH": str(planted)},
        ).stdout  # fmt: skip

    assert said("--version") == f"aileron-mcp {metadata.version('aileron')}\n"
    assert "AILERON_TOKEN_FILE" in said("--help")


def test_a_place_where_the_one_file_cannot_be_written_is_a_sentence(home: Path) -> None:
    done = aileron("mcp-relay", "--zip", str(home / "no" / "relay.pyz"), home=home, code=1)
    assert "relay.pyz" in done.stderr
