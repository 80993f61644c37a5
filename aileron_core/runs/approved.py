"""From a person's yes to the end of the effect: recheck, then run, with the connector held alone."""

import logging
from dataclasses import dataclass, replace
from typing import Any, Literal

from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json
from aileron_core.clock import Clock
from aileron_core.connectors.http.hosts import short_hosts
from aileron_core.errors import (
    AileronError,
    Conflict,
    ConnectorRuntimeError,
    Paused,
    StorageUnavailable,
)
from aileron_core.runs.executor import Executor, RunOutcome, RunPlan
from aileron_core.runs.interfaces import GateSettings, Library
from aileron_core.runs.live_run import LiveRun, PreviewChange, PreviewResult
from aileron_core.runs.locks import ConnectorLocks
from aileron_core.runs.model import Progress
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.preview.fetcher import PreviewFetcher
from aileron_core.runs.store import RunStore
from aileron_core.runs.transitions import RunEvent, RunState

__all__ = ["ApprovedRunner", "finish"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Recheck:
    verdict: Literal["holds", "differs", "conflict"]
    preview: PreviewResult
    why: str = ""


class ApprovedRunner:
    """Carries an approved run out, or brings it back to the person with what has changed."""

    def __init__(
        self,
        *,
        executor: Executor,
        journal: RunStore,
        lookout: PreviewFetcher,
        library: Library,
        locks: ConnectorLocks,
        clock: Clock,
        settings: GateSettings,
        pause: PauseSwitch,
    ) -> None:
        self._executor = executor
        self._journal = journal
        self._lookout = lookout
        self._library = library
        self._locks = locks
        self._clock = clock
        self._settings = settings
        self._pause = pause

    async def run(self, held: LiveRun) -> None:
        """Recheck *held* as the last thing before its effect, then run it; never raises for a failure."""
        try:
            async with self._locks.using(held.lock_keys(), alone=True):
                if await self._confirm(held):
                    await self._run(held)
        except StorageUnavailable:
            await self._back(held, f"{held.nothing_ran}: the audit could not be written.")
        except Paused as held_up:
            await self._back(held, held_up.message)
        except AileronError as error:
            _log.error("carrying out %s failed with %s", held.row.run_id, type(error).__name__)
            await self._back(held, f"{held.nothing_ran}: {error.message}")

    async def fetch_again(self, held: LiveRun) -> None:
        """Fetch what the preview op says now of a run whose outcome nobody knows; it stays ended.

        Raises:
            Conflict: action or connector are not those of the run any more.
            StorageUnavailable: that a person looked could not be put on record.
        """
        assert held.resolved is not None
        if changed := await self._library.changed_since(held.resolved):
            raise Conflict(f"Nothing was asked: {changed}. Look at the service itself.")
        look = await self._lookout.fetch(held)
        async with held.turn:
            before, held.preview = held.preview, look
            try:
                await self._journal.update(
                    held,
                    AuditEvent.OUTCOME_LOOKED_AT,
                    f"A person looked again at what {held.row.action} was to do",
                    {"preview": look.status},
                )
            except AileronError:
                held.preview = before
                raise

    async def _confirm(self, held: LiveRun) -> bool:
        found = await self._recheck(held)
        async with held.turn:
            if held.row.state is not RunState.CHECKING:
                return False  # denied, expired or withdrawn while it was checked
            if held.row.expires_at is not None and held.row.expires_at <= self._clock.now():
                await self._expire(held)
                return False
            if found.verdict == "conflict":
                await self._conflict(held, found.why)
                return False
            if found.verdict == "differs":
                await self._differs(held, found.preview)
                return False
            await self._journal.transition(
                held, RunEvent.HOLDS, AuditEvent.RECHECK_HELD, "What the person saw still holds"
            )
            self._pause.require_starts()
            await self._journal.transition(
                held, RunEvent.START, AuditEvent.RUN_STARTED, f"Started {held.row.action}"
            )
            return True

    async def _recheck(self, held: LiveRun) -> _Recheck:
        """Compare everything that the digest covers with what is there now."""
        assert held.resolved is not None
        async with (
            held.turn
        ):  # else a write of our own, on disk and not yet in memory, is taken for another's
            edited = held.tampered.union(await self._journal.compare(held))
        if edited:
            columns = ", ".join(sorted(edited))
            why = f"another program changed this run in the database ({columns})"
            return _Recheck(verdict="conflict", preview=held.preview, why=why)
        if changed := await self._library.changed_since(held.resolved):
            return _Recheck(verdict="conflict", preview=held.preview, why=changed)
        look = await self._lookout.fetch(held)
        digest, _ = held.consent(look)
        if digest != held.row.digest:
            return _Recheck(verdict="differs", preview=look)
        return _Recheck(verdict="holds", preview=look)

    async def _conflict(self, held: LiveRun, why: str) -> None:
        nothing, then = held.nothing_ran, "Ask again."
        details: dict[str, Json] = {"outcome": "failed"}
        if held.row.progress:
            details["completed_steps"] = list[Json](held.row.progress.steps)
            then = "What had run stays done: look at the service before you ask again."
        error = Conflict(
            f"{nothing}: {why} after it was shown for approval. {then}", details=details
        )
        held.outcome = f"{nothing}: {why} after you looked."
        await self._journal.transition(
            held,
            RunEvent.CONFLICT,
            AuditEvent.RECHECK_CONFLICT,
            f"{nothing}: {why}",
            failure=error.to_failure(held.row.run_id),
            progress=None,
            ended_at=self._clock.now(),
        )

    async def _expire(self, held: LiveRun) -> None:
        """End a run whose deadline passed between the yes and the effect; the digest covers it."""
        await self._journal.transition(
            held,
            RunEvent.EXPIRE,
            AuditEvent.APPROVAL_EXPIRED,
            f"The deadline of {held.row.action} passed before it began",
            ended_at=self._clock.now(),
        )

    async def _differs(self, held: LiveRun, look: PreviewResult) -> None:
        before, drift = held.preview, held.drift
        digest, words = held.consent(look)
        held.drift = PreviewChange(before=before, after=look, words_before=held.row.words)
        held.preview = look
        try:
            await self._journal.transition(
                held,
                RunEvent.DIFFERS,
                AuditEvent.RECHECK_DIFFERED,
                f"{held.nothing_ran}: what would happen is not what was seen",
                {"digest_before": held.row.digest},
                digest=digest,
                words=words,
                decided_at=None,
                decided_by=None,
            )
        except AileronError:
            # What stands on the screen must be what the digest on record covers.
            held.preview, held.drift = before, drift
            raise

    async def _run(self, held: LiveRun) -> None:
        assert held.resolved is not None
        assert held.row.args is not None
        latest: list[_Recheck] = []

        async def still_holds() -> bool:
            try:
                found = await self._recheck(held)
            except AileronError as error:
                # It has begun: from here there is no way back, only an end on record.
                why = f"it could not be checked again ({error.class_})"
                found = _Recheck(verdict="conflict", preview=held.preview, why=why)
            latest.append(found)
            return found.verdict == "holds"

        before = held.row.progress
        plan = RunPlan(
            action=held.resolved.action,
            args=held.row.args,
            connectors=held.resolved.connectors,
            done=before.steps if before else {},
            halts=held.halts(),
            spent=before.spent if before else 0.0,
        )
        ending = await self._executor.run(plan, before_retry=still_holds)
        async with held.turn:
            if ending.kind == "halted":
                await self._ask_again(
                    held, ending, PreviewResult(status="none", at=self._clock.now())
                )
            elif ending.kind != "differs":
                await finish(self._journal, held, ending, self._clock.now())
            elif latest[-1].verdict == "differs":
                await self._ask_again(held, ending, latest[-1].preview)
            else:
                again = _not_repeated(latest[-1].why, ending, held.row.run_id)
                await finish(self._journal, held, again, self._clock.now())

    async def _ask_again(self, held: LiveRun, ending: RunOutcome, look: PreviewResult) -> None:
        """Put a run that stands half-way before the person again; what has run stays done."""
        row, halted = held.row, ending.next is not None
        held.note_asked(ending.hosts_asked)
        done = Progress(steps=ending.steps, asked=ending.next, spent=ending.spent)
        changes: dict[str, Any] = {"progress": done}
        if self._settings.expires_seconds:
            # What is asked now was not known before, so it gets a deadline of its own.
            changes["expires_at"] = self._clock.now() + self._settings.expires_seconds
        try:
            digest, words = held.consent(look, replace(row, **changes))
        except ValueError as error:
            refused = _not_askable(str(error), ending)
            await finish(self._journal, held, refused, self._clock.now())
            return
        held.drift = (
            None
            if halted
            else PreviewChange(before=held.preview, after=look, words_before=row.words)
        )
        held.preview = look
        # It has begun, so only what is written leads on.
        await self._journal.insist(
            held,
            RunEvent.ASK_AGAIN,
            AuditEvent.RUN_HALTED if halted else AuditEvent.RECHECK_DIFFERED,
            f"{row.action} halted: its next step waits for a person"
            if halted
            else "Nothing was repeated: what would happen is not what was seen",
            {
                "digest_before": row.digest,
                "steps": list(ending.steps),
                "next": ending.next,
                "hosts_asked": list(ending.hosts_asked),
            },
            digest=digest,
            words=words,
            decided_at=None,
            decided_by=None,
            **changes,
        )

    async def _back(self, held: LiveRun, note: str) -> None:
        """Return to the person: the yes is void. Goes on until it is durable."""
        async with held.turn:
            event = {RunState.CHECKING: RunEvent.UNDO, RunState.APPROVED: RunEvent.RECOVER}.get(
                held.row.state
            )
            if event is not None:
                await self._journal.insist(
                    held,
                    event,
                    AuditEvent.RECHECK_UNDONE,
                    note,
                    note=note,
                    decided_at=None,
                    decided_by=None,
                )


def _not_repeated(why: str, ending: RunOutcome, run_id: str) -> RunOutcome:
    """Return the end of a run whose step failed and could not be tried again."""
    failure = Conflict(
        f"A step failed and was not repeated: {why}. Look at the service before you ask again.",
        details={"outcome": "failed", "completed_steps": list(ending.steps)},
    ).to_failure(run_id)
    return replace(ending, kind="failed", failure=failure)


def _not_askable(why: str, ending: RunOutcome) -> RunOutcome:
    """Return the end of a run of which some step's filled-in arguments no digest can cover."""
    what = "A step failed and was not repeated"
    details: dict[str, Json] = {"completed_steps": list(ending.steps)}
    if ending.next is not None:
        what, details["step"] = f"The step {ending.next} did not run", ending.next
    failure = ConnectorRuntimeError(
        f"{what}: arguments that an earlier step's output fills in cannot be put before a person "
        f"({why}).",
        details=details,
    ).to_failure()
    return replace(ending, kind="failed", failure=failure)


async def finish(journal: RunStore, held: LiveRun, ending: RunOutcome, now: float) -> None:
    """Write how a run ended. It has happened, so this goes on until it is durable."""
    extra: dict[str, Json] = {"steps": list(ending.steps), "hosts_asked": list(ending.hosts_asked)}
    held.note_asked(ending.hosts_asked)
    if ending.last_status is not None:
        extra["status"] = ending.last_status
    action = held.row.action
    asked = f", having asked {short_hosts(ending.hosts_asked)}" if ending.hosts_asked else ""
    if ending.kind == "completed":
        await journal.insist(
            held,
            RunEvent.COMPLETE,
            AuditEvent.RUN_COMPLETED,
            f"{action} completed{asked}",
            extra,
            output={"output": ending.output, "steps": dict(ending.steps)},
            progress=None,
            ended_at=now,
        )
        return
    assert ending.failure is not None
    unknown = ending.kind == "unknown"
    held.outcome = ending.failure.message
    await journal.insist(
        held,
        RunEvent.LOSE if unknown else RunEvent.FAIL,
        AuditEvent.RUN_UNKNOWN if unknown else AuditEvent.RUN_FAILED,
        f"{action}: outcome unknown{asked}"
        if unknown
        else f"{action} failed{asked}: {ending.failure.class_}",
        {**extra, "class": ending.failure.class_},
        failure=replace(ending.failure, audit_id=held.row.run_id),
        progress=None,
        ended_at=now,
    )
