"""From a person's yes to the end of the effect: recheck, then run, with the connector locked for this run alone.

Anything that changed brings it back to the person, or ends it as a conflict.
"""

import logging
from dataclasses import dataclass, replace
from typing import Any, Literal

from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json
from aileron_core.clock import Clock
from aileron_core.connectors.http.host_names import short_hosts
from aileron_core.errors import (
    AileronError,
    Conflict,
    ConnectorRuntimeError,
    Failure,
    Paused,
    StorageUnavailable,
)
from aileron_core.runs.executor import Executor, RunOutcome, RunPlan, stopped_outcome
from aileron_core.runs.interfaces import Accounts, GateSettings, Library
from aileron_core.runs.live_run import LiveRun, PreviewChange, PreviewResult
from aileron_core.runs.locks import ConnectorLocks
from aileron_core.runs.model import Progress, is_kept_whole
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.preview.fetcher import PreviewFetcher
from aileron_core.runs.standing import StandingAnswers
from aileron_core.runs.store import RunStore
from aileron_core.runs.transitions import RunEvent, RunState

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recheck:
    verdict: Literal["holds", "differs", "conflict"]
    preview: PreviewResult
    reason: str = ""


@dataclass(eq=False, kw_only=True)
class ApprovedRunner:
    """Carries an approved run out, or brings it back to the person with what has changed."""

    executor: Executor
    store: RunStore
    previews: PreviewFetcher
    library: Library
    locks: ConnectorLocks
    clock: Clock
    settings: GateSettings
    pause: PauseSwitch
    accounts: Accounts
    standing: StandingAnswers

    async def run(self, run: LiveRun) -> None:
        """Recheck *run* as the last thing before its effect, then run it; never raises for a failure."""
        try:
            async with self.locks.acquire(
                run, exclusive=True, ahead=lambda other: self._note_ahead(run, other)
            ):
                self._note_ahead(run, None)
                if await self._begin(run):
                    await self._run(run)
        except StorageUnavailable:
            await self._undo_approval(
                run, f"{run.nothing_ran_text}: the audit could not be written."
            )
        except Paused as error:
            await self._undo_approval(run, error.message)
        except AileronError as error:
            _log.warning("carrying out %s failed with %s", run.row.run_id, type(error).__name__)
            await self._undo_approval(run, f"{run.nothing_ran_text}: {error.message}")

    def _note_ahead(self, run: LiveRun, other: LiveRun | None) -> None:
        """Have the person see what *run* waits for; nothing that they decide by has changed."""
        if run.waits_for is not other:
            run.waits_for = other
            self.store.notify(run, rearm=False)

    async def _begin(self, run: LiveRun) -> bool:
        recheck = await self._recheck(run)
        async with run.lock:
            if run.row.state is not RunState.CHECKING:
                return False  # denied, expired or withdrawn while it was checked
            if run.row.expires_at is not None and run.row.expires_at <= self.clock.now():
                await self._expire(run)
                return False
            if recheck.verdict == "conflict":
                await self._fail_with_conflict(run, recheck.reason)
                return False
            if recheck.verdict == "differs":
                await self._show_difference(run, recheck.preview)
                return False
            await self.store.transition(
                run,
                RunEvent.RECHECK_MATCHED,
                AuditEvent.RECHECK_HELD,
                "The preview still matches what the person saw",
            )
            self.pause.require_off(
                "All calls were put on hold before the run began. Nothing ran. Decide again."
            )
            if run.answered_by and not self.standing.still_holds(run):
                raise Conflict(f"{run.answered_by} ended before the call began")
            run.started_at = self.clock.now()
            await self.store.transition(
                run,
                RunEvent.START,
                AuditEvent.RUN_STARTED,
                f"Started {run.row.action_name}",
                run.start_details(),
            )
            self.standing.grants.spend(run)
            return True

    async def _recheck(self, run: LiveRun) -> _Recheck:
        """Compare everything that the digest covers with what is there now."""
        assert run.resolved is not None
        async with (
            run.lock
        ):  # otherwise our own write, on disk and not yet in memory, looks like another program's
            edited = run.tampered_columns.union(await self.store.tampered_columns(run))
        if edited:
            columns = ", ".join(sorted(edited))
            why = f"another program changed this run in the database ({columns})"
            return _Recheck(verdict="conflict", preview=run.preview, reason=why)
        if changed := await self.library.changed_since(run.resolved):
            return _Recheck(verdict="conflict", preview=run.preview, reason=changed)
        preview = await self.previews.look(run, "recheck")
        self.accounts.require_current(run.resolved.connectors.values())
        digest, _ = run.consent(preview)
        if digest != run.row.digest:
            return _Recheck(verdict="differs", preview=preview)
        return _Recheck(verdict="holds", preview=preview)

    async def _fail_with_conflict(self, run: LiveRun, why: str) -> None:
        nothing, then = run.nothing_ran_text, "Ask again."
        details: dict[str, Json] = {"outcome": "failed"}
        if run.row.progress:
            details["completed_steps"] = list[Json](run.row.progress.steps)
            then = "The steps that ran are not undone. Check the service before you call again."
        error = Conflict(
            f"{nothing}: {why} after it was shown for approval. {then}", details=details
        )
        run.outcome_text = f"{nothing}: {why} after you looked."
        await self.store.transition(
            run,
            RunEvent.CONFLICT,
            AuditEvent.RECHECK_CONFLICT,
            f"{nothing}: {why}",
            failure=error.to_failure(run.row.run_id),
            progress=None,
            ended_at=self.clock.now(),
        )

    async def _expire(self, run: LiveRun) -> None:
        """End a run whose deadline passed between the yes and the effect; the digest covers it."""
        await self.store.transition(
            run,
            RunEvent.EXPIRE,
            AuditEvent.APPROVAL_EXPIRED,
            f"The deadline of {run.row.action_name} passed before it started",
            ended_at=self.clock.now(),
        )

    async def _show_difference(self, run: LiveRun, preview: PreviewResult) -> None:
        before, drift = run.preview, run.drift
        digest, words = run.consent(preview)
        run.drift = PreviewChange(before=before, after=preview, words_before=run.row.words)
        run.preview = preview
        try:
            await self.store.transition(
                run,
                RunEvent.RECHECK_DIFFERED,
                AuditEvent.RECHECK_DIFFERED,
                f"{run.nothing_ran_text}: what would happen differs from what was shown",
                {"digest_before": run.row.digest},
                digest=digest,
                words=words,
                decided_at=None,
                decided_by=None,
            )
        except AileronError:
            # What the screen shows must be what the digest on record covers.
            run.preview, run.drift = before, drift
            raise

    async def _run(self, run: LiveRun) -> None:
        assert run.resolved is not None
        assert run.row.args is not None
        latest: list[_Recheck] = []

        async def still_holds() -> bool:
            try:
                recheck = await self._recheck(run)
            except AileronError as error:
                # It has begun: from here there is no way back, only an end on record.
                why = f"it could not be checked again ({error.class_})"
                recheck = _Recheck(verdict="conflict", preview=run.preview, reason=why)
            latest.append(recheck)
            return recheck.verdict == "holds"

        before = run.row.progress
        plan = RunPlan(
            action=run.resolved.action,
            args=run.row.args,
            connectors=run.resolved.connectors,
            finished_steps=before.steps if before else {},
            halt_before=run.halting_steps(),
            elapsed=before.elapsed if before else 0.0,
            stop=run.stop,
            span=run.span,
        )
        outcome = await self.executor.run(plan, before_retry=still_holds)
        async with run.lock:
            if run.stop.is_made and outcome.kind in ("halted", "differs"):
                outcome = replace(
                    stopped_outcome(outcome.next_step, outcome.steps),
                    hosts_asked=outcome.hosts_asked,
                )
            if outcome.kind == "halted":
                await self._ask_again(
                    run, outcome, PreviewResult(status="none", fetched_at=self.clock.now())
                )
            elif outcome.kind != "differs":
                await write_outcome(self.store, run, outcome, self.clock.now())
            elif latest[-1].verdict == "differs":
                await self._ask_again(run, outcome, latest[-1].preview)
            else:
                again = _no_retry_outcome(latest[-1].reason, outcome, run.row.run_id)
                await write_outcome(self.store, run, again, self.clock.now())

    async def _ask_again(self, run: LiveRun, outcome: RunOutcome, preview: PreviewResult) -> None:
        """Ask the person again about a run that has begun; the steps that ran are not undone."""
        row, halted = run.row, outcome.next_step is not None
        run.add_hosts_asked(outcome.hosts_asked)
        done = Progress(
            steps=outcome.steps, halted_before=outcome.next_step, elapsed=outcome.elapsed
        )
        changes: dict[str, Any] = {"progress": done}
        if self.settings.expires_seconds:
            # What is asked now was not known before, so it gets a deadline of its own.
            changes["expires_at"] = self.clock.now() + self.settings.expires_seconds
        try:
            digest, words = run.consent(preview, replace(row, **changes))
        except ValueError as error:
            refused = _no_consent_outcome(str(error), outcome)
            await write_outcome(self.store, run, refused, self.clock.now())
            return
        run.drift = (
            None
            if halted
            else PreviewChange(before=run.preview, after=preview, words_before=row.words)
        )
        run.preview = preview
        # It has begun, so the change of state must be written before anything else happens.
        await self.store.transition_with_retries(
            run,
            RunEvent.ASK_AGAIN,
            AuditEvent.RUN_HALTED if halted else AuditEvent.RECHECK_DIFFERED,
            f"{row.action_name} halted: its next step waits for a person"
            if halted
            else "Nothing was repeated: what would happen differs from what was shown",
            {
                "digest_before": row.digest,
                "steps": list(outcome.steps),
                "next": outcome.next_step,
                "hosts_asked": list(outcome.hosts_asked),
            },
            digest=digest,
            words=words,
            decided_at=None,
            decided_by=None,
            **changes,
        )

    async def _undo_approval(self, run: LiveRun, note: str) -> None:
        """Undo the approval, so that the person is asked again. Tries until that is durable."""
        async with run.lock:
            event = {
                RunState.CHECKING: RunEvent.UNDO_APPROVAL,
                RunState.APPROVED: RunEvent.RECOVER,
            }.get(run.row.state)
            if event is not None:
                await self.store.transition_with_retries(
                    run,
                    event,
                    AuditEvent.RECHECK_UNDONE,
                    note,
                    note=note,
                    decided_at=None,
                    decided_by=None,
                )


