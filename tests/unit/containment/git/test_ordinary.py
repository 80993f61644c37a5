"""The same as an ordinary user: started as root, all of it runs as nobody, under the system's Python.

The interpreter of these tests may lie where nobody else can read it.
"""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

PYTHON = Path("/usr/bin/python3")
HERE = Path(__file__).parent
ROOT = HERE.parents[3]
NOBODY = 65534
SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from git_bench import Bench, armed, everything
bench = Bench(Path(sys.argv[3]))
evil, arm = armed(bench)
agent = bench.begin()
agent.does(arm + "git config user.name A; git config user.email a@b; echo 2 >> file;"
    "git commit -qam second; mkdir sub; git init -q sub; chmod 0555 sub;"
    "mkdir -p a/b; git init -q a/b; chmod 0 a/b/.git a/b a;" + everything(evil))
told = agent.end()
for words in (("status",), ("diff",), ("log", "-p")):
    bench.git(*words)
assert bench.git("log", "--format=%s") == "second\\nfirst"
assert "sub/.git is a new repository" in told, told
assert "a/b/.git is a new repository" in told, told
assert not bench.ran.exists()
assert (bench.project / ".git" / "refs" / "heads" / "main").stat().st_uid == int(sys.argv[4])
print("HELD")
"""
CLOSED = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from git_bench import Bench, armed
bench = Bench(Path(sys.argv[3]))
evil, arm = armed(bench)
agent = bench.begin()
agent.does(arm + "mkdir sub; git init -q sub; git -C sub config core.fsmonitor " + evil + ";" + sys.argv[4])
told = agent.end()
bench.git("status", where=bench.project / "sub", code=None)
assert not bench.ran.exists()
assert "sub/.git is a new repository" in told, told
assert not list((bench.aileron / "git").iterdir())
print("HELD")
"""


def held(script: str, last: str) -> None:
    """Run *script* as an ordinary user."""
    if os.getuid() != 0:
        pytest.skip("is one already: the other tests are this")
    if not PYTHON.exists():
        pytest.skip("needs a system Python")
    with tempfile.TemporaryDirectory(prefix="ail-") as folder:
        os.chown(folder, NOBODY, NOBODY)
        done = subprocess.run(
            [str(PYTHON), "-c", script, str(HERE), str(ROOT), f"{folder}", last],
            cwd="/", capture_output=True, text=True, timeout=120, check=False,
            user=NOBODY, group=NOBODY, extra_groups=[],
        )  # fmt: skip
    assert "HELD" in done.stdout, done.stdout + done.stderr


def test_an_ordinary_user() -> None:
    """Commits arrive, nothing of the agent's runs, a closed folder is opened and disarmed."""
    held(SCRIPT, str(NOBODY))


@pytest.mark.parametrize(
    "left",
    [
        "mkdir .git/hooks; touch .git/hooks/x; chmod 0 .git/hooks",
        "chmod 0 .git",
        "chmod 0 .git/*",
        "chmod 0 .git/objects/info; echo x > .git/HEAD",
        "rm -r .git/objects/info; mkdir -p .git/objects/info/alternates; echo x > .git/HEAD",
        "mkdir -p .git/hooks .git/hooks.of-the-agent/x .git/config.of-the-agent; echo x > .git/HEAD",
    ],
)
def test_what_the_agent_leaves_in_its_git_folder_keeps_nothing_armed(left: str) -> None:
    """Whatever modes and names it gave there: root would pass them by."""
    held(CLOSED, left)
