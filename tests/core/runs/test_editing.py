"""A person changes a call's arguments before their answer: it is looked at anew, and the agent is told."""

from pathlib import Path
from typing import Any

import pytest

from aileron_core.console_port.intents import EditCall
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict, InvalidArguments
from aileron_core.runs.model import RunRecord
from aileron_core.server.agent_api import result_body
from tests.core.runs.test_halting import FINDS_THEN_SENDS, chain
from tests.core.runs.test_retention import DAY, database_bytes
from tests.core.runs.test_standing import policy
from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
    Start,
    audit_problems,
    change_rows,
    install_examples,
    problem_messages,
    readdress,
    writes,
)
from tests.support.frozen_clock import FrozenClock

OTHER = "r-8842190312"
ASKED = {"id": DRAFT, "to": "mallory@evil.example"}
EDIT = {"id": OTHER, "to": "sam@helio.example"}


def edit(view: ApprovalView, **args: Any) -> EditCall:
    return EditCall(approval_id=view.approval_id, digest=view.digest, args=args)


@pytest.mark.actions(readdress=readdress(""))
async def test_what_a_person_changed_is_fetched_answered_and_run(
    core: Core, home: Path, mailbox: Mailbox
) -> None:
    """Nothing of the first preview or its digest counts for the new arguments."""
    view = await core.ask_for("readdress", ASKED)
    await core.do(edit(view, **EDIT))
    changed = await core.looked(view.approval_id, after=view.version)
    assert changed.preview.fields != view.preview.fields
    assert changed.drift is None
    assert [(old.value, new.value) for old, new in changed.edits] == [
        (ASKED[name], EDIT[name]) for name in ("id", "to")
    ]
    assert result_body(await core.result(view.approval_id)).keys().isdisjoint({"edited_by_person"})
    with pytest.raises(Conflict, match="changed while you answered"):
        await core.approve(view)
    await core.run(changed)
    assert (writes(mailbox).count(f"PUT {OTHER}"), writes(mailbox).count(f"PUT {DRAFT}")) == (1, 0)
    body = result_body(await core.result(view.approval_id))
    assert body.get("edited_by_person") == {"changed": ("id", "to"), "args": EDIT}
    (record,) = await core.records("approval.edited")
    (asked,) = await core.records("run.requested")
    assert (record["changed"], record["actor"]) == (["id", "to"], "person")
    assert record["asked_sha256"] == asked["args_sha256"] != record["args_sha256"]
    assert not any(text in str(record) for text in (*ASKED.values(), *EDIT.values()))
    assert audit_problems(home) == []


@pytest.mark.actions(readdress=readdress(""))
async def test_the_agents_own_repeat_joins_the_edited_call_also_after_a_restart(
    start: Start, home: Path
) -> None:
    async with start() as core:
        view = await core.ask_for("readdress", ASKED, key="once")
        await core.do(edit(view, to=None))
        await core.looked(view.approval_id, after=view.version)
        for key in (None, "once"):
            again = await core.call("readdress", ASKED, key=key)
            assert (again.attached, again.row.approval_id) == (True, view.approval_id)
        session = core.session
    async with start() as core:
        changed = await core.looked(view.approval_id)
        assert [new.missing for _, new in changed.edits] == [True]
        again = await core.call("readdress", ASKED, session=session)
        assert (again.attached, again.row.approval_id) == (True, view.approval_id)
        await core.run(changed)
        row: RunRecord = await core.app.approvals.wait_for_result(
            session.session_id, view.approval_id, 0
        )
        assert (row.edited_names, row.args) == (("to",), {"id": DRAFT})
    assert audit_problems(home) == []


@pytest.mark.actions(readdress=readdress(""))
async def test_an_edit_that_is_refused_changes_nothing(core: Core) -> None:
    view = await core.ask_for("readdress", ASKED)
    for args, why in (
        ({"id": None}, '"id" is required.'),
        ({"to": 5, "cc": ""}, '"cc" is unknown.*"to" must be a string'),
    ):
        with pytest.raises(InvalidArguments, match=why):
            await core.do(edit(view, **args))
    with pytest.raises(Conflict, match="these arguments already"):
        await core.do(edit(view, **ASKED))
    await core.app.approvals.refresh(view.approval_id)
    again = await core.looked(view.approval_id, after=view.version)
    unseen = EditCall(approval_id=view.approval_id, digest="0" * 64, args=EDIT)
    with pytest.raises(Conflict, match="changed while you answered"):
        await core.do(unseen)
    assert (again.digest, again.edits) == (view.digest, ())
    assert (await core.run(again)).state == "completed"
    with pytest.raises(Conflict, match="answered already"):
        await core.do(edit(again, **EDIT))
    assert await core.records("approval.edited") == []


