"""A hostile client at `/mcp`, with a session's token of its own."""

import contextlib
import json
from typing import Any

from aileron_mcp.open_sessions import MAX_SESSIONS_PER_AGENT
from tests.support.server_harness import Console

_OPEN: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
_PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}


def _say(
    console: Console, token: str, message: Any, session: str | None = None
) -> tuple[int, str, bytes]:
    """Return status, MCP session id and body."""
    headers = {
        "Accept": "application/json, text/event-stream",
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
    }
    if session is not None:
        headers["Mcp-Session-Id"] = session
    raw = message if isinstance(message, bytes) else json.dumps(message).encode()
    with contextlib.closing(console.connection()) as connection:
        connection.request("POST", "/mcp", raw, headers)
        response = connection.getresponse()
        return response.status, response.getheader("mcp-session-id", ""), response.read()


def _opened(console: Console, token: str) -> str:
    status, session, _ = _say(console, token, _OPEN)
    assert status == 200
    return session


def test_one_agent_cannot_use_up_the_mcp_sessions_of_all(shared: Console) -> None:
    """The session of its own that it used longest ago makes way, no other agent's does."""
    greedy, other = shared.session()["token"], shared.session()["token"]
    theirs = _opened(shared, other)
    first, second = _opened(shared, greedy), _opened(shared, greedy)
    for _ in range(MAX_SESSIONS_PER_AGENT - 2):
        newest = _opened(shared, greedy)
    assert _say(shared, greedy, _PING, first)[0] == 200
    newest = _opened(shared, greedy)
    assert any(_say(shared, greedy, _PING, second)[0] == 404 for _ in range(100))
    assert _say(shared, greedy, _PING, first)[0] == 200
    assert _say(shared, greedy, _PING, newest)[0] == 200
    assert _say(shared, other, _PING, theirs)[0] == 200
