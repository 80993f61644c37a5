"""A person's pause: what waits, what is held, what does not start, and for how long."""

import asyncio

import pytest

from aileron_core.console_port.events import PauseChanged
from aileron_core.console_port.intents import SetPause, WithdrawAcceptance
from aileron_core.errors import Conflict, Paused, StorageUnavailable, Unauthorized
from aileron_core.runs.pause import PauseSwitch
from tests.support.core_harness import (
    DRAFT,
    PATIENCE,
    UPDATE_DRAFT,
    Core,
    Mailbox,
    Start,
    hold_answers,
    writes,
)

OTHER = "r-8842190312"


async def pause(core: Core) -> None:
    await core.do(SetPause(paused=True))


async def go_on(core: Core) -> None:
    await core.do(SetPause(paused=False))


def call_in_background(
    core: Core, action: str = "get-draft", **options: object
) -> "asyncio.Task[object]":
    args = {"id": DRAFT, **({"to": "m@x.example"} if action == "update-draft" else {})}
    return asyncio.get_running_loop().create_task(core.call(action, args, **options))  # type: ignore[arg-type]


async def runs(core: Core) -> list[tuple[str, str]]:
    query = "SELECT action, state FROM runs ORDER BY run_id"
    return await core.app.database.read(lambda c: c.execute(query).fetchall())


async def test_an_ungated_call_is_held_before_its_row_and_then_runs(
    core: Core, mailbox: Mailbox
) -> None:
    """Held while the person pauses, not a row and not a request; it runs once calls go on."""
    await pause(core)
    call = call_in_background(core)
    # The gated call goes through the same gate after it: by then the first is held.
    await core.ask(OTHER)
    assert not call.done()
    assert await runs(core) == [("send-draft", "pending")]
    assert writes(mailbox) == [f"GET {OTHER}"]
    await go_on(core)
    assert (await call).row.state == "completed"  # type: ignore[attr-defined]
    events = [record["event"] for record in await core.records()]
    for earlier, later in (
        ("console.paused", "console.resumed"),
        ("console.resumed", "run.started"),
    ):
        assert events.index(earlier) < events.index(later)
    changes = [event.paused_at for event in core.events if isinstance(event, PauseChanged)]
    assert (len(changes), changes[0] is None, changes[1]) == (2, False, None)


async def test_a_call_that_was_held_for_too_long_is_refused_and_leaves_nothing(
    start: Start, mailbox: Mailbox
) -> None:
    """25 s at most, then `unavailable`; its idempotency key stays free for another try."""
    assert PauseSwitch().hold_seconds == 25
    async with start() as core:
        core.app.pause.hold_seconds = 0.1
        await pause(core)
        first, same = call_in_background(core, key="k"), call_in_background(core, key="k")
        for call in (first, same):
            with pytest.raises(Paused, match=r"waited for 0.1 s and did not run") as caught:
                await call
            assert (caught.value.class_, caught.value.retriable) == ("unavailable", True)
        assert await runs(core) == []
        assert [r["class"] for r in await core.records("call.refused")] == ["unavailable"]
        await go_on(core)
        assert (await call_in_background(core, key="k")).row.state == "completed"  # type: ignore[attr-defined]
    assert writes(mailbox) == [f"GET {DRAFT}"]


async def test_while_paused_a_person_says_no_but_not_yes(core: Core, mailbox: Mailbox) -> None:
    """Nothing approved starts, so no yes is taken that a later key would set free; a no is."""
    await pause(core)
    view, other = await core.ask(), await core.ask(OTHER)
    with pytest.raises(Paused, match="nothing was decided"):
        await core.approve(view)
    assert core.views(view.approval_id)[-1].state == "pending"
    await core.app.approvals.deny(other.approval_id, "no")
    await go_on(core)
    assert (await core.run(view)).state == "completed"
    assert [sent["draft_id"] for sent in mailbox.state()["sent"]] == [DRAFT]