@pytest.mark.actions(find_then_send=chain("find-then-send", *FINDS_THEN_SENDS, preview=False))
async def test_a_call_without_a_preview_is_edited_until_it_has_begun(core: Core) -> None:
    """What a yes covers is known at once; after a halt its first steps ran with what was approved."""
    view = await core.ask_for("find-then-send", {"draft_id": DRAFT})
    await core.do(edit(view, draft_id=OTHER))
    changed = await core.looked(view.approval_id, after=view.version)
    assert changed.digest not in ("", view.digest)
    await core.approve(changed)
    halted = await core.back(changed)
    assert halted.inputs == ()
    with pytest.raises(Conflict, match="has begun"):
        await core.do(edit(halted, draft_id=DRAFT))


@pytest.mark.actions(readdress=readdress(""))
async def test_what_the_agent_sent_cannot_be_forged_in_the_database(core: Core, home: Path) -> None:
    view = await core.ask_for("readdress", ASKED)
    await core.do(edit(view, to="sam@helio.example"))
    changed = await core.looked(view.approval_id, after=view.version)
    change_rows(home, """UPDATE runs SET asked_args = '{"id":"another"}'""")
    assert any("asked_sha256" in each for each in problem_messages(home))
    assert (await core.run(changed)).state == "failed"


@pytest.mark.actions(readdress=readdress(""))
async def test_of_a_call_that_was_denied_the_agent_learns_no_change(
    core: Core, home: Path, clock: FrozenClock
) -> None:
    """What it had sent is deleted with the rest, when that is over its time."""
    view = await core.ask_for("readdress", ASKED)
    await core.do(edit(view, to="sam@helio.example"))
    changed = await core.looked(view.approval_id, after=view.version)
    await core.app.approvals.deny(changed.approval_id, "not now")
    await core.ended(view)
    assert "edited_by_person" not in result_body(await core.result(view.approval_id))
    assert ASKED["to"].encode() in database_bytes(home)
    clock.advance(31 * DAY)
    await core.app.contents.forget_due()
    assert ASKED["to"].encode() not in database_bytes(home)
    assert audit_problems(home) == []


async def test_rules_deny_an_edited_call_and_never_allow_it(home: Path, mailbox: Mailbox) -> None:
    """By its arguments the edit itself is refused; by what is then fetched, the call is denied as any other."""
    rules = """
[[rule]]
actions = ["readdress"]
decision = "allow"
where = { "args.to" = { only = ["sam@helio.example"] } }
other_args = "any"
[[rule]]
actions = ["readdress"]
decision = "deny"
where = { "args.to" = { within = "evil.example" } }
[[rule]]
actions = ["readdress"]
decision = "deny"
where = { "fetched.Subject" = { like = "*Angebot*" } }
"""
    install_examples(home, readdress=readdress(""))
    async with Core.open(home, mailbox, policy=policy(rules)) as core:
        view = await core.ask_for("readdress", {"id": DRAFT, "to": "anna@nordlicht.example"})
        with pytest.raises(Conflict, match="Nothing changed"):
            await core.do(edit(view, to="mallory@evil.example"))
        await core.do(edit(view, to="sam@helio.example"))
        changed = await core.looked(view.approval_id, after=view.version)
        assert (changed.edits[0][1].value, changed.decided_by) == ("sam@helio.example", "")
        await core.do(edit(changed, to="anna@nordlicht.example"))
        again = await core.looked(view.approval_id, after=changed.version)
        assert (again.edits, again.decided_by) == ((), "")
        await core.do(edit(again, id=OTHER))
        denied = await core.ended(view)
        assert (denied.state, denied.decided_by) == ("denied", "policy.toml:11")
