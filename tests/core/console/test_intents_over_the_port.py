"""The new intents from another thread: answers and refusals are events, the snapshot agrees."""

import queue
from pathlib import Path
from typing import TypeVar

from aileron_core.app import App, AppOptions
from aileron_core.console_port import (
    AuditVerified,
    CoreEvent,
    EndSession,
    EverythingStopped,
    IntentRefused,
    LibraryUpdated,
    PauseChanged,
    ReadRecord,
    ReadRecords,
    RecordRead,
    RecordsRead,
    SetPause,
    StopEverything,
    VerifyAudit,
    WithdrawAcceptance,
)
from aileron_core.core_thread import CoreThread
from aileron_core.home.layout import Home
from tests.support.core_harness import install_examples

_F = TypeVar("_F")


def test_every_new_intent_is_answered_by_its_fact_or_refused_with_a_sentence(home: Path) -> None:
    """Intents go over and return at once; whatever came of them arrives as an event."""
    install_examples(home)
    options = AppOptions(accept_installed=True)
    core = CoreThread(lambda: App.open(Home(home), options))
    core.start()
    events: queue.Queue[CoreEvent] = queue.Queue()

    def answer(kind: type[_F]) -> _F:
        while not isinstance(event := events.get(timeout=60), kind):
            assert not isinstance(event, IntentRefused), event.message
        return event

    try:
        snapshot = core.subscribe(events.put)
        assert snapshot.paused_at is None
        assert [item.state for item in snapshot.library] == ["ready"] * 4
        core.submit(SetPause(paused=True))
        paused = answer(PauseChanged)
        assert paused.paused_at is not None
        assert core.subscribe(lambda _fact: None).paused_at == paused.paused_at
        core.submit(SetPause(paused=False))
        assert answer(PauseChanged).paused_at is None
        action = snapshot.library[0]
        core.submit(WithdrawAcceptance(kind="action", name=action.name, digest=action.digest))
        assert answer(LibraryUpdated).library[0].state == "held_back"
        core.submit(StopEverything())
        assert answer(EverythingStopped) == EverythingStopped(
            denied=0, sessions_ended=0, runs_stopped=0
        )
        core.submit(ReadRecords(limit=2))
        page = answer(RecordsRead)
        assert [record.seq for record in page.records] == [page.total - 1, page.total]
        core.submit(ReadRecord(seq=page.total))
        assert answer(RecordRead).seq == page.total
        core.submit(VerifyAudit())
        assert answer(AuditVerified).problems == ()
        for nothing in (
            ReadRecord(seq=10**6),
            EndSession(session_id="ses-0"),
            WithdrawAcceptance(kind="connector", name="x", digest="0"),
        ):
            core.submit(nothing)
            assert answer(IntentRefused).message.endswith(".")
    finally:
        core.stop()
    assert core.failure is None
