"""What an end of a call, and the answer to a write, mean for a run: done, failed, or nobody knows; what is repeated."""

import asyncio
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aileron_core.actions.load import load_action
from aileron_core.actions.model import Action, ConnectorIdentity
from aileron_core.canonical import Json, JsonObject
from aileron_core.connectors.protocol import OpResult
from aileron_core.connectors.stop_request import StopRequest
from aileron_core.errors import Failure
from aileron_core.runs.executor import Executor, RunOutcome, RunPlan
from tests.support.core_harness import (
    DRAFT,
    REPEATABLE,
    ROOT,
    Core,
    Mailbox,
    readdress,
    run,
    run_on_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock
from tests.support.scripted_guest import Answer, ScriptedService, furnish_guest

FQN = "local://aileron/mail-drafts"


class Scripted:
    """A connector of the port that ends its calls as the test says."""

    identity = ConnectorIdentity(fqn=FQN, version="0.1.0", hash="sha256:0")
    hosts = ("gmail.googleapis.com:443",)

    def __init__(self, *ends: OpResult | Exception, during: Callable[[], object] = bool) -> None:
        self.ends, self.during = list(ends), during
        self.options: list[dict[str, Any]] = []
        """Of each call."""

    @property
    def calls(self) -> int:
        return len(self.options)

    async def call(self, _op: str, _args: JsonObject, **options: Any) -> OpResult:
        self.options.append(options)
        self.during()
        end = self.ends.pop(0)
        if isinstance(end, Exception):
            raise end
        return end


def send_draft(*, idempotent: bool | None) -> Action:
    path = ROOT / "examples" / "actions" / "send-draft.md"
    send = load_action(path.read_bytes(), path.name)
    return replace(send, steps=(replace(send.steps[0], idempotent=idempotent),))


def run_plan(connector: Scripted, whole: Action, **more: Any) -> RunPlan:
    args: JsonObject = {"draft_id": DRAFT}
    return RunPlan(action=whole, args=args, connectors={FQN: connector}, **more)


def carried_out(
    connector: Scripted, *, idempotent: bool | None = False, wall_seconds: int = 30
) -> tuple[RunOutcome, list[float]]:
    """Return how `send-draft` ended, and its waits: the clock's time passes in them, not the test's."""
    clock, waits = FrozenClock(), list[float]()

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)

    whole = send_draft(idempotent=idempotent)
    whole = replace(whole, limits=replace(whole.limits, wall_seconds=wall_seconds))
    return run(Executor(clock, sleep=sleep).run(run_plan(connector, whole))), waits


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
        (failed_op("connector_runtime_error", 1), False, "unknown"),  # it crashed after a 2xx
        (failed_op("capability_denied", 1), False, "unknown"),  # its next request was refused
        (failed_op("connector_runtime_error", 2, lost=1, own=True), False, "unknown"),
        (failed_op("connector_runtime_error", 1, own=True), False, "failed"),
        (failed_op("external_api_error", 1, own=True), False, "failed"),
        (failed_op("resource_limit_exceeded"), False, "failed"),
        (failed_op("network_error"), False, "failed"),
        (failed_op("connector_runtime_error", reads=1), False, "failed"),
        (failed_op("resource_limit_exceeded", 1, lost=1), True, "failed"),
        (failed_op("connector_runtime_error", 1), True, "failed"),
        (failed_op("capability_denied"), False, "failed"),
    ],
)
def test_an_end_after_a_write_is_unknown(result: OpResult, idempotent: bool, kind: str) -> None:
    """What may have changed something and was not heard out is not called failed."""
    connector = Scripted(*[result] * 4)
    ending, _ = carried_out(connector, idempotent=idempotent)
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
    assert carried_out(Scripted(OpResult(output=nested_lists(200))))[0].kind == "completed"
    ending, _ = carried_out(Scripted(OpResult(output={"deep": nested_lists(100_000)})))
    assert (ending.kind, ending.failure.class_) == ("failed", "connector_runtime_error")


