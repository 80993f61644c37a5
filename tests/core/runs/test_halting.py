"""Later steps of a gated action: what is decided while running is asked again."""

from dataclasses import replace
from pathlib import Path

import pytest

from aileron_core.console_port.view_models import ApprovalView
from aileron_core.errors import Conflict
from aileron_core.server.agent_api import result_body
from aileron_core.settings import Settings
from tests.support.core_harness import (
    DRAFT,
    ROOT,
    Core,
    Mailbox,
    Start,
    install_examples,
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


def chain(name: str, *steps: tuple[str, str, str, str], preview: bool = True) -> str:
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


async def asked(core: Core, action: str, *, key: str | None = None) -> ApprovalView:
    """Call *action* and return its approval once it can be decided on."""
    return await core.ask_for(action, {"draft_id": DRAFT}, key=key)


async def halted(core: Core, *, key: str | None = None) -> ApprovalView:
    """Return the second question of `chain`."""
    first = await asked(core, "chain", key=key)
    await core.approve(first)
    return await core.back(first)


def statuses(view: ApprovalView) -> dict[str, str]:
    """Return the status of each step that *view* shows."""
    return {step.step_id: step.status for step in view.steps}


def sent_to(view: ApprovalView, step_id: str) -> dict[str, str]:
    """Return what *view* says that the op of *step_id* gets."""
    step = next(step for step in view.steps if step.step_id == step_id)
    return {field.label: field.value for field in step.inputs}


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS))
async def test_a_step_that_needs_an_earlier_output_is_asked_again_with_its_arguments_filled_in(
    core: Core, mailbox: Mailbox
) -> None:
    """The first yes cannot cover what nobody knew; the second one covers exactly that."""
    first = await asked(core, "chain")
    assert statuses(first) == {"find": "fixed", "send": "running"}
    assert sent_to(first, "send") == {"draft_id": "${find.drafts.0.id}"}
    assert [step.asks_again for step in first.steps] == [False, True]
    await core.approve(first)
    second = await core.back(first)
    assert mailbox.state()["sent"] == []
    assert statuses(second) == {"find": "done", "send": "asked"}
    assert sent_to(second, "send")["draft_id"].startswith("r-")
    assert (second.op, second.preview.status) == ("send_draft", "none")
    assert second.words != first.words
    assert second.digest != first.digest
    over = await core.run(second)
    assert over.state == "completed"
    (halt,) = await core.records("run.halted")
    assert (halt["steps"], halt["next"]) == (["find"], "send")
    assert halt["digest"] == second.digest
    row = await core.result(second.approval_id)
    assert list(row.output["steps"]) == ["find", "send"]
    assert list(result_body(row)["steps"]) == ["find", "send"]
    assert row.words == second.words
    assert row.progress is None
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.actions(chain=chain("chain", *CHANGES_TWICE_THEN_SENDS))
async def test_a_finished_step_is_never_repeated_and_an_idempotent_one_is_not_asked(
    core: Core, mailbox: Mailbox
) -> None:
    """Every halt goes on where it stood; only a step that is not idempotent halts."""
    view = await asked(core, "chain")
    assert [step.asks_again for step in view.steps] == [False, False, True, True]
    for step in ("bcc", "send"):
        await core.approve(view)
        view = await core.back(view)
        assert next(s.step_id for s in view.steps if s.status == "asked") == step
    assert (await core.run(view)).state == "completed"
    assert len(await core.records("run.halted")) == 2
    assert sum(each.startswith("PUT") for each in writes(mailbox)) == 3
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS))
async def test_a_yes_to_one_question_is_none_to_the_second(core: Core, mailbox: Mailbox) -> None:
    """Approving covers exactly one digest; the old one decides nothing any more."""
    first = await asked(core, "chain")
    await core.approve(first)
    second = await core.back(first)
    with pytest.raises(Conflict, match="changed while you answered"):
        await core.app.approvals.approve(second.approval_id, first.digest)
    assert mailbox.state()["sent"] == []


