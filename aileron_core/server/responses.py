"""What the routes answer: runs and actions as JSON, in WIRE.md's fields."""

from collections.abc import Mapping
from typing import Any

from aileron_core.actions.model import Action
from aileron_core.actions.validate import input_schema
from aileron_core.clock import rfc3339
from aileron_core.runs.model import RunRecord
from aileron_core.runs.transitions import FINAL, RunState

__all__ = ["action_item", "agent_status", "completed_body", "pending_body", "result_body"]


def action_item(action: Action) -> dict[str, Any]:
    """Return an item of `GET /v1/actions`."""
    return {
        "name": action.name,
        "tool": action.tool_name,
        "version": action.version,
        "description": action.description,
        "gated": action.gated,
        "input_schema": input_schema(action),
    }


def agent_status(row: RunRecord) -> str:
    """Return the state as an agent may know it: pending until it is final (THREATS T6)."""
    return str(row.state) if row.state in FINAL else "pending_approval"


def completed_body(row: RunRecord) -> dict[str, Any]:
    """Return the body of a completed run."""
    return {"status": "completed", "audit_id": row.run_id, **_outputs(row)}


def _outputs(row: RunRecord) -> dict[str, Any]:
    """Return what the run returned; each step's own output only where there are several."""
    outputs = row.output or {}
    steps = outputs.get("steps")
    told: dict[str, Any] = {"output": outputs.get("output")}
    if isinstance(steps, Mapping) and len(steps) > 1:
        told["steps"] = steps
    return told


def pending_body(row: RunRecord, url: str, *, attached: bool) -> dict[str, Any]:
    """Return the 202 body: who must decide, where, and what to do meanwhile."""
    review = f"{url}/review/{row.approval_id}"
    return {
        "status": "pending_approval",
        "approval_id": row.approval_id,
        "review_url": review,
        "message": _pending_message(row, review, attached=attached),
        "audit_id": row.run_id,
        "expires_at": None if row.expires_at is None else rfc3339(row.expires_at),
    }


def _pending_message(row: RunRecord, review: str, *, attached: bool) -> str:
    again = (
        "This is the approval that was asked for before with the same arguments. "
        if attached
        else ""
    )
    if row.state in FINAL:
        return f"{again}It has ended: check_action_status with this approval_id says how."
    return (
        f"{again}A person must approve {row.action} in the Aileron console before it runs. "
        f"Tell the user: it waits there as {row.approval_id} ({review}, or run "
        f"`aileron open approval {row.approval_id}`). Then call check_action_status with this "
        "approval_id until it has ended."
    )


def result_body(row: RunRecord) -> dict[str, Any]:
    """Return the body of `GET /v1/action-approvals/{id}/result`; never a preview."""
    body: dict[str, Any] = {
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
        body |= _outputs(row)
        if row.words:
            body["digest_words"] = list(row.words)
    elif row.state is RunState.DENIED:
        body["reason"] = row.reason
    elif row.state in (RunState.FAILED, RunState.UNKNOWN):
        body["failure"] = row.failure.to_json() if row.failure else None
    return body
