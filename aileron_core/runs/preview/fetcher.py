"""Fetching previews: within a session's limits, never cached, never shown to the agent; why there is none."""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Final, Literal, TypeAlias

from aileron_core.actions.model import Action
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock
from aileron_core.connectors.http.host_names import short_host, short_hosts
from aileron_core.connectors.protocol import Connector, Limits, OpResult, for_person
from aileron_core.connectors.read_names import OFFER_KEY, acceptance_name, unchecked_op
from aileron_core.errors import AileronError, StorageUnavailable
from aileron_core.runs.digest import preview_digest
from aileron_core.runs.executor import Executor
from aileron_core.runs.interfaces import GateSettings, Library
from aileron_core.runs.live_run import LiveRun, PreviewChange, PreviewResult
from aileron_core.runs.preview.resolve import (
    PreviewPlan,
    plan_preview,
    resolve_fields,
    without_made_anew,
)
from aileron_core.runs.store import RunStore
from aileron_core.runs.transitions import RunState

MAX_SHOWN_CHARACTERS: Final = 1024 * 1024
"""Characters of a preview's shown fields. More would keep the screen busy for seconds at each drawing."""
MAX_SHOWN_LINES: Final = 20_000
"""Their lines, which cost more than characters."""

Purpose: TypeAlias = Literal["first", "refresh", "edit", "recheck", "read_back", "look_again"]
"""Why the service is asked: to decide by, on a person's key, of arguments that a person changed, as the last thing
before the effect; and after the run unasked, or on a person's key."""

_MAX_ATTEMPTS = 8
"""Attempts at one preview, where a read that it was refused has been accepted meanwhile."""
_FIRST_ERROR_STATUS = 400
"""From this HTTP status on it was the service that refused."""