def test_a_fault_of_the_host_during_a_call_is_unknown_and_not_a_crash() -> None:
    """What had gone out is not known; the run still ends, and its lock with it."""
    ending, _ = carried_out(Scripted(RuntimeError("SECRET in a traceback")))
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


BUSY = failed_op("external_api_error", own=True)
DONE = OpResult(output={"done": True})


def test_an_idempotent_step_is_repeated_three_times_and_then_given_up() -> None:
    """Waits of 1, 2 and 4 seconds, each up to a fifth longer; none that would end after the wall limit."""
    connector, short = Scripted(*[BUSY] * 5), Scripted(*[BUSY] * 5)
    ending, waits = carried_out(connector, idempotent=True)
    assert (ending.kind, connector.calls, ending.failure.details["retried"]) == ("failed", 4, 3)
    assert all(n <= wait <= n * 1.2 for wait, n in zip(waits, (1, 2, 4), strict=True)), waits
    ending, waits = carried_out(short, idempotent=True, wall_seconds=2)
    assert (ending.kind, short.calls, len(waits)) == ("failed", 2, 1)


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
def test_only_passing_trouble_is_repeated(result: OpResult, idempotent: bool | None) -> None:
    """A manifest's default is not enough, and a 404 stays one."""
    connector = Scripted(result, DONE)
    ending, waits = carried_out(connector, idempotent=idempotent)
    assert (ending.kind, connector.calls, waits) == ("failed", 1, [])


def over_time(limit: str, host: str = "") -> OpResult:
    details: JsonObject = {"limit": "wall_time", "configured": limit}
    over = failed_op("resource_limit_exceeded")
    failure = replace(over.failure, details=details)
    return replace(over, failure=failure, unanswered_host=host)


def test_each_call_gets_what_is_left_of_the_actions_own_limit() -> None:
    """`[limits] wall_seconds` up to 300 s covers all steps and tries; the message names the whole."""
    slow = Scripted(BUSY, over_time("298.8s"))
    ending, waits = carried_out(slow, idempotent=True, wall_seconds=300)
    given = [each["limits"].wall_seconds for each in slow.options]
    assert given == pytest.approx([300, 300 - waits[0]])
    assert (ending.failure.details["configured"], ending.failure.details["retried"]) == ("300s", 1)
    assert ending.failure.message.startswith("The run reached its time limit of 300 s.")
    # To raise the limit helps only where the service was not what was slow: it is named.
    ending, _ = carried_out(Scripted(over_time("30s", "api.example:443")))
    said = "api.example did not answer before the run reached its time limit of"
    assert ending.failure.message.startswith(said)


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
    connector = Scripted(DONE, DONE, during=stop.make)
    whole = send_draft(idempotent=False)
    first = whole.steps[0]
    whole = replace(whole, steps=(first, replace(first, id="again")))
    plan = run_plan(connector, whole, stop=stop)
    ending = run(Executor(FrozenClock()).run(plan))
    assert (ending.kind, connector.calls) == ("failed", 1)
    assert connector.options[0]["stop"] is stop
    assert ending.failure.details["completed_steps"] == [first.id]


@pytest.mark.actions(send_draft=REPEATABLE)
async def test_a_recheck_that_differs_asks_the_person_again(core: Core, mailbox: Mailbox) -> None:
    """From `executing` to `pending`; nothing is repeated on other content."""
    view = await core.ask()
    mailbox.control(fail={"op": "send", "status": 503, "times": 1})
    change = {"change": {"id": DRAFT, "to": "mallory@evil.example"}}
    run_on_request(mailbox, "POST send", lambda: mailbox._state.apply(change))
    await core.approve(view)
    back = await core.view(view.approval_id, lambda v: v.state == "pending" and v.drift is not None)
    assert back.words != view.words
    assert mailbox.state()["sent"] == []


HOST = "a.example:443"
LATER = {"Retry-After": "30"}
THROTTLED = {"x-amzn-errortype": "ThrottlingException:http://internal.amazon.com/coral/"}
OWN = '{"error":{"class":"external_api_error","message":"it said no"}}'
RUNTIME = '{"error":{"class":"rate_limited","message":"it said no"}}'
CRASHED = "{"

