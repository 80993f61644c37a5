"""The sandbox as a hostile agent finds it: one promise a test."""

import ctypes
import errno
import json
import os
import platform
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aileron_core.containment.bubblewrap import SandboxSpec, bwrap_argv
from aileron_core.containment.linux_syscalls import SCOPE_ABI, landlock_abi
from aileron_core.containment.support import SandboxSupport, machine_filter
from tests.agents.agents_bench import DRAFT, ScriptedLlm, found_by, silent, workbench
from tests.support.processes import running_with
from tests.support.variants import needs_bubblewrap, variants

PROBE = Path(__file__).parent / "probe.py"


@pytest.fixture(scope="module", params=variants(("on", "offline", "hosts"), usual=2))
def found(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What the probe could do, once for each kind of sandbox, beside a victim that waits for a person."""
    folder = Path(tempfile.mkdtemp(prefix="ail-"))
    abstract, key = f"aileron-test-{secrets.token_hex(8)}", secrets.token_hex(8)
    ctypes.CDLL(None).syscall(248, b"user", key.encode(), b"secret", 6, -3)
    listeners = [socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX), socket.socket()]
    places: tuple[Any, ...] = ("\0" + abstract, str(folder / "agent.sock"), ("127.0.0.1", 0))
    for listener, place in zip(listeners, places, strict=True):
        listener.bind(place)
        listener.listen()
    with workbench(folder, ScriptedLlm(silent)) as bench:
        subprocess.run(["git", "init", "-q", str(bench.project)], check=True)
        bench.write(".codex/auth.json", '{"token": "old"}')
        bench.write(".ssh/id_ed25519", "a key")
        victim = bench.console.session()
        asked = bench.console.run("send-draft", {"draft_id": DRAFT}, victim["token"]).json
        given: dict[str, Any] = {
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
        options = [f"--sandbox={request.param}"]
        output = bench.launch(program, options=options, **hostile).output
        probed = {**found_by("PROBE", output), "kind": request.param, "output": output}
        probed["left"] = running_with(f"start.py\0{bench.console.port}\0")
        after = bench.fingerprint()
        probed["changed"] = {name for name, _ in {*before.items()} ^ {*after.items()}}
        assert bench.mailbox.state()["sent"] == []
        yield probed
    for listener in listeners:
        listener.close()
    shutil.rmtree(folder, ignore_errors=True)


OUTCOMES: dict[object, tuple[str, ...]] = {
    200: ("actions", "health", "model through the gateway"),
    403: ("status of the console", "open a session", "decide", "read the audit"),
    404: ("another session's result", "another session's token", "end another session"),
    401: ("another session's gateway", "a gateway without a token"),
}
"""Of the session's own socket."""
FOUND = {
    **{f"own socket: {each}": status for status, names in OUTCOMES.items() for each in names},
    "own socket: accept a project's settings": 403,
    "model through the gateway": 200,
    **dict.fromkeys(("socket under /tmp", "console's socket"), "FileNotFoundError 2"),
    "signal to the console": "ProcessLookupError 3",
    **dict.fromkeys(("console in /proc", "aileron's home", "person's ssh key"), False),
    **dict.fromkeys(("session bus", "docker", "keyring", "/sys"), False),
    "environment": [],
    "refused calls": [errno.ENOSYS],
    "socket to the machine's host": "OSError 97",
    **dict.fromkeys(("lists of keys", "lists of keys' users"), "PermissionError 13"),
    **dict.fromkeys(("write a setting of the kernel", "write outside"), "OSError 30"),
    "open what is the whole machine's": [],
    "capabilities": "0000000000000000",
    "no new privileges": "1",
    # A folder of its own: see what changed, below.
    **dict.fromkeys(("write .git/config", "write .git/hooks/pre-commit"), "written"),
    "move .git away": "OSError 16",
    "write in the project": 4,
    "pathname sockets": ["/run/aileron/session/s.sock"],
}


def test_the_sandbox_holds(found: dict[str, Any]) -> None:
    """Its socket opens nothing but what an agent may ask for; it builds no sandbox of its own to hide in."""
    assert {each: found[each] for each in FOUND} == FOUND
    assert found["abstract socket"] == "PermissionError 1" or (
        found["kind"] != "on" and found["abstract socket"].endswith("Error 111")
    )
    assert 0 not in (found["new user namespace"], found["mount"])


def test_offline_has_no_common_network(found: dict[str, Any]) -> None:
    """The only way out is the session's socket, also by the console's port; else loopback is shared."""
    # Over the port alone a gateway token is all that is asked for; the agent knows its own only.
    ways = ("host's loopback", "decide", "another session's gateway")
    met = [found[each] for each in (ways[0], *(f"console's port: {each}" for each in ways[1:]))]
    if found["kind"] == "on":
        assert met == ["connected", 401, 200]
    else:
        assert met == ["ConnectionRefusedError 111", 403, 401]
        assert found["somewhere else"] == "OSError 101"
    assert found["left"] == []


def test_nothing_of_it_outlives_the_session(found: dict[str, Any]) -> None:
    """Hooks and settings that it wrote are gone or moved aside and told; its work stays."""
    assert found["changed"] == {"project/work.txt"}
    assert ".mcp.json is new. It was moved to" in found["output"]
    assert ".envrc is new. It was moved to" in found["output"]


PYTHON = "/usr/bin/python3"
LISTENS = """
import socket, sys
a = socket.socket(socket.AF_UNIX); a.bind("\\0" + sys.argv[1]); a.listen()
b = socket.socket(socket.AF_UNIX); b.bind(sys.argv[2]); b.listen()
print("up", flush=True); sys.stdin.read()
"""


def probed_in(folder: Path) -> dict[str, Any]:
    """Return what the probe could do, past the refusal to launch as root, beside what is that user's.

    The same command line and the same preparation as a launch, around the system's own Python: the
    interpreter of these tests may lie where nobody else can read it.
    """
    names = ("person/.aileron", "project/.git/hooks", "own/.codex", "private")
    there, hooks, codex, private = (folder / name for name in names)
    for each in (there, hooks, codex, private):
        each.mkdir(parents=True)
    (hooks.parent / "config").write_text("[core]\n")
    path, abstract = there / "agent.sock", f"aileron-test-{secrets.token_hex(8)}"
    given = {
        "abstract": abstract, "pathname": str(path), "console": str(path), "home": str(there),
        "port": 9, "approval": "x", "session": "x", "token": "x", "key": "x",
    }  # fmt: skip
    bwrap, calls = shutil.which("bwrap") or "", machine_filter()
    assert calls is not None
    spec = SandboxSpec(
        bwrap=bwrap, project=folder / "project", home=folder / "person",
        private_home=folder / "own", launch_dir=private, socket=None,
    )  # fmt: skip
    scopes = landlock_abi() >= SCOPE_ABI
    support = SandboxSupport(bwrap=bwrap, has_landlock_scopes=scopes, seccomp_filter=calls)
    listens = [PYTHON, "-I", "-c", LISTENS, abstract, str(path)]
    with subprocess.Popen(listens, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as neighbour:
        assert neighbour.stdout is not None
        assert neighbour.stdout.readline() == b"up\n"
        asked = json.dumps({**given, "pid": neighbour.pid})
        done = subprocess.run(
            bwrap_argv(spec, [PYTHON, "-I", "-c", PROBE.read_text()]),
            env={"HOME": str(spec.home), "PATH": "/usr/bin", "CODEX_API_KEY": asked},
            cwd="/", capture_output=True, text=True, timeout=60, check=False,
            preexec_fn=support.drop_privileges,
        )  # fmt: skip
        assert neighbour.poll() is None
        assert neighbour.stdin is not None
        neighbour.stdin.close()
    assert (folder / "project/work.txt").stat().st_uid == os.getuid()
    return found_by("PROBE", done.stdout + done.stderr)


COVERED = {
    # What no mode of a file and no user's number keeps, but a cover or the filter of calls
    "refused calls": [errno.ENOSYS],
    "socket to the machine's host": "OSError 97",
    **dict.fromkeys(("lists of keys", "lists of keys' users"), "PermissionError 13"),
    "write a setting of the kernel": "OSError 30",
    "open what is the whole machine's": [],
    "/sys": False,
    # And what a launch without a git of the agent's own keeps
    "capabilities": "0000000000000000",
    **dict.fromkeys(("write .git/config", "write .git/hooks/pre-commit"), "OSError 30"),
    "move .git away": "OSError 16",
    "pathname sockets": [],
}


@needs_bubblewrap
def test_what_is_covered_is_covered_for_root_too(folder: Path) -> None:
    """Root outside is root to these files, however few capabilities it has inside; its work is its user's."""
    found = probed_in(folder)
    assert {each: found[each] for each in COVERED} == COVERED
    # Its numbers are not the filter's: 288 would be keyctl. No other machine has 32-bit code of i386.
    if platform.machine() == "x86_64":
        assert found["a call of 32-bit code"] == -signal.SIGSYS
