"""Which of a client's own ids are taken, and under whose labels."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aileron_mcp.translate import call_claims, client_claims

LABELS = {"tool use", "call", "thread", "session", "item", "folder"}
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


@given(
    st.dictionaries(
        st.sampled_from(IDS) | st.text(),
        st.text()
        | st.none()
        | st.integers()
        | st.lists(st.text())
        | st.dictionaries(st.text(), st.text()),
    )
)
def test_whatever_a_client_sends_the_labels_are_ours(meta: dict[str, object]) -> None:
    """A client that could name its label would write a line of the console."""
    found = call_claims(meta)
    assert set(found) <= LABELS
    assert all(isinstance(text, str) and text in meta.values() for text in found.values())


def test_a_client_is_named_by_what_it_says() -> None:
    assert client_claims("claude-code", "2.1.330") == {"client": "claude-code 2.1.330"}
    assert client_claims("", "2") == {"client": "2"}
    assert client_claims("", "") == {}
