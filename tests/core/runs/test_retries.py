"""Effects that fail: what is unknown, what is repeated, and what is looked at before that."""

from pathlib import Path

from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
    install_examples,
    run_on_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock


async def test_a_wall_limit_with_a_request_out_is_unknown_and_never_repeated(home: Path) -> None:
    """`unknown`, said to person and agent."""
    install_examples(home)
    path = home / "actions" / "send-draft.md"
    text = path.read_text(encoding="utf-8").replace(
        "[approval]\n", "[limits]\nwall_seconds = 1\n\n[approval]\n"
    )
    path.write_text(text, encoding="utf-8")

    clock = FrozenClock()

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, clock=clock) as core:
            view = await core.ask()
            mailbox.control(hang="send")
            # The run's time is up once its request is out, however long that took.
            run_on_request(mailbox, "POST send", lambda: clock.advance(2))
            await core.approve(view)
            end = await core.ended(view)
            assert end.state == "unknown"
            assert "is unknown" in end.outcome
            row = await core.result(view.approval_id)
            assert row.failure is not None
            assert (row.failure.class_, row.failure.retriable) == ("outcome_unknown", False)
        assert writes(mailbox).count("POST send") == 1


def _idempotent(home: Path) -> None:
    path = home / "actions" / "send-draft.md"
    text = path.read_text(encoding="utf-8").replace("idempotent = false", "idempotent = true")
    path.write_text(text, encoding="utf-8")


async def test_a_repeat_of_an_idempotent_step_is_preceded_by_a_recheck(home: Path) -> None:
    """Before each retry the world is looked at again."""
    install_examples(home)
    _idempotent(home)

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            mailbox.control(fail={"op": "send", "status": 503, "times": 1})
            await core.approve(view)
            assert (await core.ended(view)).state == "completed"
        get = f"GET {DRAFT}"
        assert writes(mailbox) == [get, get, "POST send", get, "POST send"]


async def test_a_recheck_before_a_retry_that_differs_asks_the_person_again(home: Path) -> None:
    """From `executing` to `pending`; nothing is repeated on other content."""
    install_examples(home)
    _idempotent(home)

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            mailbox.control(fail={"op": "send", "status": 503, "times": 1})
            change = {"change": {"id": DRAFT, "to": "mallory@evil.example"}}
            run_on_request(mailbox, "POST send", lambda: mailbox._state.apply(change))
            await core.approve(view)
            back = await core.view(
                view.approval_id, lambda v: v.state == "pending" and v.drift is not None
            )
            assert back.words != view.words
            assert mailbox.state()["sent"] == []


async def test_a_step_that_has_run_is_not_run_again_by_a_second_yes(home: Path) -> None:
    """Regression: asked again after its first step, a run began anew with that step."""
    install_examples(home)
    _idempotent(home)
    path = home / "actions" / "send-draft.md"
    first = (
        '[[execute]]\nid = "change"\nconnector = "local://aileron/mail-drafts"\n'
        'op = "update_draft"\nidempotent = false\n'
        'inputs = { id = "${args.draft_id}", bcc = "archive@example.com" }\n\n'
    )
    text = path.read_text(encoding="utf-8")
    text = text.replace('["send_draft"]', '["send_draft", "update_draft"]')
    path.write_text(text.replace("[[execute]]", first + "[[execute]]", 1), encoding="utf-8")

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            mailbox.control(fail={"op": "send", "status": 503, "times": 1})
            await core.approve(view)
            again = await core.back(view)
            assert again.drift is not None
            assert (await core.records("recheck.differed"))[-1]["steps"] == ["change"]
            await core.approve(again)
            assert (await core.ended(again)).state == "completed"
        assert sum(each.startswith("PUT") for each in writes(mailbox)) == 1
        assert len(mailbox.state()["sent"]) == 1


async def test_a_step_that_is_not_idempotent_is_never_repeated(home: Path) -> None:
    """Only a step declared idempotent is repeated."""
    install_examples(home)

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox) as core:
            view = await core.ask()
            mailbox.control(fail={"op": "send", "status": 503, "times": 1})
            await core.approve(view)
            assert (await core.ended(view)).state == "failed"
        assert writes(mailbox).count("POST send") == 1