def _no_retry_outcome(why: str, outcome: RunOutcome, run_id: str) -> RunOutcome:
    """Return the end of a run whose step failed and could not be tried again."""
    failure = Conflict(
        f"A step failed and was not repeated: {why}. Check the service before you call again.",
        details={"outcome": "failed", "completed_steps": list(outcome.steps)},
    ).to_failure(run_id)
    return replace(outcome, kind="failed", failure=failure)


def _no_consent_outcome(why: str, outcome: RunOutcome) -> RunOutcome:
    """Return the end of a run of which some step's filled-in arguments no digest can cover."""
    what = "A step failed and was not repeated"
    details: dict[str, Json] = {"completed_steps": list(outcome.steps)}
    if outcome.next_step is not None:
        what, details["step"] = f"The step {outcome.next_step} did not run", outcome.next_step
    failure = ConnectorRuntimeError(
        f"{what}: its arguments, filled in from an earlier step's output, cannot be shown for "
        f"approval ({why}).",
        details=details,
    ).to_failure()
    return replace(outcome, kind="failed", failure=failure)


def _why_it_failed(run: LiveRun, failure: Failure) -> str:
    stopped = run.stop.is_made and failure.details.get("outcome") == "stopped"
    return "a person stopped it" if stopped else failure.class_


