"""Effects that fail: what is unknown, what is repeated, and what is looked at before that."""

import pytest

from tests.support.core_harness import (
    DRAFT,
    REPEATABLE,
    SHORT_OF_TIME,
    Core,
    Mailbox,
    run_on_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock


@pytest.mark.actions(send_draft=SHORT_OF_TIME)
async def test_a_wall_limit_with_a_request_out_is_unknown_and_never_repeated(
    core: Core, mailbox: Mailbox, clock: FrozenClock
) -> None:
    """`unknown`, said to person and agent."""
    view = await core.ask()
    mailbox.control(hang="send")
    # The run's time is up once its request is out, however long that took.
    run_on_request(mailbox, "POST send", lambda: clock.advance(2))
    end = await core.run(view)
    assert end.state == "unknown"
    assert "is unknown" in end.outcome
    failure = await core.failure(view)
    assert (failure.class_, failure.retriable) == ("outcome_unknown", False)
    assert writes(mailbox).count("POST send") == 1


@pytest.mark.actions(send_draft=REPEATABLE)
async def test_a_recheck_before_a_retry_that_differs_asks_the_person_again(
    core: Core, mailbox: Mailbox
) -> None:
    """From `executing` to `pending`; nothing is repeated on other content."""
    view = await core.ask()
    mailbox.control(fail={"op": "send", "status": 503, "times": 1})
    change = {"change": {"id": DRAFT, "to": "mallory@evil.example"}}
    run_on_request(mailbox, "POST send", lambda: mailbox._state.apply(change))
    await core.approve(view)
    back = await core.view(view.approval_id, lambda v: v.state == "pending" and v.drift is not None)
    assert back.words != view.words
    assert mailbox.state()["sent"] == []


async def test_a_step_that_is_not_idempotent_is_not_repeated(core: Core, mailbox: Mailbox) -> None:
    """Only a step declared idempotent is repeated; whether a 503 took effect, nobody knows."""
    view = await core.ask()
    mailbox.control(fail={"op": "send", "status": 503, "times": 1})
    assert (await core.run(view)).state == "unknown"
    assert writes(mailbox).count("POST send") == 1
