"""The gate, the one path of every call: it runs at once, waits for a person, joins an equal one, or is refused."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from aileron_core import tasks
from aileron_core.actions.arguments import check_arguments
from aileron_core.actions.model import is_builtin
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock
from aileron_core.console_port.account_views import AccountNeed
from aileron_core.errors import AileronError, Conflict, Forbidden, RateLimited, Unauthorized
from aileron_core.ids import new_approval_id, new_run_id
from aileron_core.policy.model import Verdict
from aileron_core.runs import run_table
from aileron_core.runs.account_waits import WAITS, need_members
from aileron_core.runs.approved import write_outcome
from aileron_core.runs.argument_quota import ArgumentQuota
from aileron_core.runs.executor import Executor, RunPlan, capability_refusal
from aileron_core.runs.interfaces import (
    Accounts,
    GateSettings,
    Library,
    OpenContents,
    ResolvedAction,
)
from aileron_core.runs.live_run import LiveRun, NonceSource, PreviewResult, random_nonce
from aileron_core.runs.locks import ConnectorLocks, SessionLimiter
from aileron_core.runs.model import RunRecord, args_hash, new_content_key
from aileron_core.runs.pause import PauseSwitch
from aileron_core.runs.refusals import RECORD_SECONDS, RefusedCalls
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.standing import StandingAnswers
from aileron_core.runs.store import RunStore
from aileron_core.runs.tool_rules import ToolRules
from aileron_core.runs.transitions import FINAL, RunEvent, RunState
from aileron_core.sessions.model import Session
from aileron_core.storage.database import Database
from aileron_core.tracing.spans import NO_TRACER, RemoteSpan, Tracer


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One call of an action by an agent's session."""

    session: Session
    action: str
    args: Json
    idempotency_key: str | None = None
    claims: tuple[tuple[str, str], ...] = ()
    """What the agent's client claims about this call, as (our label, its text)."""
    parent: RemoteSpan | None = None
    """Of the agent's own trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateAnswer:
    """The run at the time of the answer; `attached` if it is that of an equal, or equally keyed, earlier call."""

    row: RunRecord
    attached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """Decides whether a call runs, waits for a person, or is refused."""

    library: Library
    registry: RunRegistry
    store: RunStore
    executor: Executor
    locks: ConnectorLocks
    database: Database
    clock: Clock
    settings: GateSettings
    pause: PauseSwitch
    argument_quota: ArgumentQuota
    refused_calls: RefusedCalls
    accounts: Accounts
    opened: OpenContents
    tool_rules: ToolRules
    standing: StandingAnswers
    look_first: Callable[[LiveRun], Coroutine[Any, Any, None]]
    """Fetches what a new call would do, and lets a rule or a grant answer it."""
    repeated: dict[str, LiveRun] = field(default_factory=dict[str, LiveRun])
    """Runs whose calls agents repeated since that was last on record, by id."""
    is_session_open: Callable[[str], bool]
    """Whether the session with this id has not ended."""
    expires_seconds: Callable[[], float]
    """How long a call that comes now waits; 0: until it is answered."""
    nonce_of: NonceSource = random_nonce
    session_limiter: SessionLimiter = field(default_factory=SessionLimiter)
    tracer: Tracer = NO_TRACER

    async def run(self, call: Call) -> GateAnswer:
        """Run an ungated action to its end, or put a gated one before a person and return at once.

        Raises:
            NotFound: no such accepted action.
            InvalidArguments: the arguments do not fit its inputs.
            CapabilityDenied: it is gated, and a step's op is not among its capabilities.
            Forbidden: it is a built-in tool's, and its worker refused it.
            Conflict: it is not accepted, or the idempotency key belongs to another call.
            RateLimited: too many of this session wait already, or it holds too many arguments.
            Unauthorized: its session ended before it could begin.
            Unavailable: it cannot be put on record, or a person holds all calls; nothing ran.
        """
        try:
            resolved, args = self._resolve(call)
            if is_builtin(resolved.action.name):
                resolved = await self.tool_rules.judge(resolved, args, call.session)
                resolved = await self._rehearsed(call, resolved, args)
            else:
                resolved = self.standing.judge(resolved, args, call.session)
        except AileronError as error:
            if (known := await self._sent_before(call)) is not None:
                attached = self._attach(known, call)
                return await tasks.uninterrupted(attached, name=f"call {call.action}")
            await self._refuse(call, error)
            raise
        # A caller that goes away leaves no half-written run behind.
        answer = self._answer(call, resolved, self._draft(call, resolved, args))
        return await tasks.uninterrupted(answer, name=f"call {resolved.action.name}")

    async def _rehearsed(
        self, call: Call, resolved: ResolvedAction, args: JsonObject
    ) -> ResolvedAction:
        """Have a command rehearsed that a rule may allow by what it changes, unless it joins an earlier call."""
        if resolved.verdict is None or resolved.verdict.before_rehearsal is None:
            return resolved
        if await self._find_earlier(call, self._draft(call, resolved, args)) is not None:
            return resolved
        async with self.session_limiter.slot(call.session.session_id):
            return await self.tool_rules.judge_rehearsed(resolved, args)

    async def _answer(self, call: Call, resolved: ResolvedAction, row: RunRecord) -> GateAnswer:
        if resolved.verdict is not None and resolved.verdict.decision == "deny":
            if (known := await self._sent_before(call)) is not None:
                return await self._attach(known, call)
            return await self._deny(call, resolved, row, resolved.verdict)
        known = await self._find_earlier(call, row)
        if known is not None:
            return await self._attach(known, call)
        try:
            connectors, need = self.accounts.assign(resolved.connectors, {}, resolved.file)
            if need is not None:
                return await self._wait_for_account(call, resolved, row, need)
            # It was found before the vault was unlocked, perhaps, and does not verify.
            self.library.find(call.action, call.session.session_id)
            resolved = replace(resolved, connectors=connectors)
            if resolved.action.gated:
                return await self._ask_person(call, resolved, row)
            return await self._run_now(call, resolved, row)
        except RateLimited as error:
            await self._refuse(call, error)
            raise

    def _resolve(self, call: Call) -> tuple[ResolvedAction, JsonObject]:
        resolved = self.library.find(call.action, call.session.session_id)
        args = check_arguments(resolved.action, call.args)
        if resolved.action.gated and (denied := capability_refusal(resolved.action)) is not None:
            raise denied  # a person is not asked for what would fail after their yes
        return resolved, args

    async def _refuse(self, call: Call, error: AileronError) -> None:
        await self.refused_calls.add(call.session.session_id, call.action, error)

    def _draft(self, call: Call, resolved: ResolvedAction, args: JsonObject) -> RunRecord:
        now, gated = self.clock.now(), resolved.action.gated
        expires = self.expires_seconds()
        content_key = new_content_key()
        return RunRecord(
            run_id=new_run_id(now),
            approval_id=new_approval_id(now) if gated else None,
            session_id=call.session.session_id,
            action=resolved.action.name,
            action_sha256=resolved.action.sha256,
            args=args,
            args_sha256=args_hash(args, content_key),
            content_key=content_key,
            idempotency_key=call.idempotency_key,
            gated=gated,
            state=RunState.NEW,
            requested_at=now,
            expires_at=now + expires if gated and expires else None,
        )

    async def _find_earlier(self, call: Call, row: RunRecord) -> LiveRun | RunRecord | None:
        key = call.idempotency_key
        known = await self._find_by_key(call, row, key) if key is not None else None
        if known is not None:
            return known
        # Nothing is awaited from here until it is registered: of two at once the second finds the first.
        equal = self.registry.find_equal(row)
        if equal is not None and key is not None:
            self.registry.add_key(equal, key)
        return equal

    async def _find_by_key(
        self, call: Call, row: RunRecord, key: str
    ) -> LiveRun | RunRecord | None:
        known = await self._by_key(call.session.session_id, key)
        earlier = known.row if isinstance(known, LiveRun) else known
        if earlier is not None and not earlier.is_call_of(row.action, row.args):
            raise Conflict(
                "This session has already used this idempotency key for another action or other "
                "arguments. Nothing ran. Use a new key.",
                # The state of a run before its end is not shown to an agent.
                details={"outcome": str(earlier.state) if earlier.state in FINAL else "open"},
            )
        return known

    async def _by_key(self, session_id: str, key: str) -> LiveRun | RunRecord | None:
        known: LiveRun | RunRecord | None = self.registry.by_key(session_id, key)
        if known is None:
            stored = await self.database.read(lambda c: run_table.by_key(c, session_id, key))
            if stored is not None:
                stored, _ = await self.opened(stored)
            known = self.registry.by_key(session_id, key) or stored
        return known

    async def _sent_before(self, call: Call) -> LiveRun | RunRecord | None:
        """Return the run that this call became when it was sent with the same key before.

        What would refuse it now (its own effect on a file, a rule, a file that is not accepted any more)
        says nothing of what it did then.
        """
        key = call.idempotency_key
        known = None if key is None else await self._by_key(call.session.session_id, key)
        earlier = known.row if isinstance(known, LiveRun) else known
        same = earlier is not None and earlier.is_call_of(call.action, call.args)
        return known if same else None

    async def _attach(self, known: LiveRun | RunRecord, call: Call) -> GateAnswer:
        if isinstance(known, RunRecord):
            return GateAnswer(row=known, attached=True)
        if known.admission is not None:
            await asyncio.shield(known.admission)
        if known.row.approval_id is None:
            await known.ended.wait()
            return GateAnswer(row=known.row, attached=True)
        is_sent_again = call.idempotency_key == known.row.idempotency_key is not None
        async with known.lock:
            if not known.is_final and not is_sent_again:  # then the agent did not repeat it
                known.claims = call.claims or known.claims
                known.repeats += 1
                self.repeated[known.row.run_id] = known
                if self.clock.monotonic() - known.repeat_recorded_at >= RECORD_SECONDS:
                    await self._record_repeats(known)
        return GateAnswer(row=known.row, attached=True)

    async def record_repeats(self, *, everything: bool = False) -> None:
        """Put on record how often calls that wait were repeated; every half second, and at the end.

        The first is on record at once. An agent in a loop would otherwise fill the audit, which all
        sessions share.

        Raises:
            StorageUnavailable: it could not be written, and stays due.
        """
        for run_id, run in tuple(self.repeated.items()):
            if run.is_final or not run.repeats:
                del self.repeated[run_id]
            elif not run.lock.locked() and (
                everything or self.clock.monotonic() - run.repeat_recorded_at >= RECORD_SECONDS
            ):
                async with run.lock:
                    await self._record_repeats(run)

    async def _record_repeats(self, run: LiveRun) -> None:
        await self.store.update(
            run,
            AuditEvent.RUN_ASKED_AGAIN,
            f"The agent repeated its call of {run.row.action_name}, which shares the same approval",
            _claims_json(run.claims),
            rearm=False,
        )
        run.repeat_recorded_at = self.clock.monotonic()

    def _register(
        self,
        call: Call,
        resolved: ResolvedAction,
        row: RunRecord,
        preview: PreviewResult,
        need: AccountNeed | None = None,
    ) -> LiveRun:
        run = LiveRun(
            row=row,
            session=call.session,
            resolved=resolved,
            preview=preview,
            claims=call.claims,
            account_need=need,
            nonce=self.nonce_of(row),
            span=self.tracer.begin(
                "run", call.parent, action=row.action, run=row.run_id, session=row.session_id
            ),
        )
        run.admission = asyncio.get_running_loop().create_future()
        # Nobody may be waiting for it; an unread exception is not an event of its own.
        run.admission.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.registry.add(run)
        return run

    async def _admit(
        self, run: LiveRun, event: RunEvent, audit_event: AuditEvent, summary: str
    ) -> None:
        assert run.resolved is not None
        assert run.admission is not None
        extra: dict[str, Json] = {"hosts": list(run.hosts), **_claims_json(run.claims)}
        if run.resolved.routed:
            extra["routed"] = list(run.resolved.routed)
        if run.resolved.accounts:
            extra["accounts"] = list(run.resolved.accounts)
        if run.resolved.verdict is not None:
            extra |= run.resolved.verdict.to_record()
        extra |= need_members(run.account_need)
        if event is RunEvent.START:
            extra |= run.start_details()
        try:
            await self.argument_quota.reserve(run.row)
            try:
                await self.store.insert(run, event, audit_event, summary, extra)
            except AileronError:
                self.argument_quota.release(run.row)
                raise
        except AileronError as error:
            self._discard(run, error)
            raise
        run.admission.set_result(None)

    def _discard(self, run: LiveRun, error: AileronError) -> None:
        """Forget a run that did not become a row."""
        assert run.admission is not None
        self.registry.discard(run)
        run.admission.set_exception(error)
        run.span.end(state="refused")

    async def _deny(
        self, call: Call, resolved: ResolvedAction, row: RunRecord, verdict: Verdict
    ) -> GateAnswer:
        """Put on record that a rule or a grant denies the call; nobody is asked."""
        said = f"A rule denies this call: {verdict.text}. Nothing ran."
        refused = Forbidden(self.standing.grants.boundary(verdict.source) or said)
        row = replace(row, failure=refused.to_failure(row.run_id), ended_at=self.clock.now())
        run = self._register(call, resolved, row, PreviewResult(status="none"))
        self.standing.grants.note_denial(verdict.source, run)
        summary = f"A rule denied {row.action_name}"
        await self._admit(run, RunEvent.RULE_DENY, AuditEvent.RUN_DENIED_BY_RULE, summary)
        run.ended.set()
        self.registry.mark_finished(run)
        return GateAnswer(row=run.row, attached=False)

    def _require_room(self, session_id: str) -> None:
        limit = self.settings.pending_per_session
        if self.registry.count_waiting(session_id) >= limit:
            raise RateLimited(
                f"This session already has {limit} open gated calls. Wait for an answer, or withdraw "
                "one.",
            )

    async def _require_open(self, call: Call) -> None:
        if not self.is_session_open(call.session.session_id):
            ended = _session_ended()
            await self._refuse(call, ended)
            raise ended

    async def _wait_for_account(
        self, call: Call, resolved: ResolvedAction, row: RunRecord, need: AccountNeed
    ) -> GateAnswer:
        """Have a call wait for the vault or for an account; one that is not gated runs after that."""
        self._require_room(call.session.session_id)
        await self._require_open(call)
        preview = PreviewResult(status="none", fetched_at=self.clock.now())
        run = self._register(call, resolved, row, preview, need)
        await self._admit_waiting(run, need)
        return GateAnswer(row=run.row, attached=False)

    async def _admit_waiting(self, run: LiveRun, need: AccountNeed) -> None:
        now, expires = self.clock.now(), self.expires_seconds()
        run.account_need = need
        run.row = replace(
            run.row,
            approval_id=run.row.approval_id or new_approval_id(now),
            expires_at=now + expires if expires else None,
        )
        self.registry.add(run)  # it has an approval id now
        summary = f"{run.row.action_name} waits for {WAITS[need.reason]}"
        await self._admit(run, RunEvent.NEED_VAULT, AuditEvent.RUN_REQUESTED, summary)

    async def resume(self, run: LiveRun) -> None:
        """Run a call that waited for an account and is not gated; never raises for a failure."""
        try:
            async with self._start_slot(run):
                async with run.lock:
                    if run.row.state is not RunState.AWAITING_VAULT:
                        return
                    assert run.resolved is not None
                    connectors, need = self.accounts.assign(
                        run.resolved.connectors, run.account_choices, run.resolved.file
                    )
                    if need is not None:  # the vault was locked, or the account revoked, meanwhile
                        run.account_need = need
                        self.store.notify(run)
                        return
                    resolved = replace(run.resolved, connectors=connectors)
                    if resolved.accounts != run.resolved.accounts:
                        run.resolved = resolved  # whose locks are others
                        tasks.spawn(self.resume(run), name=f"resume {run.row.run_id}")
                        return
                    run.resolved = resolved
                    run.started_at = self.clock.now()
                    await self.store.transition(
                        run,
                        RunEvent.START,
                        AuditEvent.RUN_STARTED,
                        f"Started {run.row.action_name}",
                        run.start_details() | {"accounts": list[Json](resolved.accounts)},
                    )
                await self._carry_out(run)
        except AileronError as error:
            await self.refuse_to_resume(run, error)
        self.registry.mark_finished(run)

    async def refuse_to_resume(self, run: LiveRun, error: AileronError) -> None:
        """End a call that waited for the vault or for an account, and cannot begin."""
        async with run.lock:
            if run.row.state is RunState.AWAITING_VAULT:
                run.outcome_text = error.message
                await self.store.transition_with_retries(
                    run,
                    RunEvent.REFUSE,
                    AuditEvent.RUN_FAILED,
                    f"{run.row.action_name} could not begin: {error.class_}",
                    {"class": error.class_},
                    failure=error.to_failure(run.row.run_id),
                    ended_at=self.clock.now(),
                )

    async def _ask_person(self, call: Call, resolved: ResolvedAction, row: RunRecord) -> GateAnswer:
        self._require_room(call.session.session_id)
        await self._require_open(call)
        now = self.clock.now()
        has_preview = resolved.action.approval.preview is not None
        preview = PreviewResult(status="fetching" if has_preview else "none", fetched_at=now)
        run = self._register(call, resolved, row, preview)
        if not has_preview:
            digest, words = run.consent(preview)
            run.row = replace(row, digest=digest, words=words)
        run.is_tried = self.standing.try_once(run)
        waits_for = "what its preview shows" if run.is_tried else "a person"
        await self._admit(
            run, RunEvent.ASK, AuditEvent.RUN_REQUESTED, f"{row.action_name} waits for {waits_for}"
        )
        if has_preview or run.is_tried:
            tasks.spawn(self.look_first(run), name=f"preview {row.run_id}")
        return GateAnswer(row=run.row, attached=False)

    async def _run_now(self, call: Call, resolved: ResolvedAction, row: RunRecord) -> GateAnswer:
        limit = self.settings.pending_per_session
        if self.registry.count_unacknowledged(row.session_id) >= limit:
            # Each is an item before all that waits for an answer, which a session must not push away.
            raise RateLimited(
                f"{limit} calls of this session have an unknown outcome. A person has to acknowledge "
                "them in the console before more calls can run.",
            )
        run = self._register(call, resolved, row, PreviewResult(status="none"))
        run.answered_by = resolved.verdict.source if resolved.verdict is not None else ""
        try:
            await self._execute(run)
        except AileronError as error:
            assert run.admission is not None
            if not run.admission.done():  # nothing of it is a row
                self._discard(run, error)
                if not isinstance(error, RateLimited):  # which goes on record where it is caught
                    await self._refuse(call, error)
            raise
        return GateAnswer(row=run.row, attached=False)

    async def _execute(self, run: LiveRun) -> None:
        """Run it, or have it wait where its account or the vault is gone since it waited for its turn."""
        assert run.resolved is not None
        while not run.is_final:
            async with self._start_slot(run):
                before = run.resolved
                connectors, need = self.accounts.assign(before.connectors, {}, before.file)
                if need is not None:
                    self._require_room(run.row.session_id)
                    await self._admit_waiting(run, need)
                    return
                run.resolved = replace(before, connectors=connectors)
                if run.resolved.accounts != before.accounts:
                    continue  # whose locks are others
                self.standing.claim(run)
                run.started_at = self.clock.now()
                summary = f"Started {run.row.action_name}"
                await self._admit(run, RunEvent.START, AuditEvent.RUN_STARTED, summary)
                await self._carry_out(run)
        self.registry.mark_finished(run)

    async def _carry_out(self, run: LiveRun) -> None:
        assert run.resolved is not None
        assert run.row.args is not None
        action, connectors = run.resolved.action, run.resolved.connectors
        plan = RunPlan(
            action=action, args=run.row.args, connectors=connectors, stop=run.stop, span=run.span
        )
        outcome = await self.executor.run(plan)
        try:
            async with run.lock:  # that a person stopped it may be on its way to disk
                await write_outcome(self.store, run, outcome, self.clock.now())
        finally:
            run.ended.set()  # also where it cannot be written any more: nobody waits for ever

    @asynccontextmanager
    async def _start_slot(self, run: LiveRun) -> AsyncGenerator[None]:
        """Hold a slot of the session and the connectors' locks; waits while all calls are paused.

        Raises:
            Paused: a person held all calls for too long.
            Unauthorized: the session has ended meanwhile.
            Conflict, NotFound: the action is not accepted any more in the bytes that were asked for.
        """
        for connector in run.resolved.connectors.values() if run.resolved else ():
            # Before the turn is taken: what follows there must not wait for this compiling.
            with suppress(AileronError):  # the call says why
                await connector.prepare()
        left = self.pause.hold_seconds
        while True:
            left = await self.pause.wait_until_off(
                left
            )  # outside the slot: a paused call must not take it from another
            async with (
                self.session_limiter.slot(run.row.session_id),
                self.locks.acquire(run, exclusive=False),
            ):
                if not self.pause.is_on:
                    self._require_unchanged(run)
                    yield
                    return

    def _require_unchanged(self, run: LiveRun) -> None:
        """Look again at what may have changed while the call waited for its turn."""
        if not self.is_session_open(run.row.session_id):
            raise _session_ended()
        if (error := self.refusal(run)) is not None:
            raise error

    def refusal(self, run: LiveRun) -> AileronError | None:
        """Return why a call that waited must not go on: its action does not count as it was then."""
        try:
            found = self.library.find(run.row.action, run.row.session_id)
        except AileronError as error:
            return error
        if found.action.sha256 == run.row.action_sha256:
            return None
        return Conflict(
            f"{run.row.action_name} was changed while the call waited. Nothing ran. Call it again.",
            details={"outcome": "changed"},
        )


def _session_ended() -> Unauthorized:
    return Unauthorized("This session has ended. Nothing ran.")


def _claims_json(claims: tuple[tuple[str, str], ...]) -> dict[str, Json]:
    # Pairs: the members of an object have no order in a record.
    return {"claims": [[label, text] for label, text in claims]} if claims else {}
