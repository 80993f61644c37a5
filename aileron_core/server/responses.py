"""Runs of the core, as bodies of the routes: what an agent is told of a call."""

from collections.abc import Mapping
from typing import cast

from aileron_core.actions.model import is_builtin
from aileron_core.canonical import Json
from aileron_core.clock import rfc3339
from aileron_core.console.device_service import LINK_KEY
from aileron_core.console_port.account_views import AccountNeed
from aileron_core.runs.account_waits import WAITS
from aileron_core.runs.model import RunRecord
from aileron_core.runs.transitions import FINAL, RunState
from aileron_core.server.bodies import (
    AgentStatus,
    CompletedBody,
    EditedBody,
    FailureBody,
    PendingBody,
    ResultBody,
)


def agent_status(row: RunRecord) -> AgentStatus:
    """Return the state as an agent may know it: pending until it is final."""
    return cast("AgentStatus", str(row.state)) if row.state in FINAL else "pending_approval"


def completed_body(row: RunRecord, *, of_server: bool = False) -> CompletedBody:
    """Return what a run returned; *of_server*: as a tool of an MCP server."""
    output, steps = _outputs(row)
    body: CompletedBody = {"status": "completed", "audit_id": row.run_id, "output": output}
    if steps is not None:
        body["steps"] = steps
    if is_builtin(row.action):
        body["action"] = row.action
    if of_server:
        body["of_server"] = True
    if row.words:
        body["digest_words"] = row.words
    if (edited := _edited(row)) is not None:
        body["edited_by_person"] = edited
    return body


def _edited(row: RunRecord) -> EditedBody | None:
    """Return what a person changed; of a call that they did not approve, the agent learns nothing of that."""
    approved = row.state in FINAL - {RunState.DENIED} and row.decided_by is not None
    if not approved or row.args is None or not row.edited_names:
        return None
    return {"changed": row.edited_names, "args": row.args}


def _outputs(row: RunRecord) -> tuple[Json, Mapping[str, Json] | None]:
    """Return what the run returned, and each step's own output where there are several."""
    outputs = row.output or {}
    steps = outputs.get("steps")
    if not isinstance(steps, Mapping) or len(steps) < 2:
        steps = None
    return outputs.get("output"), steps


def waits_for(row: RunRecord, need: AccountNeed | None) -> str:
    """Return what an open call waits for; *need*: why it cannot begin yet."""
    if row.state is RunState.AWAITING_VAULT:
        return WAITS[need.reason if need is not None else "locked"]
    return "a person's approval" if row.gated else "its end"


def pending_body(
    row: RunRecord,
    url: str,
    *,
    attached: bool,
    need: AccountNeed | None = None,
    link_key: str = LINK_KEY,
    is_listed: bool = True,
) -> PendingBody:
    """Return who must decide, where, and what to do meanwhile.

    Args:
        attached: the call was attached to an approval that was asked for before.
        need: why it cannot begin yet.
        link_key: the console's key that pairs a browser.
        is_listed: a person is asked; else that depends on what its preview shows.
    """
    assert row.approval_id is not None
    review = f"{url}/review/{row.approval_id}"
    what = waits_for(row, need)
    return {
        "status": "pending_approval",
        "approval_id": row.approval_id,
        "review_url": review,
        "message": _pending_message(row, review, what, link_key, attached=attached)
        if is_listed
        else f"Aileron looks at what {row.action_name} would do; a person may have to approve it. Call "
        "check_action_status with this approval_id until it has ended.",
        "audit_id": row.run_id,
        "expires_at": None if row.expires_at is None else rfc3339(row.expires_at),
        "waits_for": what,
    }


def _pending_message(
    row: RunRecord, review: str, what: str, link_key: str, *, attached: bool
) -> str:
    again = "The same call is already open, so this is its approval. " if attached else ""
    if row.state in FINAL:
        return (
            f"{again}It has ended. Call check_action_status with this approval_id to get its "
            "result."
        )
    if row.state is RunState.AWAITING_VAULT:
        return (
            f"{again}{row.action_name} waits for {what}, in the Aileron console. "
            f"{'A person has to approve it after that' if row.gated else 'Then it runs without approval'}. "
            f"Tell the user: it waits there as {row.approval_id} ({review}). Then call "
            "check_action_status with this approval_id until it has ended."
        )
    return (
        f"{again}A person must approve {row.action_name} in the Aileron console before it runs. "
        f"Tell the user that it waits there as {row.approval_id}, where the key {link_key} lets a browser "
        f"decide it too ({review}, or run `aileron open approval {row.approval_id}`). Then call "
        "check_action_status with this approval_id until it has ended."
    )


def result_body(
    row: RunRecord, need: AccountNeed | None = None, *, of_server: bool = False
) -> ResultBody:
    """Return how an approval stands; *need*: why it cannot begin yet, *of_server*: as of `completed_body`."""
    assert row.approval_id is not None
    body: ResultBody = {
        "status": agent_status(row),
        "approval_id": row.approval_id,
        "action": row.action,
        "audit_id": row.run_id,
        "requested_at": rfc3339(row.requested_at),
        "expires_at": None if row.expires_at is None else rfc3339(row.expires_at),
    }
    if row.progress is not None:
        body["completed_steps"] = list(row.progress.steps)
    if row.state is RunState.COMPLETED:
        body["output"], steps = _outputs(row)
        if steps is not None:
            body["steps"] = steps
        if of_server:
            body["of_server"] = True
    elif row.state is RunState.DENIED:
        body["reason"] = row.reason
    elif row.state in (RunState.FAILED, RunState.UNKNOWN):
        body["failure"] = cast("FailureBody", row.failure.to_json()) if row.failure else None
    if row.state not in FINAL:
        body["waits_for"] = waits_for(row, need)
    elif row.words:
        body["digest_words"] = row.words
    if (edited := _edited(row)) is not None:
        body["edited_by_person"] = edited
    return body
