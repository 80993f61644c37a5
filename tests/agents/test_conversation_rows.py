"""Agents with a database: what a person takes out of a conversation."""

import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.agents.agents_bench import AS_ORDINARY, Bench, Say, ScriptedLlm, workbench
from tests.agents.test_resume import BEGINS_AND_RESUMES, exported
from tests.support.variants import ALL

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not ALL, reason="Codex and Claude Code keep files: make test-all"),
]

_READS = {"opencode": ("import",), "goose": ("session", "import")}


def run_as_person(bench: Bench, home: Path, *words: str) -> str:
    home.mkdir(exist_ok=True)
    done = subprocess.run(
        [*AS_ORDINARY, *words], cwd=bench.project, capture_output=True, text=True, check=True,
        env={**bench.environment({}), "HOME": str(home), "GOOSE_DISABLE_KEYRING": "1"}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout


@pytest.mark.parametrize("agent", _READS)
def test_the_agent_reads_what_a_person_took_out(agent: str, tmp_path: Path) -> None:
    with workbench(tmp_path, ScriptedLlm(lambda _: Say(text="noted"))) as bench:
        bench.configure(agent)
        bench.run(agent, *BEGINS_AND_RESUMES[agent][0], "the word is xylophone")
        home = bench.folder / "other"
        found = exported(bench, agent, "out")
        run_as_person(bench, home, agent, *_READS[agent], str(found))
        assert "xylophone" in found.read_text()
        assert found.stem.rpartition("_")[0] in run_as_person(bench, home, agent, "session", "list")
        (path,) = (
            each for each in home.rglob("*.db") if each.name in ("sessions.db", "opencode.db")
        )
        with closing(sqlite3.connect(path)) as imported:
            assert "xylophone" in "\n".join(imported.iterdump())
