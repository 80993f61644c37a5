"""What a call leaves in the trace and the log: which, how it was decided, how it ended, and no contents."""

import logging
from collections.abc import AsyncIterator
from typing import Any

import pytest

from aileron_core.errors import NotFound
from tests.support.core_harness import DRAFT, Core, Start
from tests.support.traced import Traced

CONTENTS = (DRAFT, "Anna", "Q3 numbers", "googleapis", "canary")


@pytest.fixture
def traced() -> Traced:
    return Traced()


@pytest.fixture
async def core(start: Start, traced: Traced) -> AsyncIterator[Core]:
    async with start(tracer=traced.tracer) as running:
        yield running


def logged_calls(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    """Return the log's lines of calls, by their fields."""
    lines = [vars(each) for each in caplog.records if vars(each).get("event") == "call"]
    fields = ("run", "session", "action", "decided", "state")
    return [{name: line.get(name) for name in fields} for line in lines]


async def test_a_call_that_a_person_approves_is_one_trace_without_its_contents(
    core: Core, traced: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    view = await core.ask()
    await core.run(view)
    # One preview for the person, one for the recheck, one that reads back.
    run = traced.named("aileron.run")
    assert traced.names.index("aileron.wait") < traced.names.index("aileron.op")
    assert {"aileron.preview", "aileron.wait", "aileron.op", "aileron.run"} == {*traced.names}
    of_run = {
        "aileron.action": "send-draft",
        "aileron.run": view.run_id,
        "aileron.session": view.session_id,
    }
    decided = {"aileron.decision": "person"}
    assert run.parent is None
    assert run.attributes == of_run | decided | {"aileron.state": "completed"}
    wait = {"aileron.state": "checking"}
    assert traced.named("aileron.wait").attributes == of_run | decided | wait
    op = {"aileron.state": "completed", "http.response.status_code": 200}
    assert traced.named("aileron.op").attributes == of_run | op
    for span in traced.spans:
        assert span is run or span.parent == run.context
        assert not span.events
    for content in CONTENTS:
        assert content not in traced.text, content
    ended = {"run": view.run_id, "session": view.session_id, "action": "send-draft"}
    assert logged_calls(caplog) == [ended | {"decided": "person", "state": "completed"}]


async def test_a_call_that_fails_is_traced_without_why(
    core: Core, traced: Traced, caplog: pytest.LogCaptureFixture
) -> None:
    """The reason quotes the service, or the arguments."""
    caplog.set_level(logging.INFO)
    answer = await core.call("get-draft", {"id": "canary"})
    assert answer.row.failure is not None
    run, op = traced.named("aileron.run"), traced.named("aileron.op")
    assert (run.attributes or {})["aileron.state"] == "failed"
    assert (op.attributes or {})["http.response.status_code"] == 404
    for span in traced.spans:
        assert not span.events
        assert span.status.description is None
    with pytest.raises(NotFound):
        await core.call("no-such-action", {"id": "canary"})
    assert [(each["decided"], each["state"]) for each in logged_calls(caplog)] == [
        ("ungated", "failed"),
        (None, "refused"),
    ]
    for content in CONTENTS:
        assert content not in traced.text + str(logged_calls(caplog)), content


async def test_a_call_that_does_not_become_a_run_leaves_no_open_span(
    core: Core, traced: Traced, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(_row: object) -> None:
        raise NotFound("canary")

    monkeypatch.setattr(core.app.gate.argument_quota, "reserve", refuse)
    with pytest.raises(NotFound):
        await core.call("get-draft", {"id": DRAFT})
    assert (traced.named("aileron.run").attributes or {})["aileron.state"] == "refused"
