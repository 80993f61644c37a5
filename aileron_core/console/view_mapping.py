"""Maps the core's objects to the frozen values that front ends draw: calls, sessions, records."""

import json
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, cast

from aileron_core.actions.interpolate import uses_earlier_output
from aileron_core.actions.model import Action, Step, shown_name
from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import CommittedRecord, record_body
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock, parse_rfc3339
from aileron_core.connectors.http.host_names import short_host, short_hosts
from aileron_core.connectors.protocol import for_person
from aileron_core.console_port.account_views import AccountView
from aileron_core.console_port.field_views import (
    DriftView,
    FieldChangeView,
    FieldView,
    LookView,
    PreviewView,
)
from aileron_core.console_port.view_models import (
    ApprovalView,
    ReachView,
    RecordView,
    RunAheadView,
    SessionView,
    ShownState,
    StepView,
    ToolCallsView,
    TrafficView,
)
from aileron_core.credentials.accounts import ConnectorWithAccount, shown_account
from aileron_core.runs import LiveRun, PreviewResult
from aileron_core.runs.live_run import Look, PreviewChange
from aileron_core.runs.preview.resolve import (
    argument_fields,
    compare_outputs,
    editable_arguments,
    new_values,
    other_arguments,
    render_gist,
    resolve_fields,
    value_text,
)
from aileron_core.runs.transitions import FINAL, RunState
from aileron_core.sessions.containment_line import containment_line
from aileron_core.sessions.model import Session
from aileron_core.sessions.registry import SessionRegistry

GRACE_SECONDS = 2.0
"""Seconds without a waiting call until its agent counts as gone: agents wait by calls that come again and again."""


@dataclass(slots=True)
class _Wait:
    calls: int = 0
    left_at: float = 0.0
    left_tick: float = 0.0
    stopped_at: float | None = None


class WaitingAgents:
    """The calls that are held for an answer, by approval. In memory alone.

    Args:
        changed: called with the id of an approval when nobody waits for it any more, or somebody does again.
    """

    def __init__(self, clock: Clock, changed: Callable[[str], None]) -> None:
        self._clock = clock
        self._changed = changed
        self._waits: dict[str, _Wait] = {}

    @contextmanager
    def waiting(self, approval_id: str) -> Generator[None]:
        """Count one call that waits for the answer, for as long as the context is open."""
        wait = self._waits.setdefault(approval_id, _Wait())
        wait.calls += 1
        if wait.stopped_at is not None:
            wait.stopped_at = None
            self._changed(approval_id)
        try:
            yield
        finally:
            wait.calls -= 1
            wait.left_at, wait.left_tick = self._clock.now(), self._clock.monotonic()

    def stopped_at(self, approval_id: str) -> float | None:
        """Return the time since which no agent waits; None while one does, or where none ever did."""
        wait = self._waits.get(approval_id)
        return wait.stopped_at if wait else None

    def sweep(self, is_open: Callable[[str], bool]) -> None:
        """Mark approvals whose last call ended `GRACE_SECONDS` ago; drop answered ones. Called often."""
        now = self._clock.monotonic()
        for approval_id, wait in tuple(self._waits.items()):
            if wait.calls:
                continue
            if not is_open(approval_id):
                del self._waits[approval_id]
            elif wait.stopped_at is None and now - wait.left_tick >= GRACE_SECONDS:
                wait.stopped_at = wait.left_at
                self._changed(approval_id)


_AFTER_ALL = 2**63 - 1
"""Greater than the number of any record."""

_SELECT_RECORDS = (
    "SELECT a.seq, a.body, s.agent FROM audit AS a LEFT JOIN sessions AS s ON s.session_id = "
    "CASE WHEN json_valid(a.body) THEN json_extract(a.body, '$.session') END"
)

_NO_EFFECT = {True: "ask", False: "call"}
"""What stands for an effect that the action file does not say, by whether it is gated."""


_SEALED = "What the call contained is sealed. Unlock the vault to read it."


