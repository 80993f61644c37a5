"""Git in a real launch: what the agent commits arrives while it runs, at its end, and after a kill."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.agents.agents_bench import Bench
from tests.support.ordinary import USER
from tests.support.processes import eventually

AGENT = """\
#!/bin/sh -e
git config user.name Agent; git config user.email a@b
echo two >> file; git commit -qam second
mkdir nested; git init -q nested
{then}
"""
AS_PERSON: dict[str, Any] = (
    {"user": USER, "group": USER, "extra_groups": []} if os.getuid() == 0 else {}
)


@pytest.fixture
def bench(bench: Bench) -> Bench:
    bench.write(".codex/auth.json", '{"token": "x"}')
    person_git(bench, "init", "-q", "-b", "main")
    (bench.project / "file").write_text("one\n")
    person_git(bench, "add", ".")
    person_git(bench, "commit", "-qm", "first")
    return bench


def person_git(bench: Bench, *words: str) -> str:
    settings = ("-c", "user.name=Person", "-c", "user.email=p@q")
    done = subprocess.run(
        ["git", *settings, *words], cwd=bench.project, capture_output=True, text=True, check=True,
        env={"HOME": str(bench.home), "PATH": "/usr/bin:/bin"}, **AS_PERSON,
    )  # fmt: skip
    return done.stdout.strip()


def committing_agent(bench: Bench, then: str) -> dict[str, str]:
    return bench.stand_in(AGENT.replace("{then}", then))


def session_folders(bench: Bench) -> list[Path]:
    return list((bench.console.home / "git").glob("[!.]*"))


def test_it_arrives_while_the_agent_runs_and_the_rest_at_its_end(bench: Bench) -> None:
    """The launcher follows the refs; what is left in the project is disarmed and told."""
    env = committing_agent(bench, "until [ -e go ]; do sleep 0.1; done; echo st > st; git add st")
    with bench.launched("codex", env=env) as running:
        eventually(lambda: person_git(bench, "log", "--format=%s") == "second\nfirst")
        eventually(lambda: person_git(bench, "status", "--porcelain", "-uno") == "")
        (bench.project / "go").touch()
        ended = running.end()
    assert "The agent's commits are in your repository: refs/heads/main." in ended.output
    assert "nested/.git is a new repository" in ended.output
    assert person_git(bench, "status", "--porcelain", "-uno") == "A  st"
    assert session_folders(bench) == []


@pytest.mark.real
def test_after_a_kill_the_console_brings_it_back_and_the_next_launch_tells(bench: Bench) -> None:
    """SIGKILL of the launcher: nothing of it runs any more; its session's end is what starts that."""
    env = committing_agent(bench, "echo 3 > st; git add st; touch up; exec sleep 600")
    with bench.launched("codex", env=env) as running:
        eventually((bench.project / "up").exists)
        running.kill()
    eventually(lambda: session_folders(bench) == [])
    assert person_git(bench, "log", "--format=%s") == "second\nfirst"
    assert person_git(bench, "status", "--porcelain", "-uno") == "A  st"
    assert (bench.project / "nested" / ".git.disarmed").is_dir()
    # Its script ends at the folder that is there already.
    ended = bench.run("codex", env=committing_agent(bench, "true"), code=None)
    assert "from a launch that was killed: nested/.git is a new repository" in ended.output
    assert ended.output.count("from a launch that was killed: nested") == 1
