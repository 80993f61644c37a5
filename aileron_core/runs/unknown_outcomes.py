"""Looking again at the service of a run whose outcome is unknown, and what ends its waiting for a person.

What is read is kept beside what was approved. Where the two can be compared and agree, that settles the
run: it waits for nobody any more. It stays `unknown`, and its agent hears nothing of this.
"""

import json
import sqlite3
from collections.abc import Iterable, Mapping
from typing import Any

from aileron_core.audit.events import Actor, AuditEvent
from aileron_core.canonical import Json
from aileron_core.clock import parse_rfc3339
from aileron_core.connectors.http.host_names import short_hosts
from aileron_core.console_port.field_views import ReadBack
from aileron_core.errors import AileronError, Conflict, MissingValue
from aileron_core.runs.interfaces import Library
from aileron_core.runs.live_run import LiveRun, Look, PreviewResult
from aileron_core.runs.preview.fetcher import PreviewFetcher
from aileron_core.runs.preview.resolve import resolve_fields
from aileron_core.runs.read_back import (
    ApprovedField,
    approved_fields,
    compare_with_service,
    holds_the_same,
)
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.store import RunStore
from aileron_core.runs.transitions import RunState


class UnknownOutcomeService:
    """What a person can do about a run whose outcome is unknown: look at the service again, acknowledge it."""

    def __init__(
        self, *, store: RunStore, registry: RunRegistry, previews: PreviewFetcher, library: Library
    ) -> None:
        self._store = store
        self._registry = registry
        self._previews = previews
        self._library = library

    async def look_unasked(self, run: LiveRun) -> None:
        """Do what `look_again` does if nobody has, and what is read could tell whether *run* took effect.

        Where nobody saw what the service held before, what it holds now may have been there all along.

        Raises:
            Conflict, StorageUnavailable: as `look_again`.
        """
        seen = run.preview.status == "ready"
        if seen and run.look is None and run.can_refetch_preview and _comparable_fields(run):
            await self.look_again(run, actor="aileron")

    async def look_again(self, run: LiveRun, *, actor: Actor = "person") -> None:
        """Ask the preview op for the present state; where that is what was approved, *run* is settled.

        Args:
            run: the run.
            actor: who looks; Aileron does within the limits of the run's session.

        Raises:
            Conflict: the outcome is known or settled, there is no preview, or its files changed.
            StorageUnavailable: that a person looked could not be put on record.
        """
        if run.row.state is not RunState.UNKNOWN:
            raise Conflict("The outcome is already known. Nothing was fetched.")
        if run.is_settled:
            raise Conflict("The outcome was settled by looking again. Nothing was fetched.")
        if not run.can_refetch_preview:
            raise Conflict("This call has no preview to check with. Check the service itself.")
        assert run.resolved is not None
        if changed := await self._library.changed_since(run.resolved):
            raise Conflict(f"Nothing was fetched: {changed}. Check the service itself.")
        look = await self._ask(run, actor)
        async with run.lock:
            await self._keep(run, look, actor)
        if not run.awaits_acknowledgement:
            self._registry.mark_finished(run)

    async def acknowledge(self, run: LiveRun, looked_at: float | None) -> None:
        """Record that a person took note of an unknown outcome, so that it waits for nobody any more.

        Args:
            run: the run.
            looked_at: `Look.at` of what the person saw, None where nobody had looked again.

        Raises:
            Conflict: its outcome is known, it was acknowledged, or is not what the person saw.
        """
        async with run.lock:
            if not run.awaits_acknowledgement:
                raise Conflict("The outcome does not need to be acknowledged. Nothing changed.")
            if looked_at != (run.look.at if run.look is not None else None):
                raise Conflict("The preview was fetched again while you answered. Nothing changed.")
            looked = run.look.preview.status if run.look is not None else "not looked at"
            run.acknowledged = True
            try:
                await self._store.update(
                    run,
                    AuditEvent.RUN_ACKNOWLEDGED,
                    f"A person acknowledged that the outcome of {run.row.action_name} is unknown",
                    {"preview": looked},
                )
            except AileronError:
                run.acknowledged = False
                raise
        self._registry.mark_finished(run)

    async def _ask(self, run: LiveRun, actor: Actor) -> Look:
        try:
            if actor == "person":
                preview = await self._previews.look_again(run)
            else:
                preview = await self._previews.read_back(run, {})
        except MissingValue:
            # What was made is only found by what a step returned, and that never arrived.
            return Look(preview=await self._previews.fetch(run))
        assert run.resolved is not None
        shown, approved = run.resolved.action.approval.preview, _comparable_fields(run)
        if preview.status != "ready" or shown is None or not approved:
            return Look(preview=preview)
        before = run.preview
        found = resolve_fields(shown, preview.output)
        return Look(
            preview=preview,
            comparison=compare_with_service(shown, approved, preview),
            is_unchanged=before.status == "ready"
            and holds_the_same(resolve_fields(shown, before.output), found),
        )

    async def _keep(self, run: LiveRun, look: Look, actor: Actor) -> None:
        """Keep *look* and put it on record. Needs `run.lock`."""
        before = run.look, run.acknowledged
        read, asked = look.comparison, look.preview.hosts_asked
        extra: dict[str, Json] = {"preview": look.preview.status, "hosts_asked": list(asked)}
        if read is not None:
            extra |= {"compared": read.compared, "fields": list(read.labels)}
        event = AuditEvent.OUTCOME_LOOKED_AT
        who = "A person" if actor == "person" else "Aileron"
        summary = f"{who} fetched the preview of {run.row.action_name} again"
        if look.settles:
            event = AuditEvent.OUTCOME_SETTLED
            summary = f"{who} looked again: the service holds what {run.row.action_name} should have written"
            run.acknowledged = True
        if asked:
            summary += f" (asked {short_hosts(asked)})"
        # Two looks at once: the one that settled it, else the one that was answered last, is kept.
        if run.look is None or not (run.look.settles or run.look.at > look.at):
            run.look = look
        try:
            await self._store.update(run, event, summary, extra, by=actor)
        except AileronError:
            run.look, run.acknowledged = before
            raise


