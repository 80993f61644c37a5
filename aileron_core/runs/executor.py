"""Runs an action's steps: retries, wall time, what ends as `unknown`. Only the gate's package calls this."""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from aileron_core.actions.interpolate import MissingValue, op_arguments
from aileron_core.actions.model import Action, Step
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock
from aileron_core.connectors.http.host_names import short_host
from aileron_core.connectors.protocol import (
    MAX_DEPTH,
    Connector,
    Limits,
    OpResult,
    is_deeper_than,
    is_small,
)
from aileron_core.connectors.stop_request import StopRequest, StopRequested, stopped_by_person
from aileron_core.errors import (
    SERVER_RESULT,
    CapabilityDenied,
    ConnectorRuntimeError,
    Failure,
    HashMismatch,
    InternalError,
    ResourceLimitExceeded,
)
from aileron_core.tracing.spans import NO_SPAN, Span

_log = logging.getLogger(__name__)
_RETRY_DELAYS = (1.0, 2.0, 4.0)
"""Seconds before each of at most three retries."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """Everything that one run needs; the connectors are those of the digest."""

    action: Action
    args: JsonObject
    connectors: Mapping[str, Connector]
    """By FQN."""
    finished_steps: Mapping[str, Json] = field(default_factory=dict[str, Json])
    """Outputs of the steps that ran before the run halted; they are not repeated."""
    halt_before: frozenset[str] = frozenset()
    """Ids of the steps before which a person has to be asked again."""
    elapsed: float = 0.0
    """Seconds of the wall time that were used up before it halted."""
    stop: StopRequest = field(default_factory=StopRequest)
    """A person may make it at any time; the step that runs ends then, and no other begins."""
    span: Span = NO_SPAN
    """Of the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended, or where it halted.

    `differs`: a recheck before a retry found something else; nothing was repeated. `halted`: the
    arguments of the step `next` are known now, and a person has to see them first.
    """

    kind: Literal["completed", "failed", "unknown", "differs", "halted"]
    steps: Mapping[str, Json] = field(default_factory=dict[str, Json])
    output: Json = None
    failure: Failure | None = None
    last_status: int | None = None
    hosts_asked: tuple[str, ...] = ()
    """The `host:port` of each request that was sent this time, in order, each once."""
    next_step: str | None = None
    elapsed: float = 0.0
    """Seconds of the wall time used up so far; for `differs` and `halted`."""
    undo: str = ""
    """`OpResult.undo` of its last step that has one."""


class Executor:
    """Calls connectors, within the limits of the action."""

    def __init__(
        self, clock: Clock, *, sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    ) -> None:
        self._clock = clock
        self._sleep = sleep

    async def preview(
        self,
        connector: Connector,
        op: str,
        args: JsonObject,
        *,
        limits: Limits,
        accepted_reads: Collection[str] = (),
    ) -> OpResult:
        """Call a preview op, never cached, never retried.

        Args:
            accepted_reads: what it may read by POST, besides GET and HEAD.
        """
        call = partial(connector.call, read_only=True, accepted_reads=accepted_reads)
        return await _call(connector, call, op, args, limits)

    async def run(
        self, plan: RunPlan, *, before_retry: Callable[[], Awaitable[bool]] | None = None
    ) -> RunOutcome:
        """Run every step in order that has not run yet; the first failing one ends the run.

        Args:
            before_retry: asked before a step is repeated; False ends the run as `differs`.
        """
        asked: dict[str, None] = {}
        outcome = await self._run(plan, before_retry, asked)
        return replace(outcome, hosts_asked=tuple(asked))

    async def _run(
        self,
        plan: RunPlan,
        before_retry: Callable[[], Awaitable[bool]] | None,
        asked: dict[str, None],
    ) -> RunOutcome:
        """Run the steps; the hosts that got a request are added to *asked*."""
        outputs: dict[str, Json] = dict(plan.finished_steps)
        began = self._clock.monotonic() - plan.elapsed
        deadline = began + plan.action.limits.wall_seconds
        status: int | None = None
        undo = ""
        denied = capability_refusal(plan.action)
        if denied is not None:  # before the first step, whichever it is about
            step = plan.action.steps_without_capability[0]
            return _failed_outcome(
                plan.action, step, OpResult(failure=denied.to_failure()), outputs
            )
        for step in plan.action.steps:
            if step.id in plan.finished_steps:
                continue
            if plan.stop.is_made:
                return stopped_outcome(step.id, outputs)
            args = _arguments(plan, step, outputs)
            if isinstance(args, Failure):
                return _failed_outcome(plan.action, step, OpResult(failure=args), outputs)
            if step.id in plan.halt_before:
                spent = self._clock.monotonic() - began
                return RunOutcome(kind="halted", steps=outputs, next_step=step.id, elapsed=spent)
            result = await self._step(plan, step, args, deadline, before_retry, asked)
            if result is None:
                spent = self._clock.monotonic() - began
                return RunOutcome(kind="differs", steps=outputs, elapsed=spent)
            status, undo = result.last_status or status, result.undo or undo
            if result.failure is not None:
                return _failed_outcome(plan.action, step, result, outputs)
            outputs[step.id] = result.output
        last = outputs[plan.action.steps[-1].id]
        return RunOutcome(
            kind="completed", steps=outputs, output=last, last_status=status, undo=undo
        )

    async def _step(
        self,
        plan: RunPlan,
        step: Step,
        args: JsonObject,
        deadline: float,
        before_retry: Callable[[], Awaitable[bool]] | None,
        asked: dict[str, None],
    ) -> OpResult | None:
        connector = plan.connectors[step.connector]
        retried = 0
        while True:
            remaining = deadline - self._clock.monotonic()
            if remaining <= 0:
                return OpResult(failure=_wall_limit_exceeded(plan.action).to_failure())
            limits = Limits(wall_seconds=remaining, memory_mib=plan.action.limits.memory_mib)
            call = partial(connector.call, stop=plan.stop)
            with plan.span.child("op") as span:
                result = await _call(connector, call, step.op, args, limits)
                state = "completed" if result.failure is None else "failed"
                span.end(state=state, status=result.last_status)
            asked.update(dict.fromkeys(result.hosts_asked))
            wait = None
            if retried < len(_RETRY_DELAYS):
                wait = _RETRY_DELAYS[retried] * random.uniform(1.0, 1.2)  # noqa: S311
            if wait is None or not _may_repeat(
                step, result, deadline - self._clock.monotonic(), wait
            ):
                return _with_configured_limit(_with_retries(result, retried), plan.action)
            try:
                await plan.stop.interrupt(self._wait(wait))
            except StopRequested:
                return replace(result, failure=stopped_by_person().to_failure())
            if before_retry is not None and not await before_retry():
                return None
            retried += 1

    async def _wait(self, seconds: float) -> None:
        await self._sleep(seconds)


async def _call(
    connector: Connector,
    call: Callable[..., Awaitable[OpResult]],
    op: str,
    args: JsonObject,
    limits: Limits,
) -> OpResult:
    try:
        result = await call(op, args, limits=limits)
    except HashMismatch as error:
        return OpResult(failure=error.to_failure())
    except Exception as error:  # noqa: BLE001 - a fault of the host's own; what had gone out is not known
        _log.error("a call of %s ended with %s", connector.identity.fqn, type(error).__name__)
        fault = InternalError("An internal error of Aileron ended the call. See `aileron logs`.")
        return OpResult(
            failure=fault.to_failure(), requests_sent=1, writes_sent=1, writes_unanswered=1
        )
    failure = result.failure
    if await _too_deep(result.output if failure is None else failure.details.get(SERVER_RESULT)):
        message = f"The output of {op} is nested more than {MAX_DEPTH} levels deep."
        return replace(result, output=None, failure=ConnectorRuntimeError(message).to_failure())
    return result


async def _too_deep(output: Json) -> bool:
    if is_small(output):
        return is_deeper_than(MAX_DEPTH, output)
    return await asyncio.to_thread(is_deeper_than, MAX_DEPTH, output)


def _arguments(plan: RunPlan, step: Step, outputs: Mapping[str, Json]) -> JsonObject | Failure:
    """Return what *step*'s op is called with, or why it cannot be called."""
    try:
        return op_arguments(step, plan.args, outputs, plan.action.input_names)
    except MissingValue as error:
        return ConnectorRuntimeError(str(error), boundary="action").to_failure()


