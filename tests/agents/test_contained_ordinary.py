"""The sandbox's walls without a launch, as an ordinary user meets them and as root, whom no launch contains.

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
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aileron_core.containment.bubblewrap import SandboxSpec, bwrap_argv
from aileron_core.containment.linux_syscalls import SCOPE_ABI, landlock_abi
from aileron_core.containment.support import SandboxSupport, machine_filter
from tests.agents.agents_bench import found_by
from tests.support.ordinary import USER
from tests.support.variants import needs_bubblewrap

PROBE = Path(__file__).parent / "probe.py"
PYTHON = Path("/usr/bin/python3")
pytestmark = needs_bubblewrap


def _owned(path: Path, user: int) -> Path:
    path.mkdir(parents=True)
    os.chown(path, user, user)
    return path


@pytest.fixture(scope="module", params=[USER, 0])
def found_as_user(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What the probe could do as an ordinary user, and as root past the refusal to launch, beside what is that user's."""
    user: int = request.param
    if user == 0 and os.getuid() != 0:
        pytest.skip("only root can try as root")
    bwrap = shutil.which("bwrap", path="/usr/bin:/bin") or ""
    folder = Path(tempfile.mkdtemp(prefix="ail-"))
    folder.chmod(0o755)
    abstract = f"aileron-test-{secrets.token_hex(8)}"
    as_root: dict[str, Any] = {"user": user, "group": user, "extra_groups": []}
    as_user = as_root if os.getuid() == 0 else {}
    listener = (
        "import socket, sys\n"
        f"a = socket.socket(socket.AF_UNIX); a.bind('\\0{abstract}'); a.listen()\n"
        "b = socket.socket(socket.AF_UNIX); b.bind(sys.argv[1]); b.listen()\n"
        "print('up', flush=True); sys.stdin.read()\n"
    )
    there = _owned(folder / "person" / ".aileron", user)
    path = there / "agent.sock"
    neighbour = subprocess.Popen(
        [str(PYTHON), "-I", "-c", listener, str(path)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd="/", **as_user,
    )  # fmt: skip
    assert neighbour.stdout is not None
    assert neighbour.stdout.readline() == b"up\n"
    given = {
        "abstract": abstract, "pathname": str(path), "console": str(path), "home": str(there),
        "pid": neighbour.pid, "port": 9, "approval": "x", "session": "x", "token": "x", "key": "x",
    }  # fmt: skip
    project = _owned(folder / "project", user)
    _owned(project / ".git" / "hooks", user)
    (project / ".git" / "config").write_text("[core]\n")
    for each in (project / ".git", project / ".git" / "config"):
        os.chown(each, user, user)
    spec = SandboxSpec(
        bwrap=bwrap, project=project, home=folder / "person",
        private_home=_owned(folder / "own", user), launch_dir=_owned(folder / "private", user),
        socket=None,
    )  # fmt: skip
    (spec.private_home / ".codex").mkdir()
    (spec.private_home / ".codex").chmod(0o777)
    calls = machine_filter()
    assert calls is not None
    support = SandboxSupport(
        bwrap=bwrap, has_landlock_scopes=landlock_abi() >= SCOPE_ABI, seccomp_filter=calls
    )
    done = subprocess.run(
        bwrap_argv(spec, [str(PYTHON), "-I", "-c", PROBE.read_text()]),
        env={"HOME": str(spec.home), "PATH": "/usr/bin", "CODEX_API_KEY": json.dumps(given)},
        cwd="/", capture_output=True, text=True, timeout=60, check=False,
        preexec_fn=support.drop_privileges, **as_user,
    )  # fmt: skip
    assert neighbour.stdin is not None
    assert neighbour.poll() is None
    neighbour.stdin.close()
    neighbour.wait(60)
    neighbour.stdout.close()
    probed = {**found_by("PROBE", done.stdout + done.stderr), "user": user}
    probed["owner of its work"] = (spec.project / "work.txt").stat().st_uid
    yield probed
    shutil.rmtree(folder, ignore_errors=True)


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


def test_what_is_covered_is_covered_for_root_too(found_as_user: dict[str, Any]) -> None:
    """Root outside is root to these files, however few capabilities it has inside; its work is its user's."""
    assert {each: found_as_user[each] for each in COVERED} == COVERED
    assert found_as_user["owner of its work"] == found_as_user["user"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="no other has 32-bit code of i386")
def test_a_process_that_makes_a_call_of_32_bits_is_killed(found_as_user: dict[str, Any]) -> None:
    """Its numbers are not the filter's: 288 would be keyctl."""
    assert found_as_user["a call of 32-bit code"] == -signal.SIGSYS
