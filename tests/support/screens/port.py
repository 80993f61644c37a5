"""A small core on its own thread, for the fixture screens and for tests: what is asked of it happens."""

import hashlib
import json
import queue
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median

from aileron_core.audit.events import AuditEvent
from aileron_core.clock import Clock, SystemClock
from aileron_core.console_port import devices, events, intents, view_models
from aileron_core.console_port.events import CoreEvent, IntentRefused, Snapshot
from aileron_core.console_port.field_views import FieldView, LookView
from aileron_core.console_port.intents import Intent
from aileron_core.console_port.view_models import WAITING_STATES, ApprovalView, RecordView
from aileron_tui.state.tables.activity import ActivityTable
from tests.support.screens.calls import snapshot

SNAPSHOT_CALLS = 250
FIRST_RECORDS = 500
"""How many calls, and how many of the newest records, the first snapshot has, as the core's."""
TOGETHER = 250
"""Calls that one event holds."""
LINK = "http://127.0.0.1:8517/review#00112233445566778899aabbccddeeff"
"""The link that it makes; nothing redeems it."""
PASSPHRASE = b"correct horse battery"
"""Opens its vault."""
_Looks = intents.RefreshPreview | intents.RefetchPreview
_AboutACall = intents.Approve | intents.Deny | intents.Acknowledge | _Looks
_EVENTS: dict[type[Intent], tuple[AuditEvent, ...]] = {
    intents.Approve: (AuditEvent.APPROVAL_APPROVED, AuditEvent.RUN_COMPLETED),
    intents.Deny: (AuditEvent.APPROVAL_DENIED,),
    intents.RefreshPreview: (AuditEvent.PREVIEW_FETCHED,),
    intents.RefetchPreview: (AuditEvent.OUTCOME_LOOKED_AT,),
    intents.Acknowledge: (AuditEvent.RUN_ACKNOWLEDGED,),
}
"""The records that an intent about a call leaves."""
_ReadsRecords = intents.ReadRecords | intents.ReadRecord | intents.VerifyAudit | intents.ExportAudit
_ReadsCalls = intents.ReadApprovals | intents.ReadCall | intents.ReadHistory | intents.CountCalls


