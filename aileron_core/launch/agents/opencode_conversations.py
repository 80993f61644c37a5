"""What of OpenCode's database is conversations: no account, share, command or allowed call, and not their agent."""

import re
from pathlib import Path, PurePosixPath
from typing import Any

from aileron_core.launch.conversation_tables import (
    Conversation,
    ConversationDatabase,
    ConversationTable,
    Row,
    Value,
    compact,
    in_project,
    json_object,
    json_objects,
    object_in,
    only,
)

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")
_LATEST = 10**14
"""Milliseconds, far ahead: what is later is no date."""
_AGENT = "earlier"
"""Stands for the agent of each turn: none has this name, so that OpenCode goes on with that of a new conversation."""
_WITHOUT_A_PERSON = frozenset(("question", "plan_enter", "plan_exit"))
"""What `opencode run` denies in its conversations, because nobody can answer."""
_MESSAGES = {
    "user": ("role", "time", "model"),
    "assistant": (
        "role", "time", "parentID", "path", "summary", "cost", "tokens", "modelID", "providerID",
        "finish", "error", "variant",
    ),
}  # fmt: skip
_PARTS = {
    "text": ("text", "synthetic", "ignored", "time", "metadata"),
    "reasoning": ("text", "time", "metadata"),
    "tool": ("callID", "tool", "state", "metadata"),
    "file": ("mime", "filename", "url"),
    "step-start": (),
    "step-finish": ("reason", "cost", "tokens"),
    "compaction": ("auto", "overflow", "tail_start_id"),
}
"""The parts of a message that are kept, and what of them: none that OpenCode would carry out, or restore files from."""


def _session(row: Row, project: Path) -> Row | None:
    if not _ID.fullmatch(str(row["id"])) or not _ID.fullmatch(str(row["project_id"])):
        raise ValueError
    if not 0 <= int(str(row["time_updated"])) < _LATEST:
        raise ValueError
    revert = row["revert"]
    if revert is not None:
        revert = compact(only(json_object(revert), "messageID", "partID"))
    rules = row["permission"]
    if rules is not None:
        denied = [
            only(each, "permission", "pattern", "action")
            for each in json_objects(rules)
            if each.get("permission") in _WITHOUT_A_PERSON and each.get("action") == "deny"
        ]
        rules = compact(denied) if denied else None
    directory = in_project(row["directory"], project)
    path = row["path"] if directory == row["directory"] else None
    return {**row, "directory": directory, "path": path, "revert": revert, "permission": rules}


def _message(row: Row, project: Path) -> Row:
    del project
    data = json_object(row["data"])
    kept: dict[str, Any] = {**only(data, *_MESSAGES[data["role"]]), "agent": _AGENT}
    if data["role"] == "user":
        kept["model"] = only(object_in(data["model"]), "providerID", "modelID", "variant")
    else:
        kept["mode"] = _AGENT
    return {**row, "data": compact(kept)}


def _part(row: Row, project: Path) -> Row | None:
    del project
    data = json_object(row["data"])
    names = _PARTS.get(str(data["type"]))
    if names is None:
        return None
    if data["type"] == "file" and not str(data["url"]).startswith("data:"):
        return None  # OpenCode would fetch it
    return {**row, "data": compact(only(data, "type", *names))}


def _todo(row: Row, project: Path) -> Row:
    del project
    return row


def _modified_at(value: Value) -> float:
    assert isinstance(value, int)
    return value / 1000


def _export(conversation: Conversation) -> object:
    session = conversation.rows["session"][0]
    parts: dict[Value, list[object]] = {}
    for row in sorted(conversation.rows["part"], key=lambda row: str(row["id"])):
        ids = {"id": row["id"], "sessionID": row["session_id"], "messageID": row["message_id"]}
        parts.setdefault(row["message_id"], []).append({**json_object(row["data"]), **ids})
    messages = [
        {
            "info": {
                **json_object(row["data"]),
                "id": row["id"],
                "sessionID": row["session_id"],
            },
            "parts": parts.get(row["id"], []),
        }
        for row in sorted(conversation.rows["message"], key=lambda row: str(row["id"]))
    ]
    info = {
        **{name: session[name] for name in ("id", "slug", "directory", "title", "version")},
        "projectID": session["project_id"],
        "time": {"created": session["time_created"], "updated": session["time_updated"]},
    }
    return {"info": info, "messages": messages}


OPENCODE_CONVERSATIONS = ConversationDatabase(
    path=PurePosixPath("history/opencode.db"),
    schema="opencode_tables.sql",
    account="account_state.active_org_id",
    tables=(
        ConversationTable(
            name="session",
            conversation="id",
            columns={
                "id": "text", "project_id": "text", "parent_id": "text?", "slug": "text",
                "directory": "text", "path": "text?", "title": "text", "version": "text",
                "cost": "number", "tokens_input": "integer", "tokens_output": "integer",
                "tokens_reasoning": "integer", "tokens_cache_read": "integer",
                "tokens_cache_write": "integer", "revert": "text?", "permission": "text?",
                "time_created": "integer",
                "time_updated": "integer", "time_archived": "integer?",
            },
            others=(
                "workspace_id", "share_url", "summary_additions", "summary_deletions",
                "summary_files", "summary_diffs", "metadata", "agent", "model",
                "time_compacting",
            ),
            clean=_session,
        ),
        ConversationTable(
            name="message",
            conversation="session_id",
            columns={
                "id": "text", "session_id": "text", "time_created": "integer",
                "time_updated": "integer", "data": "text",
            },
            clean=_message,
        ),
        ConversationTable(
            name="part",
            conversation="session_id",
            columns={
                "id": "text", "message_id": "text", "session_id": "text",
                "time_created": "integer", "time_updated": "integer", "data": "text",
            },
            clean=_part,
        ),
        ConversationTable(
            name="todo",
            conversation="session_id",
            columns={
                "session_id": "text", "content": "text", "status": "text", "priority": "text",
                "position": "integer", "time_created": "integer", "time_updated": "integer",
            },
            clean=_todo,
        ),
    ),
    modified="time_updated",
    modified_at=_modified_at,
    before=(
        "INSERT OR IGNORE INTO project (id, worktree, sandboxes, time_created, time_updated) "
        "VALUES (:project_id, :directory, '[]', :time_created, :time_updated)"
    ),
    export=_export,
)  # fmt: skip
