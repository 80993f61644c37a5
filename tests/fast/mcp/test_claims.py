"""Which of a client's own ids are taken, and which of its MCP sessions are remembered."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_mcp.open_sessions import IDLE_SECONDS, OpenSessions
from aileron_mcp.translate import call_claims, client_claims
from tests.support.any_values import json_values
from tests.support.frozen_clock import FrozenClock

IDS = ["claudecode/toolUseId", "callId", "threadId", "sessionId", "itemId", "agent-session-id"]


@pytest.mark.parametrize(
    ("meta", "claims"),
    [
        ({"claudecode/toolUseId": "toolu_1", "progressToken": 2}, {"tool use": "toolu_1"}),
        (
            {"callId": "call_1", "threadId": "t", "sessionId": "s", "itemId": "i"},
            {"call": "call_1", "thread": "t", "session": "s", "item": "i"},
        ),
        (
            {"agent-session-id": "20261121_1", "agent-working-dir": "/home/ana/q3"},
            {"session": "20261121_1", "folder": "/home/ana/q3"},
        ),
        ({"progressToken": 7, "io.modelcontextprotocol/protocolVersion": "2026-07-28"}, {}),
        (None, {}),
    ],
)
def test_each_agents_own_ids_are_taken(meta: dict[str, object] | None, claims: object) -> None:
    """Claude, codex, goose; opencode and gemini send none."""
    assert call_claims(meta) == claims


@given(st.dictionaries(st.sampled_from(IDS) | st.text(), json_values()))
def test_whatever_a_client_sends_the_labels_are_ours(meta: dict[str, object]) -> None:
    """A client that could name its label would write a line of the console."""
    found = call_claims(meta)
    assert set(found) <= {"tool use", "call", "thread", "session", "item", "folder"}
    assert all(isinstance(text, str) and text in meta.values() for text in found.values())


def test_a_client_is_named_by_what_it_says() -> None:
    assert client_claims("claude-code", "2.1.330") == {"client": "claude-code 2.1.330"}
    assert (client_claims("", "2"), client_claims("", "")) == ({"client": "2"}, {})


def test_another_owners_session_is_nobodys_and_those_of_an_ended_one_are_forgotten() -> None:
    """It is neither counted as used, nor can it be closed.

    Else a console that lives long would keep something of every agent there ever was.
    """
    ended = set[str]()
    opened = OpenSessions(lambda owner: owner not in ended)
    opened.open("a", "1", 0)
    with opened.in_use("b", "1") as used:
        assert used is None
    opened.close("b", "1")
    assert opened.get("a", "1") is not None
    opened.close("a", "1")
    assert opened.get("a", "1") is None
    opened.open("a", "2", 0)
    ended.add("a")
    opened.open("b", "3", 0)
    assert opened.get("a", "2") is None
    assert len(list(opened)) == 1


def test_what_was_idle_for_too_long_is_forgotten_and_what_has_a_stream_is_not() -> None:
    clock = FrozenClock()
    opened = OpenSessions(lambda _: True, clock=clock.monotonic)
    opened.open("a", "idle", 0)
    opened.open("a", "streaming", 0)
    with opened.in_use("a", "streaming"):
        clock.advance(IDLE_SECONDS + 61)
        opened.open("a", "new", 0)
        assert opened.get("a", "idle") is None
        assert opened.get("a", "streaming") is not None
