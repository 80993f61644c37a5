"""What an MCP client claims about itself and one call. It is shown, and decides nothing.

Only members that known clients send are read, under labels of ours: a client that could choose its
own label could write a line of the console.
"""

from collections.abc import Mapping
from typing import Any

_IDS: Mapping[str, str] = {
    "claudecode/toolUseId": "tool use",
    "callId": "call",
    "threadId": "thread",
    "sessionId": "session",
    "itemId": "item",
    "agent-session-id": "session",
    "agent-working-dir": "folder",
}
"""Member of `_meta` -> our label; claude's, then codex's, then goose's."""


def call_claims(meta: Mapping[str, Any] | None) -> dict[str, str]:
    """Return what the `_meta` of a call names: its ids there, by our labels."""
    claims: dict[str, str] = {}
    for member, label in _IDS.items():
        value = (meta or {}).get(member)
        if isinstance(value, str) and value:
            claims.setdefault(label, value)
    return claims


def client_claims(name: str, version: str) -> dict[str, str]:
    """Return what `clientInfo` says, by our label."""
    client = " ".join(part for part in (name, version) if part)
    return {"client": client} if client else {}
