"""Gated runs of more than one step."""

from pathlib import Path

from aileron_core.console_port import FieldView
from tests.support.core_harness import DRAFT, ROOT, Core, Mailbox, install_examples, writes


def _two_steps() -> str:
    """Return a gated action: change the draft (not idempotent), then read it (idempotent)."""
    text = (ROOT / "examples" / "actions" / "send-draft.md").read_text(encoding="utf-8")
    first, _, rest = text.partition("[[execute]]")
    _, _, rest = rest.partition("[approval]")
    connector = "local://aileron/mail-drafts"
    steps = (
        f'[[execute]]\nid = "change"\nconnector = "{connector}"\nop = "update_draft"\n'
        'idempotent = false\n[execute.inputs]\nid = "${args.draft_id}"\nto = "new@nordlicht.example"\n\n'
        f'[[execute]]\nid = "read"\nconnector = "{connector}"\nop = "list_drafts"\n'
        "idempotent = true\n[execute.inputs]\nmax_results = 1\n\n"
    )
    head = first.replace('name = "send-draft"', 'name = "change-draft"', 1).replace(
        '["send_draft"]', '["update_draft", "list_drafts"]'
    )
    return head + steps + "[approval]" + rest


async def test_a_repeat_that_would_differ_after_a_step_has_run_asks_again_and_goes_on_from_there(
    home: Path, mailbox: Mailbox
) -> None:
    """The recheck before a retry differs, so it waits again; what has run stays done."""
    install_examples(home, change_draft=_two_steps())

    async with Core.open(home, mailbox) as core:
        answer = await core.call("change-draft", {"draft_id": DRAFT})
        assert answer.row.approval_id is not None
        view = await core.looked(answer.row.approval_id)
        mailbox.control(fail={"op": "list", "status": 503, "times": 1})
        await core.approve(view)
        again = await core.back(view)
        assert again.drift is not None
        await core.approve(again)
        assert (await core.ended(again)).state == "completed"
    assert [request for request in writes(mailbox) if request.startswith("PUT")] == [f"PUT {DRAFT}"]


async def test_every_step_stands_in_the_item_though_none_needs_what_another_returns(
    home: Path, mailbox: Mailbox
) -> None:
    """One yes runs them all: each with its own arguments, and before it at the file's acceptance."""
    install_examples(home, change_draft=_two_steps())

    async with Core.open(home, mailbox, accept=False) as core:
        not_accepted = core.app.library.not_accepted()
        connector = "local://aileron/mail-drafts"
        (steps,) = (each.steps for each in not_accepted if each.name == "change-draft")
        assert steps == (f"{connector}.update_draft", f"{connector}.list_drafts")
    async with Core.open(home, mailbox) as core:
        answer = await core.call("change-draft", {"draft_id": DRAFT})
        assert answer.row.approval_id is not None
        view = await core.looked(answer.row.approval_id)
        shown = [(step.op, step.status, step.inputs) for step in view.steps]
        assert shown == [
            (
                "update_draft",
                "fixed",
                (
                    FieldView(label="id", value=DRAFT),
                    FieldView(label="to", value="new@nordlicht.example"),
                ),
            ),
            ("list_drafts", "fixed", (FieldView(label="max_results", value="1"),)),
        ]
        (waits,) = (each for each in core.app.library.items() if each.name == "change-draft")
        assert waits.steps == steps


async def test_an_action_of_one_step_has_no_list_of_steps(core: Core) -> None:
    """Its operation says all."""
    view = await core.ask()
    assert (view.steps, view.op) == ((), "send_draft")
