"""What the log and the trace say of a call as its state changes: never what it was about."""

import logging

from aileron_core.audit.record import AuditRecord
from aileron_core.runs.live_run import LiveRun
from aileron_core.runs.transitions import RunState

_log = logging.getLogger(__name__)
_WAITING = (RunState.PENDING, RunState.AWAITING_VAULT)


def how_decided(run: LiveRun) -> str:
    """Return by what *run* may run or not: `person`, `session`, `rule`, `ungated`, or `nobody` yet.

    `session` is a person's yes to an equal call, for the rest of the session.
    """
    if run.row.decided_by is not None:
        return run.row.decided_by
    verdict = run.resolved.verdict if run.resolved is not None else None
    if verdict is not None and verdict.decision != "ask":
        remembered = verdict.decision == "allow" and verdict.rule is None
        return "session" if remembered else "rule"
    return "nobody" if run.row.gated else "ungated"


def follow(run: LiveRun, before: RunState, now: float) -> None:
    """Bring spans and log up to the state of *run*, which was *before* it.

    Args:
        now: epoch seconds.
    """
    state, decided = run.row.state, how_decided(run)
    if state is before:
        return
    if run.is_waiting and before not in _WAITING:
        run.wait_span = run.span.child("wait")
    elif before in _WAITING and not run.is_waiting:
        run.wait_span.end(decision=decided, state=state)
    if run.is_final:
        run.span.end(decision=decided, state=state)
        took = (run.row.ended_at or now) - run.row.requested_at
        extra = {"run": run.row.run_id, "session": run.row.session_id, "action": run.row.action}
        extra |= {"decided": decided, "seconds": round(took, 3), "state": state}
        _log.info("call ended", extra={"event": "call", **extra})


def log_refusal(record: AuditRecord) -> None:
    """Have the log say of a call that it was refused before there was a run."""
    extra = {"session": record.session, "action": record.action, "state": "refused"}
    _log.info("call refused", extra={"event": "call", **extra})
