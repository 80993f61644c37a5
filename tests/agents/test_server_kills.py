"""Consoles and servers that are killed around calls: each effect once at most, nothing that stays, no outcome that lies."""

import json
import random
from pathlib import Path

import pytest

from tests.support.ordinary import ordinary_folder, run_as_ordinary
from tests.support.variants import ALL, needs_bubblewrap

CHILD = Path(__file__).parent / "server_kills_child.py"
KILLS = 200 if ALL else 10
"""`make test-all` takes the many."""
TRUE = {"completed, 1 effects", "unknown, 0 effects", "unknown, 1 effects", "failed, 0 effects", "denied, 0 effects"}  # fmt: skip


@needs_bubblewrap
@pytest.mark.timeout(1800)
def test_a_kill_at_any_moment_doubles_no_effect_and_leaves_no_process() -> None:
    """The child fails where a process outlives its console or its box by five seconds."""
    with ordinary_folder() as folder:
        seed = random.randrange(2**32)
        print(f"seed {seed}")
        done = run_as_ordinary(CHILD, folder, str(KILLS), str(seed), timeout=1800)
    print(done.stdout)
    for met in json.loads(done.stdout).values():
        assert {*met["outcomes"]} <= TRUE, done.stdout
        assert met["audit"] == [], done.stdout
