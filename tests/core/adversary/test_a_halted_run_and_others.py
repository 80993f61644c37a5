"""A run that halted half-way meets equal calls, pauses, stops and failed writes."""

from pathlib import Path

import pytest

from aileron_core.console_port.intents import StopEverything
from aileron_core.errors import Conflict
from aileron_core.settings import Settings
from tests.core.adversary.test_a_halted_run_under_attack import result_of
from tests.core.runs.test_halting import FINDS_THEN_SENDS, asked_halting, chained_action, statuses
from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
    Start,
    problem_kinds,
    run_on_request,
    wait_for_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock

CHANGES_THEN_SENDS = (
    ("change", "update_draft", "false", 'id = "${args.draft_id}"\nto = "new@nordlicht.example"'),
    ("send", "send_draft", "true", 'draft_id = "${args.draft_id}"'),
)
"""Nothing depends on an earlier output; the second step may be tried again."""


@pytest.mark.parametrize("answer", ["yes", "no"])
@pytest.mark.actions(chain=chained_action("chain", *CHANGES_THEN_SENDS))
@pytest.mark.core(settings=Settings(expires_seconds=60))
async def test_drift_before_a_retry_keeps_what_ran_shows_it_and_has_a_deadline_of_its_own(
    start: Start, home: Path, answer: str, mailbox: Mailbox, clock: FrozenClock
) -> None:
    """The recheck before a retry differs; a person sees which steps had run."""
    async with start() as core:
        first = await asked_halting(core)
        assert statuses(first) == {"change": "fixed", "send": "fixed"}
        mailbox.control(fail={"op": "send", "status": 503, "times": 1})
        clock.advance(59)
        await core.approve(first)
        again = await core.back(first)
        assert statuses(again) == {"change": "done", "send": "fixed"}
        assert "The steps that already ran are not undone" in again.note
        assert again.drift is not None
        assert (await core.records("recheck.differed"))[-1]["steps"] == ["change"]
        assert again.expires_at == clock.now() + 60
        if answer == "yes":
            assert (await core.run(again)).state == "completed"
        else:
            await core.app.approvals.deny(again.approval_id, "")
            assert (await result_of(core, again))["completed_steps"] == ["change"]
    assert sum(each.startswith("PUT") for each in writes(mailbox)) == 1
    assert len(mailbox.state()["sent"]) == (answer == "yes")
    assert problem_kinds(home) == set()


@pytest.mark.actions(chain=chained_action("chain", CHANGES_THEN_SENDS[1]))
async def test_a_try_that_failed_counts_and_is_not_reported_as_nothing(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """Retries are in the wall time; a no after a try is not a no before anything."""
    async with start() as core:
        first = await asked_halting(core)
        mailbox.control(fail={"op": "send", "status": 503, "times": 1})
        change = {"change": {"id": DRAFT, "to": "eve@example.com"}}
        run_on_request(mailbox, "POST send", lambda: mailbox._state.apply(change))
        await core.approve(first)
        again = await core.back(first)
        live_run = core.live(again)
        assert live_run.row.progress is not None
        assert live_run.row.progress.elapsed >= 1.0
        await core.app.approvals.deny(again.approval_id, "")
        assert (await result_of(core, again))["completed_steps"] == []
    assert mailbox.state()["sent"] == []
    assert problem_kinds(home) == set()


@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_a_halt_that_cannot_be_written_asks_nothing_until_it_can(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """The second question is on record before it can be answered."""
    cores: list[Core] = []
    tries = 0

    def fail(name: str) -> None:
        nonlocal tries
        if name == "before run.halted" and cores:
            tries += 1
            state = "ON" if tries == 1 else "OFF"
            cores[0].app.database._connection.execute(f"PRAGMA query_only={state}")

    async with start(failpoint=fail) as core:
        first = await asked_halting(core)
        cores.append(core)
        await core.approve(first)
        await core.view(first.approval_id, lambda v: v.state == "executing")
        second = await core.back(first)
        assert tries == 2
        assert statuses(second) == {"find": "done", "send": "asked"}
        assert (await core.run(second)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1
    assert problem_kinds(home) == set()


@pytest.mark.actions(chain=chained_action("chain", *FINDS_THEN_SENDS))
async def test_a_stop_while_the_first_step_runs_leaves_no_second_question(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """What was running ends, and nothing of it waits for a yes afterwards."""
    async with start() as core:
        first = await asked_halting(core)
        mailbox.control(hang="list")
        await core.approve(first)
        await wait_for_request(mailbox, "GET drafts", 1)
        await core.do(StopEverything())
        over = await core.ended(first)
        assert over.state in ("failed", "denied")
        assert await core.records("run.halted") == []
        with pytest.raises(Conflict):
            await core.app.approvals.approve(over.approval_id, over.digest)
    assert mailbox.state()["sent"] == []
    assert problem_kinds(home) == set()
