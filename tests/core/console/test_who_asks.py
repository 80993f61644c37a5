"""What the console says of a requester: claims, whether it still waits, how many of its calls wait."""

from pathlib import Path

from aileron_core.console.view_mapping import GRACE_SECONDS
from aileron_core.console_port.events import SessionsUpdated
from aileron_core.console_port.view_models import SessionView
from aileron_core.runs import Call
from tests.support.core_harness import DRAFT, Core, Mailbox, Start, change_rows, hold_answers
from tests.support.frozen_clock import FrozenClock

CLAIMS = (("client", "codex 0.169"), ("call", "call_1"))
OTHER = "r-8842190312"


async def ask_with_claims(core: Core, claims: tuple[tuple[str, str], ...] = CLAIMS) -> str:
    call = Call(session=core.session, action="send-draft", args={"draft_id": DRAFT}, claims=claims)
    answer = await core.app.gate.run(call)
    await core.looked(answer.row.approval_id)
    return answer.row.approval_id


def claimed(core: Core, approval_id: str) -> list[tuple[str, str]]:
    (view,) = (v for v in core.app.publisher.approvals() if v.approval_id == approval_id)
    return [(field.label, field.value) for field in view.claims]


async def test_claims_stand_in_the_view_and_the_record_and_outlive_a_restart(start: Start) -> None:
    async with start() as core:
        approval_id = await ask_with_claims(core)
        assert claimed(core, approval_id) == list(CLAIMS)
        (record,) = await core.records("run.requested")
        assert record["claims"] == [list(pair) for pair in CLAIMS]
    async with start() as again:
        assert claimed(again, approval_id) == list(CLAIMS)
        again.session = core.session
        again.app.sessions.add(core.session)
        newer = (("client", "codex 0.170"), ("call", "call_2"))
        await ask_with_claims(again, newer)
        assert claimed(again, approval_id) == list(newer)
        await ask_with_claims(again, ())  # a call without ids takes none away
        assert claimed(again, approval_id) == list(newer)
    async with start() as last:
        assert claimed(last, approval_id) == list(newer)
        assert last.app.publisher.approvals()[0].times_asked == 3


async def test_a_spoilt_record_claims_nothing(start: Start, home: Path) -> None:
    async with start() as core:
        approval_id = await ask_with_claims(core)
    change_rows(
        home,
        "INSERT INTO audit(seq, event, run, body) SELECT 100, event, run, "
        "'{\"claims\": [7]}' FROM audit WHERE event = 'run.requested'",
        "INSERT INTO audit(seq, event, run, hash, body) SELECT 101, event, run, zeroblob(32), "
        "'}' FROM audit WHERE seq = 100",
    )
    async with start() as core:
        assert claimed(core, approval_id) == list(CLAIMS)


async def test_an_agent_has_stopped_waiting_once_no_call_of_it_is_held_for_a_while(
    core: Core, clock: FrozenClock
) -> None:
    approval_id, waiters = await ask_with_claims(core), core.app.publisher.waiters
    sweep = lambda: waiters.sweep(core.app.publisher._is_open)  # noqa: E731

    def stopped() -> float | None:
        return core.views(approval_id)[-1].stopped_waiting_at

    version = core.views(approval_id)[-1].version
    clock.advance(100)
    sweep()
    assert stopped() is None  # nobody ever waited
    with waiters.waiting(approval_id):
        with waiters.waiting(approval_id):
            clock.advance(100)
        sweep()
    left = clock.now()
    clock.advance(GRACE_SECONDS - 0.1)
    sweep()
    assert stopped() is None  # a held call asks again within that time
    clock.advance(0.1)
    sweep()
    assert stopped() == left
    with waiters.waiting(approval_id):
        assert stopped() is None
    clock.advance(GRACE_SECONDS)
    sweep()
    assert stopped() == left + GRACE_SECONDS
    assert core.views(approval_id)[-1].version == version
    await core.app.approvals.deny(approval_id, "")
    sweep()
    assert waiters._waits == {}


async def test_who_got_an_answer_did_not_stop_waiting(core: Core, clock: FrozenClock) -> None:
    approval_id, waiters = await ask_with_claims(core), core.app.publisher.waiters
    with waiters.waiting(approval_id):
        await core.app.approvals.deny(approval_id, "")
    clock.advance(60)
    waiters.sweep(core.app.publisher._is_open)
    assert core.views(approval_id)[-1].stopped_waiting_at is None


async def test_a_session_says_how_many_calls_wait_and_run(start: Start, mailbox: Mailbox) -> None:
    async with start() as core:
        mine = core.session.session_id

        def view(core: Core) -> SessionView:
            return next(v for v in core.app.publisher.sessions() if v.session_id == mine)

        first, _ = await core.ask(DRAFT), await core.ask(OTHER)
        await core.call("list-drafts", {})
        assert (view(core).waiting, view(core).running) == (2, 0)
        await core.until(
            lambda: any(
                (event.sessions[0].waiting, event.sessions[0].running) == (2, 0)
                for event in core.events
                if isinstance(event, SessionsUpdated)
            )
        )
        with hold_answers(mailbox, "POST send"):
            await core.approve(first)
            await core.view(first.approval_id, lambda v: v.state == "executing")
            assert (view(core).waiting, view(core).running) == (1, 1)
        await core.ended(first)
        assert (view(core).waiting, view(core).running) == (1, 0)
        core.app.session_service.set_claims(mine, (("client", "codex 0.169"),))
        assert [(f.label, f.value) for f in view(core).claims] == [("client", "codex 0.169")]
    async with start() as again:
        assert (view(again).waiting, view(again).running) == (1, 0)
        assert view(again).claims == ()
