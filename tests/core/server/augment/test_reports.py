"""A client that asks to be told of the calls: `aileron run`, at which a person waits."""

import asyncio
import json
from typing import Any

from aileron_core.console_port.intents import EndSession
from aileron_core.models.sse import EventSplitter
from aileron_core.sessions import session_table
from tests.core.server.augment.harness import Augmented, augmenting
from tests.core.server.augment.scripted_model import Call, Refusal, ScriptedModel, Text
from tests.core.server.augment.test_ends import until_chunk
from tests.core.server.gateway.harness import read_head

WORD = b"0123456789abcdef" * 2
ASKS = b"Aileron-Calls: %b\r\nConnection: keep-alive, aileron-calls" % WORD


def told(answer: bytes) -> list[tuple[str, str]]:
    mark = b": %b " % WORD
    raw = [frame.raw for frame in EventSplitter(1 << 20).feed(answer)]
    said = [json.loads(each[len(mark) :]) for each in raw if each.startswith(mark)]
    return [(each["action"], each["status"]) for each in said]


def pending_count(made: Augmented) -> int:
    return sum(view.state == "pending" for view in made.app.publisher.approvals())


async def test_calls_are_told_to_who_asks_for_it_and_to_nobody_else() -> None:
    """Longer than any other call is held; and the model's server learns nothing of the word."""
    model = ScriptedModel(
        [Call("read_inbox", {"text": "a"})], [Call("send_draft", {"text": "b"})], [Text("Sent.")]
    )
    async with augmenting(model, hold_seconds=0.0) as made:
        asking = asyncio.create_task(made.asked("chat", ASKS))
        await made.approve()
        _, answer = await asking
        assert told(answer) == [
            ("read-inbox", "unknown"), ("read-inbox", "completed"),
            ("send-draft", "unknown"), ("send-draft", "pending_approval"), ("send-draft", "completed"),
        ]  # fmt: skip
        assert len(model.requests) == 3
        assert not [seen for seen in model.seen if b"aileron-calls" in seen.head.lower()]
        model.answers += [[Call("read_inbox", {"text": "c"})], [Text("Read.")]]
        _, answer = await made.asked("chat", user="u")
        assert b"run-" not in answer


async def test_what_is_told_is_withdrawn_once_nobody_reads_the_answer() -> None:
    model = ScriptedModel(*([Call("send_draft", {"text": text})] for text in ("one", "two")))
    async with augmenting(model) as made:
        other = await made.sent("chat")
        await made.waiting()
        agent = await made.sent("chat", ASKS)
        await read_head(agent.reader)
        await until_chunk(agent, begins=b": %b {" % WORD)
        await made.until(lambda: pending_count(made) == 2)
        agent.hang_up()
        await made.until(lambda: pending_count(made) == 1)
        other.hang_up()
        assert sorted(await made.runs()) == [("send-draft", "pending"), ("send-draft", "withdrawn")]


async def test_a_call_that_comes_to_wait_after_its_session_has_ended_is_withdrawn() -> None:
    """A client that is ended in that moment leaves nothing to approve."""
    model = ScriptedModel([Call("send_draft", {"text": "x"})])
    async with augmenting(model) as made:
        run, may_end = made.agents.run, asyncio.Event()

        async def slow(*given: Any, **named: Any) -> Any:
            answer = await run(*given, **named)
            await may_end.wait()
            return answer

        made.agents.run = slow
        agent = await made.sent("chat", ASKS)
        await made.waiting()
        agent.hang_up()
        await made.app.console.carry_out(EndSession(session_id=made.session_id))
        may_end.set()
        await made.until(lambda: pending_count(made) == 0)
        assert await made.runs() == [("send-draft", "withdrawn")]


async def test_what_is_told_is_withdrawn_where_the_console_stops() -> None:
    """After its next start nobody would wait for it."""
    model = ScriptedModel([Call("send_draft", {"text": "x"})], [Text("It was withdrawn.")])
    async with augmenting(model) as made:
        await made.sent("chat", ASKS)
        await made.waiting()
        made.agents.draining.set()
        await made.until(lambda: pending_count(made) == 0)
        assert await made.runs() == [("send-draft", "withdrawn")]


async def test_a_session_with_an_address_of_its_own_goes_nowhere_else() -> None:
    """As an SDK has it: OpenAI's base URL ends with the version. Nor does it after a restart."""
    model = ScriptedModel(Refusal(404, "none"), Refusal(404, "none"))
    async with augmenting(model) as made:
        base = f"http://127.0.0.1:{made.upstream.port}/own/v9/"
        made.session = await made.another_session(base_url=base)
        for wire in ("chat", "messages"):
            await made.asked(wire)
        lines = [seen.line.split()[1] for seen in model.seen]
        assert lines == [b"/own/v9/chat/completions", b"/own/v9/v1/messages"]
        found = await made.app.database.read(lambda c: session_table.open_sessions(c, 0.0))
        assert base in [each.terms.base_url for each in found]
