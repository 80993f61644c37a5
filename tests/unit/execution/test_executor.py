"""What an end of a call means for a run: done, failed, or nobody knows."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from core_harness import DRAFT, ROOT, run

from aileron_core.actions.load import load_action
from aileron_core.actions.model import Action
from aileron_core.canonical import Json, JsonObject
from aileron_core.connectors.protocol import ConnectorIdentity, OpResult
from aileron_core.errors import Failure
from aileron_core.execution.executor import Ending, Executor, RunPlan
from aileron_core.testing import FrozenClock

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


def action(*, idempotent: bool) -> Action:
    path = ROOT / "examples" / "actions" / "send-draft.md"
    send = load_action(path.read_bytes(), path.name)
    return replace(send, steps=(replace(send.steps[0], idempotent=idempotent),))


def carried(connector: Scripted, *, idempotent: bool = False) -> Ending:
    plan = RunPlan(
        action=action(idempotent=idempotent),
        args={"draft_id": DRAFT},
        connectors={FQN: connector},
    )
    return run(Executor(FrozenClock()).run(plan))


def failed(class_: str, sent: int, *, retriable: bool = False) -> OpResult:
    failure = Failure(class_=class_, message="it ended", retriable=retriable)
    return OpResult(failure=failure, requests_sent=sent)


@pytest.mark.parametrize(
    ("class_", "sent", "idempotent", "kind"),
    [
        ("resource_limit_exceeded", 1, False, "unknown"),
        ("network_error", 1, False, "unknown"),
        ("unavailable", 1, False, "unknown"),
        ("resource_limit_exceeded", 0, False, "failed"),
        ("network_error", 0, False, "failed"),
        ("unavailable", 0, False, "failed"),
        ("resource_limit_exceeded", 1, True, "failed"),
        ("external_api_error", 1, False, "failed"),
        ("capability_denied", 0, False, "failed"),
    ],
)
def test_an_end_with_a_request_out_is_unknown_unless_the_step_may_be_repeated(
    class_: str, sent: int, idempotent: bool, kind: str
) -> None:
    """DESIGN 5: a wall limit, a cancel or a lost connection after a request had gone out."""
    connector = Scripted(failed(class_, sent))
    ending = carried(connector, idempotent=idempotent)
    assert ending.kind == kind
    assert connector.calls == 1
    assert ending.failure is not None
    if kind == "unknown":
        assert (ending.failure.class_, ending.failure.retriable) == ("outcome_unknown", False)
        assert ending.failure.details["cause"] == class_
    assert ending.failure.details["completed_steps"] == []


def nested(levels: int) -> Json:
    value: Json = "x"
    for _ in range(levels):
        value = [value]
    return value


def test_an_output_too_deep_to_store_is_a_failure_of_the_connector() -> None:
    """Regression: it could be read but not written, and the run went on trying for ever."""
    assert carried(Scripted(OpResult(output=nested(200)))).kind == "completed"
    ending = carried(Scripted(OpResult(output={"deep": nested(100_000)})))
    assert ending.failure is not None
    assert (ending.kind, ending.failure.class_) == ("failed", "connector_runtime_error")


def test_a_fault_of_the_host_during_a_call_is_unknown_and_not_a_crash() -> None:
    """DESIGN 5: what had gone out is not known; the run still ends, and its lock with it."""

    class Broken(Scripted):
        async def call(self, _op: str, _args: JsonObject, **_options: object) -> OpResult:
            raise RuntimeError("SECRET in a traceback")

    ending = carried(Broken())
    assert ending.kind == "unknown"
    assert "SECRET" not in str(ending)


def test_a_cancelled_run_passes_the_cancellation_on(tmp_path: Path) -> None:
    """The port: the guest has been stopped when it is raised; nothing swallows it."""

    class Endless(Scripted):
        async def call(self, _op: str, _args: JsonObject, **_options: object) -> OpResult:
            await asyncio.Event().wait()
            raise AssertionError

    async def story() -> None:
        plan = RunPlan(
            action=action(idempotent=False), args={"draft_id": DRAFT}, connectors={FQN: Endless()}
        )
        running = asyncio.ensure_future(Executor(FrozenClock()).run(plan))
        await asyncio.sleep(0)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    run(story())