class FixtureCore:
    """The state of a snapshot, and what each intent makes of it."""

    def __init__(self, start: Snapshot, clock: Clock) -> None:
        self._clock = clock
        self._views = {view.call_id: view for view in start.approvals}
        self._not_accepted = start.not_accepted
        self._library = start.library
        self._problems = start.problems
        self._sessions = start.sessions
        self._devices = start.devices
        self._standing = events.StandingUpdated(grants=start.grants, rules=start.rules)
        self._records = list(start.records)

    def answer(self, intent: Intent) -> list[CoreEvent]:
        now = self._clock.now()
        match intent:
            case _ if isinstance(intent, _AboutACall):
                return self._decide(intent)
            case intents.MarkReadBackSeen():
                return self._see(intent.run_id)
            case intents.Accept() | intents.WithdrawAcceptance():
                return self._move_file(intent)
            case intents.AcceptSuite():
                return self._accept_suite(intent)
            case intents.ReadApprovals():
                return [*self._read_calls(intent)]
            case _ if isinstance(intent, _ReadsRecords):
                return [self._read(intent)]
            case intents.ReadHistory():
                total = len({each.run_id for each in self._records if each.run_id})
                read = events.HistoryRead(
                    query=intent.query, start=intent.start, calls=(), records=(), then=None,
                    searched=total, searched_to=None, total=total,
                )  # fmt: skip
                return [read]
            case intents.CountCalls():
                return [self._count_calls()]
            case intents.ReadCall():
                return [self._read_call(intent.run_id)]
            case intents.SetPause(paused=on):
                said = AuditEvent.CONSOLE_PAUSED if on else AuditEvent.CONSOLE_RESUMED
                changed = events.PauseChanged(paused_at=now if on else None)
                return [changed, self._record(said, "Pause")]
            case intents.EndSession():
                return self._end(intent.session_id)
            case devices.MakeLink():
                return [devices.LinkMade(url=LINK, expires_at=now + 60)]
            case devices.ConfirmDevice() | devices.EndDevice():
                return [self._move_device(intent)]
            case intents.EndGrant(grant_id=gone):
                kept = (each for each in self._standing.grants if each.grant_id != gone)
                self._standing = replace(self._standing, grants=tuple(kept))
                ended = events.GrantEnded(grant_id=gone, why="a person revoked it")
                return [ended, self._standing]
            case intents.StopRun():
                return self._stop_run(intent.run_id)
            case intents.UndoRun():
                view = self._of_run(intent.run_id)
                return [self._record(AuditEvent.RUN_UNDONE, "A person undid it", view)]
            case intents.StopEverything():
                return self._stop()
            case intents.LockVault():
                return [events.VaultStatus(state="locked")]
            case intents.UnlockVault(passphrase=given) if given.reveal() != PASSPHRASE:
                return [events.VaultRefused(message="That is not the vault's passphrase.")]
            case intents.CreateVault() | intents.UnlockVault() | intents.UnlockVaultWithKeyring():
                done = events.VaultUnlocked(failed_attempts=0, failed_since=None)
                return [events.VaultStatus(state="unlocked"), done]
            case intents.ChooseAccount():
                return [self._choose(intent)]
            case _:
                return []

    def _of_run(self, run_id: str) -> ApprovalView | None:
        return next((view for view in self._views.values() if view.run_id == run_id), None)

    def _keep(self, view: ApprovalView) -> events.ApprovalUpdated:
        self._views[view.call_id] = view
        return events.ApprovalUpdated(view=view)

    def _move_device(
        self, intent: devices.ConfirmDevice | devices.EndDevice
    ) -> devices.DevicesUpdated:
        moved, confirms = intent.device_id, isinstance(intent, devices.ConfirmDevice)
        self._devices = tuple(
            replace(each, confirmed=each.confirmed or each.device_id == moved)
            for each in self._devices
            if confirms or each.device_id != moved
        )
        return devices.DevicesUpdated(devices=self._devices)

    def _choose(self, intent: intents.ChooseAccount) -> CoreEvent:
        view = self._views[intent.approval_id]
        offered = view.account_need.candidates if view.account_need is not None else ()
        picked = tuple(each for each in offered if each.name == intent.binding)
        if not picked:
            return IntentRefused(call_id=intent.approval_id, message="It was not offered.")
        version = view.version + 1
        return self._keep(
            replace(view, state="pending", version=version, account_need=None, accounts=picked)
        )

    def learn(self, event: CoreEvent) -> None:
        """Know what a test told the console."""
        if isinstance(event, events.ApprovalUpdated) and event.view.approval_id:
            self._views[event.view.approval_id] = event.view
        if isinstance(event, devices.DevicesUpdated):
            self._devices = event.devices

    def _record(
        self, event: AuditEvent, summary: str, view: ApprovalView | None = None, by: str = ""
    ) -> events.Recorded:
        record = RecordView(
            seq=self._records[-1].seq + 1 if self._records else 1,
            at=self._clock.now(),
            event=event,
            run_id=view.run_id if view else None,
            session_id=view.session_id if view else None,
            action=view.action if view else None,
            actor=by or event.actor,
            agent=view.agent if view else "",
            summary=summary,
        )
        self._records.append(record)
        return events.Recorded(record=record, head_words=("olive", "pixel"))

    def _decide(self, intent: _AboutACall) -> list[CoreEvent]:
        now = self._clock.now()
        looked_at = isinstance(intent, intents.RefetchPreview | intents.Acknowledge)
        view = self._views[intent.call_id if looked_at else intent.approval_id]
        match intent:
            case intents.Approve():
                decided = replace(view, decided_at=now, decided_by="person")
                states = ("checking", "approved", "executing", "completed")
                views = [replace(decided, state=each) for each in states]
                views[-1] = replace(views[-1], ended_at=now)
            case intents.Deny():
                end = replace(view, state="denied", decided_at=now, ended_at=now)
                views = [replace(end, reason=intent.reason, decided_by="person")]
            case intents.Acknowledge():
                views = [replace(view, awaits_acknowledgement=False)]
            case intents.RefetchPreview():
                read = replace(view.preview, status="ready", updated_at=now)
                views = [replace(view, look=LookView(preview=read), version=view.version + 1)]
            case intents.RefreshPreview():
                views = [replace(view, preview=replace(view.preview, updated_at=now))]
        records = [self._record(event, view.title, view) for event in _EVENTS[type(intent)]]
        return [*map(self._keep, views), *records]

    def _see(self, run_id: str) -> list[CoreEvent]:
        view = self._of_run(run_id)
        assert view is not None
        assert view.read_back is not None
        seen = self._keep(replace(view, read_back=replace(view.read_back, seen=True)))
        return [seen, self._record(AuditEvent.READ_BACK_SEEN, view.title, view)]

    def _move_file(self, intent: intents.Accept | intents.WithdrawAcceptance) -> list[CoreEvent]:
        accepts = isinstance(intent, intents.Accept)

        def moved(item: view_models.LibraryItemView) -> view_models.LibraryItemView:
            if (item.kind, item.name, item.digest) != (intent.kind, intent.name, intent.digest):
                return item
            if accepts:
                at = self._clock.now()
                return replace(item, state="ready", reason="", accepted_at=at, accepted_by="person")
            return replace(item, state="held_back", reason="You withdrew its acceptance.")

        self._library = tuple(map(moved, self._library))
        if accepts:
            self._not_accepted = tuple(
                each for each in self._not_accepted if each.digest != intent.digest
            )
        ready = sum(item.state == "ready" and item.kind == "action" for item in self._library)
        verb = "Accepted" if accepts else "Withdrew the acceptance of"
        event = AuditEvent.LIBRARY_ACCEPTED if accepts else AuditEvent.LIBRARY_WITHDRAWN
        said = self._record(event, f"{verb} the {intent.kind} {intent.name}")
        return [self._files(ready), said]

    def _files(self, ready: int) -> events.LibraryUpdated:
        return events.LibraryUpdated(
            not_accepted=self._not_accepted, problems=self._problems, actions_ready=ready,
            library=self._library,
        )  # fmt: skip

    def _accept_suite(self, intent: intents.AcceptSuite) -> list[CoreEvent]:
        self._not_accepted = tuple(
            replace(each, suite=None)
            for each in self._not_accepted
            if (each.file, each.digest) not in intent.files
        )
        said = (f"Accepted the action {file}" for file, _ in intent.files)
        records = (self._record(AuditEvent.LIBRARY_ACCEPTED, each) for each in said)
        return [self._files(len(intent.files)), *records]

    def _read(self, intent: _ReadsRecords) -> CoreEvent:
        total = len(self._records)
        match intent:
            case intents.ReadRecords(before_seq=before, limit=limit):
                older = [r for r in self._records if before is None or r.seq < before]
                shown = tuple(older[-limit:])
                return events.RecordsRead(records=shown, before_seq=before, total=total)
            case intents.ReadRecord(seq=seq):
                found = next((r for r in self._records if r.seq == seq), None)
                if found is None:
                    return IntentRefused(call_id="", message=f"There is no record {seq}.")
                return _whole(found)
            case intents.VerifyAudit():
                at = self._clock.now()
                return events.AuditVerified(records=total, problems=(), at=at, seconds=0.2)
            case intents.ExportAudit():
                path = "/home/ana/.aileron/exports/audit-20261008T120231Z.jsonl"
                return events.AuditExported(records=total, path=path)

    def _count_calls(self) -> events.CallsCounted:
        now = self._clock.now()
        table = ActivityTable(self._records, now)
        rows = [each for each in map(table.item, range(len(table))) if each is not None]
        hours = list[view_models.HourOfCalls]()
        for began in (now - 3600 * number for number in range(12, 0, -1)):
            calls = [each for each in rows if began < each.at <= began + 3600]
            waits = [each.waited for each in calls if each.waited is not None]
            said = [{one.event for one in each.records} for each in calls]
            hour = view_models.HourOfCalls(
                began_at=began,
                outcomes=tuple(Counter(each.state for each in calls).items()),
                not_gated=sum(not each.is_gated for each in calls if each.state != "refused"),
                approved=sum(AuditEvent.APPROVAL_APPROVED in each for each in said),
                median_wait=median(waits) if waits else None,
            )
            hours.append(hour)
        return events.CallsCounted(until=now, hours=tuple(hours))

    def _read_call(self, run_id: str) -> events.CallRead:
        records = tuple(each for each in self._records if each.run_id == run_id)
        view = self._of_run(run_id)
        if view is None:
            return events.CallRead(run_id=run_id, call=None)
        answer = json.dumps({"id": "18c2", "labelIds": ["SENT"]}, indent=2)
        result = (FieldView(label="Result", value=answer, multiline=True, shape="json"),)
        done = view.state == "completed"
        undone = any(each.event == AuditEvent.RUN_UNDONE for each in records)
        view = replace(view, can_undo=done and view.action.startswith("builtin.") and not undone)
        result = result if done else ()
        call = view_models.CallView(approval=view, gated=True, result=result, records=records)
        return events.CallRead(run_id=run_id, call=call)

    def _read_calls(self, intent: intents.ReadApprovals) -> Iterator[events.ApprovalsRead]:
        """Yield the calls behind the one that is named; views stand in order of arrival."""
        views = list(self._views.values())
        runs = [view.run_id for view in views]
        behind = [v for v in views[runs.index(intent.run_id) + 1 :] if v.state in WAITING_STATES]
        for first in range(0, len(behind), TOGETHER):
            update = tuple(behind[first : first + TOGETHER])
            yield events.ApprovalsRead(views=update, remaining=len(behind[first + TOGETHER :]))

    @property
    def _waiting(self) -> list[ApprovalView]:
        return [view for view in self._views.values() if view.state in WAITING_STATES]

    def _end(self, session_id: str) -> list[CoreEvent]:
        self._sessions = tuple(s for s in self._sessions if s.session_id != session_id)
        left = [view for view in self._waiting if view.session_id == session_id]
        why = "A session ended: a person ended it"
        return [
            events.SessionsUpdated(sessions=self._sessions),
            *(self._keep(replace(view, requester_gone=True)) for view in left),
            self._record(AuditEvent.SESSION_ENDED, why, by="person"),
        ]

    def _stop_run(self, run_id: str) -> list[CoreEvent]:
        view = self._of_run(run_id)
        if view is None:
            return [self._record(AuditEvent.RUN_STOPPED, "Stopped")]
        end = replace(view, state="failed", started_at=None, outcome="A person stopped this run.")
        end = replace(end, ended_at=self._clock.now())
        return [self._record(AuditEvent.RUN_STOPPED, view.title, view), self._keep(end)]

    def _stop(self) -> list[CoreEvent]:
        now, waiting = self._clock.now(), self._waiting
        end: dict[str, object] = {"state": "denied", "decided_at": now, "ended_at": now}
        denied = [self._keep(replace(view, decided_by="person", **end)) for view in waiting]
        running = sum(session.running for session in self._sessions)
        ended, self._sessions = len(self._sessions), ()
        return [
            *denied,
            events.SessionsUpdated(sessions=()),
            events.EverythingStopped(
                denied=len(waiting), sessions_ended=ended, runs_stopped=running
            ),
            self._record(AuditEvent.CONSOLE_EVERYTHING_STOPPED, "A person stopped everything"),
        ]


