"""A yes for the rest of a session covers equal calls, in this process's memory alone."""

from functools import partial

import pytest

from aileron_core.clock import rfc3339
from aileron_core.console_port.intents import Approve
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict
from aileron_core.runs import live_run
from aileron_core.runs.tool_rules import RememberedCall
from tests.support.core_harness import DRAFT, Core, Mailbox, writes


@pytest.fixture(autouse=True)
def of_mails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stand in for the built-in tools, whose calls need a session's workers."""
    monkeypatch.setattr(live_run, "is_builtin", lambda name: name == "send-draft")


async def remember(core: Core, view: ApprovalView) -> None:
    await core.do(
        Approve(approval_id=view.approval_id, digest=view.digest, unseen_lines=3, remember=True)
    )


def covered(core: Core, view: ApprovalView) -> RememberedCall | None:
    covers = core.app.approvals.remembered.covers
    return covers(view.session_id, view.action, view.args_sha256, place="")


async def test_it_covers_equal_calls_until_the_session_ends(core: Core, mailbox: Mailbox) -> None:
    view = await core.ask()
    assert view.can_be_remembered
    found = partial(core.app.approvals.remembered.covers, place="")
    assert found(view.session_id, view.action, view.args_sha256) is None
    await remember(core, view)
    assert (await core.ended(view)).state == "completed"
    (record,) = await core.records("approval.approved")
    assert (record["remembered"], record["unseen_lines"]) == (True, 3)
    call = found(view.session_id, view.action, view.args_sha256)
    assert call.run_id == view.run_id
    assert call.allowed_by == f"a person's A at {rfc3339(call.at)}"
    other = await core.another_session()
    assert found(other.session_id, view.action, view.args_sha256) is None
    assert found(view.session_id, "send-other", view.args_sha256) is None
    assert found(view.session_id, view.action, "0" * 64) is None
    assert found(view.session_id, view.action, "") is None
    await core.app.session_service.end(view.session_id, "it is over", by="person")
    assert found(view.session_id, view.action, view.args_sha256) is None
    assert writes(mailbox).count("POST send") == 1


async def test_a_yes_to_what_has_changed_covers_nothing(core: Core, mailbox: Mailbox) -> None:
    """The call waits again with what is new, and so do equal ones."""
    view = await core.ask()
    mailbox.control(change={"id": DRAFT, "to": "mallory@evil.example"})
    await remember(core, view)
    await core.back(view)
    assert covered(core, view) is None


async def test_a_plain_yes_covers_only_its_own_call(core: Core) -> None:
    view = await core.ask()
    await core.run(view)
    assert "remembered" not in (await core.records("approval.approved"))[0]
    assert covered(core, view) is None


async def test_only_calls_of_built_in_tools_can_be_remembered(
    core: Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()
    view = await core.ask()
    assert not view.can_be_remembered
    with pytest.raises(Conflict, match="Only a call of a built-in tool"):
        await remember(core, view)
    assert (await core.result(view.approval_id)).state == "pending"
