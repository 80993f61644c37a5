"""Later steps of a gated action are asked again; a person changes arguments before their answer."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aileron_core.canonical import Json
from aileron_core.console_port.intents import EditCall
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict, InvalidArguments
from aileron_core.server.agent_api import result_body
from aileron_core.settings import Settings
from tests.core.runs.test_retention import DAY, database_bytes, forget_after
from tests.core.runs.test_standing import policy
from tests.support.core_harness import (
    DRAFT,
    ROOT,
    Core,
    Mailbox,
    Start,
    audit_problems,
    change_rows,
    install_examples,
    problem_messages,
    readdress,
    run_on_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock

CONNECTOR = "local://aileron/mail-drafts"
FINDS_THEN_SENDS = (
    ("find", "list_drafts", "true", "max_results = 1"),
    ("send", "send_draft", "false", 'draft_id = "${find.drafts.0.id}"'),
)
CHANGES_TWICE_THEN_SENDS = (
    ("change", "update_draft", "false", 'id = "${args.draft_id}"\nto = "new@nordlicht.example"'),
    ("again", "update_draft", "true", 'id = "${change.id}"\nto = "last@nordlicht.example"'),
    ("bcc", "update_draft", "false", 'id = "${again.id}"\nbcc = "${change.message.threadId}@x.example"'),
    ("send", "send_draft", "false", 'draft_id = "${bcc.id}"'),
)  # fmt: skip


def chained_action(name: str, *steps: tuple[str, str, str, str], preview: bool = True) -> str:
    """Return a gated action file of *steps* (id, op, idempotent, inputs)."""
    text = (ROOT / "examples" / "actions" / "send-draft.md").read_text(encoding="utf-8")
    head, _, rest = text.partition("[[execute]]")
    _, _, tail = rest.partition("[approval]")
    ops = ", ".join(f'"{op}"' for op in dict.fromkeys(op for _, op, _, _ in steps))
    head = head.replace('name = "send-draft"', f'name = "{name}"', 1)
    head = head.replace('["send_draft"]', f"[{ops}]")
    body = "".join(
        f'[[execute]]\nid = "{each}"\nconnector = "{CONNECTOR}"\nop = "{op}"\n'
        f"idempotent = {idempotent}\n[execute.inputs]\n{inputs}\n\n"
        for each, op, idempotent, inputs in steps
    )
    if not preview:
        kept, _, after = tail.partition("[approval.preview]")
        tail = kept + "+++" + after.partition("+++")[2]
    return head + body + "[approval]" + tail


async def asked_halting(core: Core, *, key: str | None = None) -> ApprovalView:
    return await core.ask_for("chain", {"draft_id": DRAFT}, key=key)


async def halted(core: Core, *, key: str | None = None) -> ApprovalView:
    first = await asked_halting(core, key=key)
    await core.approve(first)
    return await core.back(first)


def statuses(view: ApprovalView) -> dict[str, str]:
    return {step.step_id: step.status for step in view.steps}


def sent_to(view: ApprovalView, step_id: str) -> dict[str, str]:
    """Return what *view* says that the op of *step_id* gets."""
    step = next(step for step in view.steps if step.step_id == step_id)
    return {field.label: field.value for field in step.inputs}


@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_a_step_that_needs_an_output_is_asked_again(core: Core, mailbox: Mailbox) -> None:
    """The first yes cannot cover what nobody knew; the second one covers exactly that."""
    first = await asked_halting(core)
    assert statuses(first) == {"find": "fixed", "send": "running"}
    assert sent_to(first, "send") == {"draft_id": "${find.drafts.0.id}"}
    assert [step.asks_again for step in first.steps] == [False, True]
    await core.approve(first)
    second = await core.back(first)
    assert (mailbox.state()["sent"], statuses(second)) == ([], {"find": "done", "send": "asked"})
    assert sent_to(second, "send")["draft_id"].startswith("r-")
    assert (second.op, second.preview.status) == ("send_draft", "none")
    assert second.words != first.words
    assert second.digest != first.digest
    with pytest.raises(Conflict, match="changed while you answered"):
        await core.app.approvals.approve(second.approval_id, first.digest)
    live_run = core.live(second)
    drafts: Json = {"drafts": [{"id": "r-other"}]}
    other = replace(live_run.row.progress, steps={"find": drafts})
    digest, words = live_run.consent(live_run.preview, replace(live_run.row, progress=other))
    assert digest != second.digest
    assert words != second.words
    assert (live_run.consent(live_run.preview)[0], mailbox.state()["sent"]) == (second.digest, [])
    over = await core.run(second)
    assert over.state == "completed"
    (halt,) = await core.records("run.halted")
    assert (halt["steps"], halt["next"], halt["digest"]) == (["find"], "send", second.digest)
    row = await core.result(second.approval_id)
    assert list(row.output["steps"]) == ["find", "send"]
    assert (list(result_body(row)["steps"]), row.words) == (["find", "send"], second.words)
    assert row.progress is None
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.actions(chain=chained_action("chain", *CHANGES_TWICE_THEN_SENDS))
async def test_a_finished_step_is_never_repeated(start: Start, mailbox: Mailbox) -> None:
    """Every halt goes on where it stood, also after a restart; only a step that is not idempotent halts."""
    async with start() as core:
        first = await asked_halting(core)
        assert [step.asks_again for step in first.steps] == [False, False, True, True]
        await core.approve(first)
        second = await core.back(first)
        assert [step.step_id for step in second.steps if step.status == "asked"] == ["bcc"]
    async with start() as core:
        (again,) = await core.approvals()
        assert (again.state, statuses(again)) == ("pending", statuses(second))
        assert sent_to(again, "bcc") == sent_to(second, "bcc")
        await core.approve(again)
        last = await core.back(again)
        assert [step.step_id for step in last.steps if step.status == "asked"] == ["send"]
        end, halts = await core.run(last), await core.records("run.halted")
        assert (end.state, len(halts)) == ("completed", 2)
    assert sum(each.startswith("PUT") for each in writes(mailbox)) == 3
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
@pytest.mark.core(settings=Settings(expires_seconds=60))
async def test_a_question_has_a_deadline(core: Core, mailbox: Mailbox, clock: FrozenClock) -> None:
    first = await asked_halting(core)
    clock.advance(50)
    await core.approve(first)
    second = await core.back(first)
    assert second.expires_at == clock.now() + 60
    clock.advance(50)
    await core.app.approvals.expire_overdue()
    assert core.views(second.approval_id)[-1].state == "pending"
    clock.advance(11)
    await core.app.approvals.expire_overdue()
    assert (await core.ended(second)).state == "expired"
    assert mailbox.state()["sent"] == []


MISSING = ("send", "send_draft", "false", 'draft_id = "${find.no.such}"')


@pytest.mark.actions(chain=chained_action("chain", FINDS_THEN_SENDS[0], MISSING))
async def test_a_missing_value_ends_the_run(core: Core, mailbox: Mailbox) -> None:
    first = await asked_halting(core)
    assert (await core.run(first)).state == "failed"
    assert (await core.failure(first)).details["completed_steps"] == ["find"]
    assert (await core.records("run.halted"), mailbox.state()["sent"]) == ([], [])


LOOKS = chained_action(
    "chain", *FINDS_THEN_SENDS, ("look", "list_drafts", "true", "max_results = 2")
)


@pytest.mark.actions(chain=LOOKS.replace("[approval]", "[limits]\nwall_seconds = 30\n\n[approval]"))
async def test_the_wall_time_goes_on_where_it_stood(
    core: Core, mailbox: Mailbox, clock: FrozenClock
) -> None:
    first = await asked_halting(core)
    mailbox.control(fail={"op": "list", "status": 503, "times": 1})
    run_on_request(mailbox, "GET drafts", lambda: clock.advance(15))
    await core.approve(first)
    second = await core.back(first)
    assert core.live(second).row.progress.elapsed == 15.0
    mailbox.control(fail={"op": "list", "status": 503, "times": 1})
    run_on_request(mailbox, "GET drafts", lambda: clock.advance(14.5))
    await core.approve(second)
    # A repeat would wait for a second, and less than that is left.
    assert (await core.ended(second)).state == "failed"
    assert (await core.failure(second)).details["completed_steps"] == ["find", "send"]
    assert len(mailbox.state()["sent"]) == 1


CHANGES_THEN_READS = (
    ("change", "update_draft", "false", 'id = "${args.draft_id}"\nto = "new@nordlicht.example"'),
    ("read", "list_drafts", "true", "max_results = 1"),
)


@pytest.mark.actions(chain=chained_action("chain", *CHANGES_THEN_READS))
async def test_every_step_stands_in_the_item_though_none_needs_another(start: Start) -> None:
    async with start(accept=False) as core:
        (steps,) = (each.steps for each in core.app.library.not_accepted() if each.name == "chain")
        assert steps == (f"{CONNECTOR}.update_draft", f"{CONNECTOR}.list_drafts")
    async with start() as core:
        view = await asked_halting(core)
        assert statuses(view) == {"change": "fixed", "read": "fixed"}
        assert sent_to(view, "change") == {"id": DRAFT, "to": "new@nordlicht.example"}
        assert sent_to(view, "read") == {"max_results": "1"}
        (waits,) = (each for each in core.app.library.items() if each.name == "chain")
        assert waits.steps == steps


OTHER = "r-8842190312"
ASKED = {"id": DRAFT, "to": "mallory@evil.example"}
EDIT = {"id": OTHER, "to": "sam@helio.example"}


def edit_of(view: ApprovalView, **args: Any) -> EditCall:
    return EditCall(approval_id=view.approval_id, digest=view.digest, args=args)


async def edited_call(core: Core, view: ApprovalView, **args: Any) -> ApprovalView:
    await core.do(edit_of(view, **args))
    return await core.looked(view.approval_id, after=view.version)


@pytest.mark.actions(readdress=readdress(""))
async def test_what_a_person_changed_is_run(core: Core, home: Path, mailbox: Mailbox) -> None:
    view = await core.ask_for("readdress", ASKED)
    changed = await edited_call(core, view, **EDIT)
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
async def test_the_agents_repeat_joins_the_edited_call(start: Start, home: Path) -> None:
    async with start() as core:
        view = await core.ask_for("readdress", ASKED, key="once")
        await edited_call(core, view, to=None)
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
        row = core.live(view).row
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
            await core.do(edit_of(view, **args))
    with pytest.raises(Conflict, match="these arguments already"):
        await core.do(edit_of(view, **ASKED))
    await core.app.approvals.refresh(view.approval_id)
    again = await core.looked(view.approval_id, after=view.version)
    unseen = EditCall(approval_id=view.approval_id, digest="0" * 64, args=EDIT)
    with pytest.raises(Conflict, match="changed while you answered"):
        await core.do(unseen)
    assert (again.digest, again.edits) == (view.digest, ())
    assert (await core.run(again)).state == "completed"
    with pytest.raises(Conflict, match="answered already"):
        await core.do(edit_of(again, **EDIT))
    assert await core.records("approval.edited") == []


@pytest.mark.actions(
    find_then_send=chained_action("find-then-send", *FINDS_THEN_SENDS, preview=False)
)
async def test_a_call_without_a_preview_is_edited_until_it_has_begun(
    core: Core, mailbox: Mailbox
) -> None:
    """What a yes covers is known at once; after a halt its first steps ran with what was approved."""
    view = await core.ask_for("find-then-send", {"draft_id": DRAFT})
    changed = await edited_call(core, view, draft_id=OTHER)
    assert changed.digest not in ("", view.digest)
    await core.approve(changed)
    halted = await core.back(changed)
    assert halted.inputs == ()
    with pytest.raises(Conflict, match="has begun"):
        await core.do(edit_of(halted, draft_id=DRAFT))
    assert mailbox.state()["sent"] == []
    assert (await core.run(halted)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.actions(readdress=readdress(""))
async def test_what_the_agent_sent_cannot_be_forged_in_the_database(core: Core, home: Path) -> None:
    view = await core.ask_for("readdress", ASKED)
    changed = await edited_call(core, view, to="sam@helio.example")
    change_rows(home, """UPDATE runs SET asked_args = '{"id":"another"}'""")
    assert any("asked_sha256" in each for each in problem_messages(home))
    assert (await core.run(changed)).state == "failed"


@pytest.mark.actions(readdress=readdress(""))
async def test_of_a_denied_call_no_edit_is_told(core: Core, home: Path, clock: FrozenClock) -> None:
    """What it had sent is deleted with the rest, when that is over its time."""
    view = await core.ask_for("readdress", ASKED)
    changed = await edited_call(core, view, to="sam@helio.example")
    await core.app.approvals.deny(changed.approval_id, "not now")
    await core.ended(view)
    assert "edited_by_person" not in result_body(await core.result(view.approval_id))
    assert ASKED["to"].encode() in database_bytes(home)
    await forget_after(core, clock, 31 * DAY)
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
            await core.do(edit_of(view, to="mallory@evil.example"))
        changed = await edited_call(core, view, to="sam@helio.example")
        assert (changed.edits[0][1].value, changed.decided_by) == ("sam@helio.example", "")
        again = await edited_call(core, changed, to="anna@nordlicht.example")
        assert (again.edits, again.decided_by) == ((), "")
        await core.do(edit_of(again, id=OTHER))
        denied = await core.ended(view)
        assert (denied.state, denied.decided_by) == ("denied", "policy.toml:11")
