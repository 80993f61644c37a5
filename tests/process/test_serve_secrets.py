"""Where tokens do not lie, and what another program of the same user cannot read."""

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from aileron_core.ids import token_hash
from tests.support.server_harness import DRAFT, ROOT, Console, aileron

NOBODY = 65534


def command_lines() -> bytes:
    found = b""
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            with contextlib.suppress(OSError):
                found += (process / "cmdline").read_bytes()
    return found


def test_a_token_is_returned_once_and_kept_nowhere(console: Console) -> None:
    """Neither in the home (database, log, address file), nor in a command line: hashes alone."""
    opened = console.session()
    token, gateway = opened["token"], opened["gateway_token"]
    console.run("list-drafts", {}, token)
    console.run("send-draft", {"draft_id": DRAFT}, token)
    console.get(f"/v1/actions?{token}", token=token)
    console.get("/v1/actions", headers={"Authorization": f"Basic {token}"})
    console.request("POST", "/v1/actions/x/run", raw=token.encode(), token=token)
    console.get("/v1/actions", token=token, headers={"Origin": f"https://{token}.example"})
    with console.hold(opened["session_id"], token=token):
        lines = command_lines()
        assert b"aileron_tui.cli" in lines
        held = [path for path in console.home.rglob("*") if path.is_file()]
        assert {"aileron.db", "aileron.db-wal", "daemon.json", "aileron.log"} <= {
            path.name for path in held
        }
        for secret in (token, gateway):
            assert secret.encode() not in lines
            for path in held:
                assert secret.encode() not in path.read_bytes(), path
    with contextlib.closing(sqlite3.connect(console.home / "aileron.db")) as database:
        kept = database.execute("SELECT token_hash, gateway_hash FROM sessions").fetchall()
    assert (token_hash(token), token_hash(gateway)) in kept


def test_arguments_and_previews_are_not_in_the_log(console: Console) -> None:
    """Nor what a service said."""
    token = console.session()["token"]
    marker = "zebra-crossing-41"
    console.run("list-drafts", {"query": marker}, token)
    console.run("get-draft", {"id": marker}, token)
    console.run("send-draft", {"draft_id": marker}, token)
    console.run("send-draft", {marker: marker}, token)
    console.end()
    assert marker not in (console.home / "log" / "aileron.log").read_text()


def test_the_command_line_hands_no_token_to_any_process(console: Console) -> None:
    """`aileron action run` opens its own session; nothing of it is in a file afterwards."""
    aileron("action", "run", "list-drafts", home=console.home)
    sessions = [each for each in console.records() if each["event"] == "session.opened"]
    assert len(sessions) == 1
    ended = [each for each in console.records() if each["event"] == "session.ended"]
    assert len(ended) == 1, "and it is ended with the command"


def ordinary_python() -> list[str] | None:
    """Return a Python of this version that an ordinary user can start, with our packages on its path."""
    places = [str(ROOT), *(path for path in sys.path if path.endswith("site-packages"))]
    prelude = f"import sys; sys.path[:0] = {places!r}; "
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for candidate in (sys.executable, f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        command = [candidate, "-I", "-c", prelude + "import aileron_tui.cli, wasmtime"]
        with contextlib.suppress(OSError):
            done = subprocess.run(
                command, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, cwd="/",
                check=False, timeout=60,
            )  # fmt: skip
            if done.returncode == 0:
                return [candidate, "-I", "-c", prelude]
    return None


_SPY = """
import json, os, sys
pid, found = sys.argv[1], {}
for name in ("environ", "mem", "maps", "auxv", "io", "stack", "fd", "cwd", "exe", "root"):
    path = f"/proc/{pid}/{name}"
    try:
        if name in ("cwd", "exe", "root"):
            os.readlink(path)
        elif name == "fd":
            os.listdir(path)
        else:
            with open(path, "rb") as opened:
                if name == "mem":
                    opened.seek(4096 * 1024)
                else:
                    opened.read(64)
        found[name] = "open"
    except OSError as error:
        found[name] = type(error).__name__
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
found["ptrace"] = "open" if libc.ptrace(0x4206, int(pid), 0, 0) == 0 else "refused"
print(json.dumps(found))
"""


def spied(python: list[str], pid: int) -> dict[str, Any]:
    command = [*python[:3], python[3] + f"exec({_SPY!r})", str(pid)]
    done = subprocess.run(
        command, user=NOBODY, group=NOBODY, extra_groups=[], capture_output=True, text=True,
        cwd="/", check=True, timeout=60,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_memory_and_environment_are_closed_to_the_same_user(home: Path) -> None:
    """An ordinary user's `aileron serve` against a program of that user: /proc and ptrace are shut."""
    if sys.platform != "linux" or os.getuid() != 0:
        pytest.skip("dropping to an ordinary user needs Linux and root")
    if (python := ordinary_python()) is None:
        pytest.skip("no Python here that an ordinary user can start")
    # Deep enough that the socket goes through /proc/self/fd, which a closed process must still have.
    deep = home.parent / ("d" * 100)
    deep.mkdir()
    home.rename(deep / "home")
    for path in (home.parent, *home.parent.rglob("*")):
        os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    drop: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": [], "cwd": "/"}
    main = "import sys; sys.argv[0] = 'aileron'; from aileron_tui.cli import main; main()"
    console = Console(
        deep / "home", None, command=[*python[:3], python[3] + main, "serve"],
        env={"HOME": str(home.parent), "AILERON_TEST_SECRET": "open sesame"}, **drop,
    )  # fmt: skip
    sleeper = subprocess.Popen(
        [*python[:3], "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, **drop
    )
    try:
        status = Path(f"/proc/{console.process.pid}/status").read_text()
        assert f"Uid:\t{NOBODY}\t{NOBODY}" in status
        assert console.get("/v1/health").status == 200
        status_command = [*python[:3], python[3] + main, "status", "--json"]
        asked = subprocess.run(
            [*status_command, "--home", str(console.home)], capture_output=True, text=True,
            timeout=60, check=True, **drop,
        )  # fmt: skip
        assert json.loads(asked.stdout)["pid"] == console.process.pid
        control = spied(python, sleeper.pid)
        assert control["environ"] == "open", "the spy can read a program that is not closed"
        found = spied(python, console.process.pid)
        assert "open" not in found.values(), found
        assert found["environ"] == found["mem"] == "PermissionError"
    finally:
        sleeper.communicate()
        console.end(signal.SIGTERM)
    assert console.stderr.read_text() == ""