@dataclass(eq=False)
class PreviewFetcher:
    """Asks the service what a gated run would do."""

    executor: Executor
    store: RunStore
    library: Library
    clock: Clock
    settings: GateSettings
    _semaphores: dict[str, asyncio.Semaphore] = field(default_factory=dict[str, asyncio.Semaphore])
    _fetch_times: dict[str, deque[float]] = field(default_factory=dict[str, deque[float]])

    async def fetch(self, run: LiveRun, purpose: Literal["first", "refresh", "edit"]) -> None:
        """Look for the person who decides about *run*: what is found is what the next yes covers.

        What differs from what was there before is shown, and disarms approve.
        """
        before, drift = run.preview, run.drift
        if purpose == "refresh":
            async with run.lock:
                before, drift = run.preview, run.drift
                # "none": there is nothing to look at, and what a yes covers is known.
                if not _is_pending(run) or before.status in ("fetching", "none"):
                    return
                run.preview = PreviewResult(status="fetching", fetched_at=self.clock.now())
                self.store.notify(run)
        asked = run.resolved
        preview = await self.look(run, purpose)
        async with run.lock:
            if run.resolved is not asked:
                return  # with other accounts it is fetched anew
            if not _is_pending(run):
                if (
                    run.preview.status == "fetching"
                ):  # else it waits for its account, and that is void
                    run.preview = before
                return
            if before.status == "ready" and preview.fingerprint != before.fingerprint:
                run.drift = PreviewChange(before=before, after=preview, words_before=run.row.words)
            try:
                await self._adopt(run, preview)
            except AileronError:
                # What the screen shows must be what the digest on record covers. Without a digest nobody
                # can say yes; a refresh looks again.
                run.preview, run.drift = before, drift
                if purpose != "refresh":
                    why = "it could not be recorded. Press r to fetch it again."
                    run.preview = self._unavailable(why)
                self.store.notify(run)
                raise

    async def _adopt(self, run: LiveRun, preview: PreviewResult) -> None:
        """Make *preview* what the next yes covers: new digest, new words, on record. Needs `run.lock`."""
        digest, words = run.consent(preview)
        run.preview = preview
        event, what = AuditEvent.PREVIEW_FETCHED, f"Fetched the preview of {run.row.action_name}"
        if preview.status == "unavailable":
            event = AuditEvent.PREVIEW_UNAVAILABLE
            what = f"No preview of {run.row.action_name} could be fetched"
        if preview.hosts_asked:
            what += f", from {short_hosts(preview.hosts_asked)}"
        asked: dict[str, Json] = {"hosts_asked": list(preview.hosts_asked)}
        await self.store.update(run, event, what, asked, digest=digest, words=words)

    async def look(
        self, run: LiveRun, purpose: Purpose, outputs: JsonObject | None = None
    ) -> PreviewResult:
        """Call the preview op once and return its answer, or why there is none.

        What an agent's call causes is within its session's limits; what a person's key causes is not bounded.

        Args:
            run: whose preview op is called.
            purpose: what for.
            outputs: after the run, what its steps gave; the op's arguments may be made of them.

        Raises:
            MissingValue: an output lacks what the op's arguments are made of.
        """
        if purpose not in ("first", "read_back"):
            await self._prepare(run)
            return await self._ask(run, outputs)
        session_id, limits = run.row.session_id, self.settings
        if not self._is_within_rate(session_id):
            limit = f"{limits.previews_per_minute} previews in a minute"
            then = ". Press r to fetch it again." if purpose == "first" else ""
            return self._unavailable(f"this session asked for more than {limit}{then}")
        await self._prepare(run)  # not within: other previews would wait for this compiling
        at_once = asyncio.Semaphore(limits.previews_at_once)
        async with self._semaphores.setdefault(session_id, at_once):
            return await self._ask(run, outputs)

    async def _ask(self, run: LiveRun, outputs: JsonObject | None) -> PreviewResult:
        if run.resolved is None or not run.has_preview:
            return PreviewResult(status="none", fetched_at=self.clock.now())
        action, args = run.resolved.action, run.row.args
        plan = plan_preview(action, args, outputs) if args is not None else None
        if plan is None:
            return self._unavailable("its arguments have been deleted")
        hosts = run.resolved.connectors[plan.connector.fqn].hosts_for(plan.args)
        if outputs is not None and (others := sorted(set(hosts) - set(run.hosts))):
            # What the steps returned must not lead it to where nobody was told it may go.
            return self._unavailable(
                f"it would contact {short_hosts(others)}, which was not shown to you"
            )
        return await self._call_preview_op(run, action, plan)

    async def _prepare(self, run: LiveRun) -> None:
        """Wait until the connector can be asked at once; the person sees what is waited for."""
        if run.resolved is None or not run.has_preview:
            return
        connector = run.resolved.connectors[run.resolved.action.steps[0].connector]
        if connector.prepared:
            return
        if run.preview.status == "fetching":
            run.preview = replace(run.preview, preparing=True)
            self.store.notify(run)
        with suppress(AileronError):  # the call says why
            await connector.prepare()
        if run.preview.preparing:
            run.preview = PreviewResult(status="fetching", fetched_at=self.clock.now())
            self.store.notify(run)

    async def _call_preview_op(
        self, run: LiveRun, action: Action, plan: PreviewPlan
    ) -> PreviewResult:
        assert run.resolved is not None
        limits = Limits(
            wall_seconds=self.settings.preview_seconds, memory_mib=action.limits.memory_mib
        )
        connector = run.resolved.connectors[plan.connector.fqn]
        with run.span.child("preview") as span:
            result, reads = await self._call(connector, plan, limits)
            state = "ready" if result.failure is None else "unavailable"
            span.end(state=state, status=result.last_status)
        ref = connector.identity.ref
        output = await asyncio.to_thread(without_made_anew, result.output, result.hosts_asked)
        preview = PreviewResult(
            status="ready",
            output=output,
            fetched_at=self.clock.now(),
            hosts_asked=result.hosts_asked,
            reads=reads,
            refused_reads=tuple(acceptance_name(ref, read) for read in result.refused_reads),
        )
        if result.failure is not None:
            return replace(
                preview,
                status="unavailable",
                reason=_reason(result, connector.account),
                output=None,
                not_found=_was_answered_with_error(result)
                and result.last_status in (HTTPStatus.NOT_FOUND, HTTPStatus.GONE),
            )
        assert action.approval.preview is not None
        values = [each.value for each in resolve_fields(action.approval.preview, output)]
        shown, lines = sum(map(len, values)), sum(value.count("\n") + 1 for value in values)
        if shown > MAX_SHOWN_CHARACTERS or lines > MAX_SHOWN_LINES:
            why = (
                f"its answer is too long to read before a decision: {shown:,} characters in {lines:,} "
                f"lines ({MAX_SHOWN_CHARACTERS:,} and {MAX_SHOWN_LINES:,} at most)"
            )
            return replace(preview, status="unavailable", reason=why, output=None)
        try:
            # In a thread: a large answer takes half a second, and every other call would wait.
            digest = await asyncio.to_thread(preview_digest, output)
        except ValueError as error:
            why = f"its answer cannot be compared with a later one: {error}"
            return replace(preview, status="unavailable", reason=why, output=None)
        return replace(preview, digest=digest)

    async def _call(
        self, connector: Connector, plan: PreviewPlan, limits: Limits
    ) -> tuple[OpResult, Mapping[str, str]]:
        """Return the op's result, and what it was allowed to read by POST."""
        tries = 0
        while True:
            reads = self.library.accepted_reads(connector.identity, plan.op)
            result = await self.executor.preview(
                connector, plan.op, plan.args, limits=limits, accepted_reads=frozenset(reads)
            )
            tries += 1
            if not await self._offer(connector, result.refused_reads) or tries == _MAX_ATTEMPTS:
                return result, reads

    async def _offer(self, connector: Connector, reads: Sequence[str]) -> bool:
        """Offer *reads* to a person to accept; return whether one of them is accepted already."""
        try:
            return any([await self.library.offer_read(connector.identity, each) for each in reads])
        except StorageUnavailable:  # it is not on record, so it does not count
            return False

    def _unavailable(self, reason: str) -> PreviewResult:
        return PreviewResult(status="unavailable", reason=reason, fetched_at=self.clock.now())

    def forget_session(self, session_id: str) -> None:
        self._semaphores.pop(session_id, None)
        self._fetch_times.pop(session_id, None)

    def _is_within_rate(self, session_id: str) -> bool:
        now = self.clock.monotonic()
        asked = self._fetch_times.setdefault(session_id, deque())
        while asked and now - asked[0] > 60:
            asked.popleft()
        if len(asked) >= self.settings.previews_per_minute:
            return False
        asked.append(now)
        return True


