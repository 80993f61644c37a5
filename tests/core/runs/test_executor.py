"""What an end of a call means for a run: done, failed, or nobody knows; what is repeated, and what is looked
at before that.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aileron_core.actions.load import load_action
from aileron_core.actions.model import Action, ConnectorIdentity
from aileron_core.canonical import Json, JsonObject
from aileron_core.connectors.protocol import Limits, OpResult
from aileron_core.connectors.stop_request import StopRequest
from aileron_core.errors import Failure
from aileron_core.runs.executor import Executor, RunOutcome, RunPlan
from tests.support.core_harness import (
    DRAFT,
    REPEATABLE,
    ROOT,
    SHORT_OF_TIME,
    Core,
    Mailbox,
    run,
    run_on_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock

FQN = "local://aileron/mail-drafts"


class Scripted:
    """A connector of the port that ends its calls as the test says."""

    identity = ConnectorIdentity(fqn=FQN, version="0.1.0", hash="sha256:0")
    hosts = ("gmail.googleapis.com:443",)

    def __init__(self, *ends: OpResult) -> None:
        self.ends = list(ends)
        self.calls = 0

    async def call(self, _op: str, _args: JsonObject, **_options: object) -> OpResult:
        self.calls += 1
        return self.ends.pop(0)


def send_draft(*, idempotent: bool | None) -> Action:
    path = ROOT / "examples" / "actions" / "send-draft.md"
    send = load_action(path.read_bytes(), path.name)
    return replace(send, steps=(replace(send.steps[0], idempotent=idempotent),))


def run_plan(connector: Scripted, whole: Action, **more: Any) -> RunPlan:
    args: JsonObject = {"draft_id": DRAFT}
    return RunPlan(action=whole, args=args, connectors={FQN: connector}, **more)


def carried_out(connector: Scripted, *, idempotent: bool = False) -> RunOutcome:
    plan = run_plan(connector, send_draft(idempotent=idempotent))
    clock = FrozenClock()
    return run(Executor(clock, sleep=passing_time(clock, [])).run(plan))


def passing_time(clock: FrozenClock, waits: list[float]) -> Callable[[float], Awaitable[None]]:
    """Let the clock's time pass instead of the test's, and keep how long."""

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)

    return sleep


def failed_op(
    class_: str, writes: int = 0, *, lost: int = 0, own: bool = False, reads: int = 0
) -> OpResult:
    retriable = class_ in {"network_error", "external_api_error"}
    return OpResult(
        failure=Failure(class_=class_, message="it ended", retriable=retriable),
        requests_sent=writes + reads, writes_sent=writes, writes_unanswered=lost,
        reported_by_connector=own,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("result", "idempotent", "kind"),
    [
        (failed_op("resource_limit_exceeded", 1, lost=1), False, "unknown"),
        (failed_op("network_error", 1, lost=1), False, "unknown"),
        (failed_op("unavailable", 1, lost=1), False, "unknown"),
        (failed_op("connector_runtime_error", 1), False, "unknown"),  # it crashed after a 2xx
        (failed_op("capability_denied", 1), False, "unknown"),  # its next request was refused
        (failed_op("connector_runtime_error", 2, lost=1, own=True), False, "unknown"),
        (failed_op("connector_runtime_error", 1, own=True), False, "failed"),
        (failed_op("external_api_error", 1, own=True), False, "failed"),
        (failed_op("resource_limit_exceeded"), False, "failed"),
        (failed_op("network_error"), False, "failed"),
        (failed_op("unavailable"), False, "failed"),
        (failed_op("resource_limit_exceeded", reads=3), False, "failed"),
        (failed_op("connector_runtime_error", reads=1), False, "failed"),
        (failed_op("resource_limit_exceeded", 1, lost=1), True, "failed"),
        (failed_op("connector_runtime_error", 1), True, "failed"),
        (failed_op("capability_denied"), False, "failed"),
    ],
)
def test_an_end_after_a_writing_request_is_unknown_unless_the_connector_heard_and_said_no(
    result: OpResult, idempotent: bool, kind: str
) -> None:
    """What may have changed something and was not heard out is not called failed."""
    connector = Scripted(*[result] * 4)
    ending = carried_out(connector, idempotent=idempotent)
    assert ending.kind == kind
    if kind == "unknown":
        assert connector.calls == 1
        assert (ending.failure.class_, ending.failure.retriable) == ("outcome_unknown", False)
        assert ending.failure.details["cause"] == result.failure.class_
    assert ending.failure.details["completed_steps"] == []


def nested_lists(levels: int) -> Json:
    value: Json = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_an_output_too_deep_to_store_is_a_failure_of_the_connector() -> None:
    """Regression: it could be read but not written, and the run went on trying for ever."""
    assert carried_out(Scripted(OpResult(output=nested_lists(200)))).kind == "completed"
    ending = carried_out(Scripted(OpResult(output={"deep": nested_lists(100_000)})))
    assert (ending.kind, ending.failure.class_) == ("failed", "connector_runtime_error")


def test_a_fault_of_the_host_during_a_call_is_unknown_and_not_a_crash() -> None:
    """What had gone out is not known; the run still ends, and its lock with it."""

    class Broken(Scripted):
        async def call(self, _op: str, _args: JsonObject, **_options: object) -> OpResult:
            raise RuntimeError("SECRET in a traceback")

    ending = carried_out(Broken())
    assert ending.kind == "unknown"
    assert "SECRET" not in str(ending)


async def test_a_cancelled_run_passes_the_cancellation_on(tmp_path: Path) -> None:
    """The port: the guest has been stopped when it is raised; nothing swallows it."""

    class Endless(Scripted):
        async def call(self, _op: str, _args: JsonObject, **_options: object) -> OpResult:
            await asyncio.Event().wait()
            raise AssertionError

    plan = run_plan(Endless(), send_draft(idempotent=False))
    running = asyncio.ensure_future(Executor(FrozenClock()).run(plan))
    await asyncio.sleep(0)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def retried(
    *ends: OpResult,
    wall_seconds: int = 30,
    idempotent: bool | None = True,
    on: type[Scripted] = Scripted,
) -> tuple[RunOutcome, Scripted, list[float]]:
    clock, waits, connector = FrozenClock(), list[float](), on(*ends)
    whole = send_draft(idempotent=idempotent)
    whole = replace(whole, limits=replace(whole.limits, wall_seconds=wall_seconds))
    plan = run_plan(connector, whole)
    ending = run(Executor(clock, sleep=passing_time(clock, waits)).run(plan))
    return ending, connector, waits


BUSY = failed_op("external_api_error", own=True)
DONE = OpResult(output={"done": True})


def test_an_idempotent_step_is_repeated_three_times_and_then_given_up() -> None:
    """Waits of 1, 2 and 4 seconds, each up to a fifth longer; the end says how often."""
    ending, connector, waits = retried(*[BUSY] * 5)
    assert (ending.kind, connector.calls) == ("failed", 4)
    assert all(
        least <= wait <= least * 1.2 for wait, least in zip(waits, (1, 2, 4), strict=True)
    ), waits
    assert ending.failure.details["retried"] == 3


@pytest.mark.parametrize(
    ("result", "idempotent"),
    [
        (BUSY, None),
        (BUSY, False),
        (failed_op("external_api_error", 1, own=True), None),
        (failed_op("connector_runtime_error"), True),
        (failed_op("resource_limit_exceeded"), True),
        (replace(BUSY, failure=replace(BUSY.failure, retriable=False)), True),
    ],
)
def test_only_passing_trouble_of_a_step_declared_idempotent_is_repeated(
    result: OpResult, idempotent: bool | None
) -> None:
    """A manifest's default is not enough, and a 404 stays one."""
    ending, connector, waits = retried(result, DONE, idempotent=idempotent)
    assert (ending.kind, connector.calls, waits) == ("failed", 1, [])