def approval_view(
    run: LiveRun,
    sessions: SessionRegistry,
    waiters: WaitingAgents,
    preview_seconds: float,
    *,
    can_undo: bool,
) -> ApprovalView:
    row, session, resolved = run.row, run.session, run.resolved
    action = resolved.action if resolved else None
    step, new = _step_now(run, action), _new_values(run, action)
    return ApprovalView(
        approval_id=row.approval_id or "",
        run_id=row.run_id,
        state=cast("ShownState", str(row.state)),
        version=run.version,
        can_undo=can_undo,
        requested_at=row.requested_at,
        expires_at=row.expires_at,
        session_id=session.session_id,
        agent=session.agent,
        session_label=session.label,
        cwd=session.cwd,
        self_opened=session.self_opened,
        containment=sessions.containment(session),
        reach=ReachView(network=session.terms.network, hosts=session.terms.hosts),
        requester_gone=row.state not in FINAL and sessions.get(session.session_id) is None,
        times_asked=row.times_asked,
        action=row.action,
        title=action.title if action else row.action,
        effect=((action.approval.effect if action else None) or _NO_EFFECT[row.gated]).upper(),
        connector=step.connector if step else "",
        op=step.op if step else "",
        hosts=run.hosts,
        op_hosts=run.step_hosts(step) if step else (),
        hosts_asked=run.hosts_asked,
        routed=resolved.routed if resolved else (),
        arguments=_sent(run, action),
        inputs=editable_arguments(action, row.args or {}) if action and run.can_be_edited else (),
        edits=tuple(
            (_argument(name, row.asked_args), _argument(name, row.args))
            for name in row.edited_names
        ),
        new_values=new,
        other_arguments=_other_arguments(run, action) if new else (),
        preview=_preview(run.preview, run, action, preview_seconds),
        drift=_drift(run.drift, action) if run.drift else None,
        digest=row.digest or "",
        words=row.words,
        note=_note(run),
        args_sha256=run.args_sha256 if row.asked_args is None else "",
        action_sha256=row.action_sha256,
        steps=_steps(run, action),
        process=session.process,
        claims=_claims(run.claims),
        stopped_waiting_at=waiters.stopped_at(row.approval_id or ""),
        can_fetch_again=run.can_refetch_preview,
        awaits_acknowledgement=run.awaits_acknowledgement,
        decided_at=row.decided_at,
        decided_by=row.decided_by or "",
        hand=run.hand if row.decided_by == "person" else "",
        reason=row.reason or "",
        outcome=_outcome(run),
        ended_at=row.ended_at,
        forgotten=row.args is None and not row.content_is_sealed,
        sealed=_SEALED if row.content_is_sealed else "",
        started_at=run.started_at if row.state is RunState.EXECUTING else None,
        seconds_allowed=run.seconds_allowed if row.state not in FINAL else None,
        waits_for=_run_ahead(run),
        rule=run.rule,
        gated=row.gated,
        accounts=_accounts(run),
        account_need=run.account_need,
        read_back=run.read_back,
        look=_look(run.look, run, action, preview_seconds) if run.look is not None else None,
    )


def _run_ahead(run: LiveRun) -> RunAheadView | None:
    other = run.waits_for
    if other is None or run.row.state is not RunState.CHECKING:
        return None
    began, allowed = other.started_at, other.seconds_allowed
    ends_by = None if began is None or allowed is None else began + allowed
    return RunAheadView(action=other.row.action_name, ends_by=ends_by)


def _outcome(run: LiveRun) -> str:
    failure = run.row.failure
    text = run.outcome_text or (failure.message if failure else "")
    action = run.resolved.action if run.resolved else None
    if failure is None or run.resolved is None or action is None:
        return text
    for step in action.steps:
        if step.id == failure.details.get("step"):
            return for_person(failure, text, run.resolved.connectors[step.connector].account)
    return text


def _accounts(run: LiveRun) -> tuple[AccountView, ...]:
    connectors = run.resolved.connectors.values() if run.resolved else ()
    return tuple(
        shown_account(each.binding) for each in connectors if isinstance(each, ConnectorWithAccount)
    )


def result_fields(run: LiveRun) -> tuple[FieldView, ...]:
    """Return what a completed run returned: the last step's output, before it those of earlier steps.

    Labels are ids of the accepted file's steps, or ours: a row is no source of labels.
    """
    if run.row.output is None:
        return ()
    result = _input("Result", run.row.output.get("output"))
    steps = run.row.output.get("steps")
    if not isinstance(steps, Mapping) or run.resolved is None:
        return (result,)
    earlier = [step.id for step in run.resolved.action.steps if step.id in steps][:-1]
    return (*(_input(step, steps[step]) for step in earlier), result)


def _step_now(run: LiveRun, action: Action | None) -> Step | None:
    """Return the step that an approval would start with."""
    if action is None:
        return None
    progress = run.row.progress
    left = (step for step in action.steps if progress is None or step.id not in progress.steps)
    return next(left, action.steps[0])