async def test_what_was_approved_before_the_pause_comes_back_and_does_not_run(
    core: Core, mailbox: Mailbox
) -> None:
    """The pause comes while the yes is rechecked; it is the person's again, with a note."""
    view = await core.ask()
    with hold_answers(mailbox, f"GET {DRAFT}") as reached:
        await core.approve(view)
        await reached()
        await pause(core)
    back = await core.view(view.approval_id, lambda v: v.state == "pending", after=view.version + 1)
    assert "on hold before the run began. Nothing ran" in back.note
    await go_on(core)
    await core.call("list-drafts", {})  # the connector is free again
    assert core.views(view.approval_id)[-1].state == "pending"
    assert mailbox.state()["sent"] == []
    await core.approve(back)
    assert (await core.ended(view)).state == "completed"
    assert len(mailbox.state()["sent"]) == 1


@pytest.mark.actions(update_draft=UPDATE_DRAFT)
async def test_no_call_that_waits_begins_in_a_pause(core: Core, mailbox: Mailbox) -> None:
    """It had passed the door before; the connector is let go while calls are held."""
    view = await core.ask()
    with hold_answers(mailbox, "POST send") as reached:
        await core.approve(view)
        await reached()
        call = call_in_background(core, "update-draft")
        async with asyncio.timeout(PATIENCE):
            while len(core.app.registry._by_run) < 2:
                await asyncio.sleep(0)
        await pause(core)
    assert (await core.ended(view)).state == "completed"
    await core.ask(OTHER)  # goes by it, and through the same connector
    assert [action for action, _ in await runs(core)] == ["send-draft"] * 2
    assert not any(request.startswith("PUT") for request in writes(mailbox))
    await go_on(core)
    assert (await call).row.state == "failed"  # type: ignore[attr-defined]


async def test_a_held_call_runs_only_as_it_may_run_afterwards(core: Core, mailbox: Mailbox) -> None:
    """What was withdrawn, and whose session ended, during the pause does not run after it."""
    other = await core.another_session()
    digest = {each.name: each.sha256 for each in core.app.library.ready()}["get-draft"]
    await pause(core)
    gone, refused = call_in_background(core, session=other), call_in_background(core)
    await core.ask(OTHER)
    await core.app.session_service.end(other.session_id, "it was ended")
    await core.do(WithdrawAcceptance(kind="action", name="get-draft", digest=digest))
    await go_on(core)
    with pytest.raises(Unauthorized, match="has ended"):
        await gone
    with pytest.raises(Conflict, match="is not accepted"):
        await refused
    assert writes(mailbox) == [f"GET {OTHER}"]


async def test_a_gated_call_of_an_ended_session_does_not_become_pending(core: Core) -> None:
    """A session's token opens nothing once it has ended, also where it was just checked."""
    other = await core.another_session()
    await core.app.session_service.end(other.session_id, "it was ended")
    with pytest.raises(Unauthorized):
        await core.call(session=other)
    assert await runs(core) == []
    assert [r["class"] for r in await core.records("call.refused")] == ["unauthorized"]


async def test_a_pause_is_at_once_and_ends_with_the_process(start: Start) -> None:
    """Held even where that cannot be put on record, and said so; the next console starts without."""
    async with start() as core:
        core.app.database._stopped = StorageUnavailable("full")
        with pytest.raises(StorageUnavailable, match="All calls are on hold, but"):
            await pause(core)
        assert (await core.app.console.snapshot()).paused_at is not None
        with pytest.raises(StorageUnavailable):  # and they go on only on record
            await go_on(core)
        assert core.app.pause.is_on
        core.app.database._stopped = None
    async with start() as core:
        assert (await core.app.console.snapshot()).paused_at is None
        assert (await core.call("get-draft", {"id": DRAFT})).row.state == "completed"


async def test_waiting_for_the_end_of_a_pause_is_bounded_over_several_pauses() -> None:
    """25 s in all, however often a person pauses meanwhile."""
    switch = PauseSwitch(hold_seconds=5)
    assert await switch.wait_until_off(5) == pytest.approx(5, abs=0.5)
    switch.pause(1.0)
    switch.pause(2.0)
    assert switch.paused_since == 1.0
    waiting = asyncio.get_running_loop().create_task(switch.wait_until_off(0.2))
    for _ in range(3):  # ended and begun again before the waiting one has its turn
        await asyncio.sleep(0)
        switch.resume()
        switch.pause(3.0)
    with pytest.raises(Paused):
        await waiting
    switch.resume()
    with switch.block_starts():
        assert (switch.is_on, switch.paused_since) == (True, None)
        with pytest.raises(Paused):
            switch.require_off("on hold")
    switch.require_off("on hold")