ROWS: dict[str, list[tuple[Answer, str]]] = {
    "2xx, and the connector reports an error": [(Answer(200), OWN), (Answer(204), RUNTIME)],
    "2xx, and the connector reports nothing": [(Answer(200), CRASHED), (Answer(201), CRASHED)],
    "redirect that is followed with GET": [(Answer(303, {"Location": "/done"}), CRASHED)],
    "redirect that is not followed": [
        (Answer(302, {"Location": "https://other.example/"}), OWN),
        (Answer(303, {"Location": "https://127.0.0.1/"}), OWN),
        (Answer(307, {"Location": "http://a.example/plain"}), OWN),
        (Answer(304), OWN),
    ],
    "4xx but 408 and 429": [
        *((Answer(status), OWN) for status in (400, 401, 403, 404, 409, 418, 422, 499)),
        (Answer(404), RUNTIME),
        (Answer(404), CRASHED),
    ],
    "4xx with an `x-amzn-errortype` of throttling": [
        (Answer(400, THROTTLED), OWN),
        (Answer(400, THROTTLED), RUNTIME),
    ],
    "429": [(Answer(429), OWN), (Answer(429), RUNTIME), (Answer(429), CRASHED)],
    "501": [(Answer(501), OWN), (Answer(501, LATER), RUNTIME)],
    "503 with `Retry-After`": [(Answer(503, LATER), says) for says in (OWN, RUNTIME, CRASHED)],
    "408": [(Answer(408), OWN), (Answer(408, LATER), RUNTIME)],
    "503 without `Retry-After`": [(Answer(503), OWN), (Answer(503, THROTTLED), RUNTIME)],
    "any other 5xx": [
        *((Answer(status), OWN) for status in (500, 502, 504, 505, 520, 522, 524, 599)),
        (Answer(504, LATER), RUNTIME),
        (Answer(500), CRASHED),
    ],
    "none, or not all of it": [(Answer(0), OWN), (Answer(200, {"Content-Length": "9"}), OWN)],
}  # fmt: skip
CHANGE = readdress('changes = { To = "${args.to}" }\n')
CASES = [(row, *case, False) for row, cases in ROWS.items() for case in cases]
CASES += [(row, *cases[0], True) for row, cases in ROWS.items()]
"""Row, answer, what the connector says, and whether it reads afterwards."""


def documented_endings() -> dict[str, tuple[str, str]]:
    """Return the table of the page: by the first column how the call ends, and whether to repeat it."""
    page = (ROOT / "docs" / "states.md").read_text(encoding="utf-8")
    section = page.partition("## What an answer says")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| `(\w+)` \| (yes|no) \|$", section, re.MULTILINE)
    return {answer: (state, retriable) for answer, state, retriable in rows}


def furnish_unasked(home: Path, requests: list[dict[str, Any]], says: str) -> None:
    furnish_guest(home, requests, [HOST], says=says)
    path = home / "actions" / "act.md"
    path.write_text(path.read_text().replace("required = true\neffect", "required = false\neffect"))


def test_every_row_of_the_page_has_its_cases() -> None:
    assert documented_endings().keys() == ROWS.keys()


@pytest.mark.parametrize(("row", "answer", "says", "read_after"), CASES)
async def test_each_write_is_judged_by_its_own_answer(
    service: ScriptedService, home: Path, row: str, answer: Answer, says: str, read_after: bool
) -> None:
    """Whatever the connector reads afterwards, with an answer of 200."""
    requests = [{"method": "POST", "url": "https://a.example/write"}]
    requests += [{"url": "https://a.example/read"}] * read_after
    furnish_unasked(home, requests, says)
    service.answers["/write"] = answer
    async with Core.open(home, routes=service.route(HOST)) as core:
        run = (await core.call("act", {})).row
        written = [each for each in service.seen if each.method == "POST"]
    assert len(written) == 1, "nothing is repeated"
    state, retriable = documented_endings()[row]
    assert (str(run.state), run.failure.retriable) == (state, retriable == "yes")
    if retriable == "yes":
        assert run.failure.class_ == "external_api_error"


