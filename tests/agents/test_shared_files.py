"""Aileron's own files under another name in the agent's project, as installers make them that link from a cache."""

import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.agents.agents_bench import Bench
from tests.support.ordinary import AS_ORDINARY

AGENT = """\
#!/usr/bin/env python3
open(".venv/click.py", "w").write("evil")
"""


def test_what_an_agent_writes_in_its_environment_does_not_change_aileron(bench: Bench) -> None:
    """The file became one of its own before the agent started; both kinds of names are told."""
    tool = bench.folder / "tool"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tool)], check=True)
    packages = next(tool.glob("lib/python*/site-packages"))
    root = Path(__file__).resolve().parents[2]
    (packages / "here.pth").write_text(f"{sysconfig.get_path('purelib')}\n{root}\n")
    (packages / "ours.py").write_text("good")
    (bench.project / ".venv").mkdir()
    (bench.project / ".venv" / "click.py").hardlink_to(packages / "ours.py")
    (bench.project / ".venv" / "other.py").write_text("x")
    (bench.folder / "cache.py").hardlink_to(bench.project / ".venv" / "other.py")
    done = subprocess.run(
        [*AS_ORDINARY, tool / "bin" / "python", "-I", "-m", "aileron_tui.cli", "launch", "codex",
         "--home", str(bench.console.home)],
        cwd=bench.project, env=bench.environment(bench.stand_in(AGENT)),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (packages / "ours.py").read_text() == "good"
    assert (bench.project / ".venv" / "click.py").read_text() == "evil"
    assert "1 of Aileron's own files were hard links" in done.stderr
    assert "hard links to files outside it: 1," in done.stderr
