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

PROBE = Path(__file__).parent / "probe.py"
PYTHON = Path("/usr/bin/python3")
NOBODY = 65534
ORDINARY = NOBODY if os.getuid() == 0 else os.getuid()


def _owned(path: Path, user: int) -> Path:
    path.mkdir(parents=True)
    if os.getuid() == 0:
        os.chown(path, user, user)
    return path


def _project(folder: Path, user: int) -> Path:
    project = _owned(folder / "project", user)
    for name in (".git", ".git/hooks"):
        _owned(project / name, user)
    (project / ".git" / "config").write_text("[core]\n")
    if os.getuid() == 0:
        os.chown(project / ".git" / "config", user, user)
    return project


@pytest.fixture(scope="module", params=[ORDINARY, 0])
def found_as_user(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What the probe could do as an ordinary user, and as root past the refusal to launch, beside what is that user's."""
    user: int = request.param
    if user == 0 and os.getuid() != 0:
        pytest.skip("only root can try as root")
    bwrap = shutil.which("bwrap", path="/usr/bin:/bin")
    if bwrap is None or not PYTHON.exists():
        pytest.skip("needs bubblewrap and a system Python")
    folder = Path(tempfile.mkdtemp(prefix="ail-"))
    folder.chmod(0o755)
    abstract = f"aileron-test-{secrets.token_hex(8)}"
    as_user: dict[str, Any] = {"user": user, "group": user, "extra_groups": []}
    if os.getuid() != 0:
        as_user = {}
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
    spec = SandboxSpec(
        bwrap=bwrap, project=_project(folder, user), home=folder / "person",
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
    line = [line for line in done.stdout.splitlines() if line.startswith("PROBE ")]
    assert line, done.stdout + done.stderr
    probed = json.loads(line[0].removeprefix("PROBE "))
    probed["user"] = user
    probed["owner of its work"] = (spec.project / "work.txt").stat().st_uid
    yield probed
    shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize(
    ("attempt", "outcome"),
    [
        # What no mode of a file and no user's number keeps, but a cover or the filter of calls
        ("refused calls", [errno.ENOSYS]),
        ("socket to the machine's host", "OSError 97"),
        ("lists of keys", "PermissionError 13"),
        ("lists of keys' users", "PermissionError 13"),
        ("write a setting of the kernel", "OSError 30"),
        ("open what is the whole machine's", []),
        ("/sys", False),
        # And what a launch without a git of the agent's own keeps
        ("capabilities", "0000000000000000"),
        ("write .git/config", "OSError 30"),
        ("write .git/hooks/pre-commit", "OSError 30"),
        ("move .git away", "OSError 16"),
        ("pathname sockets", []),
    ],
)
def test_what_is_covered_is_covered_for_root_too(
    found_as_user: dict[str, Any], attempt: str, outcome: object
) -> None:
    """Root outside is root to these files, however few capabilities it has inside."""
    assert found_as_user[attempt] == outcome


def test_its_work_is_its_users(found_as_user: dict[str, Any]) -> None:
    assert found_as_user["owner of its work"] == found_as_user["user"]


@pytest.mark.skipif(platform.machine() != "x86_64", reason="no other has 32-bit code of i386")
def test_a_process_that_makes_a_call_of_32_bit_code_is_killed(
    found_as_user: dict[str, Any],
) -> None:
    """Its numbers are not the filter's: 288 would be keyctl."""
    assert found_as_user["a call of 32-bit code"] == -signal.SIGSYS
