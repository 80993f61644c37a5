"""Reads back what an approved run was to change or create, and compares it with what was approved.

The preview op is asked once more, a moment after the run, for the person alone. The agent has its
answer by then, and gets nothing of this one.
"""

import asyncio
import json
import logging
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, Literal, cast

from aileron_core import tasks
from aileron_core.actions.model import Action, Preview
from aileron_core.audit.events import AuditEvent
from aileron_core.canonical import Json, JsonObject
from aileron_core.clock import Clock, parse_rfc3339
from aileron_core.connectors.http.host_names import short_hosts
from aileron_core.console_port.field_views import FieldView, ReadBack, ReadBackDifference
from aileron_core.errors import AileronError, Conflict, MissingValue, Unavailable
from aileron_core.runs.interfaces import GateSettings, Library
from aileron_core.runs.live_run import LiveRun, PreviewResult
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


def compare_fields(
    approved: Sequence[ApprovedField], found: Sequence[FieldView]
) -> tuple[ReadBackDifference, ...]:
    """Return the fields in which *found* is not what was *approved*, in the file's order."""
    by_label = {field.label: field for field in found}
    return tuple(
        ReadBackDifference(
            approved=each.field, found=by_label[each.field.label], from_agent=each.from_agent
        )
        for each in approved
        if _as_read(each.field) != _as_read(by_label[each.field.label])
    )


def compare_with_service(
    shown: Preview, approved: Sequence[ApprovedField], preview: PreviewResult
) -> ReadBack:
    """Return how *preview*, an answer of the preview op *shown*, compares with what was *approved*."""
    if preview.status != "ready":
        return ReadBack(status="unavailable", at=preview.fetched_at, reason=preview.reason)
    differing = compare_fields(approved, resolve_fields(shown, preview.output))
    return ReadBack(
        status="differs" if differing else "held",
        at=preview.fetched_at,
        compared=len(approved),
        differing=differing,
        labels=tuple(each.approved.label for each in differing),
    )


def holds_the_same(before: Sequence[FieldView], after: Sequence[FieldView]) -> bool:
    """Return whether a person reads the same of both, field by field."""
    return [*map(_as_read, before)] == [*map(_as_read, after)]


def _as_read(field: FieldView) -> tuple[bool, str]:
    """Return what a person reads of *field*: one address is the same alone and in a list."""
    return field.missing, field.value


