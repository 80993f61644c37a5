"""Why the rules had a call asked, run or denied is shown with it, and on record without quoting it."""

from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.console_port import ApprovalView
from aileron_core.policy.model import Decision, Verdict
from aileron_core.runs.interfaces import ResolvedAction
from aileron_tui.draw.document import approval_blocks
from aileron_tui.draw.text import plain_text
from tests.support.core_harness import Core, Mailbox, install_examples

RULE = "files of this name may hold secrets"


def judge(core: Core, decision: Decision, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the rules say *decision* of every call, as they do of those of built-in tools."""
    find = core.app.library.find
    verdict = Verdict(decision=decision, reason=RULE, about="a/.env")

    def judged(name: str) -> ResolvedAction:
        return replace(find(name), verdict=verdict)

    monkeypatch.setattr(core.app.library, "find", judged)


def drawn(view: ApprovalView) -> str:
    rows = [block for block in approval_blocks(view, 0.0) if plain_text(block.label) == "Rule"]
    return "".join(plain_text(block.pieces) for block in rows)


async def opened(core: Core, run_id: str) -> ApprovalView:
    call = (await core.app.console.calls.read(run_id)).call
    assert call is not None
    return call.approval


async def test_an_item_says_why_it_is_asked_also_after_a_restart(
    home: Path, mailbox: Mailbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_examples(home)
    async with Core.open(home, mailbox) as core:
        judge(core, "ask", monkeypatch)
        view = await core.ask()
        assert drawn(view) == f"asked because: {RULE}: a/.env"
        (record,) = await core.records("run.requested")
        assert record["rule"] == RULE
    async with Core.open(home, mailbox) as core:
        again = await core.looked(view.approval_id)
        assert drawn(again) == f"asked because: {RULE}"
        await core.approve(again)
        await core.ended(again)
    async with Core.open(home) as core:
        assert drawn(await opened(core, view.run_id)) == f"asked because: {RULE}"


async def test_a_call_that_ran_unasked_or_was_denied_says_by_which_rule(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(core, "allow", monkeypatch)
    ran = await core.call("list-drafts", {})
    judge(core, "deny", monkeypatch)
    denied = await core.call("list-drafts", {})
    assert [denied.row.state, denied.row.gated] == ["denied", False]
    shown = await opened(core, ran.row.run_id)
    assert drawn(shown) == f"ran without asking because: {RULE}: a/.env"
    shown = await opened(core, denied.row.run_id)
    assert drawn(shown) == f"denied because: {RULE}: a/.env"
    (record,) = await core.records("run.denied_by_rule")
    assert record["rule"] == RULE


async def test_of_other_calls_no_rule_is_said(core: Core) -> None:
    assert drawn(await core.ask()) == ""