def capability_refusal(action: Action) -> CapabilityDenied | None:
    """Return why *action* may not run: a step's op is not among its capabilities. None where it may."""
    if not action.steps_without_capability:
        return None
    step = action.steps_without_capability[0]
    requirement = action.requirement(step.connector)
    return CapabilityDenied(
        f"The action {action.name} does not list the op {step.op} in its capabilities for "
        f"{step.connector}. Nothing was sent. Add it to the action file, then accept the file.",
        details={
            "requested": step.op,
            "granted": list(requirement.capabilities if requirement else ()),
        },
        boundary="action",
    )


def _wall_limit_exceeded(action: Action, unanswered_host: str = "") -> ResourceLimitExceeded:
    seconds = action.limits.wall_seconds
    what = f"The run reached its time limit of {seconds} s"
    if unanswered_host:
        what = f"{short_host(unanswered_host)} did not answer before the run reached its time limit of {seconds} s"
    return ResourceLimitExceeded(
        f"{what}. To raise it, set `[limits] wall_seconds` in the action file.",
        details={"limit": "wall_time", "configured": f"{seconds}s"},
    )


def _may_repeat(step: Step, result: OpResult, remaining: float, wait: float) -> bool:
    failure = result.failure
    return (
        failure is not None
        and step.idempotent is True
        and failure.retriable
        and failure.class_ in ("network_error", "external_api_error")
        and remaining > wait
    )