class ReadBackService:
    """Reads approved runs back in the background, once each, and records what it found."""

    def __init__(
        self,
        *,
        store: RunStore,
        registry: RunRegistry,
        previews: PreviewFetcher,
        library: Library,
        clock: Clock,
        settings: GateSettings,
        look_again: Callable[[LiveRun], Awaitable[None]],
    ) -> None:
        self._look_again = look_again
        self._store = store
        self._registry = registry
        self._previews = previews
        self._library = library
        self._clock = clock
        self._settings = settings
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, run: LiveRun) -> None:
        """Read *run* back if it completed and its action file says what was to be there.

        One whose outcome is unknown is looked at again, unless a person stopped it.
        """
        if run.row.state is RunState.UNKNOWN and not _was_stopped(run):
            self._spawn(run, self._look(run))
        if run.row.state is not RunState.COMPLETED or not run.has_preview or run.row.args is None:
            return
        assert run.resolved is not None
        approved = approved_fields(run.resolved.action, run.row.args, run.preview)
        if not approved:
            return
        run.read_back = ReadBack(status="reading", at=self._clock.now())
        self._store.notify(run)
        self._spawn(run, self._read(run, approved, dict(run.row.output or {})))

    def _spawn(self, run: LiveRun, work: Coroutine[Any, Any, None]) -> None:
        task = tasks.spawn(work, name=f"read back {run.row.run_id}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def close(self) -> None:
        """Stop what is under way; nothing is claimed of those runs."""
        for task in self._tasks:
            task.cancel()

    async def mark_seen(self, run: LiveRun) -> None:
        """Record that a person saw how the service differs from what they approved.

        Raises:
            Conflict: nothing of it waits to be seen.
            StorageUnavailable: it could not be put on record.
        """
        async with run.lock:
            before = run.read_back
            if before is None or not before.waits_to_be_seen:
                raise Conflict(
                    "This call has no difference that waits to be seen. Nothing changed."
                )
            summary = (
                f"A person saw that the service differs from the approved {run.row.action_name}"
            )
            await self._set(run, replace(before, seen=True), AuditEvent.READ_BACK_SEEN, summary, {})
        self._registry.mark_finished(run)

    async def _look(self, run: LiveRun) -> None:
        await asyncio.sleep(self._settings.read_back_delay_seconds)
        with suppress(Conflict):  # a person was faster, or has to look at the service itself
            await self._look_again(run)

    async def _read(
        self, run: LiveRun, approved: Sequence[ApprovedField], output: Mapping[str, Json]
    ) -> None:
        # Many services answer for a moment with what was there before.
        await asyncio.sleep(self._settings.read_back_delay_seconds)
        preview = await self._ask(run, cast("JsonObject", output.get("steps") or {}))
        assert run.resolved is not None
        shown = run.resolved.action.approval.preview
        assert shown is not None
        read = compare_with_service(shown, approved, preview)
        asked: dict[str, Json] = {
            "fields": [each.approved.label for each in read.differing],
            "compared": len(approved),
            "hosts_asked": list(preview.hosts_asked),
        }
        event = next(event for event, status in _EVENTS.items() if status == read.status)
        host = f" (asked {short_hosts(preview.hosts_asked)})" if preview.hosts_asked else ""
        try:
            async with run.lock:
                await self._set(
                    run, read, AuditEvent(event), f"{_SUMMARIES[read.status]}{host}", asked
                )
        except AileronError:
            run.read_back = replace(
                read, status="unavailable", reason="it could not be recorded", differing=()
            )
            self._store.notify(run)
            raise
        finally:
            self._registry.mark_finished(run)

    async def _ask(self, run: LiveRun, outputs: JsonObject) -> PreviewResult:
        assert run.resolved is not None
        try:
            if changed := await self._library.changed_since(run.resolved):
                raise Conflict(f"{changed} after the run")
            return await self._previews.read_back(run, outputs)
        except MissingValue:
            reason = "the output of its steps lacks a value that `read_back` needs"
        except AileronError as error:
            reason = error.message
        except Exception as error:  # noqa: BLE001 - a run must not be under reading for ever
            _log.error("reading back ended with %s", type(error).__name__)
            reason = "Aileron had an internal error; see `aileron logs`"
        return PreviewResult(status="unavailable", reason=reason, fetched_at=self._clock.now())

    async def _set(
        self,
        run: LiveRun,
        read: ReadBack,
        event: AuditEvent,
        summary: str,
        extra: dict[str, Json],
    ) -> None:
        before, run.read_back = run.read_back, read
        try:
            await self._store.update(run, event, summary, extra)
        except AileronError:
            run.read_back = before
            raise


def _was_stopped(run: LiveRun) -> bool:
    """Return whether a person stopped *run*, or everything, or the console is closing."""
    cause = run.row.failure.details.get("cause") if run.row.failure is not None else None
    return run.stop.is_made or cause == Unavailable.class_


_SUMMARIES = {
    "held": "The service now holds what was approved",
    "differs": "The service does not hold what was approved",
    "unavailable": "The result could not be read back from the service",
}


def recorded_read_backs(
    connection: sqlite3.Connection, run_ids: Iterable[str]
) -> dict[str, ReadBack]:
    """Return by run what records say of reading it back; of what differed they have the labels alone."""
    found = {run_id: _recorded(connection, run_id) for run_id in run_ids}
    return {run_id: read for run_id, read in found.items() if read is not None}


def _recorded(connection: sqlite3.Connection, run_id: str) -> ReadBack | None:
    rows = connection.execute(
        "SELECT event, body FROM audit WHERE run = ? AND event IN (?, ?, ?, ?) ORDER BY seq",
        (run_id, *_EVENTS, AuditEvent.READ_BACK_SEEN),
    )
    found: ReadBack | None = None
    for event, text in rows:
        if event == AuditEvent.READ_BACK_SEEN:
            found = replace(found, seen=True) if found is not None else None
        else:
            found = _from_record(_EVENTS[event], text)
    return found


def _from_record(
    status: Literal["held", "differs", "unavailable"], text: object
) -> ReadBack | None:
    try:
        body: Any = json.loads(str(text))
        labels = tuple(str(label) for label in body["fields"])
        return ReadBack(
            status=status,
            at=parse_rfc3339(body["at"]),
            compared=int(body["compared"]),
            labels=labels,
        )
    except (ValueError, TypeError, KeyError, RecursionError):  # another program spoilt it
        return None