def test_retries_stay_within_the_wall_limit() -> None:
    """A wait that would end after the limit is not begun."""
    ending, connector, waits = retried(*[BUSY] * 5, wall_seconds=2)
    assert (ending.kind, connector.calls, len(waits)) == ("failed", 2, 1)


def test_each_call_gets_what_is_left_of_the_actions_own_limit() -> None:
    """`[limits] wall_seconds` up to 300 s covers all steps and tries; the message names the whole."""
    given: list[float] = []

    class Slow(Scripted):
        async def call(self, _op: str, _args: JsonObject, **options: object) -> OpResult:
            limits = options["limits"]
            assert isinstance(limits, Limits)
            given.append(limits.wall_seconds)
            return await super().call(_op, _args)

    details = {"limit": "wall_time", "configured": f"{298.8:g}s"}
    over = failed_op("resource_limit_exceeded")
    over = replace(over, failure=replace(over.failure, details=details))
    ending, _, waits = retried(BUSY, over, wall_seconds=300, on=Slow)
    assert given == pytest.approx([300, 300 - waits[0]])
    assert ending.failure.details["configured"] == "300s"
    assert ending.failure.details["retried"] == 1
    assert ending.failure.message.startswith("The run reached its time limit of 300 s.")


def test_a_run_whose_time_was_over_before_the_service_answered_says_which_service() -> None:
    """To raise the limit helps only where the service was not what was slow."""
    over = failed_op("resource_limit_exceeded")
    limit = {"limit": "wall_time", "configured": "30s"}
    over = replace(
        over, failure=replace(over.failure, details=limit), unanswered_host="api.example:443"
    )
    ending, _, _ = retried(over)
    assert ending.failure.message.startswith(
        "api.example did not answer before the run reached its time limit of"
    )