def _steps(run: LiveRun, action: Action | None) -> tuple[StepView, ...]:
    """Return every step of a gated action that has several: an approval covers all of them."""
    if action is None or run.resolved is None or run.row.args is None:
        return ()
    if len(action.steps) < 2:
        return ()
    progress, halts = run.row.progress, run.halting_steps()
    shown: list[StepView] = []
    for step in action.steps:
        status: Literal["done", "asked", "running", "fixed"]
        if progress and step.id in progress.steps:
            status = "done"
        elif progress and step.id == progress.halted_before:
            status = "asked"
        else:
            status = "running" if uses_earlier_output(step) else "fixed"
        inputs = run.step_inputs(step, progress)
        shown.append(
            StepView(
                step_id=step.id,
                connector=step.connector,
                op=step.op,
                hosts=run.step_hosts(step),
                status=status,
                asks_again=step.id in halts and status == "running",
                inputs=tuple(_input(name, value) for name, value in inputs.items()),
            )
        )
    return tuple(shown)


def _input(name: str, value: Json) -> FieldView:
    text, shape = value_text(value)
    return FieldView(label=name, value=text, multiline="\n" in text, shape=shape)


def _note(run: LiveRun) -> str:
    if run.resolved is None and run.row.state not in FINAL:
        return (
            "The requested action file is no longer accepted, so this cannot run. "
            "Deny it, or accept the same file again and restart the console."
        )
    if run.row.progress is None or run.row.note:
        return run.row.note
    if run.row.progress.halted_before:
        return "It stopped partway: its first steps ran; the rest wait for your answer."
    return (
        "A step failed and was not repeated, because the preview has changed. The steps that already "
        "ran are not undone; the rest wait for your answer."
    )


def _sent(run: LiveRun, action: Action | None) -> tuple[FieldView, ...]:
    if run.row.args is None:
        return ()
    if action is None:
        return tuple(_input(name, value) for name, value in run.row.args.items())
    return argument_fields(action, run.row.args)


def _argument(name: str, args: JsonObject | None) -> FieldView:
    value = args.get(name) if args is not None else None
    return FieldView(label=name, missing=True) if value is None else _input(name, value)


def _new_values(run: LiveRun, action: Action | None) -> tuple[FieldView, ...]:
    if run.row.args is None or action is None:
        return ()
    return new_values(action, run.row.args, run.preview.output)


def _other_arguments(run: LiveRun, action: Action | None) -> tuple[FieldView, ...]:
    if run.row.args is None or action is None:
        return ()
    return other_arguments(action, run.row.args, run.preview.output)


def _preview(
    result: PreviewResult, run: LiveRun, action: Action | None, limit: float
) -> PreviewView:
    host, reads = _hosts_text(result, run), tuple(sorted(result.reads.items()))
    preview = action.approval.preview if action else None
    fields = resolve_fields(preview, result.output) if result.status == "ready" and preview else ()
    return PreviewView(
        status=result.status,
        fields=fields,
        gist=render_gist(preview, fields) if result.status == "ready" and preview else "",
        reason=result.reason,
        host=host,
        accepted_reads=reads,
        updated_at=result.fetched_at,
        limit_seconds=limit,
        preparing=result.preparing,
        not_found=result.not_found,
    )


def _hosts_text(result: PreviewResult, run: LiveRun) -> str:
    """Return the hosts that were asked; before there is an answer, those that can be."""
    if result.status != "fetching":
        return short_hosts(result.hosts_asked)
    hosts = run.preview_hosts
    return (
        short_host(hosts[0]) if len(hosts) == 1 else f"one of {len(hosts)} hosts" if hosts else ""
    )


def _look(look: Look, run: LiveRun, action: Action | None, limit: float) -> LookView:
    return LookView(
        preview=_preview(look.preview, run, action, limit),
        comparison=look.comparison,
        is_unchanged=look.is_unchanged,
    )


def _drift(drift: PreviewChange, action: Action | None) -> DriftView:
    preview = action.approval.preview if action else None
    before = drift.before.output if drift.before.status == "ready" else None
    after = drift.after.output if drift.after.status == "ready" else None
    gone = drift.after.reason if drift.after.status == "unavailable" else ""
    if preview is None or gone or before is None:
        # A preview that went away: every field that was shown, and nothing in its place.
        fields = resolve_fields(preview, before) if gone and preview and before is not None else ()
        return DriftView(
            before_at=drift.before.fetched_at,
            after_at=drift.after.fetched_at,
            changed=tuple(_change(field, None) for field in fields),
            same_count=0,
            other_paths=(),
            other_count=0,
            words_before=drift.words_before,
            unavailable=gone,
        )
    found = compare_outputs(before, after, preview)
    return DriftView(
        before_at=drift.before.fetched_at,
        after_at=drift.after.fetched_at,
        changed=tuple(_change(change.before, change.after) for change in found.changed),
        same_count=len(preview.render) - len(found.changed),
        other_paths=found.other_paths,
        other_count=found.other_count,
        words_before=drift.words_before,
    )


