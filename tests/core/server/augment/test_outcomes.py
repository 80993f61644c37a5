"""How a call ended, as the result that the model reads: while it is held, when it is asked after, after a crash."""

import asyncio
import json
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from aileron_core.connectors.protocol import Route
from examples.mailbox import Mailbox
from tests.core.server.augment.harness import WIRES, Augmented, augmenting
from tests.core.server.augment.scripted_model import Call, ScriptedModel, Text
from tests.core.server.augment.test_answers import history
from tests.support.core_harness import DRAFT, install_examples
from tests.support.frozen_clock import FrozenClock

EACH_WIRE = pytest.mark.parametrize("wire", WIRES)
CANARIES = (b"Anna", b"Brandt", b"Q3")
"""What the person's preview of the draft says."""


def sending(model: ScriptedModel, mailbox: Mailbox, **more: Any) -> Any:
    """Run a gateway over *model* whose `send_draft` sends a draft of *mailbox*."""
    route = Route(host="gmail.googleapis.com:443", address="127.0.0.1", port=mailbox.port)
    return augmenting(model, furnish=install_examples, routes=(route,), **more)


async def deny(made: Augmented, _mailbox: Mailbox, _clock: FrozenClock) -> None:
    await made.deny("not on a Friday")


async def expire(made: Augmented, _mailbox: Mailbox, clock: FrozenClock) -> None:
    await made.waiting()
    clock.advance(1801)
    await made.app.approvals.expire_overdue()


async def fail(made: Augmented, mailbox: Mailbox, _clock: FrozenClock) -> None:
    mailbox.control(fail={"op": "send", "status": 400})
    await made.approve()


async def lose(made: Augmented, mailbox: Mailbox, _clock: FrozenClock) -> None:
    """Have the mail sent, and the service's answer not come."""
    mailbox.control(lose_answer="send")
    await made.approve()


Ending = Callable[[Augmented, Mailbox, FrozenClock], Awaitable[None]]
ENDINGS: dict[str, tuple[Ending, str, tuple[str, ...]]] = {
    "denied": (deny, "denied", ('Their reason: "not on a Friday".', "Follow the reason")),
    "expired": (expire, "expired", ("Nobody decided before the approval expired.",)),
    "failed": (fail, "failed", ("class: external_api_error", "400")),
    "unknown": (lose, "unknown", ("It may have happened, so do not repeat it.",)),
}
"""How it ends, the state of its run, and what the model is told."""


def last_result(wire: str, request: dict[str, Any]) -> str:
    """Return the result at the end of a request; in Messages it is marked as an error."""
    item = history(request)[-1]
    if wire == "messages":
        (block,) = item["content"]
        assert block["is_error"] is True
        return block["content"]
    return item["content" if wire == "chat" else "output"]


@EACH_WIRE
@pytest.mark.parametrize("held", [False, True], ids=["asked-after", "held"])
@pytest.mark.parametrize("ending", ENDINGS)
async def test_how_a_call_ended_is_the_result_that_the_model_reads(
    wire: str, held: bool, ending: str, mailbox: Mailbox
) -> None:
    """In each format, with what to do next; and never with anything of the preview."""
    end, state, told = ENDINGS[ending]
    clock = FrozenClock()
    model = ScriptedModel([Call("send_draft", {"draft_id": DRAFT})], [Text("I see.")])
    hold = {} if held else {"hold_seconds": 0}
    async with sending(model, mailbox, clock=clock, **hold) as made:
        agent = made.agent(wire, stream=held)
        asking = asyncio.create_task(agent.ask("send it"))
        view = await made.waiting()
        if not held:
            await asking
        await end(made, mailbox, clock)
        await made.until(lambda: made.app.publisher.approvals()[0].ended_at is not None or None)
        if not held:
            check = Call("check_action_status", {"approval_id": view.approval_id})
            model.answers += [[check], [Text("I see.")]]
            asking = asyncio.create_task(agent.ask("and now?"))
        assert (await asking).text == "I see."
        result = last_result(wire, model.requests[-1])
        assert f"status: {state}" in result
        assert [each for each in told if each not in result] == []
        assert await made.runs() == [("send-draft", state)]
        sent = b"".join(each.body for each in model.seen)
        assert [each for each in CANARIES if each in sent] == []


@EACH_WIRE
async def test_after_a_crash_in_the_middle_of_a_run_the_model_reads_that_nobody_knows(
    wire: str, mailbox: Mailbox, home: Path, tmp_path: Path
) -> None:
    """The next console knows nothing of the calls, but it knows the approval; the mail is not sent again."""
    left = tmp_path / "left"

    def crash(name: str) -> None:
        if name == "after run.started":
            shutil.copytree(home, left, ignore=shutil.ignore_patterns("run"))

    install_examples(home)
    model = ScriptedModel([Call("send_draft", {"draft_id": DRAFT})], [Text("It waits.")])
    async with sending(model, mailbox, home=home, hold_seconds=0, failpoint=crash) as made:
        agent = made.agent(wire)
        await agent.ask("send it")
        view = await made.waiting()
        await made.approve()
        await made.until(lambda: left.exists() or None)
        token = made.session.gateway_token
    check = Call("check_action_status", {"approval_id": view.approval_id})
    later = ScriptedModel([check], [Text("Nobody knows.")])
    async with sending(later, mailbox, home=left) as made:
        agent.base = made.base.replace(made.session.gateway_token, token)
        assert (await agent.ask("what became of it?")).text == "Nobody knows."
        assert history(later.requests[0]) == agent.history[:-1]
        result = last_result(wire, later.requests[1])
        assert "status: unknown" in result
        assert "It may have happened, so do not repeat it." in result
        assert await made.runs() == [("send-draft", "unknown")]
    assert len(mailbox.state()["sent"]) == 1
    assert json.dumps(later.requests).count("send_draft") == 2, "as a tool alone"
