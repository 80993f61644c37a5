"""`aileron doctor` beside `aileron launch`: the same plan, so the same refusals, also for root."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.agents.agents_bench import AS_TESTS, Bench
from tests.support.forked import run_forked
from tests.support.making import huge, program
from tests.support.variants import variants

AGENT = """\
#!/usr/bin/env python3
from pathlib import Path
folder = Path.home() / ".codex"
names = ("config.toml", "log", "packages", "packages/bin/codex", "sessions", "sessions/1.jsonl")
print("HAS", [name for name in names if (folder / name).exists()])
try:
    (folder / "packages/bin/codex").write_text("mine")
except OSError as error:
    print("PACKAGES", error.errno)
"""


def _both(bench: Bench) -> tuple[int, str, int, str]:
    env = bench.stand_in(AGENT)
    asked = bench.aileron("doctor", "codex", **env)
    dry = bench.aileron("launch", "codex", "--dry-run", **env)
    assert ("~/.codex/config.toml" in dry.stdout) == (asked.returncode == 0)
    ended = bench.launch(AGENT)
    return asked.returncode, asked.stdout, ended.code, ended.output


def test_the_doctor_refuses_what_a_launch_refuses_and_nothing_else(bench: Bench) -> None:
    """What Codex downloaded is there however large it is; settings that cannot be copied stop both."""
    bench.write(".codex/config.toml", 'model = "test"\n')
    bench.write(".codex/sessions/1.jsonl", "of another project")
    huge(bench.home / ".codex/packages/bin/codex", 400)
    doctor, report, launch, output = _both(bench)
    assert (doctor, launch) == (0, 0), report + output
    assert "✓ launch: `aileron launch` can start these in this folder: codex." in report
    assert "HAS ['config.toml', 'packages', 'packages/bin/codex', 'sessions']" in output
    assert "PACKAGES 30" in output
    huge(bench.home / ".codex/skills/mine/model.bin", 400)
    doctor, report, launch, output = _both(bench)
    sentence = f"The settings in {bench.home}/.codex are larger than 64 MiB"
    assert (doctor, launch) == (1, 1), report + output
    assert f"✗ codex: {sentence}" in report
    assert sentence in output


AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="only root can try as root")


def run_as_root(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    agent = program(folder / "bin" / "codex", "#!/bin/sh\necho STARTED\n")
    (folder / "project").mkdir(exist_ok=True)
    return run_forked(
        [*AS_TESTS, *words, "--home", str(folder / "aileron")], cwd=folder / "project",
        env={"HOME": str(folder), "PATH": f"{agent.parent}:/usr/bin:/bin"},
    )  # fmt: skip


@AS_ROOT
@pytest.mark.parametrize("words", [["--dry-run"], []], ids=["dry run", "no console"])
@pytest.mark.parametrize("how", variants(["on", "offline"]))
def test_root_is_told_how_another_user_starts_it(folder: Path, how: str, words: list[str]) -> None:
    """Nothing would contain the agent: refused before anything is looked at further, with the words to type instead."""
    done = run_as_root(folder, "launch", "codex", f"--sandbox={how}", *words)
    assert done.returncode != 0
    assert "STARTED" not in done.stdout
    assert "Aileron cannot sandbox what runs as root" in done.stderr
    assert "runuser -u USER -- aileron launch" in done.stderr
    assert "--no-sandbox" in done.stderr


@AS_ROOT
def test_root_starts_what_it_likes_without_a_sandbox(folder: Path) -> None:
    """Typed by a person, who then knows."""
    done = run_as_root(folder, "launch", "codex", "--no-sandbox", "--dry-run")
    assert "as root" not in done.stderr
    assert done.returncode == 0, done.stderr
    done = run_as_root(folder, "doctor")
    assert "Aileron cannot sandbox what runs as root" in done.stdout
