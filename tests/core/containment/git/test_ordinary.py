"""The same as an ordinary user: started as root, all of it runs as nobody, under the system's Python.

The interpreter of these tests may lie where nobody else can read it.
"""

import os
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import pytest
from git_bench import BWRAP, needs_bwrap

from aileron_core.containment.git.sandboxed_git import SandboxedGit

PYTHON = Path("/usr/bin/python3")
HERE = Path(__file__).parent
ROOT = HERE.parents[3]
NOBODY = 65534
SCRIPT = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from git_bench import Bench, all_settings, armed
bench = Bench(Path(sys.argv[3]))
evil, arm = armed(bench)
agent = bench.begin()
agent.does(arm + "echo 2 >> file;"
    "git commit -qam second; mkdir sub; git init -q sub; chmod 0555 sub;"
    "mkdir -p a/b; git init -q a/b; chmod 0 a/b/.git a/b a;" + all_settings(evil))
reported = agent.end()
for words in (("status",), ("diff",), ("log", "-p")):
    bench.git(*words)
assert bench.git("log", "--format=%s") == "second\\nfirst"
assert "sub/.git is a new repository" in reported, reported
assert "a/b/.git is a new repository" in reported, reported
bench.nothing_ran()
assert (bench.project / ".git" / "refs" / "heads" / "main").stat().st_uid == int(sys.argv[4])
print("HELD")
"""
LEFT = """
import sys
from pathlib import Path
sys.path[:0] = sys.argv[1:3]
from git_bench import Bench, armed
bench = Bench(Path(sys.argv[3]))
evil, arm = armed(bench)
agent = bench.begin()
agent.does(arm + "echo 2 >> file; git commit -qam second; mkdir sub; git init -q sub;"
    "git -C sub config core.fsmonitor " + evil + ";" + sys.argv[5])
reported = agent.end()
bench.git("status", where=bench.project / "sub", code=None)
bench.nothing_ran()
assert "sub/.git is a new repository" in reported, reported
arrived = bench.git("log", "--format=%s") == "second\\nfirst"
assert arrived or (bench.aileron / "aside" / "ses-1" / "git-0").is_dir(), reported
assert not list((bench.aileron / "git").iterdir())
print("HELD")
"""
DEEP = (
    "python3 -c \"import os\nos.chdir('.git')\n"
    "for _ in range(1200): os.mkdir('deep'); os.chdir('deep')\""
)


@pytest.mark.parametrize(
    "script",
    [
        pytest.param("chmod 0 .git", id="its git folder"),
        pytest.param("chmod 0 .git/*", id="all in it"),
        pytest.param("mkdir .git/hooks; touch .git/hooks/x; chmod 0 .git/hooks", id="its hooks"),
        pytest.param("chmod 0444 sub", id="a folder that can be listed and not entered"),
        pytest.param("echo x > .git/HEAD; chmod 0500 .git/objects/info", id="its list of objects"),
        pytest.param(
            "rm -r .git/HEAD .git/objects/info; mkdir -p .git/objects/info/alternates",
            id="a folder for a file",
        ),
        pytest.param("rm .git/config; mkdir .git/config", id="a folder for its settings"),
        pytest.param(
            "mkdir -p .git/hooks .git/hooks.of-the-agent/x .git/config.of-the-agent; echo x > .git/HEAD",
            id="the names of ours",
        ),
        pytest.param(DEEP, id="folders deeper than a path or descriptors reach"),
    ],
)
def test_what_an_agent_closed_or_planted_stops_nothing_and_arms_nothing(script: str) -> None:
    """Its work arrives or is kept aside, a new repository is disarmed, and nothing is left to fail again.

    Whatever modes and names it gave there: root would pass them by.
    """
    _as_ordinary(LEFT, script)


def test_an_ordinary_user() -> None:
    """Commits arrive, nothing of the agent's runs, a closed folder is opened and disarmed."""
    _as_ordinary(SCRIPT)


def _as_ordinary(script: str, *words: str) -> None:
    if not PYTHON.exists():
        pytest.skip("needs a system Python")
    root = os.getuid() == 0
    who: dict[str, Any] = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if root else {}
    with tempfile.TemporaryDirectory(prefix="ail-") as folder:
        if root:
            os.chown(folder, NOBODY, NOBODY)
        uid = str(NOBODY if root else os.getuid())
        done = subprocess.run(
            [str(PYTHON), "-c", script, str(HERE), str(ROOT), folder, uid, *words],
            cwd="/", capture_output=True, text=True, timeout=120, check=False, **who,
        )  # fmt: skip
    assert "HELD" in done.stdout, done.stdout + done.stderr


@pytest.mark.skipif(not needs_bwrap(), reason="needs bubblewrap and git of the system")
def test_git_runs_behind_the_filter_of_system_calls_and_alone() -> None:
    """A fault of git's, met by what an agent wrote, is still in a sandbox with all of its walls."""
    box = SandboxedGit(bwrap=BWRAP, git_dir="/none")
    status = box.run("-c", "alias.look=!cat /proc/self/status", "look").decode()
    assert "\nSeccomp:\t2\n" in status
    assert "\nCapEff:\t0000000000000000\n" in status
    links = box.run("-c", "alias.look=!cat /proc/net/dev", "look").decode().splitlines()[2:]
    assert [line.split(":")[0].strip() for line in links] == ["lo"]
