"""`aileron doctor` beside `aileron launch`: the same plan, so the same refusals."""

from tests.agents.agents_bench import Bench
from tests.support.making import huge

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
