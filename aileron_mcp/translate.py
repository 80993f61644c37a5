"""What an MCP client is told of the tools, how long its call is held, and what it claims about itself. Pure."""

import json
from collections.abc import Mapping
from typing import Any

from aileron_core.server.bodies import ActionBody

INSTRUCTIONS = (
    "Each tool is an action of Aileron. Some need a person's approval: such a call waits "
    "for a while and may then return status pending_approval with an approval_id. That "
    "is not an error. Tell the user, then call check_action_status with that id. Do not "
    "repeat the call. A denial is final."
)

CLIENT_LIMITS: Mapping[str, float] = {
    # clientInfo.name -> seconds that one tool call may take there by default.
    "claude-code": 1800.0,  # its idle limit; the limit of a call is a day
    "codex-mcp-client": 300.0,
    "gemini-cli-mcp-client": 600.0,
    "goose-cli": 300.0,
    "opencode": 60.0,
}
UNKNOWN_CLIENT_LIMIT = 60.0  # the shortest limit of a known client
_MARGIN = 5.0
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


def hold_seconds(
    client_name: str | None, client_limit: float | None = None, setting: float = 25.0
) -> float:
    """Return how long, in seconds, a call of this client may be held.

    Args:
        client_name: the client's own `clientInfo.name`, a claim that only ever shortens its hold.
        client_limit: seconds the client waits for one call, where somebody knows better than the table.
        setting: `[mcp] hold_seconds`.
    """
    limit = client_limit
    if limit is None:
        limit = CLIENT_LIMITS.get(client_name or "", UNKNOWN_CLIENT_LIMIT)
    return max(0.0, min(setting, limit - _MARGIN))


def action_tool(item: ActionBody) -> dict[str, Any]:
    return {
        "name": item["tool"],
        "description": item["description"],
        "inputSchema": item["input_schema"],
    }


def listed_bytes(entry: Mapping[str, Any]) -> int:
    """Return how much of `tools/list` one tool takes, its comma included."""
    return len(json.dumps(entry, ensure_ascii=False, separators=(",", ":")).encode()) + 1


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