async def write_outcome(store: RunStore, run: LiveRun, outcome: RunOutcome, now: float) -> None:
    """Write how a run ended. It has happened, so this goes on until it is durable."""
    extra: dict[str, Json] = {
        "steps": list(outcome.steps),
        "hosts_asked": list(outcome.hosts_asked),
    }
    if run.stop.is_made:
        extra["stopped_by"] = "person"
    run.add_hosts_asked(outcome.hosts_asked)
    if outcome.last_status is not None:
        extra["status"] = outcome.last_status
    action = run.row.action_name
    asked = f"; it contacted {short_hosts(outcome.hosts_asked)}" if outcome.hosts_asked else ""
    if outcome.kind == "completed":
        run.undo = outcome.undo
        # What was returned last is that of a step too.
        others = [each for each in outcome.steps.values() if each is not outcome.output]
        await store.transition_with_retries(
            run,
            RunEvent.COMPLETE,
            AuditEvent.RUN_COMPLETED,
            f"{action} completed{asked}",
            extra,
            output={"output": outcome.output, "steps": dict(outcome.steps)},
            is_cut=not is_kept_whole([outcome.output, *others]),
            progress=None,
            ended_at=now,
        )
        return
    assert outcome.failure is not None
    unknown = outcome.kind == "unknown"
    run.outcome_text = outcome.failure.message
    await store.transition_with_retries(
        run,
        RunEvent.LOSE_OUTCOME if unknown else RunEvent.FAIL,
        AuditEvent.RUN_UNKNOWN if unknown else AuditEvent.RUN_FAILED,
        f"{action}: outcome unknown{asked}"
        if unknown
        else f"{action} failed{asked}: {_why_it_failed(run, outcome.failure)}",
        {**extra, "class": outcome.failure.class_},
        failure=replace(outcome.failure, audit_id=run.row.run_id),
        is_cut=not is_kept_whole([outcome.failure.details]),
        progress=None,
        ended_at=now,
    )
