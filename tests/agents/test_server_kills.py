"""Consoles and servers that are killed around calls: each effect once at most, nothing that stays, no outcome that lies."""

import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.ordinary import AS_ORDINARY, OWNS, ROOT, ordinary_folder
from tests.support.variants import ALL

CHILD = Path(__file__).parent / "server_kills_child.py"
KILLS = 200 if ALL else 10
"""`make test-all` takes the many."""
TRUE = {"completed, 1 effects", "unknown, 0 effects", "unknown, 1 effects", "failed, 0 effects", "denied, 0 effects"}  # fmt: skip


@pytest.mark.skipif(
    shutil.which("bwrap", path="/usr/bin:/bin") is None or not Path("/usr/bin/python3").exists(),
    reason="needs bubblewrap and a system Python",
)
@pytest.mark.timeout(1800)
def test_a_kill_at_any_moment_doubles_no_effect_and_leaves_no_process() -> None:
    """The child fails where a process outlives its console or its box by five seconds."""
    with ordinary_folder() as folder:
        seed = random.randrange(2**32)
        done = subprocess.run(
            [*AS_ORDINARY, sys.executable, str(CHILD), str(folder), str(KILLS), str(seed)],
            env={**os.environ, OWNS: str(folder), "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, f"seed {seed}: {done.stderr}"
    print(done.stdout)
    for met in json.loads(done.stdout).values():
        assert {*met["outcomes"]} <= TRUE, done.stdout
        assert met["audit"] == [], done.stdout
