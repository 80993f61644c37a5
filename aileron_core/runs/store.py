"""Writing runs: each transition and its audit record in one durable unit; then listeners are notified."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from aileron_core.audit.events import Actor, AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.canonical import Json
from aileron_core.clock import Clock, rfc3339
from aileron_core.errors import AileronError, StorageUnavailable
from aileron_core.events import EventBus
from aileron_core.hash_words import words_list
from aileron_core.runs import run_table
from aileron_core.runs.interfaces import Failpoint
from aileron_core.runs.live_run import LiveRun
from aileron_core.runs.model import RunRecord
from aileron_core.runs.transitions import RunEvent, RunState
from aileron_core.storage.database import Database, Tx

_log = logging.getLogger(__name__)
_RETRY_SECONDS = 1.0


@dataclass(eq=False)
class RunStore:
    """The one writer of runs. Every method is durable when it returns."""

    database: Database
    clock: Clock
    run_changed: EventBus[LiveRun]
    failpoint: Failpoint

    def build_record(
        self,
        row: RunRecord,
        audit_event: AuditEvent,
        summary: str,
        extra: dict[str, Json] | None = None,
    ) -> AuditRecord:
        """Return the record of something that happened to *row*; never its arguments or preview."""
        body: dict[str, Json] = {
            **(extra or {}),
            "state": str(row.state),
            "action_sha256": row.action_sha256,
            "args_sha256": row.args_sha256,
        }
        if (asked := row.asked_sha256) is not None:
            body["asked_sha256"] = asked
        if row.approval_id:
            body["approval"] = row.approval_id
        if (progress := row.progress_sha256) is not None:
            body["progress_sha256"] = progress
        if (result := row.result_sha256) is not None:
            body["result_sha256"] = result
        if row.expires_at is not None:
            body["expires_at"] = rfc3339(row.expires_at)
        if row.digest:
            said = row.words or ()
            body |= {"digest": row.digest, "words": list(said)}
            body["words_list"] = words_list(row.digest, said)
        return AuditRecord(
            at=rfc3339(self.clock.now()),
            event=audit_event,
            summary=summary,
            run=row.run_id,
            session=row.session_id,
            action=row.action,
            extra=body,
        )

    async def insert(
        self,
        run: LiveRun,
        event: RunEvent,
        audit_event: AuditEvent,
        summary: str,
        extra: dict[str, Json],
    ) -> None:
        """Write a new run after its first *event*."""
        await self._write(
            run, run.row.after(event), audit_event, summary, extra, write_row=run_table.insert
        )

    async def transition(
        self,
        run: LiveRun,
        event: RunEvent,
        audit_event: AuditEvent,
        summary: str,
        extra: dict[str, Json] | None = None,
        **changes: Any,
    ) -> None:
        """Take *run* through *event*, durably; on an error it stays where it was, here and on disk.

        Raises:
            IllegalTransition: not from this state.
            StorageUnavailable: it could not be written.
        """
        row = run.row.after(event, **changes)
        await self._write(run, row, audit_event, summary, extra)

    async def update(
        self,
        run: LiveRun,
        audit_event: AuditEvent,
        summary: str,
        extra: dict[str, Json] | None = None,
        *,
        rearm: bool = True,
        by: Actor | None = None,
        **changes: Any,
    ) -> None:
        """Change *run* without a transition (a preview arrived, the end was delivered).

        *by*: who acted, where it is not whom the event names.

        *rearm* False: nothing that a person decides by has changed, so that an agent that asks again
        and again cannot keep the decide keys from arming.
        """
        row = replace(run.row, **changes)
        await self._write(run, row, audit_event, summary, extra, rearm=rearm, by=by)

    async def transition_with_retries(
        self,
        run: LiveRun,
        event: RunEvent,
        audit_event: AuditEvent,
        summary: str,
        extra: dict[str, Json] | None = None,
        **changes: Any,
    ) -> None:
        """Like `transition`, for what has already happened: tries again until it is written.

        A process that ends before that finds the run where the database left it, and recovers it.
        """
        while True:
            try:
                await self.transition(run, event, audit_event, summary, extra, **changes)
            except StorageUnavailable as error:
                _log.error("run %s cannot be written yet: %s", run.row.run_id, type(error).__name__)
                await asyncio.sleep(_RETRY_SECONDS)
            else:
                return

    async def tampered_columns(self, run: LiveRun) -> tuple[str, ...]:
        """Return the columns in which the database differs from what this process last wrote."""
        return await self.database.write(lambda tx: run_table.tampered_columns(tx, run.row))

    def notify(self, run: LiveRun, *, rearm: bool = True) -> None:
        """Notify listeners that a run changed; *rearm* where a person decides by what changed."""
        run.version += rearm
        self.run_changed.publish(run)

    async def _write(
        self,
        run: LiveRun,
        row: RunRecord,
        audit_event: AuditEvent,
        summary: str,
        extra: dict[str, Json] | None,
        write_row: Callable[[Tx, RunRecord], None] = run_table.update,
        *,
        rearm: bool = True,
        by: Actor | None = None,
    ) -> None:
        if repeats := run.repeats:
            row = replace(row, times_asked=row.times_asked + repeats)
            extra = {**(extra or {}), "repeated": repeats}

        def unit(tx: Tx) -> tuple[RunRecord, tuple[str, ...]]:
            # Here and not on the loop: it hashes the result, which may be large.
            record = replace(self.build_record(row, audit_event, summary, extra), by=by)
            edited = (
                () if write_row is run_table.insert else run_table.tampered_columns(tx, run.row)
            )
            written = replace(row, last_record=tx.next_seq())
            write_row(tx, written)
            tx.record(_with_tampering(record, edited))
            return written, edited

        before = run.row.state
        self.failpoint(f"before {audit_event}")
        try:
            run.row, edited = await self.database.write(unit)
        except AileronError:
            raise
        except Exception as error:
            raise StorageUnavailable(
                f"The run {row.run_id} could not be written ({type(error).__name__}). Nothing ran."
            ) from error
        run.repeats -= repeats
        run.tampered_columns |= set(edited)
        self.failpoint(f"after {audit_event}")
        follow(run, before, self.clock.now())
        if run.is_final:
            run.ended.set()
        self.notify(run, rearm=rearm)


def _with_tampering(record: AuditRecord, edited: tuple[str, ...]) -> AuditRecord:
    """Add to *record* which columns another program had changed; this process's state counts, not the row's."""
    if not edited:
        return record
    return replace(record, extra={**record.extra, "tampered": list(edited)})


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
