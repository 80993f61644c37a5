"""What of OpenCode's database is conversations: no account, share, command or allowed call, and not their agent."""

from pathlib import PurePosixPath

from aileron_core.launch.plan import (
    IN_PROJECT,
    ConversationDatabase,
    Rows,
    json_object,
)

_PARTS = "'text', 'reasoning', 'tool', 'file', 'step-start', 'step-finish', 'compaction'"
"""The parts of a message that are kept: none that OpenCode would carry out, or restore files from."""
_WITHOUT_A_PERSON = "'question', 'plan_enter', 'plan_exit'"
"""What `opencode run` denies in its conversations, because nobody can answer."""
_DENIED = (
    "(SELECT nullif(json_group_array(json(value)), '[]') FROM json_each(permission) WHERE "
    f"json_extract(value, '$.permission') IN ({_WITHOUT_A_PERSON}) "
    "AND json_extract(value, '$.action') = 'deny')"
)
_MESSAGE = (
    "json_set(json_remove(data, '$.tools', '$.system', '$.mode'), '$.agent', 'earlier', "
    "iif(json_extract(data, '$.role') = 'user', '$.agent', '$.mode'), 'earlier')"
)
"""No agent has the name, so that OpenCode goes on with that of a new conversation."""


def _export(rows: Rows) -> object:
    session = rows["session"][0]
    parts: dict[object, list[object]] = {}
    for row in sorted(rows["part"], key=lambda row: str(row["id"])):
        ids = {"id": row["id"], "sessionID": row["session_id"], "messageID": row["message_id"]}
        parts.setdefault(row["message_id"], []).append({**json_object(row["data"]), **ids})
    messages = [
        {
            "info": {**json_object(row["data"]), "id": row["id"], "sessionID": row["session_id"]},
            "parts": parts.get(row["id"], []),
        }
        for row in sorted(rows["message"], key=lambda row: str(row["id"]))
    ]
    info = {
        **{name: session[name] for name in ("id", "slug", "directory", "title", "version")},
        "projectID": session["project_id"],
        "time": {"created": session["time_created"], "updated": session["time_updated"]},
    }
    return {"info": info, "messages": messages}


OPENCODE_CONVERSATIONS = ConversationDatabase(
    path=PurePosixPath("history/opencode.db"),
    tables={
        "session": {
            **dict.fromkeys(
                ("workspace_id", "path", "share_url", "metadata", "agent", "model"), "NULL"
            ),
            "summary_diffs": "NULL",
            "revert": "iif(revert IS NULL, NULL, json_patch('{}', json_object('messageID', "
            "json_extract(revert, '$.messageID'), 'partID', json_extract(revert, '$.partID'))))",
            "permission": _DENIED,
            "directory": IN_PROJECT.format("directory"),
        },
        "message": {"data": _MESSAGE},
        "part": {},
        "todo": {},
        "project": {"worktree": ":project", "sandboxes": "'[]'", "commands": "NULL"},
    },
    versions=("migration", "data_migration"),
    only={
        "part": f"json_extract(data, '$.type') IN ({_PARTS}) AND (json_extract(data, '$.type') != 'file' "
        "OR json_extract(data, '$.url') LIKE 'data:%')",
    },
    is_numbered=False,
    modified="time_updated",
    modified_at=lambda value: value / 1000,
    export=_export,
)
