"""A history as SDKs give it back, our tools beside an agent's, and an answer that ends early."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.types import Message

from aileron_core.actions.model import Action
from aileron_core.models import ANTHROPIC_MESSAGES, CHAT_COMPLETIONS, OPENAI_RESPONSES
from aileron_core.models.neutral import Tool, ToolResult
from aileron_core.server.augment.catalogue import Catalogue, Offer
from aileron_core.server.augment.conversations import (
    Conversations,
    HiddenTurn,
    KnownResponse,
    UnfinishedTurn,
)
from aileron_core.server.augment.digests import HistoryDigest, ReadHistory, digest_of, units_of
from aileron_core.server.augment.exchange import RequestBody
from aileron_core.server.augment.limits import MemoryLimits
from aileron_core.server.augment.plans import placed_history
from aileron_core.server.augment.views import StreamView, WholeView
from aileron_core.server.shares import Shares

ASKED: dict[str, Any] = {"role": "user", "content": "go"}
SEEN: dict[str, Any] = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "t", "signature": "s"},
        {"type": "text", "text": "done"},
    ],
}
REAL: tuple[dict[str, Any], ...] = (
    {"role": "assistant", "content": [{"type": "tool_use", "id": "c", "name": "f", "input": {}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r"}]},
    SEEN,
)


def known(*, results: tuple[ToolResult, ...] = (), items: Any = REAL) -> Conversations:
    found = Conversations()
    before = history_digest([ASKED])
    turn = HiddenTurn(before=before, items=items, results=results, ran=("f: completed",))
    found.hide(after=history_digest([ASKED, SEEN]), alone=digest_of([SEEN]), turn=turn)
    return found


def history_digest(items: Any) -> str:
    return HistoryDigest().extended(items).value


def placed(known: Conversations, items: list[Any], of: Any = ANTHROPIC_MESSAGES) -> list[Any]:
    return list(placed_history(of, ReadHistory.of(items), known).items)


def test_a_hidden_turn_stands_where_the_agent_has_its_answer() -> None:
    """An empty message behind it stays: with it the history has the same digest as with the answer alone."""
    said, empty = {"role": "user", "content": "more"}, {"role": "user", "content": ""}
    plain, no = ({"role": "assistant", "content": text} for text in ("done", "no"))
    assert placed(known(), [ASKED, SEEN, said]) == [ASKED, *REAL, said]
    assert placed(known(), [ASKED, plain, said]) == [ASKED, *REAL, said]
    assert placed(known(), [ASKED, SEEN, empty, said]) == [ASKED, *REAL, empty, said]
    assert placed(known(), [ASKED, no, said]) == [ASKED, no, said]
    assert placed(Conversations(), [ASKED, SEEN]) == [ASKED, SEEN]


def test_our_results_come_before_the_agents_in_one_message() -> None:
    ours = known(results=(ToolResult(call_id="c", text="ours"),), items=REAL[:1])
    result = {"type": "tool_result", "tool_use_id": "d", "content": "own"}
    *_, last = placed(ours, [ASKED, SEEN, {"role": "user", "content": [result]}])
    assert [each["tool_use_id"] for each in last["content"]] == ["c", "d"]
    *_, last = placed(ours, [ASKED, SEEN])
    assert last["content"][0]["tool_use_id"] == "c"
    tool = {"role": "tool", "tool_call_id": "d", "content": "own"}
    found = placed(ours, [ASKED, SEEN, tool], CHAT_COMPLETIONS)
    assert [each.get("tool_call_id") for each in found] == [None, None, "c", "d"]


def test_in_another_history_a_record_stands_before_an_answer_that_said_something() -> None:
    """And without its thinking, which was put together from several turns: a provider refuses that."""
    other = {"role": "user", "content": "a summary"}
    first, record, answer = placed(known(), [other, SEEN])
    assert (first, record["role"]) == (other, "user")
    assert record["content"].endswith("\n- f: completed")
    assert answer == {"role": "assistant", "content": [{"type": "text", "text": "done"}]}
    # As after calls whose model had nothing to add: reasoning of any answer says as little.
    conversations = Conversations()
    turn = HiddenTurn(before=history_digest([ASKED]), items=REAL, ran=("f: completed",))
    conversations.hide(after=history_digest([ASKED]), alone=digest_of([]), turn=turn)
    no = {"role": "assistant", "content": "no"}
    items = [other, {"type": "reasoning", "id": "rs_1", "summary": []}, no]
    assert placed(conversations, items, OPENAI_RESPONSES) == items


def test_the_tools_are_those_of_the_beginning_but_an_equal_request_is_a_new_one() -> None:
    catalogue, conversations = Catalogue(actions={"f": "f"}), Conversations()
    conversations.freeze(history_digest([ASKED]), catalogue)
    for items, kept in (([ASKED], None), ([ASKED, SEEN], catalogue)):
        found = placed_history(CHAT_COMPLETIONS, ReadHistory.of(items), conversations)
        assert found.catalogue is kept


def test_memory_is_bounded_and_the_oldest_goes_first() -> None:
    few = Conversations(MemoryLimits(entries=2, bytes=1000))
    for name in "abc":
        few.know(name, KnownResponse(last_id=name, catalogue=Catalogue(), offer=Offer()))
        few.response("a")
    assert few.response("b") is None
    assert few.response("a") is not None
    large = UnfinishedTurn(items=({"text": "x" * 2000},))
    few.interrupt("large", (large,))
    few.interrupt("large", (UnfinishedTurn(),))
    few.interrupt("newer", (UnfinishedTurn(),))
    assert few.resume("large") == ()
    few.interrupt("small", (UnfinishedTurn(items=({"text": "x" * 300},)),))
    few.interrupt("large", (UnfinishedTurn(items=({"text": "x" * 900},)),))
    assert few.resume("small") == ()
    assert len(few.resume("large")) == 1
    assert few.resume("large") == ()
    few.interrupt("too large", (large,))
    assert few.resume("too large") == (large,)  # what ran last is never forgotten


def test_an_agents_own_names_count_in_what_is_remembered() -> None:
    """Thousands of them may be long, in each of hundreds of answers."""
    conversations = Conversations(MemoryLimits(entries=100, bytes=150_000))
    for number in range(10):
        offer = Catalogue().offer([f"aileron_{number}_{place}" for place in range(1000)])
        response = KnownResponse(last_id="", catalogue=Catalogue(), offer=offer)
        conversations.know(f"resp_{number}", response)
    assert [number for number in range(10) if conversations.response(f"resp_{number}")] == [8, 9]


CALL = {"id": "c", "type": "function", "function": {"name": "f", "arguments": '{"a": 1, "b": 2}'}}
SAME: list[tuple[list[dict[str, Any]], list[dict[str, Any]]]] = [
    (
        [{"role": "assistant", "content": "ab"}],
        [{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b", "citations": None}]}],
    ),
    (
        [{"role": "assistant", "content": [{"type": "thinking", "thinking": "t"}, {"type": "text", "text": "a"}]}],
        [{"role": "assistant", "content": "a"}],
    ),
    (
        [{"role": "user", "content": [{"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}]}],
        [{"role": "user", "content": "a"}],
    ),
    (
        [{"role": "assistant", "content": None, "tool_calls": [CALL]}],
        [{"role": "assistant", "tool_calls": [{**CALL, "function": {"name": "f", "arguments": '{"b":2,"a":1}'}}], "refusal": None}],
    ),
    (
        [{"type": "message", "role": "assistant", "id": "m", "status": "completed", "content": [{"type": "output_text", "text": "a"}]}],
        [{"type": "reasoning", "id": "r", "summary": []}, {"role": "assistant", "content": "a"}],
    ),
    (
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "r"}]}],
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": "r"}]}]}],
    ),
    (
        [{"type": "function_call", "call_id": "c", "id": "x", "name": "f", "arguments": "{}"}],
        [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "", "status": "completed"}],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_says_the_same_has_one_digest(one: Any, other: Any) -> None:
    assert digest_of(one) == digest_of(other)


@pytest.mark.parametrize(
    "item",
    [
        {"role": "user", "content": "a"},
        {"role": "assistant", "content": "b"},
        {"role": "tool", "tool_call_id": "c", "content": "r"},
        {"role": "tool", "tool_call_id": "c", "content": "other"},
        {"role": "tool", "tool_call_id": "d", "content": "r"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"type": "function_call_output", "call_id": "e", "output": "r"},
        {"role": "user", "content": [{"type": "image", "source": "1"}]},
        {"role": "user", "content": [{"type": "image", "source": "2"}]},
        {"role": "assistant", "content": 5, "tool_calls": "hostile"},
        {"type": 5, "role": ["hostile"]},
    ],
)
def test_what_says_something_else_has_another(item: Any) -> None:
    """And a hostile shape is read too."""
    assert digest_of([item]) != digest_of([{"role": "assistant", "content": "a"}])
    assert digest_of([item, item]) != digest_of([item]) or item.get("content") == 5


@pytest.mark.parametrize("kind", ["item_reference", "image_generation_call"])
def test_references_differ_by_what_they_refer_to(kind: str) -> None:
    """Of all else the id is the provider's alone, and an SDK may leave it out."""
    one, other = ({"type": kind, "id": id_} for id_ in ("a", "b"))
    assert digest_of([one]) != digest_of([other])
    assert digest_of([{**one, "result": "x"}]) == digest_of([{**other, "result": "x"}])