@pytest.mark.actions(chain=chain("chain", *CHANGES_TWICE_THEN_SENDS))
async def test_a_halted_run_waits_over_a_restart_and_repeats_nothing(
    start: Start, mailbox: Mailbox
) -> None:
    """Pending is pending after a crash; its finished steps stay finished."""
    async with start() as core:
        second = await halted(core)
    async with start() as core:
        (again,) = await core.approvals()
        assert again.state == "pending"
        assert statuses(again) == statuses(second)
        assert sent_to(again, "bcc") == sent_to(second, "bcc")
        await core.approve(again)
        last = await core.back(again)
        assert (await core.run(last)).state == "completed"
    assert sum(each.startswith("PUT") for each in writes(mailbox)) == 3


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS))
@pytest.mark.core(settings=Settings(expires_seconds=60))
async def test_a_second_question_has_a_deadline_of_its_own_and_ends_with_it(
    core: Core, mailbox: Mailbox, clock: FrozenClock
) -> None:
    """Human time is not execution time; what is asked now was not known before."""
    first = await asked(core, "chain")
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


async def test_a_missing_value_ends_the_run_before_that_step_and_before_any_question(
    start: Start, home: Path, mailbox: Mailbox
) -> None:
    """A miss in a step's output fails the run before that step, with what had run."""
    steps = (FINDS_THEN_SENDS[0], ("send", "send_draft", "false", 'draft_id = "${find.no.such}"'))
    install_examples(home, chain=chain("chain", *steps))
    async with start() as core:
        first = await asked(core, "chain")
        over = await core.run(first)
        assert over.state == "failed"
        failure = await core.failure(over)
        assert failure.details["completed_steps"] == ["find"]
        assert await core.records("run.halted") == []
    assert mailbox.state()["sent"] == []


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS, preview=False))
async def test_an_action_without_a_preview_halts_as_well(core: Core, mailbox: Mailbox) -> None:
    """The rule is about arguments, not about previews."""
    second = await halted(core)
    assert mailbox.state()["sent"] == []
    assert (await core.run(second)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS))
async def test_the_second_yes_covers_the_filled_in_arguments_and_nothing_else(core: Core) -> None:
    """Another output of the earlier step is another digest, all else being equal."""
    second = await halted(core)
    live_run = core.live(second)
    assert live_run.row.progress is not None
    other = replace(live_run.row.progress, steps={"find": {"drafts": [{"id": "r-other"}]}})
    digest, words = live_run.consent(live_run.preview, replace(live_run.row, progress=other))
    assert digest != second.digest
    assert words != second.words
    again, _ = live_run.consent(live_run.preview)
    assert again == second.digest


async def test_the_wall_time_goes_on_where_it_stood(
    start: Start, home: Path, mailbox: Mailbox, clock: FrozenClock
) -> None:
    """One wall time for the whole run, without the time that a person took."""
    steps = (*FINDS_THEN_SENDS, ("look", "list_drafts", "true", "max_results = 2"))
    text = chain("chain", *steps).replace("[approval]", "[limits]\nwall_seconds = 30\n\n[approval]")
    install_examples(home, chain=text)
    async with start() as core:
        first = await asked(core, "chain")
        mailbox.control(fail={"op": "list", "status": 503, "times": 1})
        run_on_request(mailbox, "GET drafts", lambda: clock.advance(15))
        await core.approve(first)
        second = await core.back(first)
        live_run = core.live(second)
        assert live_run.row.progress.elapsed == 15.0
        mailbox.control(fail={"op": "list", "status": 503, "times": 1})
        run_on_request(mailbox, "GET drafts", lambda: clock.advance(14.5))
        await core.approve(second)
        # A repeat would wait for a second, and less than that is left.
        over = await core.ended(second)
        assert over.state == "failed"
        failure = await core.failure(over)
        assert failure.details["completed_steps"] == ["find", "send"]
    assert len(mailbox.state()["sent"]) == 1


CHANGES_THEN_READS = (
    ("change", "update_draft", "false", 'id = "${args.draft_id}"\nto = "new@nordlicht.example"'),
    ("read", "list_drafts", "true", "max_results = 1"),
)


@pytest.mark.actions(chain=chain("chain", *CHANGES_THEN_READS))
async def test_every_step_stands_in_the_item_though_none_needs_another(start: Start) -> None:
    """One yes runs them all: each with its own arguments, and before it at the file's acceptance."""
    async with start(accept=False) as core:
        (steps,) = (each.steps for each in core.app.library.not_accepted() if each.name == "chain")
        assert steps == (f"{CONNECTOR}.update_draft", f"{CONNECTOR}.list_drafts")
    async with start() as core:
        view = await asked(core, "chain")
        assert statuses(view) == {"change": "fixed", "read": "fixed"}
        assert sent_to(view, "change") == {"id": DRAFT, "to": "new@nordlicht.example"}
        assert sent_to(view, "read") == {"max_results": "1"}
        (waits,) = (each for each in core.app.library.items() if each.name == "chain")
        assert waits.steps == steps
