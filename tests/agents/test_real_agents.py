"""Real agents, launched, against a scripted model: the whole way from call to answer.

Codex and OpenCode here; all six with AILERON_TEST_ALL set (`make test-all`).
"""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agents.agents_bench import DRAFT, Bench, ScriptedLlm, sends_a_draft, workbench

pytestmark = pytest.mark.timeout(300)

AGENTS = ("codex", "opencode")
if os.environ.get("AILERON_TEST_ALL"):
    AGENTS += ("claude", "goose", "pi", "gemini")
CONTAINED = ((), ("--no-sandbox",))


@contextlib.contextmanager
def at_work(agent: str, folder: Path, **settings: object) -> Iterator[Bench]:
    with workbench(folder, ScriptedLlm(sends_a_draft), **settings) as bench:
        bench.configure(agent)
        yield bench


@pytest.mark.parametrize("options", CONTAINED, ids=["contained", "uncontained"])
@pytest.mark.parametrize("agent", AGENTS)
def test_an_approved_call_runs_and_the_model_reads_its_result(
    agent: str, options: tuple[str, ...], tmp_path: Path
) -> None:
    """Agent, approval, yes, effect, result, final answer; nothing of the person's is changed."""
    with at_work(agent, tmp_path) as bench:
        before = bench.fingerprint()
        with bench.launched(agent, *bench.prompt(agent), options=options) as running:
            approval = bench.asked()
            tokens = bench.tokens()
            seen = bench.console.views[approval]["containment"]
            bench.console.approve(approval)
            ended = running.end()
        assert ended.code == 0, ended.output
        assert "FINAL" in ended.output
        assert len(bench.mailbox.state()["sent"]) == 1
        (result,) = bench.llm.results
        assert '"SENT"' in result
        after = bench.fingerprint()
        assert {name for name in before if after.get(name) != before[name]} == set()
        if not options:
            assert after == before
        assert bool(tokens) == bool(options)
        assert seen == ("none" if options else "verified")
        assert not [line for line in ended.command_lines for token in tokens if token in line]
        assert bench.shows_gateway(ended) == (agent == "codex")
        bench.all_passed()
        events = [record["event"] for record in bench.console.records()]
        assert events.count("approval.approved") == 1
        assert "session.ended" in events
        assert bench.left_behind() == []


@pytest.mark.parametrize("agent", AGENTS)
def test_a_denied_call_tells_the_model_the_persons_reason(agent: str, tmp_path: Path) -> None:
    """No, with a reason: nothing is sent, and the model reads why."""
    with at_work(agent, tmp_path) as bench:
        with bench.launched(agent, *bench.prompt(agent)) as running:
            approval = bench.asked()
            bench.console.tell(deny=approval, reason="wrong list, use the new one")
            ended = running.end()
        assert ended.code == 0, ended.output
        assert bench.mailbox.state()["sent"] == []
        (result,) = bench.llm.results
        assert "wrong list, use the new one" in result
        bench.all_passed()


@pytest.mark.parametrize("agent", AGENTS)
def test_a_decision_after_the_hold_is_fetched_by_another_call(agent: str, tmp_path: Path) -> None:
    """Human time is not execution time: pending, then check_action_status, then the result."""
    with at_work(agent, tmp_path, hold_seconds=1) as bench:
        with bench.launched(agent, *bench.prompt(agent)) as running:
            approval = bench.asked()
            bench.wait_for_result("pending_approval")
            bench.console.approve(approval)
            ended = running.end()
        assert ended.code == 0, ended.output
        assert len(bench.mailbox.state()["sent"]) == 1
        pending, result = bench.llm.results[0], bench.llm.results[-1]
        assert approval in pending
        assert '"SENT"' in result
        assert DRAFT not in result
        bench.all_passed()


@pytest.mark.parametrize("agent", AGENTS)
def test_without_a_network_the_model_and_the_actions_are_reached(
    agent: str, tmp_path: Path
) -> None:
    """`--sandbox=offline`: the same base URL leads through the session's own socket."""
    with at_work(agent, tmp_path) as bench:
        before = bench.fingerprint()
        options = ("--sandbox=offline",)
        with bench.launched(agent, *bench.prompt(agent), options=options) as running:
            bench.console.approve(bench.asked())
            ended = running.end()
        assert ended.code == 0, ended.output
        assert "FINAL" in ended.output
        assert "bypasses" not in ended.output
        assert len(bench.mailbox.state()["sent"]) == 1
        assert bench.fingerprint() == before
        bench.all_passed()
