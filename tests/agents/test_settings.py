"""Your settings and the project's, as the agent gets them; who is asked, and when again."""

import contextlib

import pytest

from tests.agents.agents_bench import Bench
from tests.agents.at_terminal import Terminal
from tests.support.variants import variants

AGENT = """\
#!/usr/bin/env python3
import os, sys
print("args", " ".join(sys.argv[1:]).split("features.apps=false")[1].split())
print("colour", os.environ.get("NO_COLOR"), "mine", os.environ.get("MINE"))
"""
ASKS = '[launch.codex]\nargs = ["--model=theirs"]\nenv = { NO_COLOR = "1" }\n'


def launch_typed(bench: Bench, *options: str) -> tuple[int, str]:
    ended = bench.launch(AGENT, "typed", options=options)
    return ended.code, ended.output


def accepted(bench: Bench) -> list[dict[str, str]]:
    return bench.console.get("/v1/projects", local=True).json["items"]


def test_without_a_terminal_nothing_starts_until_somebody_said_yes(bench: Bench) -> None:
    """After a yes, these bytes ask no more; others do. No yes makes a project's file more than it may be."""
    file = bench.project / "aileron.toml"
    file.write_text(ASKS)
    code, output = launch_typed(bench)
    assert code == 77, output
    assert "argument  --model=theirs; variable  NO_COLOR=1" in output
    assert "--accept-project" in output
    assert accepted(bench) == []
    assert launch_typed(bench, "--accept-project")[0] == 0
    assert [each["path"] for each in accepted(bench)] == [str(bench.project)]
    assert launch_typed(bench)[0] == 0
    file.write_text(ASKS + "# changed\n")
    assert launch_typed(bench)[0] == 77
    opened = bench.events().count("session.opened")
    file.write_text('[launch.codex]\nenv = { LD_PRELOAD = "x" }\n')
    code, output = launch_typed(bench, "--accept-project")
    assert code == 1
    assert "aileron.toml: launch.codex.env.LD_PRELOAD" in output
    assert "args" not in output.replace(".args", "")
    assert bench.events().count("session.opened") == opened


@pytest.mark.real
@pytest.mark.parametrize(("answer", "code"), variants([("y", 0), ("", 77), ("n", 77)], 2))
def test_a_person_is_asked_and_only_yes_is_yes(bench: Bench, answer: str, code: int) -> None:
    """Shown first, on their terminal; Enter alone is a no, and so is what was typed beforehand."""
    (bench.project / "aileron.toml").write_text(ASKS)
    terminal = Terminal(bench, AGENT)
    terminal.type("y\r")  # before the question: no answer to it
    with contextlib.closing(terminal):
        terminal.until("argument  --model=theirs")
        terminal.until(r"as they are now\? \[y/N\]")
        terminal.type(f"{answer}\r")
        assert terminal.end() == code, terminal.text
        assert ("colour 1" in terminal.text) == (code == 0)
        assert len(accepted(bench)) == (code == 0)