def test_an_op_outside_the_actions_subset_never_reaches_its_connector() -> None:
    """The action's check alone: a connector that would do anything is not even asked."""
    connector = Scripted(DONE)
    whole = send_draft(idempotent=False)
    whole = replace(whole, steps=(replace(whole.steps[0], op="delete_everything"),))
    plan = run_plan(connector, whole)
    ending = run(Executor(FrozenClock()).run(plan))
    assert (ending.kind, connector.calls) == ("failed", 0)
    assert (ending.failure.class_, ending.failure.boundary) == ("capability_denied", "action")
    assert ending.failure.details["requested"] == "delete_everything"


def test_a_stop_while_a_retry_waits_ends_the_run() -> None:
    connector, stop = Scripted(BUSY, DONE), StopRequest()

    async def sleep(_seconds: float) -> None:
        stop.make()
        await asyncio.Event().wait()

    plan = run_plan(connector, send_draft(idempotent=True), stop=stop)
    ending = run(Executor(FrozenClock(), sleep=sleep).run(plan))
    assert (ending.kind, connector.calls) == ("failed", 1)
    assert ending.failure.details["outcome"] == "stopped"


def test_a_stop_during_a_step_keeps_the_next_from_beginning() -> None:
    stop = StopRequest()

    class Stopping(Scripted):
        async def call(self, _op: str, _args: JsonObject, **options: object) -> OpResult:
            assert options["stop"] is stop
            stop.make()
            return await super().call(_op, _args)

    connector = Stopping(DONE, DONE)
    whole = send_draft(idempotent=False)
    first = whole.steps[0]
    whole = replace(whole, steps=(first, replace(first, id="again")))
    plan = run_plan(connector, whole, stop=stop)
    ending = run(Executor(FrozenClock()).run(plan))
    assert (ending.kind, connector.calls) == ("failed", 1)
    assert ending.failure.details["completed_steps"] == [first.id]


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
