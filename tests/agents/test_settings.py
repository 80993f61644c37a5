"""Your settings and the project's, as the agent gets them; who is asked, and when again."""

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


def test_yours_come_first_then_the_projects_then_what_is_typed(bench: Bench) -> None:
    """`config.toml` counts by itself; a project's file once accepted; the later of two wins."""
    (bench.console.home / "config.toml").write_text(
        '[launch.codex]\nargs = ["--search"]\nenv = { MINE = "yes", NO_COLOR = "0" }\n'
    )
    (bench.project / "aileron.toml").write_text(ASKS)
    code, output = launch_typed(bench, "--accept-project")
    assert code == 0, output
    assert "args ['--search', '--model=theirs', 'typed']" in output
    assert "colour 1 mine yes" in output
    assert "argument  --model=theirs" in output


def test_without_a_terminal_nothing_starts_until_somebody_said_yes(bench: Bench) -> None:
    """A sentence that shows what is asked for; after a yes, these bytes ask no more; others do."""
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


def test_a_changed_file_is_shown_beside_what_was_accepted(bench: Bench) -> None:
    """First what it asks for more, then the lines that differ; the copy is in the home."""
    file = bench.project / "aileron.toml"
    file.write_text(ASKS)
    code, output = launch_typed(bench, "--accept-project")
    assert code == 0, output
    assert '┃ args = ["--model=theirs"]' in output
    file.write_text(ASKS.replace("theirs", "dearer"))
    code, output = launch_typed(bench, "--accept-project")
    assert code == 0, output
    wider = output.index("+ option for the agent --model=dearer")
    removed = output.index('− args = ["--model=theirs"]')
    assert wider < removed < output.index('+ args = ["--model=dearer"]')
    assert output.index("argument  --model=dearer") > removed


def test_a_project_that_asks_for_too_much_starts_nothing_whatever_is_typed(bench: Bench) -> None:
    """No yes makes a project's file more than it may be."""
    (bench.project / "aileron.toml").write_text('[launch.codex]\nenv = { LD_PRELOAD = "x" }\n')
    code, output = launch_typed(bench, "--accept-project")
    assert code == 1
    assert "aileron.toml: launch.codex.env.LD_PRELOAD" in output
    assert "args" not in output.replace(".args", "")
    assert "session.opened" not in bench.events()


@pytest.mark.real
@pytest.mark.parametrize(("answer", "code"), variants([("y", 0), ("", 77), ("n", 77)], 2))
def test_a_person_is_asked_and_only_yes_is_yes(bench: Bench, answer: str, code: int) -> None:
    """Shown first, on their terminal; Enter alone is a no, and so is what was typed beforehand."""
    (bench.project / "aileron.toml").write_text(ASKS)
    terminal = Terminal(bench, AGENT)
    terminal.type("y\r")  # before the question: no answer to it
    try:
        terminal.until("argument  --model=theirs")
        terminal.until(r"as they are now\? \[y/N\]")
        terminal.type(f"{answer}\r")
        assert terminal.end() == code, terminal.text
        assert ("colour 1" in terminal.text) == (code == 0)
        assert len(accepted(bench)) == (code == 0)
    finally:
        terminal.close()


def test_settings_of_the_agent_that_take_the_wiring_away_are_asked_for_alike(bench: Bench) -> None:
    """The same yes and the same digest cover the project's own files of the agent."""
    (bench.project / ".codex").mkdir()
    file = bench.project / ".codex" / "config.toml"
    file.write_text('[mcp_servers.aileron]\ncommand = "evil"\n')
    code, output = launch_typed(bench)
    assert code == 77
    assert ".codex/config.toml sets mcp_servers.aileron" in output
    assert launch_typed(bench, "--accept-project")[0] == 0
    assert launch_typed(bench)[0] == 0
    file.write_text('[mcp_servers.aileron]\ncommand = "more evil"\n')
    assert launch_typed(bench)[0] == 77
