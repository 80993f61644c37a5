"""Aileron's own files under another name in the agent's project, as installers make them that link from a cache."""

import subprocess

from tests.agents.agents_bench import Bench, aileron_in

AGENT = """\
#!/usr/bin/env python3
open(".venv/click.py", "w").write("evil")
"""


def test_what_an_agent_writes_in_its_environment_does_not_change_aileron(bench: Bench) -> None:
    """The file became one of its own before the agent started; both kinds of names are told."""
    command, packages = aileron_in(bench.folder / "tool")
    (packages / "ours.py").write_text("good")
    (bench.project / ".venv").mkdir()
    (bench.project / ".venv" / "click.py").hardlink_to(packages / "ours.py")
    (bench.project / ".venv" / "other.py").write_text("x")
    (bench.folder / "cache.py").hardlink_to(bench.project / ".venv" / "other.py")
    done = subprocess.run(
        [*command, "launch", "codex", "--home", str(bench.console.home)],
        cwd=bench.project, env=bench.environment(bench.stand_in(AGENT)),
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert (packages / "ours.py").read_text() == "good"
    assert (bench.project / ".venv" / "click.py").read_text() == "evil"
    assert "1 of Aileron's own files were hard links" in done.stderr
    assert "hard links to files outside it: 1," in done.stderr
