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
from aileron_core.console_port.devices import (
    ConfirmDevice,
    DevicesUpdated,
    EndDevice,
    LinkMade,
    MakeLink,
)
from aileron_core.console_port.events import (
    ApprovalsRead,
    ApprovalUpdated,
    AuditExported,
    AuditVerified,
    CallRead,
    CallsCounted,
    CoreEvent,
    EverythingStopped,
    GrantEnded,
    HistoryRead,
    IntentRefused,
    LibraryUpdated,
    PauseChanged,
    Recorded,
    RecordRead,
    RecordsRead,
    SessionsUpdated,
    Snapshot,
    StandingUpdated,
    VaultRefused,
    VaultStatus,
    VaultUnlocked,
)
from aileron_core.console_port.field_views import FieldView, LookView
from aileron_core.console_port.intents import (
    Accept,
    AcceptSuite,
    Acknowledge,
    Approve,
    ChooseAccount,
    CountCalls,
    CreateVault,
    Deny,
    EndGrant,
    EndSession,
    ExportAudit,
    Intent,
    LockVault,
    MarkReadBackSeen,
    ReadApprovals,
    ReadCall,
    ReadHistory,
    ReadRecord,
    ReadRecords,
    RefetchPreview,
    RefreshPreview,
    SetPause,
    StopEverything,
    StopRun,
    TouchVault,
    UndoRun,
    UnlockVault,
    UnlockVaultWithKeyring,
    VerifyAudit,
    WithdrawAcceptance,
)
from aileron_core.console_port.view_models import (
    WAITING_STATES,
    ApprovalView,
    CallView,
    HourOfCalls,
    LibraryItemView,
    RecordView,
)
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
_EVENTS: dict[type[Intent], tuple[AuditEvent, ...]] = {
    Approve: (AuditEvent.APPROVAL_APPROVED, AuditEvent.RUN_COMPLETED),
    Deny: (AuditEvent.APPROVAL_DENIED,),
    RefreshPreview: (AuditEvent.PREVIEW_FETCHED,),
    RefetchPreview: (AuditEvent.OUTCOME_LOOKED_AT,),
    Acknowledge: (AuditEvent.RUN_ACKNOWLEDGED,),
}
"""The records that an intent about a call leaves."""


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
        self._standing = StandingUpdated(grants=start.grants, rules=start.rules)
        self._records = list(start.records)

    def answer(self, intent: Intent) -> list[CoreEvent]:
        match intent:
            case Approve() | Deny() | RefreshPreview() | RefetchPreview() | Acknowledge():
                return self._decide(intent)
            case MarkReadBackSeen():
                return self._see(intent.run_id)
            case Accept() | WithdrawAcceptance():
                return self._move_file(intent)
            case AcceptSuite():
                return self._accept_suite(intent)
            case ReadApprovals():
                return [*self._read_calls(intent)]
            case ReadRecords() | ReadRecord() | VerifyAudit() | ExportAudit():
                return [self._read(intent)]
            case ReadHistory():
                total = len({each.run_id for each in self._records if each.run_id})
                return [
                    HistoryRead(
                        query=intent.query, start=intent.start, calls=(), records=(), then=None,
                        searched=total, searched_to=None, total=total,
                    )
                ]  # fmt: skip
            case CountCalls():
                return [self._count_calls()]
            case ReadCall():
                return [self._read_call(intent.run_id)]
            case SetPause(paused=on):
                events: list[CoreEvent] = [
                    PauseChanged(paused_at=self._clock.now() if on else None)
                ]
                return [
                    *events,
                    self._record(
                        AuditEvent.CONSOLE_PAUSED if on else AuditEvent.CONSOLE_RESUMED, "Pause"
                    ),
                ]
            case EndSession():
                return self._end(intent.session_id)
            case MakeLink():
                return [LinkMade(url=LINK, expires_at=self._clock.now() + 60)]
            case ConfirmDevice() | EndDevice():
                return [self._move_device(intent)]
            case EndGrant(grant_id=gone):
                kept = (each for each in self._standing.grants if each.grant_id != gone)
                self._standing = replace(self._standing, grants=tuple(kept))
                return [GrantEnded(grant_id=gone, why="a person revoked it"), self._standing]
            case StopRun():
                return self._stop_run(intent.run_id)
            case UndoRun():
                view = next(v for v in self._views.values() if v.run_id == intent.run_id)
                return [self._record(AuditEvent.RUN_UNDONE, "A person undid it", view)]
            case StopEverything():
                return self._stop()
            case TouchVault():
                return []
            case CreateVault() | UnlockVault() | UnlockVaultWithKeyring() | LockVault():
                return self._about_the_vault(intent)
            case ChooseAccount():
                return self._choose(intent)

    def _about_the_vault(
        self, intent: CreateVault | UnlockVault | UnlockVaultWithKeyring | LockVault
    ) -> list[CoreEvent]:
        if isinstance(intent, LockVault):
            return [VaultStatus(state="locked")]
        right = not isinstance(intent, UnlockVault) or intent.passphrase.reveal() == PASSPHRASE
        if not right:
            return [VaultRefused(message="That is not the vault's passphrase.")]
        done = VaultUnlocked(failed_attempts=0, failed_since=None)
        return [VaultStatus(state="unlocked"), done]

    def _move_device(self, intent: ConfirmDevice | EndDevice) -> DevicesUpdated:
        kept = (each for each in self._devices if each.device_id != intent.device_id)
        if isinstance(intent, ConfirmDevice):
            kept = (
                replace(e, confirmed=e.confirmed or e.device_id == intent.device_id)
                for e in self._devices
            )
        self._devices = tuple(kept)
        return DevicesUpdated(devices=self._devices)

    def _choose(self, intent: ChooseAccount) -> list[CoreEvent]:
        view = self._views[intent.approval_id]
        need = view.account_need
        offered = need.candidates if need is not None else ()
        picked = tuple(each for each in offered if each.name == intent.binding)
        if not picked:
            return [IntentRefused(call_id=intent.approval_id, message="It was not offered.")]
        asked = replace(
            view, state="pending", version=view.version + 1, account_need=None, accounts=picked
        )
        self._views[intent.approval_id] = asked
        return [ApprovalUpdated(view=asked)]

    def learn(self, event: CoreEvent) -> None:
        """Know what a test told the console."""
        if isinstance(event, ApprovalUpdated) and event.view.approval_id:
            self._views[event.view.approval_id] = event.view
        if isinstance(event, DevicesUpdated):
            self._devices = event.devices

    def _record(
        self, event: AuditEvent, summary: str, view: ApprovalView | None = None, by: str = ""
    ) -> Recorded:
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
        return Recorded(record=record, head_words=("olive", "pixel"))

    def _decide(
        self, intent: Approve | Deny | RefreshPreview | RefetchPreview | Acknowledge
    ) -> list[CoreEvent]:
        now = self._clock.now()
        looked_at = isinstance(intent, RefetchPreview | Acknowledge)
        view = self._views[intent.call_id if looked_at else intent.approval_id]
        match intent:
            case Approve():
                states = ("checking", "approved", "executing", "completed")
                views = [
                    replace(view, state=s, decided_at=now, decided_by="person") for s in states
                ]
                views[-1] = replace(views[-1], ended_at=now)
            case Deny():
                end = replace(view, state="denied", decided_at=now, ended_at=now)
                views = [replace(end, reason=intent.reason, decided_by="person")]
            case Acknowledge():
                views = [replace(view, awaits_acknowledgement=False)]
            case RefetchPreview():
                read = replace(view.preview, status="ready", updated_at=now)
                views = [replace(view, look=LookView(preview=read), version=view.version + 1)]
            case RefreshPreview():
                views = [replace(view, preview=replace(view.preview, updated_at=now))]
        self._views[view.call_id] = views[-1]
        events: list[CoreEvent] = [ApprovalUpdated(view=each) for each in views]
        update = [self._record(event, view.title, view) for event in _EVENTS[type(intent)]]
        return [*events, *update]

    def _see(self, run_id: str) -> list[CoreEvent]:
        view = next(view for view in self._views.values() if view.run_id == run_id)
        assert view.read_back is not None
        seen = replace(view, read_back=replace(view.read_back, seen=True))
        self._views[view.call_id] = seen
        record = self._record(AuditEvent.READ_BACK_SEEN, view.title, view)
        return [ApprovalUpdated(view=seen), record]

    def _move_file(self, intent: Accept | WithdrawAcceptance) -> list[CoreEvent]:
        accepts = isinstance(intent, Accept)

        def moved(item: LibraryItemView) -> LibraryItemView:
            if (item.kind, item.name, item.digest) != (intent.kind, intent.name, intent.digest):
                return item
            if accepts:
                at = self._clock.now()
                return replace(item, state="ready", reason="", accepted_at=at, accepted_by="person")
            return replace(item, state="held_back", reason="You withdrew its acceptance.")

        self._library = tuple(moved(item) for item in self._library)
        if accepts:
            self._not_accepted = tuple(
                each for each in self._not_accepted if each.digest != intent.digest
            )
        verb, event = (
            ("Accepted", AuditEvent.LIBRARY_ACCEPTED)
            if accepts
            else ("Withdrew the acceptance of", AuditEvent.LIBRARY_WITHDRAWN)
        )
        ready = sum(item.state == "ready" and item.kind == "action" for item in self._library)
        update = LibraryUpdated(
            not_accepted=self._not_accepted,
            problems=self._problems,
            actions_ready=ready,
            library=self._library,
        )
        return [update, self._record(event, f"{verb} the {intent.kind} {intent.name}")]

    def _accept_suite(self, intent: AcceptSuite) -> list[CoreEvent]:
        self._not_accepted = tuple(
            replace(each, suite=None) if each.suite is not None else each
            for each in self._not_accepted
            if (each.file, each.digest) not in intent.files
        )
        update = LibraryUpdated(
            not_accepted=self._not_accepted,
            problems=self._problems,
            actions_ready=len(intent.files),
            library=self._library,
        )
        names = (
            self._record(AuditEvent.LIBRARY_ACCEPTED, f"Accepted the action {file}")
            for file, _ in intent.files
        )
        return [update, *names]

    def _read(self, intent: ReadRecords | ReadRecord | VerifyAudit | ExportAudit) -> CoreEvent:
        total = len(self._records)
        match intent:
            case ReadRecords(before_seq=before, limit=limit):
                older = [r for r in self._records if before is None or r.seq < before]
                shown = tuple(older[-limit:])
                return RecordsRead(records=shown, before_seq=before, total=total)
            case ReadRecord(seq=seq):
                found = next((r for r in self._records if r.seq == seq), None)
                if found is None:
                    return IntentRefused(call_id="", message=f"There is no record {seq}.")
                return _whole(found)
            case VerifyAudit():
                return AuditVerified(records=total, problems=(), at=self._clock.now(), seconds=0.2)
            case ExportAudit():
                path = "/home/ana/.aileron/exports/audit-20261008T120231Z.jsonl"
                return AuditExported(records=total, path=path)

    def _count_calls(self) -> CallsCounted:
        now = self._clock.now()
        table = ActivityTable(self._records, now)
        rows = [each for each in map(table.item, range(len(table))) if each is not None]
        hours = list[HourOfCalls]()
        for began in (now - 3600 * number for number in range(12, 0, -1)):
            calls = [each for each in rows if began < each.at <= began + 3600]
            waits = [each.waited for each in calls if each.waited is not None]
            events = [{one.event for one in each.records} for each in calls]
            hour = HourOfCalls(
                began_at=began,
                outcomes=tuple(Counter(each.state for each in calls).items()),
                not_gated=sum(not each.is_gated for each in calls if each.state != "refused"),
                approved=sum(AuditEvent.APPROVAL_APPROVED in each for each in events),
                median_wait=median(waits) if waits else None,
            )
            hours.append(hour)
        return CallsCounted(until=now, hours=tuple(hours))

    def _read_call(self, run_id: str) -> CallRead:
        records = tuple(each for each in self._records if each.run_id == run_id)
        views = (view for view in self._views.values() if view.run_id == run_id)
        view = next(views, None)
        if view is None:
            return CallRead(run_id=run_id, call=None)
        answer = json.dumps({"id": "18c2", "labelIds": ["SENT"]}, indent=2)
        result = (FieldView(label="Result", value=answer, multiline=True, shape="json"),)
        done = view.state == "completed"
        undone = any(each.event == AuditEvent.RUN_UNDONE for each in records)
        can_undo = done and view.action.startswith("builtin.") and not undone
        call = CallView(
            approval=replace(view, can_undo=can_undo),
            gated=True,
            result=result if done else (),
            records=records,
        )
        return CallRead(run_id=run_id, call=call)

    def _read_calls(self, intent: ReadApprovals) -> Iterator[ApprovalsRead]:
        """Yield the calls behind the one that is named; views stand in order of arrival."""
        views = list(self._views.values())
        runs = [view.run_id for view in views]
        behind = [v for v in views[runs.index(intent.run_id) + 1 :] if v.state in WAITING_STATES]
        for first in range(0, len(behind), TOGETHER):
            update = tuple(behind[first : first + TOGETHER])
            yield ApprovalsRead(views=update, remaining=len(behind[first + TOGETHER :]))

    def _end(self, session_id: str) -> list[CoreEvent]:
        self._sessions = tuple(s for s in self._sessions if s.session_id != session_id)
        events: list[CoreEvent] = [SessionsUpdated(sessions=self._sessions)]
        for view in list(self._views.values()):
            if view.session_id == session_id and view.state in WAITING_STATES:
                self._views[view.approval_id] = replace(view, requester_gone=True)
                events.append(ApprovalUpdated(view=self._views[view.approval_id]))
        return [
            *events,
            self._record(
                AuditEvent.SESSION_ENDED, "A session ended: a person ended it", by="person"
            ),
        ]

    def _stop_run(self, run_id: str) -> list[CoreEvent]:
        view = next((view for view in self._views.values() if view.run_id == run_id), None)
        if view is None:
            return [self._record(AuditEvent.RUN_STOPPED, "Stopped")]
        end = replace(
            view,
            state="failed",
            started_at=None,
            ended_at=self._clock.now(),
            outcome="A person stopped this run.",
        )
        self._views[view.call_id] = end
        record = self._record(AuditEvent.RUN_STOPPED, view.title, view)
        return [record, ApprovalUpdated(view=end)]

    def _stop(self) -> list[CoreEvent]:
        now, events = self._clock.now(), list[CoreEvent]()
        waiting = [view for view in self._views.values() if view.state in WAITING_STATES]
        for view in waiting:
            end = replace(view, state="denied", decided_at=now, decided_by="person", ended_at=now)
            self._views[view.approval_id] = end
            events.append(ApprovalUpdated(view=end))
        running = sum(session.running for session in self._sessions)
        ended, self._sessions = len(self._sessions), ()
        stopped = EverythingStopped(denied=len(waiting), sessions_ended=ended, runs_stopped=running)
        update = self._record(AuditEvent.CONSOLE_EVERYTHING_STOPPED, "A person stopped everything")
        return [*events, SessionsUpdated(sessions=()), stopped, update]


def _whole(record: RecordView) -> RecordRead:
    body = json.dumps(
        {
            "action": record.action,
            "actor": record.actor,
            "event": record.event,
            "run": record.run_id,
            "seq": record.seq,
            "session": record.session_id,
            "summary": record.summary,
        },
        separators=(",", ":"),
    )
    prev = hashlib.sha256(str(record.seq - 1).encode()).hexdigest()
    digest = hashlib.sha256(bytes.fromhex(prev) + body.encode()).hexdigest()
    return RecordRead(seq=record.seq, body=body, hash=digest, prev=prev)


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
        reads = isinstance(
            intent,
            ReadApprovals
            | ReadCall
            | ReadHistory
            | CountCalls
            | ReadRecords
            | ReadRecord
            | VerifyAudit
            | ExportAudit,
        )
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
        return replace(
            self.snapshot,
            approvals=newest,
            approvals_remaining=len(self.snapshot.approvals) - len(newest),
            records=self.snapshot.records[-FIRST_RECORDS:],
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
