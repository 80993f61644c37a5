"""What of Goose's database is conversations: no extension, recipe, provider or schedule, and not its mode."""

from datetime import UTC, datetime
from pathlib import PurePosixPath

from aileron_core.launch.plan import (
    IN_PROJECT,
    ConversationDatabase,
    Rows,
    json_object,
)

_CONTENT = (
    "'text', 'image', 'toolRequest', 'toolResponse', 'thinking', 'redactedThinking', 'reasoning', "
    "'systemNotification'"
)
"""The parts of a message that are kept: none that asks for a confirmation, or for a call elsewhere."""
_TODO = """json_extract(extension_data, '$."todo.v0".content')"""


def _time(value: object) -> datetime:
    return datetime.fromisoformat(str(value)).replace(tzinfo=UTC)


def _export(rows: Rows) -> object:
    session = rows["sessions"][0]
    messages = [
        {
            "id": row["message_id"],
            "role": row["role"],
            "created": row["created_timestamp"],
            "content": json_object(f'{{"content": {row["content_json"]}}}')["content"],
            "metadata": json_object(
                row["metadata_json"] or '{"userVisible": true, "agentVisible": true}'
            ),
        }
        for row in rows["messages"]
    ]
    times = {name: _time(session[name]).isoformat() for name in ("created_at", "updated_at")}
    return {
        **{name: session[name] for name in ("id", "working_dir", "name", "session_type")},
        **times,
        "extension_data": {},
        "conversation": messages,
        "message_count": len(messages),
    }


GOOSE_CONVERSATIONS = ConversationDatabase(
    path=PurePosixPath("sessions/sessions.db"),
    tables={
        "sessions": {
            **dict.fromkeys(
                (
                    "schedule_id", "recipe_json", "user_recipe_values_json", "provider_name",
                    "model_config_json", "project_id",
                ),
                "NULL",
            ),
            "goose_mode": "'auto'",
            "extension_data": f"iif({_TODO} IS NULL, '{{}}', "
            f"json_object('todo.v0', json_object('content', {_TODO})))",
            "working_dir": IN_PROJECT.format("working_dir"),
        },
        "messages": {
            "content_json": "(SELECT json_group_array(json(value)) FROM json_each(content_json) "
            f"WHERE json_extract(value, '$.type') IN ({_CONTENT}))",
            "metadata_json": "json_object('userVisible', json(iif(json_extract(metadata_json, "
            "'$.userVisible') IS FALSE, 'false', 'true')), 'agentVisible', json(iif(json_extract("
            "metadata_json, '$.agentVisible') IS FALSE, 'false', 'true')))",
        },
    },
    versions=("schema_version",),
    only={"sessions": "session_type = 'user'"},
    is_numbered=True,
    modified="updated_at",
    modified_at=lambda value: _time(value).timestamp(),
    export=_export,
)  # fmt: skip
