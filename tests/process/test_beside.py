"""Programs beside Aileron that still run to their end: the measurements of `bench/`, `make chaos`, the example that embeds the core."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from examples.mailbox import Mailbox
from tests.support.core_harness import writes
from tests.support.server_harness import ROOT, aileron
from tests.support.variants import ALL


def run_python(*words: str, **more: Any) -> str:
    more |= {"cwd": ROOT, "env": {**os.environ, "PYTHONPATH": str(ROOT)}}
    command = [sys.executable, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, **more)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-4000:]
    return done.stdout


def check_bench(*names: str) -> str:
    return run_python("-m", "bench", "--check", *names, timeout=240)


@pytest.mark.skipif(not ALL, reason="half a minute, by hand as a rule: make test-all")
def test_the_measurement_of_the_console_finds_its_words_on_the_screen() -> None:
    """It waited for words that the screen no longer had, and nobody noticed."""
    assert check_bench("console").splitlines()[-2:] == ["  checked (7 aims)", ""]


def test_the_quick_measurements_run_to_their_end() -> None:
    printed = check_bench("calls", "connectors", "decisions", "load_manifests", "releases")
    assert printed.count("  checked (") == 5
    printed = check_bench("attention")  # what it needs is installed by hand
    assert "  checked (6 aims)" in printed or "pip install --no-deps agentdojo" in printed


@pytest.mark.real
@pytest.mark.skipif(sys.platform != "linux", reason="it freezes by ptrace")
@pytest.mark.skipif(not shutil.which("cc"), reason="it compiles")
@pytest.mark.timeout(400)
def test_kills_of_console_relays_and_connectors_lose_nothing() -> None:
    said = run_python(".ci/chaos.py", "--kills", "5", "--agents", "10", timeout=380).splitlines()
    agreed = ["0 lost", "0 doubled", "0 unrecorded", "0 contradicted", "chain whole"]
    assert said[-5:] == agreed
    assert "0 effects" not in said, "nothing was tried"


@pytest.mark.parametrize(("typed", "end"), [("y\n", "completed"), ("\n", "denied")])
def test_a_draft_is_shown_and_answered(home: Path, mailbox: Mailbox, typed: str, end: str) -> None:
    aileron("init", "--example", home=home)
    words = ("-m", "examples.headless", str(home), str(mailbox.port))
    said = run_python(*words, input=typed, timeout=60)
    for each in ("Subject: 'Q3 numbers'", f"{end}; ", "problems: 0"):
        assert each in said
    assert ("POST send" in writes(mailbox)) == (end == "completed")
