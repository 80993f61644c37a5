"""Gated runs of more than one step."""

from pathlib import Path

from core_harness import DRAFT, ROOT, Core, Mailbox, furnish, run, writes


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


def test_a_repeat_that_would_differ_after_a_step_has_run_asks_again_and_goes_on_from_there(
    home: Path,
) -> None:
    """DESIGN 5: the recheck before a retry differs, so it waits again; what has run stays done."""
    furnish(home, change_draft=_two_steps())

    async def story(mailbox: Mailbox) -> None:
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

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert [request for request in writes(mailbox) if request.startswith("PUT")] == [
            f"PUT {DRAFT}"
        ]
