"""`aileron doctor` beside `aileron launch`: the same plan, so the same refusals."""

import os
import subprocess
from pathlib import Path

from tests.agents.agents_bench import CLI, Bench

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


def _huge(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        file.truncate(400 * 1024 * 1024)


def _both(bench: Bench) -> tuple[int, str, int, str]:
    """Ask the doctor, then launch; return how each ended and what it printed."""
    env = {"PATH": f"{bench.folder / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    asked = subprocess.run(
        [*CLI, "doctor", "codex", "--home", str(bench.console.home)],
        cwd=bench.project, env=bench.environment(env), capture_output=True, text=True, check=False,
    )  # fmt: skip
    dry = subprocess.run(
        [*CLI, "launch", "codex", "--home", str(bench.console.home), "--dry-run"],
        cwd=bench.project, env=bench.environment(env), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ("~/.codex/config.toml" in dry.stdout) == (asked.returncode == 0)
    with bench.launched("codex", env=env) as running:
        ended = running.end()
    return asked.returncode, asked.stdout, ended.code, ended.output


def test_the_doctor_refuses_what_a_launch_refuses_and_nothing_else(bench: Bench) -> None:
    """What Codex downloaded is there however large it is; settings that cannot be copied stop both."""
    (bench.folder / "bin").mkdir()
    (bench.folder / "bin/codex").write_text(AGENT)
    (bench.folder / "bin/codex").chmod(0o755)
    bench.write(".codex/config.toml", 'model = "test"\n')
    bench.write(".codex/sessions/1.jsonl", "of another project")
    _huge(bench.home / ".codex/packages/bin/codex")
    doctor, report, launch, output = _both(bench)
    assert (doctor, launch) == (0, 0), report + output
    assert "✓ launch: `aileron launch` can start these in this folder: codex." in report
    assert "HAS ['config.toml', 'packages', 'packages/bin/codex', 'sessions']" in output
    assert "PACKAGES 30" in output
    _huge(bench.home / ".codex/skills/mine/model.bin")
    doctor, report, launch, output = _both(bench)
    sentence = f"The settings in {bench.home}/.codex are larger than 64 MiB"
    assert (doctor, launch) == (1, 1), report + output
    assert f"✗ codex: {sentence}" in report
    assert sentence in output
