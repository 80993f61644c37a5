"""A run that halted half-way meets equal calls, pauses, stops and failed writes."""

from pathlib import Path

import pytest

from aileron_core.console_port import SetPause, StopEverything
from aileron_core.errors import Conflict, Paused
from aileron_core.server.responses import result_body
from aileron_core.settings import Settings
from tests.core.adversary.test_a_halted_run_under_attack import halted, problems, result_of
from tests.core.runs.test_halting import FINDS_THEN_SENDS, asked, chain, statuses
from tests.support.core_harness import (
    DRAFT,
    Core,
    Mailbox,
    install_examples,
    run,
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


async def test_an_equal_call_attaches_to_a_halted_run_and_does_not_disarm_it(home: Path) -> None:
    """The same session, action and arguments while it is open; nothing runs twice."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox) as core:
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
    await core.app.console.carry_out(SetPause(paused=True))
    with pytest.raises(Paused):
        await core.approve(second)
    await core.app.console.carry_out(SetPause(paused=False))
    await core.app.console.carry_out(StopEverything())
    over = await core.ended(second)
    assert (over.state, over.reason) == ("denied", "A person stopped everything.")
    row = await core.result(second.approval_id)
    assert result_body(row)["completed_steps"] == ["find"]
    assert mailbox.state()["sent"] == []


@pytest.mark.parametrize("answer", ["yes", "no"])
def test_drift_before_a_retry_keeps_what_ran_shows_it_and_has_a_deadline_of_its_own(
    home: Path, answer: str
) -> None:
    """The recheck before a retry differs; a person sees which steps had run."""
    install_examples(home, chain=chain("chain", *CHANGES_THEN_SENDS))
    clock = FrozenClock()

    async def story(mailbox: Mailbox) -> None:
        async with Core.open(
            home, mailbox, clock=clock, settings=Settings(expires_seconds=60)
        ) as core:
            first = await asked(core, "chain")
            assert statuses(first) == {"change": "fixed", "send": "fixed"}
            mailbox.control(fail={"op": "send", "status": 503, "times": 1})
            clock.advance(59)
            await core.approve(first)
            again = await core.back(first)
            assert statuses(again) == {"change": "done", "send": "fixed"}
            assert "The steps that already ran are not undone" in again.note
            assert again.drift is not None
            assert again.expires_at == clock.now() + 60
            if answer == "no":
                await core.app.approvals.deny(again.approval_id, "")
                assert (await result_of(core, again))["completed_steps"] == ["change"]
                return
            await core.approve(again)
            assert (await core.ended(again)).state == "completed"

    with Mailbox() as mailbox:
        run(story(mailbox))
        assert sum(each.startswith("PUT") for each in writes(mailbox)) == 1
        assert len(mailbox.state()["sent"]) == (answer == "yes")
    assert problems(home) == set()


async def test_a_try_that_failed_counts_and_is_not_reported_as_nothing(home: Path) -> None:
    """Retries are in the wall time; a no after a try is not a no before anything."""
    install_examples(home, chain=chain("chain", CHANGES_THEN_SENDS[1]))

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox) as core:
            first = await asked(core, "chain")
            mailbox.control(fail={"op": "send", "status": 503, "times": 1})
            change = {"change": {"id": DRAFT, "to": "eve@example.com"}}
            run_on_request(mailbox, "POST send", lambda: mailbox._state.apply(change))
            await core.approve(first)
            again = await core.back(first)
            live_run = core.app.approvals.registry.by_approval(again.approval_id)
            assert live_run is not None
            assert live_run.row.progress is not None
            assert live_run.row.progress.elapsed >= 1.0
            await core.app.approvals.deny(again.approval_id, "")
            assert (await result_of(core, again))["completed_steps"] == []
        assert mailbox.state()["sent"] == []
    assert problems(home) == set()


async def test_a_halt_that_cannot_be_written_asks_nothing_until_it_can(home: Path) -> None:
    """The second question is on record before it can be answered."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))
    cores: list[Core] = []
    tries = 0

    def fail(name: str) -> None:
        nonlocal tries
        if name == "before run.halted" and cores:
            tries += 1
            state = "ON" if tries == 1 else "OFF"
            cores[0].app.database._connection.execute(f"PRAGMA query_only={state}")

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox, failpoint=fail) as core:
            first = await asked(core, "chain")
            cores.append(core)
            await core.approve(first)
            await core.view(first.approval_id, lambda v: v.state == "executing")
            second = await core.back(first)
            assert tries == 2
            assert statuses(second) == {"find": "done", "send": "asked"}
            await core.approve(second)
            assert (await core.ended(second)).state == "completed"
        assert len(mailbox.state()["sent"]) == 1
    assert problems(home) == set()


async def test_a_stop_while_the_first_step_runs_leaves_no_second_question(home: Path) -> None:
    """What was running ends, and nothing of it waits for a yes afterwards."""
    install_examples(home, chain=chain("chain", *FINDS_THEN_SENDS))

    with Mailbox() as mailbox:
        async with Core.open(home, mailbox) as core:
            first = await asked(core, "chain")
            mailbox.control(hang="list")
            await core.approve(first)
            await wait_for_request(mailbox, "GET drafts", 1)
            await core.app.console.carry_out(StopEverything())
            over = await core.ended(first)
            assert over.state in ("failed", "denied")
            assert await core.records("run.halted") == []
            with pytest.raises(Conflict):
                await core.app.approvals.approve(over.approval_id, over.digest)
        assert mailbox.state()["sent"] == []
    assert problems(home) == set()
