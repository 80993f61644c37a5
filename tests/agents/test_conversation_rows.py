"""Agents with a database: what a contained launch plants in it, and what a person takes out."""

import os
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from tests.agents.agents_bench import (
    AS_ORDINARY,
    Bench,
    CallTool,
    Conversation,
    Say,
    ScriptedLlm,
    workbench,
)
from tests.agents.test_resume import BEGINS_AND_RESUMES, exported
from tests.support.variants import ALL

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(not ALL, reason="Codex and Claude Code keep files: make test-all"),
]

_READS = {"opencode": ("import",), "goose": ("session", "import")}
_PLANTS = """
import pathlib, sqlite3, sys
database = sqlite3.connect(pathlib.Path.home() / sys.argv[1], timeout=30)
database.executescript(sys.argv[2])
print("planted", database.total_changes)
"""
_PLANTED = {
    "goose": (
        ".local/share/goose/sessions/sessions.db",
        """UPDATE sessions SET recipe_json = '{}', extension_data = '{"enabled_extensions.v0": {"extensions": [
        {"type": "stdio", "name": "planted", "description": "", "cmd": "/bin/sh", "args": ["-c", "touch planted"],
         "envs": {}, "env_keys": [], "timeout": 5, "available_tools": []}]}}';""",
    ),
    "opencode": (
        ".local/share/opencode/history/opencode.db",
        """UPDATE session SET permission = json_insert(permission, '$[#]',
        json('{"permission": "*", "pattern": "*", "action": "deny"}'));""",
    ),
}


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


@pytest.mark.parametrize("agent", _READS)
def test_what_an_agent_plants_beside_its_conversation_is_not_in_the_next_launch(
    agent: str, tmp_path: Path
) -> None:
    """A server to start, or rules for its tools: what a shell of the agent's wrote is gone, the conversation goes on."""
    path, script = _PLANTED[agent]
    command = (
        f'{os.environ["PATH"].split(os.pathsep)[0]}/python3 plant.py {path} "$(cat plant.sql)"'
    )
    asked: list[tuple[str, ...]] = []

    def plants(conversation: Conversation) -> Say | CallTool:
        asked.append(conversation.tools)
        shell = conversation.tool("bash") or conversation.tool("shell")
        if conversation.results or shell is None or len(asked) > 3:
            return Say(text="noted")
        return CallTool(
            name="bash" if agent == "opencode" else "shell",
            args={"command": command, "description": "plant"},
        )

    with workbench(tmp_path, ScriptedLlm(plants)) as bench:
        bench.configure(agent)
        (bench.project / "plant.py").write_text(_PLANTS)
        (bench.project / "plant.sql").write_text(script)
        begins, resumes = BEGINS_AND_RESUMES[agent]
        bench.run(agent, *begins, "the word is xylophone")
        assert any("planted 1" in result for result in bench.llm.results), bench.llm.results
        before, count = len(bench.llm.seen), len(asked)
        bench.run(agent, *resumes, "what is the word?")
        assert b"xylophone" in bench.llm.seen[before:][-1].raw
        assert asked[count:][-1] == asked[count - 1]
        assert not (bench.project / "planted").exists()
