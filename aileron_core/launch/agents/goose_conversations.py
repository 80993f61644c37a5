"""What of Goose's database is conversations: no extension, recipe, provider or schedule, and not its mode."""

import re
from collections.abc import Collection
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath

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
_TODO = "todo.v0"
_CONTENT = frozenset((
    "text", "image", "toolRequest", "toolResponse", "thinking", "redactedThinking", "reasoning",
    "systemNotification",
))  # fmt: skip
"""The parts of a message that are kept: none that asks for a confirmation, or for a call elsewhere."""


def _session(row: Row, project: Path) -> Row | None:
    if row["session_type"] != "user":
        return None  # subagents' and scheduled ones cannot be resumed
    if not _ID.fullmatch(str(row["id"])):
        raise ValueError
    for column in ("created_at", "updated_at"):
        _time(row[column])
    todo = object_in(json_object(row["extension_data"] or "{}").get(_TODO, {})).get("content")
    kept = {_TODO: {"content": todo}} if isinstance(todo, str) else {}
    working_dir = in_project(row["working_dir"], project)
    return {**row, "extension_data": compact(kept), "working_dir": working_dir}


def _message(row: Row, project: Path) -> Row:
    del project
    if row["role"] not in ("user", "assistant"):
        raise ValueError
    content = [each for each in json_objects(row["content_json"]) if each.get("type") in _CONTENT]
    shown = row["metadata_json"]
    if shown is not None:
        flags = only(json_object(shown), "userVisible", "agentVisible")
        shown = compact({name: value is True for name, value in flags.items()})
    return {**row, "content_json": compact(content), "metadata_json": shown}


def _modified_at(value: Value) -> float:
    return _time(value).timestamp()


def _time(value: Value) -> datetime:
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)


def _another_id(name: str, used: Collection[str]) -> str:
    """Goose numbers the conversations of a day, so that two launches at once use the same ids."""
    day = name.partition("_")[0]
    number = 1
    while (found := f"{day}_{number}") in used:
        number += 1
    return found


def _export(conversation: Conversation) -> object:
    session = conversation.rows["sessions"][0]
    messages = [
        {
            "id": row["message_id"],
            "role": row["role"],
            "created": row["created_timestamp"],
            "content": json_objects(row["content_json"]),
            "metadata": json_object(row["metadata_json"])
            if row["metadata_json"]
            else {"userVisible": True, "agentVisible": True},
        }
        for row in conversation.rows["messages"]
    ]
    times = {name: _time(session[name]).isoformat() for name in ("created_at", "updated_at")}
    names = ("id", "working_dir", "name", "session_type")
    return {
        **{name: session[name] for name in names},
        **times,
        "extension_data": {},
        "conversation": messages,
        "message_count": len(messages),
    }


GOOSE_CONVERSATIONS = ConversationDatabase(
    path=PurePosixPath("sessions/sessions.db"),
    schema="goose_tables.sql",
    tables=(
        ConversationTable(
            name="sessions",
            conversation="id",
            columns={
                "id": "text", "name": "text", "description": "text", "user_set_name": "integer",
                "session_type": "text", "working_dir": "text", "created_at": "text",
                "updated_at": "text", "extension_data": "text?", "total_tokens": "integer?",
                "input_tokens": "integer?", "output_tokens": "integer?",
                "accumulated_total_tokens": "integer?", "accumulated_input_tokens": "integer?",
                "accumulated_output_tokens": "integer?", "accumulated_cost": "number?",
                "archived_at": "text?",
            },
            others=(
                "schedule_id", "recipe_json", "user_recipe_values_json", "provider_name",
                "model_config_json", "goose_mode", "project_id",
            ),
            clean=_session,
        ),
        ConversationTable(
            name="messages",
            conversation="session_id",
            columns={
                "message_id": "text?", "session_id": "text", "role": "text",
                "content_json": "text", "created_timestamp": "integer", "timestamp": "text?",
                "tokens": "integer?", "metadata_json": "text?",
            },
            others=("id",),
            clean=_message,
        ),
    ),
    modified="updated_at",
    modified_at=_modified_at,
    another_id=_another_id,
    export=_export,
)  # fmt: skip
