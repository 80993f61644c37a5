"""Refused calls are on record, and a loop of them does not fill the audit that all sessions share."""

from contextlib import suppress

import pytest

from aileron_core.errors import InvalidArguments, NotFound, StorageUnavailable
from aileron_core.sessions.model import Session
from tests.core.runs.test_unwritable import writable
from tests.support.core_harness import Core, Start
from tests.support.frozen_clock import FrozenClock


async def refuse_calls(core: Core, count: int, session: Session | None = None) -> None:
    """Call what is not there, by other names each time."""
    for number in range(count):
        with pytest.raises(NotFound):
            await core.call(f"no-such-{number}", {}, session=session)


async def test_equal_refusals_are_one_record_with_their_exact_number(
    start: Start, clock: FrozenClock
) -> None:
    """918 records a second were written of calls of unknown actions; another session's are apart."""
    async with start() as core:
        other = await core.another_session()
        await refuse_calls(core, 500)
        await refuse_calls(core, 2, other)
        with pytest.raises(InvalidArguments):
            await core.call("send-draft", {})
        found = await core.records("call.refused")
        assert [(r["session"], r["class"]) for r in found] == [
            (core.session.session_id, "not_found"),
            (other.session_id, "not_found"),
            (core.session.session_id, "invalid_arguments"),
        ]
        assert found[0]["action"] == "no-such-0"
        assert "count" not in found[0]
        clock.advance(5)
        own, others = (await core.until_record("call.refused", 5))[3:]
        assert (own["count"], others.get("count", 1)) == (499, 1)
        assert sum(own["actions"].values()) + own["other_actions"] == 499
        assert len(own["actions"]) <= 16
        await refuse_calls(core, 3)
        assert len(await core.records("call.refused")) == 5
    async with start() as core:  # those that were not due at its end
        assert (await core.records("call.refused"))[5]["count"] == 3


async def test_a_waiting_call_that_is_repeated_in_a_loop_is_few_records_with_the_exact_number(
    core: Core, clock: FrozenClock
) -> None:
    """Each repetition was a record, in the audit that all sessions share."""
    view = await core.ask()  # with its preview: whatever is recorded next carries the number
    for _ in range(300):
        assert (await core.call()).attached
    (once,) = await core.records("run.asked_again")
    assert once["repeated"] == 1
    clock.advance(5)
    assert (await core.until_record("run.asked_again", 2))[1]["repeated"] == 299
    for _ in range(7):
        await core.call()
    await core.app.approvals.deny(view.approval_id, "no")
    (denied,) = await core.records("approval.denied")
    assert denied["repeated"] == 7
    assert (await core.call()).row.times_asked == 308


async def test_after_a_while_the_first_one_is_on_record_at_once_again(
    core: Core, clock: FrozenClock
) -> None:
    """So that a single refusal is in no console's memory alone."""
    meter = core.app.gate.refused_calls
    for count in range(1, 4):
        await refuse_calls(core, 1)
        assert len(await core.records("call.refused")) == count
        clock.advance(5)
        await meter.sweep()


async def test_what_cannot_be_written_stays_due(core: Core) -> None:
    """The first is not swallowed, and no equal one is lost."""
    writable(core, yes=False)
    with pytest.raises(StorageUnavailable):
        await core.call("no-such", {})
    writable(core, yes=True)
    with suppress(StorageUnavailable):  # until the console has found out
        await core.app.gate.refused_calls.sweep()
    await refuse_calls(core, 3)
    writable(core, yes=False)
    with pytest.raises(StorageUnavailable):
        await core.app.gate.refused_calls.sweep(everything=True)
    writable(core, yes=True)
    await core.app.gate.refused_calls.sweep(everything=True)
    assert [r.get("count", 1) for r in await core.records("call.refused")] == [1, 2]
