"""The measurements of `bench/` still run to their end: they read the screen, and nobody runs them every day."""

import subprocess
import sys

import pytest

from tests.support.server_harness import ROOT
from tests.support.variants import ALL


def check_bench(*names: str) -> str:
    command = [sys.executable, "-m", "bench", "--check", *names]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.skipif(not ALL, reason="half a minute, by hand as a rule: make test-all")
def test_the_measurement_of_the_console_finds_its_words_on_the_screen() -> None:
    """It waited for words that the screen no longer had, and nobody noticed."""
    assert check_bench("console").splitlines()[-2:] == ["  checked (7 aims)", ""]


def test_the_quick_measurements_run_to_their_end() -> None:
    """Each says how many aims it has; in full it says which of them were missed."""
    printed = check_bench("calls", "connectors", "decisions", "load_manifests", "releases")
    assert printed.count("  checked (") == 5


def test_the_measurement_of_attention_runs_or_says_how_to_install_what_it_lacks() -> None:
    """What it needs is installed by hand."""
    printed = check_bench("attention")
    assert "  checked (6 aims)" in printed or "pip install --no-deps agentdojo" in printed
