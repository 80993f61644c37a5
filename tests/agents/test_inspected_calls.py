"""`[gateway] inspect` with real agents: a model that calls a tool of the agent's own is seen.

With Codex; with Claude Code too in `make test-all`.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.agents.agents_bench import Bench, CallTool, ScriptedLlm, workbench
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
    "codex": ("exec", "--skip-git-repo-check", "--sandbox=danger-full-access", "go"),
    "claude": ("-p", "--allowed-tools=Bash", "go"),
}


def run_agent(bench: Bench, agent: str, options: Sequence[str]) -> None:
    bench.configure(agent)
    args = ARGS[agent]
    if "--intercept-builtins" in options:
        args = tuple(each for each in args if not each.startswith(("--sandbox", "--allowed")))
    ended = bench.run(agent, *args, options=options)
    assert "FINAL" in ended.output
    bench.all_passed()


def went_around(bench: Bench) -> list[str]:
    found = [each for each in bench.console.records() if each["event"] == "session.went_around"]
    assert len({each["session"] for each in found}) <= 1
    return [each["tool"] for each in found]


def counts(bench: Bench) -> dict[str, int]:
    # Written by the clock, of which no event tells.
    eventually(lambda: "session.calls_counted" in bench.events())
    records = bench.console.records()
    return next(each["calls"] for each in records if each["event"] == "session.calls_counted")


def kept_bytes(bench: Bench) -> bytes:
    """What Aileron's home holds, but for the agent's own conversations: the agent keeps them."""
    home = bench.console.home
    found = [each for each in home.rglob("*") if each.is_file()]
    return b"".join(each.read_bytes() for each in found if home / "agents" not in each.parents)


@pytest.mark.parametrize("agent", variants(NATIVE))
@pytest.mark.parametrize("intercepted", [True, False], ids=["intercepted", "usual"])
def test_a_native_call_is_seen(agent: str, intercepted: bool, tmp_path: Path) -> None:
    """Also where the agent refuses it; no argument, no text, and nothing asked a person."""
    native = NATIVE[agent]
    ours = {"codex": "mcp__aileron.list_drafts", "claude": "mcp__aileron__list_drafts"}[agent]
    calls = [OURS, native] if intercepted else [native]
    llm = ScriptedLlm(in_turn(*calls, end=f"FINAL {CANARY}"))
    with workbench(tmp_path, llm, inspect=True) as bench:
        run_agent(bench, agent, ["--intercept-builtins"] if intercepted else [])
        assert counts(bench) == {native.name: 1, **({ours: 1} if intercepted else {})}
        assert went_around(bench) == [native.name]
        made = bench.project / "made.txt"
        if not intercepted:
            assert made.read_text() == f"{CANARY}\n"
        else:
            assert not made.exists()
            assert b"session.went_around" in kept_bytes(bench)
            assert CANARY.encode() not in kept_bytes(bench)
