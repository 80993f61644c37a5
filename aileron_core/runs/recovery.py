"""Recovery after a restart: pending runs wait again, running ones become unknown, nothing runs by itself."""

import asyncio
import json
import sqlite3
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from aileron_core import tasks
from aileron_core.actions.model import is_builtin
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock
from aileron_core.credentials.accounts import AccountService
from aileron_core.errors import AileronError, OutcomeUnknown, StorageUnavailable
from aileron_core.policy.model import RULE_KEY, answered_text
from aileron_core.runs import run_table
from aileron_core.runs.interfaces import Library, ResolvedAction
from aileron_core.runs.live_run import LiveRun, NonceSource, PreviewResult, random_nonce
from aileron_core.runs.model import RunRecord
from aileron_core.runs.outcomes import RecordedOutcome, recorded_outcome
from aileron_core.runs.preview.fetcher import PreviewFetcher
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.row_records import matches_record
from aileron_core.runs.store import RunStore
from aileron_core.runs.transitions import FINAL, RunEvent, RunState
from aileron_core.sessions.model import Session
from aileron_core.storage.database import Database

BATCH_SIZE = 64
"""How many waiting runs are recovered together: they share a commit."""
_MAX_RECENT = 50
"""Runs that are over and shown again at most; old ones lack their arguments."""