def _with_retries(result: OpResult, retried: int) -> OpResult:
    if result.failure is None or not retried:
        return result
    details = {**result.failure.details, "retried": retried}
    return replace(result, failure=replace(result.failure, details=details))


def _with_configured_limit(result: OpResult, action: Action) -> OpResult:
    """Name the action's own limit where a call used up what was left of it."""
    failure = result.failure
    if failure is None or failure.details.get("limit") != "wall_time":
        return result
    limit = _wall_limit_exceeded(action, result.unanswered_host).to_failure()
    details = {**failure.details, **limit.details}
    return replace(result, failure=replace(limit, details=details))


def stopped_outcome(step_id: str | None, outputs: Mapping[str, Json]) -> RunOutcome:
    """Return the end of a run that a person stopped before the step *step_id* began."""
    failure = stopped_by_person().to_failure()
    details = {**failure.details, "step": step_id, "completed_steps": list[Json](outputs)}
    return RunOutcome(kind="failed", steps=outputs, failure=replace(failure, details=details))


def _failed_outcome(
    action: Action, step: Step, result: OpResult, outputs: Mapping[str, Json]
) -> RunOutcome:
    assert result.failure is not None
    details = {**result.failure.details, "step": step.id, "completed_steps": list(outputs)}
    failure = replace(result.failure, details=details)
    if step.idempotent is not True and result.writes_sent:
        failure = replace(failure, retriable=result.is_deferred)
    if any(each.id in outputs and each.idempotent is not True for each in action.steps):
        failure = replace(failure, retriable=False)  # the call again would do that step again
    if step.idempotent is True or not result.is_effect_unknown:
        return RunOutcome(
            kind="failed", steps=outputs, failure=failure, last_status=result.last_status
        )
    message = (
        f"The step {step.id} failed after it had sent a request ({failure.message}). Whether "
        "the request took effect is unknown. Aileron does not repeat it. Check the service "
        "before you try again."
    )
    unknown = replace(
        failure,
        class_="outcome_unknown",
        message=message,
        details={**details, "cause": failure.class_},
    )
    return RunOutcome(
        kind="unknown", steps=outputs, failure=unknown, last_status=result.last_status
    )