def _is_pending(run: LiveRun) -> bool:
    return run.row.state is RunState.PENDING


def _was_answered_with_error(result: OpResult) -> bool:
    refused = result.failure is not None and result.failure.class_ == "external_api_error"
    return refused and (result.last_status or 0) >= _FIRST_ERROR_STATUS


def _reason(result: OpResult, account: str) -> str:
    """Return why there is no preview; a host is named only for a request that it got itself.

    Args:
        result: of the preview op.
        account: whose credential it carried, empty if none. Only the person reads it here.
    """
    failure = result.failure
    assert failure is not None
    if failure.details.get("limit") == "wall_time" and result.unanswered_host:
        configured = failure.details.get("configured", "5s")
        return f"{short_host(result.unanswered_host)} did not answer within {configured}"
    if _was_answered_with_error(result):
        try:
            phrase = f"{result.last_status} ({HTTPStatus(result.last_status).phrase})"
        except ValueError:
            phrase = str(result.last_status)
        to = f" to the account {account}" if account and result.last_status == 401 else ""
        return f"{short_host(result.last_status_host)} answered {phrase}{to}"
    if read := failure.details.get(OFFER_KEY):
        op = unchecked_op(read)
        unless = f", unless an accepted action gates {op}" if op else ""
        return (
            f"it would send a POST request ({read}), which you have not accepted for this "
            f"connector. The request was not sent. You can accept it in the waiting list{unless}."
        )
    return for_person(failure, failure.message, account)