_NOTES = {
    RunState.CHECKING: (
        "The console stopped during the last check. Your approval had no effect. Decide again."
    ),
    RunState.APPROVED: "The console stopped before the run began. Your approval had no effect. Decide again.",
}
_UNKNOWN = (
    "The console stopped during the run, so it may or may not have happened. Aileron "
    "does not repeat it. Check the service before you try again."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """Restores the runs of an earlier process of the console, as far as audit records account for them."""

    registry: RunRegistry
    store: RunStore
    previews: PreviewFetcher
    library: Library
    database: Database
    clock: Clock
    accounts: AccountService
    get_session: Callable[[str], Session]
    judge: Callable[[ResolvedAction, JsonObject, Session], Awaitable[ResolvedAction]]
    """Asks the rules about a call of a built-in tool: action, arguments, session (`ToolRules.judge`)."""
    nonce_of: NonceSource = random_nonce
    _known: dict[tuple[str, str], ResolvedAction | None] = field(
        default_factory=dict[tuple[str, str], ResolvedAction | None]
    )

    async def recover(self) -> list[LiveRun]:
        """Restore what the last process left; called once, before anything is answered.

        Where many wait, only the first `BATCH_SIZE` of them wait again when this returns. The rest is
        in the registry, still being fetched, so nobody can say yes to it: that is for `resume_waiting`.

        Raises:
            StorageUnavailable: it cannot be written.
        """
        waiting: list[LiveRun] = []
        accounted = await self._read(
            lambda c: [row for row in run_table.open_or_undelivered(c) if row.args is not None]
        )
        unacknowledged = await self._read(run_table.unacknowledged)
        open_questions = {row.run_id for row in unacknowledged}
        recent = await self._read(lambda c: run_table.recently_ended(c, _MAX_RECENT))
        unseen = await self._read(run_table.unseen_differences)
        rows = (*accounted, *recent, *unacknowledged, *unseen)
        over = {row.run_id for row in rows if row.state in FINAL}
        outcomes = await self.database.read(
            lambda c: {run_id: recorded_outcome(c, run_id) for run_id in over}
        )
        for row in rows:
            if self.registry.get(row.run_id) is not None:
                continue
            outcome = outcomes.get(row.run_id, RecordedOutcome())
            run = LiveRun(
                was_tried=True,
                row=row,
                session=self.get_session(row.session_id),
                resolved=self._resolved(row),
                preview=PreviewResult(status="none", fetched_at=row.requested_at),
                acknowledged=row.state is RunState.UNKNOWN and row.run_id not in open_questions,
                read_back=outcome.read_back,
                nonce=self.nonce_of(row),
                look=outcome.look,
            )
            self.registry.add(run)
            if run.is_final:
                run.ended.set()
                self.registry.mark_finished(run)
            elif run.is_waiting:
                run.preview = PreviewResult(status="fetching", fetched_at=self.clock.now())
                waiting.append(run)
            else:
                await self._recover(run)
        await asyncio.gather(*(self._recover(run) for run in waiting[:BATCH_SIZE]))
        return waiting[BATCH_SIZE:]

    async def _read(
        self, query: Callable[[sqlite3.Connection], list[RunRecord]]
    ) -> list[RunRecord]:
        """Return the runs of *query* whose last record is intact and agrees with their rows.

        A row that another program inserted or changed has none: it stays in the table, permits
        nothing, is not shown for a decision, and `audit verify` names it.
        """
        return await self.database.read(
            lambda connection: [row for row in query(connection) if matches_record(connection, row)]
        )

    async def resume_waiting(
        self, waiting: Sequence[LiveRun], then: Callable[[Sequence[LiveRun]], Awaitable[None]]
    ) -> None:
        """Recover the *waiting* runs in order of arrival, `BATCH_SIZE` in one commit; call *then* with those.

        What was answered, withdrawn or over meanwhile stays so.
        """
        for first in range(0, len(waiting), BATCH_SIZE):
            batch = waiting[first : first + BATCH_SIZE]
            await asyncio.gather(*(self._resume_waiting(run) for run in batch))
            await then(batch)

    async def _resume_waiting(self, run: LiveRun) -> None:
        if run.is_waiting:
            try:
                await self._recover(run)
            except AileronError as error:
                # Without a digest nobody can say yes to it; a refresh looks again.
                reason = "it could not be recorded. Press r to fetch it again."
                run.preview = PreviewResult(
                    status="unavailable", reason=reason, fetched_at=self.clock.now()
                )
                self.store.notify(run)
                if not isinstance(
                    error, StorageUnavailable
                ):  # the others are looked at all the same
                    raise

    async def _recover(self, run: LiveRun) -> None:
        async with run.lock:
            if run.row.state is RunState.EXECUTING:
                await self._unknown(run)
            elif not run.is_final:
                await self._wait_again(run)

    async def _unknown(self, run: LiveRun) -> None:
        run.outcome_text = _UNKNOWN
        done = list(run.row.progress.steps) if run.row.progress else []
        details: dict[str, Json] = {"completed_steps": list[Json](done)} if done else {}
        failure = OutcomeUnknown(_UNKNOWN, details=details).to_failure(run.row.run_id)
        summary = f"{run.row.action_name}: outcome unknown, the console stopped during the run"
        await self.store.transition(
            run,
            RunEvent.RECOVER,
            AuditEvent.RUN_UNKNOWN,
            summary,
            {"was": str(run.row.state)},
            failure=failure,
            progress=None,
            ended_at=self.clock.now(),
        )
        self.registry.mark_finished(run)

    async def _wait_again(self, run: LiveRun) -> None:
        """Let it wait as before, with a new preview; an answer to the earlier process is void."""
        row, before = run.row, run.preview
        digest, words = None, None
        if row.state is RunState.AWAITING_VAULT or self._needs_account(run):
            # Whoever looks at the accounts puts it before a person, or has it wait for one.
            run.preview = PreviewResult(status="none", fetched_at=self.clock.now())
        elif run.resolved is not None and not (run.has_preview or is_builtin(row.action)):
            # There is nothing to fetch: what a yes covers is known, and goes into the same record.
            run.preview = PreviewResult(status="none", fetched_at=self.clock.now())
            digest, words = run.consent(run.preview)
        elif run.resolved is None:
            run.preview = PreviewResult(status="none", fetched_at=row.requested_at)
        else:
            run.preview = PreviewResult(status="fetching", fetched_at=self.clock.now())
        try:
            await self.store.transition(
                run,
                RunEvent.RECOVER,
                AuditEvent.RUN_RECOVERED,
                f"{row.action_name} waits again after a restart of the console",
                {"was": str(row.state)},
                note=_NOTES.get(row.state, row.note),
                digest=digest,
                words=words,
                decided_at=None,
                decided_by=None,
            )
        except AileronError:
            run.preview = before
            raise
        if run.preview.status == "fetching":
            tasks.spawn(self._look(run), name=f"preview {row.run_id}")

    async def _look(self, run: LiveRun) -> None:
        if run.resolved is not None and is_builtin(run.row.action):
            await self._judge_again(run, run.resolved)
        await self.previews.fetch(run, "first")

    async def _judge_again(self, run: LiveRun, resolved: ResolvedAction) -> None:
        """Have the rules say what a call of a built-in tool may touch, which no row remembers.

        Where they deny it now, or nobody can tell, there is nothing left that a yes could run.
        """
        assert run.row.args is not None
        try:
            judged = await self.judge(resolved, run.row.args, run.session)
        except AileronError:
            judged = None
        denied = judged is None or judged.verdict is None or judged.verdict.decision == "deny"
        run.resolved = None if denied else judged

    def _needs_account(self, run: LiveRun) -> bool:
        """Give *run* its accounts; return whether it has to wait for one."""
        if run.resolved is None:
            return False
        connectors, need = self.accounts.assign(run.resolved.connectors, {}, run.resolved.file)
        run.resolved = replace(run.resolved, connectors=connectors)
        return need is not None

    def _resolved(self, row: RunRecord) -> ResolvedAction | None:
        """Return the action that was asked for, if exactly those bytes are still accepted."""
        if is_builtin(row.action):
            return self._found(row)  # its connector is of this call alone
        asked = (row.action, row.action_sha256)
        if asked not in self._known:
            self._known[asked] = self._found(row)
        known = self._known[asked]
        preview = known.action.approval.preview if known is not None else None
        # What rehearses is of one call alone, too.
        return self._found(row) if preview is not None and preview.is_rehearsal else known

    def _found(self, row: RunRecord) -> ResolvedAction | None:
        try:
            resolved = self.library.find(row.action, row.session_id)
        except AileronError:
            return None
        return resolved if resolved.action.sha256 == row.action_sha256 else None


async def restore_claims(registry: RunRegistry, database: Database) -> None:
    """Give every call that waits what its agent's client said of it before the restart, and all what the rules said.

    And each that a person answered, with which hand.
    """
    runs = [*registry]
    waiting = [run.row.run_id for run in runs if run.row.approval_id and not run.is_final]
    claims = await database.read(lambda connection: _recorded_claims(connection, waiting))
    rules = await database.read(lambda c: [recorded_rule(c, run.row.run_id) for run in runs])
    answered = [run for run in runs if run.row.decided_by == "person"]
    hands = await database.read(lambda c: [recorded_hand(c, run.row.run_id) for run in answered])
    for run, hand in zip(answered, hands, strict=True):
        run.hand = hand
    for run, rule in zip(runs, rules, strict=True):
        run.claims = claims.get(run.row.run_id, run.claims)
        run.recorded_rule = rule


def _recorded_claims(
    connection: sqlite3.Connection, run_ids: Iterable[str]
) -> dict[str, tuple[tuple[str, str], ...]]:
    """Return by run what its newest record with claims says, as (our label, its text)."""
    by_run: dict[str, tuple[tuple[str, str], ...]] = {}
    for run_id in run_ids:
        rows = connection.execute(
            "SELECT body FROM audit WHERE run = ? AND event IN (?, ?) ORDER BY seq DESC",
            (run_id, AuditEvent.RUN_REQUESTED, AuditEvent.RUN_ASKED_AGAIN),
        )
        claims = next((each for (body,) in rows if (each := _claims(body))), ())
        if claims:
            by_run[run_id] = claims
    return by_run


def recorded_rule(connection: sqlite3.Connection, run_id: str) -> str:
    """Return why rules or a grant had a run asked, run or denied, as its first record says, or that of their answer.

    Empty if none does.
    """
    row = connection.execute(
        "SELECT body, event IN (?1, ?2) AS answered FROM audit WHERE run = ?3 "
        "ORDER BY answered DESC, seq LIMIT 1",
        (AuditEvent.APPROVAL_STANDING, AuditEvent.RUN_DENIED_BY_RULE, run_id),
    ).fetchone()
    rule = _member(row[0], RULE_KEY) if row is not None else None
    if row is None or not isinstance(rule, str):
        return ""
    looked_at = _member(row[0], "looked_at") if row[1] else None
    return answered_text(rule, tuple(map(str, looked_at or ())))


def recorded_hand(connection: sqlite3.Connection, run_id: str) -> str:
    """Return with what a person answered a run last, as the record of it says; empty if none does."""
    row = connection.execute(
        "SELECT body FROM audit WHERE run = ? AND event IN (?, ?) ORDER BY seq DESC LIMIT 1",
        (run_id, AuditEvent.APPROVAL_APPROVED, AuditEvent.APPROVAL_DENIED),
    ).fetchone()
    hand = _member(row[0], "hand") if row is not None else None
    return hand if isinstance(hand, str) else ""


def _member(body: object, name: str) -> Any:
    """Return a member of a record, None if it has none."""
    if f'"{name}"' not in str(body):
        return None  # most have none, and at a start thousands are asked
    try:
        content: Any = json.loads(str(body))
    except (ValueError, RecursionError):  # another program spoilt it
        return None
    return cast("dict[str, Any]", content).get(name) if isinstance(content, dict) else None


def _claims(body: object) -> tuple[tuple[str, str], ...]:
    claims = _member(body, "claims")
    try:
        return tuple((str(label), str(text)) for label, text in claims or ())
    except (ValueError, TypeError):
        return ()
