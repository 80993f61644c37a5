"""Our tools beside an agent's, and what it sees of an answer that ends early."""

import asyncio
from typing import Any, cast

from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from aileron_core.actions.model import Action
from aileron_core.models import CHAT_COMPLETIONS
from aileron_core.models.neutral import Tool
from aileron_core.server.augment.catalogue import Catalogue, Offer
from aileron_core.server.augment.exchange import RequestBody
from aileron_core.server.augment.views import StreamView, WholeView
from aileron_core.server.shares import Shares


def test_what_settings_leave_out_is_no_tool() -> None:
    """The two tools that are no actions are always there: one of them is needed for what waits."""
    actions = [
        Action(name=name, version="1", source="", requires=(), intent="", body=f"Run {name}.")
        for name in ("send-draft", "b")
    ]
    catalogue = Catalogue.of(actions, lambda action, _: action == "send-draft")
    names = [tool.name for tool in catalogue.tools]
    assert names == ["send_draft", "check_action_status", "withdraw_action"]
    assert catalogue.actions == {"send_draft": "send-draft"}
    assert catalogue.tools[0].description == "Run send-draft."


def catalogue_of(*given: str) -> Catalogue:
    return Catalogue(tools=tuple(Tool(name=name, description="", schema={}) for name in given))


def test_ours_is_named_anew_where_the_agent_has_the_name() -> None:
    """The agent's stays, unless it begins with our prefix."""
    offer = catalogue_of("read", "send").offer(["read", "aileron_read", "own"])
    assert offer.names == {"aileron_read": "read", "send": "send"}
    assert offer.renamed == {"aileron_read": "agent_aileron_read"}
    assert offer.shown("agent_aileron_read") == "aileron_read"
    assert offer.shown("aileron_read") is None
    assert offer.shown("read") == "read"
    # Thousands are told apart in one pass.
    agent = [f"aileron_{number}" for number in range(50_000)]
    assert len(catalogue_of("a").offer(agent).renamed) == 50_000


NAMES = st.lists(
    st.sampled_from(
        ["a", "b", "aileron_a", "aileron_aileron_a", "agent_aileron_a", "agent_agent_aileron_a"]
    ),
    unique=True,
)


@given(agent=NAMES, ours=NAMES)
def test_no_two_tools_ever_have_one_name(agent: list[str], ours: list[str]) -> None:
    offer = catalogue_of(*ours).offer(agent)
    there = [offer.renamed.get(name, name) for name in agent]
    assert len({*there, *offer.names}) == len(agent) + len(ours)
    assert [offer.shown(name) for name in there] == agent
    assert [offer.names[tool.name] for tool in offer.tools] == ours


class _Begun:
    """An answer whose head and part of whose body were written."""

    begun = True
    aborted = False

    def abort(self) -> None:
        self.aborted = True


def test_no_second_head_is_written_into_an_answer() -> None:
    """The agent would read it as the answer to its next request; anything but `abort` fails here."""
    client = _Begun()
    view = WholeView(CHAT_COMPLETIONS, Offer(), cast("Any", client))
    view.fail("It took too long.", 400, b"Bad Request", "invalid_request_error")
    assert client.aborted


class _Full:
    """An agent that has not read what was written so far, and then has."""

    begun = True
    has_room = False

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.wrote = asyncio.Event()

    def write_now(self, data: bytes) -> None:
        self.written.append(data)
        self.wrote.set()


async def test_signs_of_life_do_not_pile_up_before_an_agent_that_does_not_read() -> None:
    """A call may be held for minutes, and its stream for an hour."""
    client = _Full()
    view = StreamView(CHAT_COMPLETIONS, Offer(), cast("Any", client))
    async with view.kept_alive(0):
        for _ in range(100):
            await asyncio.sleep(0)
        assert client.written == []
        client.has_room = True
        await client.wrote.wait()
    assert client.written[0] == b": keep-alive\n\n"


async def test_a_body_that_was_passed_on_is_kept_no_longer() -> None:
    """The answer to it may go on for an hour, and its bytes are not counted any more."""
    pieces = [b"ab", b"c"]

    async def receive() -> Message:
        piece = pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(pieces)}

    with RequestBody(Shares(20), "a", receive, 10) as body:
        assert await body.read()
    assert await body.replay() == {"type": "http.request", "body": b"abc", "more_body": False}
    assert body.data == b""
