"""Which calls go around the gate: by agent, by what the launch switched off, by name."""

from pathlib import Path

import pytest

from aileron_core.agent_names import AGENT_NAMES
from aileron_core.launch.agents import AGENTS, claude, opencode, pi
from aileron_core.sessions.tool_calls import goes_around
from tests.support.making import own_tools

PAGE = Path(__file__).parents[3] / "docs" / "gateway.md"


KEPT = ["WebFetch", "mcp__aileron__Bash", "mcp__other__Bash"]  # the first writes nothing


@pytest.mark.parametrize(
    ("agent", "builtins", "around", "others"),
    [
        ("claude", "instead", ["Bash", "Read"], KEPT),
        ("claude", "beside", ["Bash"], ["Read"]),
        ("claude", "", ["Write"], ["Grep", "bash"]),  # `bash` is another agent's
        ("codex", "instead", ["apply_patch", "view_image"], ["mcp__aileron.Bash"]),
        ("codex", "", ["local_shell_call"], ["view_image"]),
        ("goose", "instead", ["tree"], []),
        ("opencode", "", ["edit"], []),
        ("pi", "instead", ["ls"], []),
        ("my-script", "", [], ["Bash"]),  # nobody knows what that does
        ("gemini", "instead", [], ["run_shell_command"]),  # its answers are not read
    ],
)
def test_a_call_goes_around_that_should_have_come_to_the_gate(
    agent: str, builtins: str, around: list[str], others: list[str]
) -> None:
    assert [each for each in (*around, *others) if goes_around(agent, builtins, each)] == around


def test_what_a_launch_switches_off_is_known_by_name() -> None:
    assert own_tools("claude") >= {*claude._DENIED_TOOLS}
    assert own_tools("opencode") >= {*opencode._OWN_TOOLS}
    assert own_tools("pi") >= {*pi._OWN_TOOLS}
    assert own_tools("claude").isdisjoint(claude._KEPT_TOOLS)
    assert all(own_tools(each) for each in AGENT_NAMES if each != "gemini")


@pytest.mark.parametrize("agent", [each for each in AGENT_NAMES if each != "gemini"])
def test_the_page_has_the_same_tables(agent: str) -> None:
    lines, begins = PAGE.read_text(encoding="utf-8").splitlines(), f"| {AGENTS[agent].title} |"
    (row,) = [line.strip("|").split("|") for line in lines if line.startswith(begins)]
    writing, reading = ({name.strip() for name in cell.split(",")} for cell in row[1:])
    assert writing == {name for name in own_tools(agent) if goes_around(agent, "", name)}
    assert reading == own_tools(agent) - writing
