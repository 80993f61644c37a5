"""The sandbox's walls without a launch, as they are for whoever runs these tests: as root, whom no launch contains, too.

The same command line and the same preparation as a launch, around the system's own Python: the
interpreter of these tests may lie where nobody else can read it.
"""

import errno
import json
import os
import platform
import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

from aileron_core.containment.bubblewrap import SandboxSpec, bwrap_argv
from aileron_core.containment.linux_syscalls import SCOPE_ABI, landlock_abi
from aileron_core.containment.support import SandboxSupport, machine_filter
from tests.agents.agents_bench import found_by
from tests.support.variants import needs_bubblewrap

PROBE = Path(__file__).parent / "probe.py"
PYTHON = "/usr/bin/python3"
LISTENS = """
import socket, sys
a = socket.socket(socket.AF_UNIX); a.bind("\\0" + sys.argv[1]); a.listen()
b = socket.socket(socket.AF_UNIX); b.bind(sys.argv[2]); b.listen()
print("up", flush=True); sys.stdin.read()
"""
pytestmark = needs_bubblewrap


def probed_in(folder: Path) -> dict[str, Any]:
    """Return what the probe could do, past the refusal to launch as root, beside what is that user's."""
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


def test_what_is_covered_is_covered_for_root_too(folder: Path) -> None:
    """Root outside is root to these files, however few capabilities it has inside; its work is its user's."""
    found = probed_in(folder)
    assert {each: found[each] for each in COVERED} == COVERED
    # Its numbers are not the filter's: 288 would be keyctl. No other machine has 32-bit code of i386.
    if platform.machine() == "x86_64":
        assert found["a call of 32-bit code"] == -signal.SIGSYS
