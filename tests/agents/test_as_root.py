"""Launches by root: nothing would contain the agent, so there is no contained one."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.agents.agents_bench import AS_TESTS
from tests.support.forked import run_forked
from tests.support.making import program
from tests.support.variants import variants

pytestmark = pytest.mark.skipif(os.getuid() != 0, reason="only root can try as root")


def run_as_root(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    agent = program(folder / "bin" / "codex", "#!/bin/sh\necho STARTED\n")
    (folder / "project").mkdir(exist_ok=True)
    return run_forked(
        [*AS_TESTS, *words, "--home", str(folder / "aileron")], cwd=folder / "project",
        env={"HOME": str(folder), "PATH": f"{agent.parent}:/usr/bin:/bin"},
    )  # fmt: skip


@pytest.mark.parametrize("words", [["--dry-run"], []], ids=["dry run", "no console"])
@pytest.mark.parametrize("how", variants(["on", "offline"]))
def test_root_is_told_how_another_user_starts_it(folder: Path, how: str, words: list[str]) -> None:
    """Refused before anything is looked at further, with the words to type instead."""
    done = run_as_root(folder, "launch", "codex", f"--sandbox={how}", *words)
    assert done.returncode != 0
    assert "STARTED" not in done.stdout
    assert "Aileron cannot sandbox what runs as root" in done.stderr
    assert "runuser -u USER -- aileron launch" in done.stderr
    assert "--no-sandbox" in done.stderr


def test_root_starts_what_it_likes_without_a_sandbox(folder: Path) -> None:
    """Typed by a person, who then knows."""
    done = run_as_root(folder, "launch", "codex", "--no-sandbox", "--dry-run")
    assert "as root" not in done.stderr
    assert done.returncode == 0, done.stderr
    done = run_as_root(folder, "doctor")
    assert "Aileron cannot sandbox what runs as root" in done.stdout
