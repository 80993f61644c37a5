"""`[gateway] inspect` with real agents: a model that calls a tool of the agent's own is seen.

With Codex; with Claude Code too in `make test-all`.
"""

from pathlib import Path

import pytest

from tests.agents.agents_bench import CallTool, ScriptedLlm, workbench
from tests.agents.llm import in_turn
from tests.support.processes import eventually
from tests.support.variants import variants

pytestmark = pytest.mark.timeout(300)

CANARY = "canary-9ad2e4"
MAKES = f"echo {CANARY} > made.txt"
NATIVE = {
    "codex": CallTool(name="exec_command", args={"cmd": MAKES}, unoffered=True),
    "claude": CallTool(name="Bash", args={"command": MAKES, "description": "x"}, unoffered=True),
}
OURS = CallTool(name="list_drafts", args={})
ARGS = {
    "codex": (
        ("exec", "--skip-git-repo-check", "--sandbox=danger-full-access", "go"),
        ("exec", "--skip-git-repo-check", "go"),
    ),
    "claude": (("-p", "--allowed-tools=Bash", "go"), ("-p", "go")),
}
"""Where its own tools are its own, and where they were intercepted."""


@pytest.mark.parametrize("agent", variants(NATIVE))
@pytest.mark.parametrize("intercepted", [True, False], ids=["intercepted", "usual"])
def test_a_native_call_is_seen(agent: str, intercepted: bool, tmp_path: Path) -> None:
    """Also where the agent refuses it; no argument, no text, and nothing asked a person."""
    native = NATIVE[agent]
    ours = {"codex": "mcp__aileron.list_drafts", "claude": "mcp__aileron__list_drafts"}[agent]
    calls = [OURS, native] if intercepted else [native]
    llm = ScriptedLlm(in_turn(*calls, end=f"FINAL {CANARY}"))
    with workbench(tmp_path, llm, inspect=True) as bench:
        bench.configure(agent)
        options = ["--intercept-builtins"] if intercepted else []
        ended = bench.run(agent, *ARGS[agent][intercepted], options=options)
        assert "FINAL" in ended.output
        bench.all_passed()
        # Written by the clock, of which no event tells.
        eventually(lambda: "session.calls_counted" in bench.events())
        records = bench.console.records()
        (counted,) = (each for each in records if each["event"] == "session.calls_counted")
        assert counted["calls"] == {native.name: 1, **({ours: 1} if intercepted else {})}
        around = [each["tool"] for each in records if each["event"] == "session.went_around"]
        assert around == [native.name]
        made, home = bench.project / "made.txt", bench.console.home
        assert made.exists() != intercepted
        assert intercepted or made.read_text() == f"{CANARY}\n"
        # But for the agent's own conversations, which the agent keeps.
        files = [each for each in home.rglob("*") if each.is_file()]
        kept = b"".join(each.read_bytes() for each in files if home / "agents" not in each.parents)
        assert b"session.went_around" in kept
        assert CANARY.encode() not in kept
