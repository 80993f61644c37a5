"""Why the rules had a call asked, run or denied is shown with it, and on record without quoting it."""

from dataclasses import replace

import pytest

from aileron_core.console_port.view_models import ApprovalView
from aileron_core.policy.model import Decision, Verdict
from aileron_core.runs.interfaces import ResolvedAction
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from tests.support.core_harness import Core, Start

RULE = "files of this name may hold secrets"


def have_rules_say(core: Core, decision: Decision, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the rules say *decision* of every call, as they do of those of built-in tools."""
    find = core.app.library.find
    verdict = Verdict(decision=decision, reason=RULE, about="a/.env")

    def judged(name: str) -> ResolvedAction:
        return replace(find(name), verdict=verdict)

    monkeypatch.setattr(core.app.library, "find", judged)


def drawn_rule(view: ApprovalView) -> str:
    rows = [block for block in approval_blocks(view, 0.0) if plain_text(block.label) == "RULES"]
    return "".join(plain_text(block.pieces) for block in rows)


async def test_an_item_says_why_it_is_asked_also_after_a_restart(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with start() as core:
        have_rules_say(core, "ask", monkeypatch)
        view = await core.ask()
        assert drawn_rule(view) == f"asked because: {RULE}: a/.env"
        (record,) = await core.records("run.requested")
        assert record["rule"] == RULE
    async with start() as core:
        again = await core.looked(view.approval_id)
        assert drawn_rule(again) == f"asked because: {RULE}"
        await core.run(again)
    async with start() as core:
        assert drawn_rule((await core.opened(view.run_id)).approval) == f"asked because: {RULE}"


async def test_a_call_that_ran_unasked_or_was_denied_says_by_which_rule(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    have_rules_say(core, "allow", monkeypatch)
    ran = await core.call("list-drafts", {})
    have_rules_say(core, "deny", monkeypatch)
    denied = await core.call("list-drafts", {})
    assert [denied.row.state, denied.row.gated] == ["denied", False]
    shown = (await core.opened(ran.row.run_id)).approval
    assert drawn_rule(shown) == f"ran without asking because: {RULE}: a/.env"
    shown = (await core.opened(denied.row.run_id)).approval
    assert drawn_rule(shown) == f"denied because: {RULE}: a/.env"
    (record,) = await core.records("run.denied_by_rule")
    assert record["rule"] == RULE


async def test_of_other_calls_no_rule_is_said(core: Core) -> None:
    assert drawn_rule(await core.ask()) == ""