def _whole(record: RecordView) -> events.RecordRead:
    names = {"session": "session_id", "run": "run_id"}
    said = ("action", "actor", "event", "run", "seq", "session", "summary")
    body = json.dumps(
        {name: getattr(record, names.get(name, name)) for name in said}, separators=(",", ":")
    )
    prev = hashlib.sha256(str(record.seq - 1).encode()).hexdigest()
    digest = hashlib.sha256(bytes.fromhex(prev) + body.encode()).hexdigest()
    return events.RecordRead(seq=record.seq, body=body, hash=digest, prev=prev)


class RecordingPort:
    """A `ConsolePort` that remembers what it was asked; events go over on another thread, as the core's do.

    What only reads is answered at once, as the core would; with *answers* everything else is carried out
    as well, on the snapshot's own state. Without a *start* it has the fixtures.
    """

    def __init__(
        self, start: Snapshot | None = None, *, clock: Clock | None = None, answers: bool = False
    ) -> None:
        clock = clock if clock is not None else SystemClock()
        self.snapshot = start if start is not None else snapshot(clock.now())
        self.intents: list[Intent] = []
        self.reads: list[Intent] = []
        """What only asked to read; it changes nothing."""
        self._core = FixtureCore(self.snapshot, clock)
        self._answers = answers
        self.deaf = False
        """Nothing is answered, not even what only reads."""
        self._events: queue.Queue[CoreEvent | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    def submit(self, intent: Intent) -> None:
        reads = isinstance(intent, _ReadsRecords | _ReadsCalls)
        (self.reads if reads else self.intents).append(intent)
        if (reads or self._answers) and not self.deaf:
            self.tell(*self._core.answer(intent))

    def subscribe(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        self._thread = threading.Thread(target=self._work, args=(sink,), daemon=True)
        self._thread.start()
        return self._first()

    def connect(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        self._sink = sink
        return self._first()

    def deliver(self) -> None:
        """Hand over what came to who connected."""
        while not self._events.empty():
            event = self._events.get()
            assert event is not None
            self._sink(event)
            self._events.task_done()

    def _first(self) -> Snapshot:
        newest = self.snapshot.approvals[:SNAPSHOT_CALLS]
        remaining = len(self.snapshot.approvals) - len(newest)
        records = self.snapshot.records[-FIRST_RECORDS:]
        return replace(
            self.snapshot, approvals=newest, approvals_remaining=remaining, records=records
        )

    def tell(self, *events: CoreEvent) -> None:
        for event in events:
            self._core.learn(event)
            self._events.put(event)

    @property
    def idle(self) -> bool:
        """Everything that was told has gone over."""
        return not self._events.unfinished_tasks

    def close(self) -> None:
        self._events.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self, sink: Callable[[CoreEvent], None]) -> None:
        while (event := self._events.get()) is not None:
            sink(event)
            self._events.task_done()