def test_a_long_history_of_one_speaker_is_read_in_one_pass() -> None:
    """In time that grows with its square, an agent could hold up the whole console."""
    digest = HistoryDigest()
    seen = set[str]()
    for number in range(50_000):
        digest.add(units_of({"role": "user", "content": f"{number} {'x' * 500}"}))
        seen.add(digest.value)
    assert len(seen) == 50_000


def test_reading_on_is_reading_from_the_beginning() -> None:
    items = [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}]
    digest = HistoryDigest("seed").extended(items[:1])
    before = digest.value
    assert digest.extended(items[1:]).value == HistoryDigest("seed").extended(items).value
    assert digest.value == before != HistoryDigest("").extended(items[:1]).value


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


def test_no_second_head_is_written_into_an_answer() -> None:
    """The agent would read it as the answer to its next request; anything but `abort` fails here."""
    aborted = list[bool]()
    client = SimpleNamespace(begun=True, abort=lambda: aborted.append(True))
    view = WholeView(CHAT_COMPLETIONS, Offer(), cast("Any", client))
    view.fail("It took too long.", 400, b"Bad Request", "invalid_request_error")
    assert aborted == [True]


async def test_signs_of_life_do_not_pile_up_before_an_agent_that_does_not_read() -> None:
    """A call may be held for minutes, and its stream for an hour."""
    written, wrote = list[bytes](), asyncio.Event()
    write_now = lambda data: wrote.set() or written.append(data)  # noqa: E731
    client = SimpleNamespace(begun=True, has_room=False, write_now=write_now)
    async with StreamView(CHAT_COMPLETIONS, Offer(), cast("Any", client)).kept_alive(0):
        for _ in range(100):
            await asyncio.sleep(0)
        assert written == []
        client.has_room = True
        await wrote.wait()
    assert written[0] == b": keep-alive\n\n"


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
