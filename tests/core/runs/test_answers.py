"""What the answer to a write says of its outcome: each row of the table in docs/states.md, on the real wire."""

import json
import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support.core_harness import (
    DRAFT,
    ROOT,
    Core,
    Mailbox,
    Start,
    install_examples,
    readdress,
    run_on_request,
    writes,
)
from tests.support.frozen_clock import FrozenClock
from tests.support.scripted_guest import Answer, ScriptedService, furnish_guest

HOST = "a.example:443"
OTHER = "https://other.example/"
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
        (Answer(302, {"Location": OTHER}), OWN),
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
CASES = [(row, *case, False) for row, cases in ROWS.items() for case in cases]
CASES += [(row, *cases[0], True) for row, cases in ROWS.items()]
"""Row, answer, what the connector says, and whether it reads afterwards."""


def documented() -> dict[str, tuple[str, str]]:
    """Return the table of the page: by the first column how the call ends, and whether to repeat it."""
    page = (ROOT / "docs" / "states.md").read_text(encoding="utf-8")
    section = page.partition("## What an answer says")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| (.+?) \| `(\w+)` \| (yes|no) \|$", section, re.MULTILINE)
    return {answer: (state, retriable) for answer, state, retriable in rows}


def furnish_unasked(home: Path, requests: list[dict[str, Any]], says: str) -> None:
    """Install a guest that makes *requests*, with `act`, which is not idempotent and asks nobody."""
    furnish_guest(home, requests, [HOST], says=says)
    path = home / "actions" / "act.md"
    path.write_text(path.read_text().replace("required = true\neffect", "required = false\neffect"))


@pytest.fixture
def start(home: Path, service: ScriptedService) -> Start:
    return partial(Core.open, home, routes=service.route(HOST))


def test_every_row_of_the_page_has_its_cases() -> None:
    assert documented().keys() == ROWS.keys()


@pytest.mark.parametrize(("row", "answer", "says", "read_after"), CASES)
async def test_each_write_is_judged_by_its_own_answer(
    start: Start,
    service: ScriptedService,
    home: Path,
    row: str,
    answer: Answer,
    says: str,
    read_after: bool,
) -> None:
    """Whatever the connector reads afterwards, with an answer of 200."""
    requests = [{"method": "POST", "url": "https://a.example/write"}]
    requests += [{"url": "https://a.example/read"}] * read_after
    furnish_unasked(home, requests, says)
    service.answers["/write"] = answer
    async with start() as core:
        run = (await core.call("act", {})).row
        written = [each for each in service.seen if each.method == "POST"]
    assert len(written) == 1, "nothing is repeated"
    state, retriable = documented()[row]
    assert (str(run.state), run.failure.retriable) == (state, retriable == "yes")
    if retriable == "yes":
        assert run.failure.class_ == "external_api_error"


@pytest.mark.parametrize("first", [200, 504])
async def test_a_write_that_was_refused_hides_none_before_it(
    start: Start, service: ScriptedService, home: Path, first: int
) -> None:
    """To repeat the call would do the first one again."""
    urls = ("https://a.example/first", "https://a.example/second")
    furnish_unasked(home, [{"method": "PUT", "url": url} for url in urls], OWN)
    service.answers = {"/first": Answer(first), "/second": Answer(429)}
    async with start() as core:
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
    start: Start,
    service: ScriptedService,
    home: Path,
    method: str,
    answer: Answer,
    says: str,
    sent: int,
) -> None:
    """The host saw the answer, so it does not matter what the connector calls it."""
    furnish_unasked(home, [{"method": method, "url": "https://a.example/x"}], says)
    clock = FrozenClock()

    async def pass_at_once(seconds: float) -> None:
        clock.advance(seconds)

    service.answers["/x"] = answer
    async with start(clock=clock) as core:
        core.app.gate.executor._sleep = pass_at_once
        run = (await core.call("see", {})).row
        assert run.failure is not None
        assert str(run.state) == "failed"
        assert len(service.seen) == sent


@pytest.mark.parametrize("took_effect", [True, False])
async def test_a_change_behind_a_504_is_unknown_and_read_back(
    home: Path, took_effect: bool, mailbox: Mailbox
) -> None:
    """Regression: it was told as failed, and nobody looked. Where it is there, nobody has to ask any more."""
    changes = 'changes = { To = "${args.to}" }\n'
    once = readdress(changes).replace("idempotent = true", "idempotent = false")
    install_examples(home, readdress=once)
    to = "ana@example.com"
    async with Core.open(home, mailbox) as core:
        view = await core.ask_for("readdress", {"id": DRAFT, "to": to})
        mailbox.control(fail={"op": "update", "status": 504, "times": 1})
        if took_effect:
            change = {"change": {"id": DRAFT, "to": to}}
            run_on_request(mailbox, f"PUT {DRAFT}", lambda: mailbox._state.apply(change))
        assert (await core.run(view)).state == "unknown"
        seen = await core.view(view.approval_id, lambda v: v.look is not None)
        assert seen.look.comparison.status == ("held" if took_effect else "differs")
        assert seen.awaits_acknowledgement is not took_effect
        event = "outcome.settled" if took_effect else "outcome.looked_at"
        (record,) = await core.records(event)
        assert (record["actor"], record["summary"].split()[0]) == ("aileron", "Aileron")
        failure = await core.failure(view)
        assert (failure.class_, failure.details["status"]) == ("outcome_unknown", 504)
        assert to not in json.dumps(record)
    assert writes(mailbox).count(f"PUT {DRAFT}") == 1
    assert writes(mailbox)[-1] == f"GET {DRAFT}"