def _change(before: FieldView, after: FieldView | None) -> FieldChangeView:
    return FieldChangeView(
        label=before.label,
        before=None if before.missing else before.value,
        after=None if after is None or after.missing else after.value,
        multiline=before.multiline or (after is not None and after.multiline),
    )


def _claims(claims: tuple[tuple[str, str], ...]) -> tuple[FieldView, ...]:
    return tuple(FieldView(label=label, value=value) for label, value in claims)


def session_view(
    session: Session,
    sessions: SessionRegistry,
    *,
    waiting: int,
    running: int,
    traffic: TrafficView | None,
    waits_for_vault: bool,
    tool_calls: ToolCallsView | None,
) -> SessionView:
    return SessionView(
        session_id=session.session_id,
        agent=session.agent,
        label=session.label,
        cwd=session.cwd,
        pid=session.pid,
        executable=session.executable,
        self_opened=session.self_opened,
        containment=sessions.containment(session),
        containment_line=containment_line(session, sessions.containment(session)),
        opened_at=session.opened_at,
        connected=sessions.is_connected(session.session_id),
        process=session.process,
        claims=_claims(sessions.claims(session.session_id)),
        waiting=waiting,
        running=running,
        traffic=traffic,
        waits_for_vault=waits_for_vault,
        terms=session.terms,
        tool_calls=None if session.terms.augment else tool_calls,
        hosts=sessions.hosts.of(session.session_id),
    )


def record_view(committed: CommittedRecord, agent: str) -> RecordView:
    return _view_of_body(committed.seq, record_body(committed.seq, committed.record), agent)


_ANSWERS = (AuditEvent.APPROVAL_APPROVED, AuditEvent.APPROVAL_DENIED, AuditEvent.DEVICE_ASKED)


def _view_of_body(seq: int, body: Mapping[str, Any], agent: str) -> RecordView:
    return RecordView(
        seq=seq,
        at=parse_rfc3339(body["at"]),
        event=body["event"],
        run_id=body["run"],
        session_id=body["session"],
        action=body["action"] and shown_name(body["action"]),
        actor=body["actor"],
        agent=agent,
        summary=body["summary"],
        seconds_allowed=_seconds_allowed(body.get("wall_seconds")),
        count=count if isinstance(count := body.get("count"), int) and 0 < count < 2**31 else 1,
        actions=tuple(map(shown_name, body.get("actions") or ())),
        hand=_hand(body),
    )


def _hand(body: Mapping[str, Any]) -> str:
    """Return with which hand a person did what is on record; empty where the record names none."""
    named = body.get("asked_by", body.get("hand"))  # the end of a device has its own hand, too
    said = body["event"] in _ANSWERS or "asked" in body
    return named if isinstance(named, str) and said else ""


def _seconds_allowed(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and 0 <= value < 1e6 else None


def records_from(
    connection: sqlite3.Connection, limit: int, before_seq: int | None = None
) -> tuple[RecordView, ...]:
    """Return the newest records of the database, or the newest before *before_seq*, oldest first."""
    found = connection.execute(
        f"{_SELECT_RECORDS} WHERE a.seq < ? ORDER BY a.seq DESC LIMIT ?",
        (_AFTER_ALL if before_seq is None else before_seq, limit),
    ).fetchall()
    return tuple(_stored_view(seq, body, agent or "") for seq, body, agent in reversed(found))


def records_of_no_call(
    connection: sqlite3.Connection, before_seq: int, event: AuditEvent | None = None
) -> Iterator[RecordView]:
    """Yield the records before *before_seq* that are of no run, newest first; those of *event* alone, if given."""
    found = connection.execute(
        f"{_SELECT_RECORDS} WHERE a.run IS NULL AND a.seq < ? AND a.event = COALESCE(?, a.event) "
        "ORDER BY a.seq DESC",
        (before_seq, event),
    )
    return (_stored_view(seq, body, agent or "") for seq, body, agent in found)


def records_of_run(
    connection: sqlite3.Connection, run_id: str, agent: str
) -> tuple[RecordView, ...]:
    """Return every record of the run, oldest first; *agent*: of its session."""
    found = connection.execute("SELECT seq, body FROM audit WHERE run = ? ORDER BY seq", (run_id,))
    return tuple(_stored_view(seq, body, agent) for seq, body in found)


def _stored_view(seq: int, body: str, agent: str) -> RecordView:
    try:
        return _view_of_body(seq, json.loads(body), agent)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # One damaged record must not keep the console from showing the others.
        return RecordView(
            seq=seq,
            at=0.0,
            event=AuditEvent.AUDIT_UNREADABLE,
            run_id=None,
            session_id=None,
            action=None,
            actor="aileron",
            agent=agent,
            summary="Another program changed this record; run `aileron audit verify` for details",
        )
