"""Looks at the service once a run is over: at what an approved one was to change, or whether one took effect.

A run that completed is read back a moment later, and one whose outcome is unknown is looked at again; a
person can look again too. What is read is for the person alone: the agent has its answer by then, and gets
nothing of this one. Where an unknown one turns out as approved, that settles it: it waits for nobody any
more. It stays `unknown`.
"""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal, cast

from aileron_core import tasks
from aileron_core.actions.model import Action, Preview
from aileron_core.audit.events import Actor, AuditEvent
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock, parse_rfc3339
from aileron_core.connectors.http.host_names import short_hosts
from aileron_core.console_port.field_views import FieldView, ReadBack, ReadBackDifference
from aileron_core.errors import AileronError, Conflict, MissingValue, NotFound, Unavailable
from aileron_core.runs.interfaces import GateSettings, Library
from aileron_core.runs.live_run import LiveRun, Look, PreviewResult
from aileron_core.runs.preview.fetcher import PreviewFetcher
from aileron_core.runs.preview.resolve import new_values, resolve_fields
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.store import RunStore
from aileron_core.runs.transitions import RunState

_log = logging.getLogger(__name__)
_EVENTS: Mapping[str, Literal["held", "differs", "unavailable"]] = {
    AuditEvent.READ_BACK_HELD: "held",
    AuditEvent.READ_BACK_DIFFERED: "differs",
    AuditEvent.READ_BACK_UNAVAILABLE: "unavailable",
    AuditEvent.OUTCOME_SETTLED: "held",
}
_READ: Mapping[str, tuple[AuditEvent, str]] = {
    "held": (AuditEvent.READ_BACK_HELD, "The service now holds what was approved"),
    "differs": (AuditEvent.READ_BACK_DIFFERED, "The service does not hold what was approved"),
    "unavailable": (
        AuditEvent.READ_BACK_UNAVAILABLE,
        "The result could not be read back from the service",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovedField:
    """What a shown field was to hold after the run, as a person approved it."""

    field: FieldView
    from_agent: bool
    """The agent's words; otherwise what was fetched, and was to stay."""


def approved_fields(
    action: Action, args: JsonObject, preview: PreviewResult
) -> tuple[ApprovedField, ...]:
    """Return what the fields were to hold after the run; empty where the action file does not say so.

    Args:
        action: the accepted action.
        args: the call's arguments, checked.
        preview: what the person saw. Its fields were to stay, where they get no new value.
    """
    shown, effect = action.approval.preview, action.approval.effect
    if shown is None or effect not in ("change", "create"):
        return ()
    if not shown.changes and shown.read_back is None:
        return ()
    new = {field.label: field for field in new_values(action, args)}
    fetched = resolve_fields(shown, preview.output) if preview.status == "ready" else ()
    old = {field.label: field for field in fetched}
    return tuple(
        ApprovedField(field=new.get(label) or old[label], from_agent=label in new)
        for label, _ in shown.render
        if label in new or label in old
    )


def compare_with_service(
    shown: Preview, approved: Sequence[ApprovedField], preview: PreviewResult
) -> ReadBack:
    """Return how *preview*, an answer of the preview op *shown*, compares with what was *approved*."""
    if preview.status != "ready":
        return ReadBack(status="unavailable", at=preview.fetched_at, reason=preview.reason)
    found = {field.label: field for field in resolve_fields(shown, preview.output)}
    differing = tuple(
        ReadBackDifference(
            approved=each.field, found=found[each.field.label], from_agent=each.from_agent
        )
        for each in approved
        if not _holds_the_same([each.field], [found[each.field.label]])
    )
    return ReadBack(
        status="differs" if differing else "held",
        at=preview.fetched_at,
        compared=len(approved),
        differing=differing,
        labels=tuple(each.approved.label for each in differing),
    )


def _holds_the_same(before: Sequence[FieldView], after: Sequence[FieldView]) -> bool:
    """Return whether a person reads the same of both, field by field: one address is the same alone and in a list."""
    return [(each.missing, each.value) for each in before] == [
        (each.missing, each.value) for each in after
    ]


@dataclass(eq=False, kw_only=True)
class OutcomeService:
    """Looks at the service after runs, and takes what a person says to what was found."""

    store: RunStore
    registry: RunRegistry
    previews: PreviewFetcher
    library: Library
    clock: Clock
    settings: GateSettings
    _tasks: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    def begin(self, run: LiveRun) -> None:
        """Read *run* back once if it completed and its action file says what was to be there.

        One whose outcome is unknown is looked at again, unless a person stopped it.
        """
        if run.row.state is RunState.UNKNOWN and not _was_stopped(run):
            self._spawn(run, self._look_unasked)
        if run.row.state is not RunState.COMPLETED or not run.has_preview or run.row.args is None:
            return
        assert run.resolved is not None
        approved = approved_fields(run.resolved.action, run.row.args, run.preview)
        if not approved:
            return
        run.read_back = ReadBack(status="reading", at=self.clock.now())
        self.store.notify(run)
        self._spawn(
            run, partial(self._read_back, approved=approved, output=dict(run.row.output or {}))
        )

    def _spawn(self, run: LiveRun, work: Callable[[LiveRun], Coroutine[Any, Any, None]]) -> None:
        async def later() -> None:
            # Many services answer for a moment with what was there before.
            await asyncio.sleep(self.settings.read_back_delay_seconds)
            await work(run)

        task = tasks.spawn(later(), name=f"read back {run.row.run_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Stop what is under way; nothing is claimed of those runs."""
        for task in self._tasks:
            task.cancel()

    async def _read_back(
        self, run: LiveRun, approved: Sequence[ApprovedField], output: Mapping[str, Json]
    ) -> None:
        preview = await self._read(run, cast("JsonObject", output.get("steps") or {}))
        assert run.resolved is not None
        shown = run.resolved.action.approval.preview
        assert shown is not None
        read = compare_with_service(shown, approved, preview)
        extra: dict[str, Json] = {
            "fields": list(read.labels),
            "compared": len(approved),
            "hosts_asked": list(preview.hosts_asked),
        }
        event, summary = _READ[read.status]
        try:
            async with run.lock:
                with _as_before_on_error(run):
                    run.read_back = read
                    await self.store.update(run, event, summary + _asked(preview), extra)
        except AileronError:
            run.read_back = replace(
                read, status="unavailable", reason="it could not be recorded", differing=()
            )
            self.store.notify(run)
            raise
        finally:
            self.registry.mark_finished(run)

    async def _read(self, run: LiveRun, outputs: JsonObject) -> PreviewResult:
        assert run.resolved is not None
        try:
            if changed := await self.library.changed_since(run.resolved):
                raise Conflict(f"{changed} after the run")
            return await self.previews.look(run, "read_back", outputs)
        except MissingValue:
            reason = "the output of its steps lacks a value that `read_back` needs"
        except AileronError as error:
            reason = error.message
        except Exception as error:  # noqa: BLE001 - a run must not be under reading for ever
            _log.error("reading back ended with %s", type(error).__name__)
            reason = "Aileron had an internal error; see `aileron logs`"
        return PreviewResult(status="unavailable", reason=reason, fetched_at=self.clock.now())

    async def mark_seen(self, run_id: str) -> None:
        """Record that a person saw how the service differs from what they approved.

        Raises:
            NotFound: no such run in this console.
            Conflict: nothing of it waits to be seen.
            StorageUnavailable: it could not be put on record.
        """
        run = self.registry.get(run_id)
        if run is None:
            raise NotFound(f"This console has no call {run_id}.")
        async with run.lock:
            read = run.read_back
            if read is None or not read.waits_to_be_seen:
                raise Conflict(
                    "This call has no difference that waits to be seen. Nothing changed."
                )
            summary = (
                f"A person saw that the service differs from the approved {run.row.action_name}"
            )
            with _as_before_on_error(run):
                run.read_back = replace(read, seen=True)
                await self.store.update(run, AuditEvent.READ_BACK_SEEN, summary)
        self.registry.mark_finished(run)

    async def look_again(self, call_id: str) -> None:
        """Ask the preview op for the present state; where that is what was approved, the run is settled.

        Args:
            call_id: the approval's id, or the run's where the action is not gated.

        Raises:
            NotFound: no such call in this console.
            Conflict: the outcome is known or settled, there is no preview, or its files changed.
            StorageUnavailable: that a person looked could not be put on record.
        """
        await self._look_again(self._call(call_id), "person")

    async def _look_unasked(self, run: LiveRun) -> None:
        """Look again if nobody has, and what is read could tell whether *run* took effect.

        Where nobody saw what the service held before, what it holds now may have been there all along.
        """
        seen = run.preview.status == "ready"
        if seen and run.look is None and run.can_refetch_preview and _comparable_fields(run):
            with suppress(Conflict):  # a person was faster, or has to look at the service itself
                await self._look_again(run, "aileron")

    async def _look_again(self, run: LiveRun, actor: Actor) -> None:
        if run.row.state is not RunState.UNKNOWN:
            raise Conflict("The outcome is already known. Nothing was fetched.")
        if run.is_settled:
            raise Conflict("The outcome was settled by looking again. Nothing was fetched.")
        if not run.can_refetch_preview:
            raise Conflict("This call has no preview to check with. Check the service itself.")
        assert run.resolved is not None
        if changed := await self.library.changed_since(run.resolved):
            raise Conflict(f"Nothing was fetched: {changed}. Check the service itself.")
        look = await self._look(run, actor)
        async with run.lock:
            await self._keep(run, look, actor)
        if not run.awaits_acknowledgement:
            self.registry.mark_finished(run)

    async def _look(self, run: LiveRun, actor: Actor) -> Look:
        try:
            purpose = "look_again" if actor == "person" else "read_back"
            preview = await self.previews.look(run, purpose, {})
        except MissingValue:
            # What was made is only found by what a step returned, and that never arrived.
            return Look(preview=await self.previews.look(run, "look_again"))
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
            and _holds_the_same(resolve_fields(shown, before.output), found),
        )

    async def _keep(self, run: LiveRun, look: Look, actor: Actor) -> None:
        """Keep *look* and put it on record. Needs `run.lock`."""
        read, preview = look.comparison, look.preview
        extra: dict[str, Json] = {
            "preview": preview.status,
            "hosts_asked": list(preview.hosts_asked),
        }
        if read is not None:
            extra |= {"compared": read.compared, "fields": list(read.labels)}
        event = AuditEvent.OUTCOME_LOOKED_AT
        who = "A person" if actor == "person" else "Aileron"
        summary = f"{who} fetched the preview of {run.row.action_name} again"
        if look.settles:
            event = AuditEvent.OUTCOME_SETTLED
            summary = f"{who} looked again: the service holds what {run.row.action_name} should have written"
        with _as_before_on_error(run):
            # Two looks at once: the one that settled it, else the one that was answered last, is kept.
            if run.look is None or not (run.look.settles or run.look.at > look.at):
                run.look = look
            run.acknowledged = run.acknowledged or look.settles
            await self.store.update(run, event, summary + _asked(preview), extra, by=actor)

    async def acknowledge(self, call_id: str, looked_at: float | None) -> None:
        """Record that a person took note of an unknown outcome, so that it waits for nobody any more.

        Args:
            call_id: the approval's id, or the run's where the action is not gated.
            looked_at: `Look.at` of what the person saw, None where nobody had looked again.

        Raises:
            NotFound: no such call in this console.
            Conflict: its outcome is known, it was acknowledged, or is not what the person saw.
        """
        run = self._call(call_id)
        async with run.lock:
            if not run.awaits_acknowledgement:
                raise Conflict("The outcome does not need to be acknowledged. Nothing changed.")
            if looked_at != (run.look.at if run.look is not None else None):
                raise Conflict("The preview was fetched again while you answered. Nothing changed.")
            looked = run.look.preview.status if run.look is not None else "not looked at"
            summary = f"A person acknowledged that the outcome of {run.row.action_name} is unknown"
            with _as_before_on_error(run):
                run.acknowledged = True
                extra: dict[str, Json] = {"preview": looked}
                await self.store.update(run, AuditEvent.RUN_ACKNOWLEDGED, summary, extra)
        self.registry.mark_finished(run)

    def _call(self, call_id: str) -> LiveRun:
        run = self.registry.by_approval(call_id) or self.registry.get(call_id)
        if run is None:
            raise NotFound(f"No call {call_id} waits in this console.")
        return run


@contextmanager
def _as_before_on_error(run: LiveRun) -> Generator[None]:
    """Have *run* be as before where what was found of it, or said to that, could not be put on record."""
    before = run.look, run.read_back, run.acknowledged
    try:
        yield
    except AileronError:
        run.look, run.read_back, run.acknowledged = before
        raise


def _asked(preview: PreviewResult) -> str:
    return f" (asked {short_hosts(preview.hosts_asked)})" if preview.hosts_asked else ""


def _was_stopped(run: LiveRun) -> bool:
    """Return whether a person stopped *run*, or everything, or the console is closing."""
    cause = run.row.failure.details.get("cause") if run.row.failure is not None else None
    return run.stop.is_made or cause == Unavailable.class_


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
        new = [field for field in new if not _holds_the_same([field], [old[field.label]])]
    return approved if new else ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedOutcome:
    """What records say of a run's outcome; of what the service held they have the labels alone."""

    read_back: ReadBack | None = None
    look: Look | None = None
    """The one that settled it."""


def recorded_outcome(connection: sqlite3.Connection, run_id: str) -> RecordedOutcome:
    """Return what records say of what was found at the service after the run."""
    marks = ", ".join("?" * (len(_EVENTS) + 1))
    rows = connection.execute(
        f"SELECT event, body FROM audit WHERE run = ? AND event IN ({marks}) ORDER BY seq",  # noqa: S608 - marks
        (run_id, *_EVENTS, AuditEvent.READ_BACK_SEEN),
    )
    found: ReadBack | None = None
    look: Look | None = None
    for event, text in rows:
        if event == AuditEvent.READ_BACK_SEEN:
            found = replace(found, seen=True) if found is not None else None
        elif event != AuditEvent.OUTCOME_SETTLED:
            found = _from_record(_EVENTS[event], text)
        elif (read := _from_record("held", text)) is not None:
            look = Look(preview=PreviewResult(status="none", fetched_at=read.at), comparison=read)
    return RecordedOutcome(read_back=found, look=look)


def _from_record(
    status: Literal["held", "differs", "unavailable"], text: object
) -> ReadBack | None:
    try:
        body: Any = json.loads(str(text))
        return ReadBack(
            status=status,
            at=parse_rfc3339(body["at"]),
            compared=int(body["compared"]),
            labels=tuple(str(label) for label in body["fields"]),
        )
    except (ValueError, TypeError, KeyError, RecursionError):  # another program spoilt it
        return None