def _comparable_fields(run: LiveRun) -> tuple[ApprovedField, ...]:
    """Return what to compare; empty where no answer of the service could tell that the run took effect.

    That is so unless some field was to get another value than it had, and where steps were left that
    cannot have run.
    """
    assert run.resolved is not None
    action, args = run.resolved.action, run.row.args
    details: Mapping[str, Any] = run.row.failure.details if run.row.failure is not None else {}
    finished_steps = len(details.get("completed_steps") or ())
    if args is None or len(action.steps) > finished_steps + 1:
        return ()
    shown, before = action.approval.preview, run.preview
    approved = approved_fields(action, args, before)
    new = [each.field for each in approved if each.from_agent]
    if shown is not None and before.status == "ready":
        old = {field.label: field for field in resolve_fields(shown, before.output)}
        new = [field for field in new if not holds_the_same([field], [old[field.label]])]
    return approved if new else ()


def recorded_settlements(connection: sqlite3.Connection, run_ids: Iterable[str]) -> dict[str, Look]:
    """Return by run what records say of its being settled; what the service held is not on disk."""
    found: dict[str, Look] = {}
    for run_id in run_ids:
        row = connection.execute(
            "SELECT body FROM audit WHERE run = ? AND event = ? ORDER BY seq DESC LIMIT 1",
            (run_id, AuditEvent.OUTCOME_SETTLED),
        ).fetchone()
        if row is not None and (look := _from_record(row[0])) is not None:
            found[run_id] = look
    return found


def _from_record(text: object) -> Look | None:
    try:
        body: Any = json.loads(str(text))
        at = parse_rfc3339(body["at"])
        read = ReadBack(status="held", at=at, compared=int(body["compared"]))
    except (ValueError, TypeError, KeyError, RecursionError):  # another program spoilt it
        return None
    return Look(preview=PreviewResult(status="none", fetched_at=at), comparison=read)