@pytest.mark.parametrize("first", [200, 504])
async def test_a_write_that_was_refused_hides_none_before_it(
    service: ScriptedService, home: Path, first: int
) -> None:
    """To repeat the call would do the first one again."""
    urls = ("https://a.example/first", "https://a.example/second")
    furnish_unasked(home, [{"method": "PUT", "url": url} for url in urls], OWN)
    service.answers = {"/first": Answer(first), "/second": Answer(429)}
    async with Core.open(home, routes=service.route(HOST)) as core:
        run = (await core.call("act", {})).row
    expected = "failed" if first == 200 else "unknown"
    assert (str(run.state), run.failure.retriable) == (expected, False)


@pytest.mark.parametrize("method", ["GET", "PUT"])
@pytest.mark.parametrize(
    ("answer", "says", "sent"),
    [
        (Answer(429), OWN, 4),
        (Answer(429), RUNTIME, 4),
        (Answer(503), RUNTIME, 4),
        (Answer(503), CRASHED, 4),
        (Answer(500), OWN, 4),
        (Answer(400, THROTTLED), OWN, 4),
        (Answer(400, THROTTLED), RUNTIME, 4),
        (Answer(400, {"x-amzn-errortype": "RequestLimitExceeded"}), OWN, 4),
        (Answer(400, {"x-amzn-errortype": "ValidationException"}), OWN, 1),
        (Answer(400), OWN, 1),
        (Answer(500), RUNTIME, 1),
        (Answer(200), RUNTIME, 1),
    ],
)
async def test_an_idempotent_step_is_repeated_where_the_service_has_no_room(
    service: ScriptedService, home: Path, method: str, answer: Answer, says: str, sent: int
) -> None:
    """The host saw the answer, so it does not matter what the connector calls it."""
    furnish_unasked(home, [{"method": method, "url": "https://a.example/x"}], says)
    clock = FrozenClock()

    async def pass_at_once(seconds: float) -> None:
        clock.advance(seconds)

    service.answers["/x"] = answer
    async with Core.open(home, clock=clock, routes=service.route(HOST)) as core:
        core.app.gate.executor._sleep = pass_at_once
        run = (await core.call("see", {})).row
        assert run.failure is not None
        assert (str(run.state), len(service.seen)) == ("failed", sent)


@pytest.mark.parametrize("took_effect", [True, False])
@pytest.mark.actions(readdress=CHANGE.replace("idempotent = true", "idempotent = false"))
async def test_a_change_behind_a_504(core: Core, mailbox: Mailbox, took_effect: bool) -> None:
    """Regression: it was told as failed, and nobody looked. Where it is there, nobody has to ask any more."""
    to = "ana@example.com"
    view = await core.ask_for("readdress", {"id": DRAFT, "to": to})
    mailbox.control(fail={"op": "update", "status": 504, "times": 1})
    if took_effect:
        change = {"change": {"id": DRAFT, "to": to}}
        run_on_request(mailbox, f"PUT {DRAFT}", lambda: mailbox._state.apply(change))
    assert (await core.run(view)).state == "unknown"
    seen = await core.view(view.approval_id, lambda v: v.look is not None)
    assert seen.look.comparison.status == ("held" if took_effect else "differs")
    assert seen.awaits_acknowledgement is not took_effect
    (record,) = await core.records("outcome.settled" if took_effect else "outcome.looked_at")
    assert (record["actor"], record["summary"].split()[0]) == ("aileron", "Aileron")
    failure = await core.failure(view)
    assert (failure.class_, failure.details["status"]) == ("outcome_unknown", 504)
    assert to not in json.dumps(record)
    assert (writes(mailbox).count(f"PUT {DRAFT}"), writes(mailbox)[-1]) == (1, f"GET {DRAFT}")
