"""A run that halted half-way meets equal calls, pauses, stops and failed writes."""

from pathlib import Path

import pytest

from aileron_core.console_port.intents import SetPause, StopEverything
from aileron_core.errors import Conflict, Paused
from aileron_core.server.responses import result_body
from aileron_core.settings import Settings
from tests.core.adversary.test_a_halted_run_under_attack import halted, result_of
from tests.core.runs.test_halting import FINDS_THEN_SENDS, asked, chain, statuses
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


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS))
async def test_an_equal_call_attaches_to_a_halted_run_and_does_not_disarm_it(
    core: Core, mailbox: Mailbox
) -> None:
    """The same session, action and arguments while it is open; nothing runs twice."""
    second = await halted(core)
    again = await core.call("chain", {"draft_id": DRAFT})
    assert (again.attached, again.row.approval_id) == (True, second.approval_id)
    now = core.views(second.approval_id)[-1]
    assert (now.version, now.digest, now.times_asked) == (second.version, second.digest, 2)
    await core.approve(second)
    with pytest.raises(Conflict, match="already"):
        await core.approve(second)  # a second console is a second yes
    assert (await core.ended(second)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1
    assert writes(mailbox).count("GET drafts") == 1


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS))
async def test_a_withdrawn_halted_run_says_what_had_run_and_an_equal_call_asks_from_the_start(
    core: Core, mailbox: Mailbox
) -> None:
    """The withdrawal's answer is its end; what ran is in it."""
    second = await halted(core)
    row = await core.app.approvals.withdraw(core.session.session_id, second.approval_id, "")
    assert result_body(row)["completed_steps"] == ["find"]
    with pytest.raises(Conflict):
        await core.approve(second)
    anew = await asked(core, "chain")
    assert anew.approval_id != second.approval_id
    assert statuses(anew) == {"find": "fixed", "send": "running"}
    assert mailbox.state()["sent"] == []


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS))
async def test_a_pause_holds_a_halted_run_and_stop_everything_ends_it(
    core: Core, mailbox: Mailbox
) -> None:
    """No yes is taken while calls are held; a stop denies the second question."""
    second = await halted(core)
    await core.do(SetPause(paused=True))
    with pytest.raises(Paused):
        await core.approve(second)
    await core.do(SetPause(paused=False))
    await core.do(StopEverything())
    over = await core.ended(second)
    assert (over.state, over.reason) == ("denied", "A person stopped everything.")
    row = await core.result(second.approval_id)
    assert result_body(row)["completed_steps"] == ["find"]
    assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("answer", ["yes", "no"])
@pytest.mark.actions(chain=chain("chain", *CHANGES_THEN_SENDS))
@pytest.mark.core(settings=Settings(expires_seconds=60))
async def test_drift_before_a_retry_keeps_what_ran_shows_it_and_has_a_deadline_of_its_own(
    start: Start, home: Path, answer: str, mailbox: Mailbox, clock: FrozenClock
) -> None:
    """The recheck before a retry differs; a person sees which steps had run."""
    async with start() as core:
        first = await asked(core, "chain")
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


@pytest.mark.actions(chain=chain("chain", CHANGES_THEN_SENDS[1]))
async def test_a_try_that_failed_counts_and_is_not_reported_as_nothing(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """Retries are in the wall time; a no after a try is not a no before anything."""
    async with start() as core:
        first = await asked(core, "chain")
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


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS))
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
        first = await asked(core, "chain")
        cores.append(core)
        await core.approve(first)
        await core.view(first.approval_id, lambda v: v.state == "executing")
        second = await core.back(first)
        assert tries == 2
        assert statuses(second) == {"find": "done", "send": "asked"}
        assert (await core.run(second)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1
    assert problem_kinds(home) == set()


@pytest.mark.actions(chain=chain("chain", *FINDS_THEN_SENDS))
async def test_a_stop_while_the_first_step_runs_leaves_no_second_question(
    start: Start, mailbox: Mailbox, home: Path
) -> None:
    """What was running ends, and nothing of it waits for a yes afterwards."""
    async with start() as core:
        first = await asked(core, "chain")
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
