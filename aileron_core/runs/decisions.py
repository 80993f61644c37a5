"""Decisions on runs that wait: a person's yes or no, an agent's withdrawal, the deadline."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from aileron_core import tasks
from aileron_core.actions.arguments import check_arguments
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock
from aileron_core.console_port.standing import GrantTerms
from aileron_core.devices import CONSOLE, Hand, answered
from aileron_core.errors import AileronError, Conflict, Forbidden, NotFound, StorageUnavailable
from aileron_core.policy.model import RULE_KEY, Verdict
from aileron_core.runs import run_table
from aileron_core.runs.approved import ApprovedRunner
from aileron_core.runs.interfaces import GateSettings, OpenContents, ResolvedAction
from aileron_core.runs.live_run import LiveRun, PreviewResult
from aileron_core.runs.model import RunRecord
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.preview.fetcher import PreviewFetcher
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.standing import NO_RULE, StandingAnswers
from aileron_core.runs.store import RunStore
from aileron_core.runs.transitions import FINAL, UNDECIDED, RunEvent, RunState
from aileron_core.storage.database import Database

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalService:
    """Decisions on runs that wait. At most one wins; a later one is refused, with the outcome."""

    registry: RunRegistry
    store: RunStore
    previews: PreviewFetcher
    runner: ApprovedRunner
    database: Database
    opened: OpenContents
    clock: Clock
    settings: GateSettings
    pause: PauseSwitch
    ended: Callable[[LiveRun], object]
    """Called when a run that a person had said yes to is over."""
    accounts_may_have_changed: Callable[[], object]
    """Called when a run that a person had said yes to waits again: its accounts were not looked at meanwhile."""
    standing: StandingAnswers

    async def approve(
        self,
        approval_id: str,
        digest: str,
        *,
        unseen_lines: int = 0,
        grant: GrantTerms | None = None,
        hand: Hand = CONSOLE,
    ) -> None:
        """Take a person's yes to exactly *digest*, durably, and carry it out in the background.

        Args:
            grant: what they let run without asking from then on.

        Raises:
            NotFound: no such approval in this console.
            Conflict: it was answered, is still being looked at, is not what the person saw, or has no such grant.
        """
        run = self._live_run(approval_id)
        async with run.lock:
            hand.require()
            self.require_waiting(run)
            details: dict[str, Json] = {
                "unseen_lines": unseen_lines,
                "preview": run.preview.status,
                **_asked_because(run),
                **hand.details(),
            }
            drawn = self.standing.draw_up(run, grant) if grant is not None else None
            if drawn is not None:
                details["grant"] = self.standing.to_record(run, drawn)
            await self._take_yes(run, digest, details, "person")
            run.hand = hand.name
            if drawn is not None:
                self.standing.grants.add(drawn)
        tasks.spawn(self._run_approved(run), name=f"approved {run.row.run_id}")

    async def _take_yes(
        self, run: LiveRun, digest: str, details: dict[str, Json], decided_by: str
    ) -> None:
        """Make the yes to exactly *digest* durable; errors as of `approve`. Needs `run.lock`."""
        # A yes now would run something later, when the person no longer looks.
        self.pause.require_off("All calls are on hold, so nothing was decided. Resume them first.")
        await self._as_seen(run, digest)
        by_person, drift, run.drift = decided_by == "person", run.drift, None
        who = "A person" if by_person else "No rule" if decided_by == NO_RULE else decided_by
        try:
            await self.store.transition(
                run,
                RunEvent.APPROVE,
                AuditEvent.APPROVAL_APPROVED if by_person else AuditEvent.APPROVAL_STANDING,
                f"{who} approved {run.row.action_name}",
                details,
                decided_at=self.clock.now(),
                decided_by=decided_by,
                note="",
            )
        except AileronError:
            run.drift = drift
            raise

    async def _as_seen(self, run: LiveRun, digest: str) -> ResolvedAction:
        """Return the action of *run*, of which a person saw exactly *digest*; `Conflict` says why it cannot count."""
        if run.row.state is RunState.AWAITING_VAULT:
            raise Conflict("The call waits for its account. Nothing was decided.")
        if run.resolved is None:
            raise Conflict(
                f"The action {run.row.action_name} is no longer accepted. {run.nothing_ran_text}. Deny the "
                "call, or accept the action again and have the agent repeat the call."
            )
        if run.preview.status == "fetching" or run.row.digest is None:
            raise Conflict("The preview is still being fetched. Nothing was decided.")
        if digest != run.row.digest:
            raise Conflict("The call changed while you answered. Nothing was decided.")
        if self._is_late(run):
            await self._expire(run)
            raise Conflict(
                f"The approval has expired. {run.nothing_ran_text}.", details={"outcome": "expired"}
            )
        return run.resolved

    async def edit(self, approval_id: str, digest: str, changes: JsonObject) -> None:
        """Change arguments of a call of which a person saw *digest*, and look anew at what it would do.

        Args:
            changes: by name; None takes an argument away. All others stay exactly as they are.

        Raises:
            NotFound: no such approval in this console.
            Conflict: it cannot be edited any more, is not what the person saw, or has these arguments.
            InvalidArguments: they do not fit the action's inputs.
        """
        run = self._live_run(approval_id)
        async with run.lock:
            self.require_waiting(run)
            resolved, row = await self._as_seen(run, digest), run.row
            if row.args is None or not run.can_be_edited:
                raise Conflict("This call has begun, or is of a built-in tool. Nothing changed.")
            args = check_arguments(resolved.action, {**row.args, **changes})
            judged = self.standing.judge(resolved, args, run.session).verdict
            if judged is not None and judged.decision == "deny":
                raise Conflict(f"A rule denies these arguments: {judged.text}. Nothing changed.")
            edited = replace(run, row=row.with_arguments(args))
            new, before = edited.row, (run.preview, run.drift)
            if new.args_sha256 == row.args_sha256:
                raise Conflict("The call has these arguments already. Nothing changed.")
            status = "fetching" if run.has_preview else "none"
            run.preview, run.drift = PreviewResult(status=status, fetched_at=self.clock.now()), None
            run.resolved = replace(resolved, verdict=judged)
            covers = (None, None) if run.has_preview else edited.consent(run.preview)
            # A name that no file declares is the agent's own text.
            names = [each for each in new.edited_names if each in resolved.action.input_names]
            try:
                await self.store.update(
                    run,
                    AuditEvent.APPROVAL_EDITED,
                    f"A person changed the arguments of {row.action_name}",
                    {"changed": list[Json](names), "hosts": list[Json](edited.hosts)},
                    args=new.args,
                    args_sha256=new.args_sha256,
                    asked_args=new.asked_args,
                    digest=covers[0],
                    words=covers[1],
                )
            except AileronError:
                run.preview, run.drift = before
                raise
        tasks.spawn(self._look_at_edited(run), name=f"preview {row.run_id}")

    async def _look_at_edited(self, run: LiveRun) -> None:
        """Fetch what an edited call would do, which a rule or a grant may then deny, and only a person approves."""
        if run.has_preview:
            await self.previews.fetch(run, "edit")
        await self._answer_standing(run, self.standing.denial)

    async def _run_approved(self, run: LiveRun) -> None:
        try:
            await self.runner.run(run)
        finally:
            if not run.is_final:
                self.leave_to_person(run)
        if run.is_final:
            self.ended(run)
            self.registry.mark_finished(run)
        elif run.is_waiting:
            self.standing.came_back(run)
            self.accounts_may_have_changed()

    async def look_first(self, run: LiveRun) -> None:
        """Fetch what a new call would do, then let a rule or a grant answer it; else it waits for a person."""
        answered = False
        try:
            if run.preview.status == "fetching":
                await self.previews.fetch(run, "first")
            answered = run.is_tried and await self._answer_standing(run, self.standing.answer)
        except AileronError as error:
            _log.error("%s is left to a person: %s", run.row.run_id, type(error).__name__)
        finally:  # whatever happened: it must not stay hidden
            if not answered:
                self.leave_to_person(run)

    async def _answer_standing(
        self, run: LiveRun, judge: Callable[[LiveRun], Verdict | None]
    ) -> bool:
        async with run.lock:
            if run.row.state is not RunState.PENDING or run.row.digest is None or self.pause.is_on:
                return False
            if run.preview.status == "fetching":
                return False  # again, at a person's key
            verdict = judge(run)
            if verdict is None or run.resolved is None:
                return False
            run.resolved = replace(run.resolved, verdict=verdict)
            if verdict.decision == "ask":
                return False
            details = verdict.to_record()
            if verdict.decision == "deny":
                said = f"{verdict.reason[:1].upper()}{verdict.reason[1:]}. Nothing ran."
                refused = Forbidden(self.standing.grants.boundary(verdict.source) or said)
                await self._end(
                    run,
                    RunEvent.DENY,
                    AuditEvent.RUN_DENIED_BY_RULE,
                    f"{verdict.source} denied {run.row.action_name}",
                    details,
                    failure=refused.to_failure(run.row.run_id),
                    decided_at=self.clock.now(),
                    decided_by=verdict.source,
                )
                return True
            run.answered_by = verdict.source
            details["preview"] = run.preview.status
            await self._take_yes(run, run.row.digest, details, verdict.source)
        tasks.spawn(self._run_approved(run), name=f"approved {run.row.run_id}")
        return True

    def leave_to_person(self, run: LiveRun) -> None:
        """Have a call that was answered in a person's place, or might have been, wait for them as any other."""
        self.standing.grants.release(run)
        if run.answered_by and run.resolved is not None:
            why = f"{run.answered_by} answered it, but it came back to you"
            run.resolved = replace(run.resolved, verdict=Verdict(decision="ask", reason=why))
        run.answered_by = ""
        if run.is_tried:
            run.is_tried = False
            self.store.notify(run)

    async def deny(
        self,
        approval_id: str,
        reason: str,
        *,
        grant: GrantTerms | None = None,
        hand: Hand = CONSOLE,
    ) -> None:
        """Take a person's no; during a recheck it wins.

        Args:
            grant: which later calls are denied too, without asking.

        Raises:
            NotFound: no such approval in this console.
            Conflict: it was answered or has begun, or has no such grant.
        """
        run = self._live_run(approval_id)
        async with run.lock:
            hand.require()
            self.require_open(run)
            drawn = self.standing.draw_up(run, grant) if grant is not None else None
            run.hand = hand.name
            await self._end(
                run,
                RunEvent.DENY,
                AuditEvent.APPROVAL_DENIED,
                f"A person denied {run.row.action_name}",
                {
                    **_asked_because(run),
                    **hand.details(),
                    **({"grant": self.standing.to_record(run, drawn)} if drawn is not None else {}),
                },
                reason=self._reason(reason),
                decided_at=self.clock.now(),
                decided_by="person",
            )
            if drawn is not None:
                self.standing.grants.add(drawn)

    async def stop(self, run_id: str) -> None:
        """Stop a run while its steps run: the step that runs ends at once, and no other begins.

        Raises:
            NotFound: no such run in this console.
            Conflict: it does not run, or was stopped already.
            StorageUnavailable: it was stopped; that a person did it could not be put on record.
        """
        run = self.registry.get(run_id)
        if run is None:
            raise NotFound(f"This console has no call {run_id}. Nothing was stopped.")
        async with run.lock:
            if run.row.state is not RunState.EXECUTING:
                raise Conflict(f"{run.row.action_name} does not run now. Nothing was stopped.")
            if run.stop.is_made:
                raise Conflict(f"{run.row.action_name} is being stopped already.")
            run.stop.make()
            try:
                await self.store.update(
                    run, AuditEvent.RUN_STOPPED, f"A person stopped {run.row.action_name}"
                )
            except StorageUnavailable as error:
                raise StorageUnavailable(
                    f"{run.row.action_name} was stopped, but that could not be recorded: {error.message}"
                ) from error

    async def withdraw(self, session_id: str, approval_id: str, reason: str) -> RunRecord:
        """Take the requester's withdrawal of its own approval and return the run.

        The answer says how it ended, so a later equal call is a new one.

        Raises:
            NotFound: unknown, or another session's.
            Conflict: it has begun or ended.
        """
        return await tasks.uninterrupted(
            self._withdraw(session_id, approval_id, reason), name=f"withdraw {approval_id}"
        )

    async def _withdraw(self, session_id: str, approval_id: str, reason: str) -> RunRecord:
        run = self.registry.by_approval(approval_id)
        if run is None or run.row.session_id != session_id:
            row = await self._stored(session_id, approval_id)
            raise _too_late(row)
        async with run.lock:
            if run.row.state not in UNDECIDED:
                raise _too_late(run.row)  # whose answer counted is for people
            await self._end(
                run,
                RunEvent.WITHDRAW,
                AuditEvent.APPROVAL_WITHDRAWN,
                f"The agent withdrew {run.row.action_name}",
                reason=self._reason(reason),
                delivered=True,
            )
            self.registry.mark_delivered(run)
        return run.row

    async def refresh(self, approval_id: str) -> None:
        """Fetch the preview again.

        Raises:
            NotFound: no such approval in this console.
            Conflict: it does not wait for an answer any more.
        """
        run = self._live_run(approval_id)
        self.require_waiting(run)
        if run.resolved is not None:
            await self.previews.fetch(run, "refresh")

    def refresh_previews_refused(self, read: str) -> None:
        """Fetch the previews again that were refused *read*, which has just been accepted."""
        for run in self.registry:
            if run.is_waiting and read in run.preview.refused_reads:
                tasks.spawn(self.previews.fetch(run, "refresh"), name="fetch a preview again")

    def requester_ended(self, session_id: str) -> None:
        """Handle the end of a session: its approvals stay open, and the screen says that the session has ended."""
        self.previews.forget_session(session_id)
        self.standing.grants.end_where(
            lambda grant: grant.view.scope == "session" and grant.view.session_id == session_id,
            "its session has ended",
        )
        self.requester_changed(session_id)

    def requester_changed(self, session_id: str) -> None:
        """Redraw every open approval of a session: something that all of them show has changed."""
        for run in self.registry:
            if run.row.session_id == session_id and run.row.approval_id and not run.is_final:
                self.store.notify(run)

    async def wait_for_result(self, session_id: str, approval_id: str, seconds: float) -> RunRecord:
        """Return the run of this approval, after its end or after *wait* seconds.

        Raises:
            NotFound: unknown, or another session's.
        """
        run = self.registry.by_approval(approval_id)
        if run is None or run.row.session_id != session_id:
            return await self._stored(session_id, approval_id)
        if not run.is_final and seconds > 0:
            try:
                async with asyncio.timeout(seconds):
                    await run.ended.wait()
            except TimeoutError:
                pass
        return run.row

    async def mark_delivered(self, approval_id: str | None) -> None:
        """Record that the agent received the outcome of this approval."""
        run = self.registry.by_approval(approval_id) if approval_id else None
        if run is None or not run.is_final or run.row.delivered:
            return
        await tasks.uninterrupted(self._mark_delivered(run), name=f"deliver {approval_id}")

    async def _mark_delivered(self, run: LiveRun) -> None:
        async with run.lock:
            if run.row.delivered:
                return
            self.registry.mark_delivered(run)
            try:
                await self.store.update(
                    run, AuditEvent.RUN_DELIVERED, "The agent received the outcome", delivered=True
                )
            except AileronError as error:
                _log.warning("delivery is not on record: %s", type(error).__name__)

    async def expire_overdue(self) -> None:
        """End what is past its deadline. Called every second; holds over restarts and suspends."""
        for run in self.registry:
            # While it is checked, the runner checks the deadline itself, before the effect.
            if not run.is_waiting or not self._is_late(run):
                continue
            async with run.lock:
                if run.is_waiting:
                    await self._expire(run)

    async def _expire(self, run: LiveRun) -> None:
        await self._end(
            run,
            RunEvent.EXPIRE,
            AuditEvent.APPROVAL_EXPIRED,
            f"Nobody answered {run.row.action_name} in time",
        )

    async def _end(
        self,
        run: LiveRun,
        event: RunEvent,
        audit_event: AuditEvent,
        summary: str,
        details: dict[str, Json] | None = None,
        **changes: Any,
    ) -> None:
        await self.store.transition(
            run, event, audit_event, summary, details, ended_at=self.clock.now(), **changes
        )
        self.registry.mark_finished(run)

    def _reason(self, text: str) -> str | None:
        # Half of a character pair cannot be stored.
        return text[: self.settings.reason_characters].encode(errors="replace").decode() or None

    def _is_late(self, run: LiveRun) -> bool:
        return run.row.expires_at is not None and run.row.expires_at <= self.clock.now()

    def _live_run(self, approval_id: str) -> LiveRun:
        run = self.registry.by_approval(approval_id)
        if run is None:
            raise NotFound(f"No approval {approval_id} waits in this console.")
        return run

    def require_waiting(self, run: LiveRun) -> None:
        """Check that a yes to *run* could count.

        Raises:
            Conflict: it was answered, or has ended; it says by whom.
        """
        if not run.is_waiting:
            raise _too_late(run.row, run.hand)

    def require_open(self, run: LiveRun) -> None:
        """Check that a no to *run* could count; errors as of `require_waiting`."""
        if run.row.state not in UNDECIDED:
            raise _too_late(run.row, run.hand)

    async def _stored(self, session_id: str, approval_id: str) -> RunRecord:
        row = await self.database.read(
            lambda connection: run_table.by_approval(connection, approval_id)
        )
        if row is None or row.session_id != session_id:
            raise NotFound(f"This session has no approval {approval_id}.")
        row, _ = await self.opened(row)
        return row


def _asked_because(run: LiveRun) -> dict[str, Json]:
    """Return why no rule and no grant answered *run*, where one might have."""
    verdict = run.resolved.verdict if run.resolved is not None else None
    return {RULE_KEY: verdict.reason} if verdict is not None and verdict.reason else {}


def _too_late(row: RunRecord, hand: str = "") -> Conflict:
    """Return the refusal of an answer to *row*; *hand*: with what a person answered it before."""
    outcome = str(row.state)
    what = "was answered" if row.state in FINAL or row.state is RunState.CHECKING else "has begun"
    how = outcome
    if hand and row.decided_by == "person" and row.decided_at is not None:
        whose = "the console" if hand == CONSOLE.name else hand
        how = answered(whose, outcome, row.decided_at)
    message = f"This call {what} already: {how}. Nothing changed."
    return Conflict(message, details={"outcome": outcome})
