"""The core on its own thread: intents go over, events come back, its end is told."""

import asyncio
import queue
from pathlib import Path
from typing import TypeVar

import pytest

from aileron_core.app import App, AppOptions
from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord, CommittedRecord
from aileron_core.connectors.protocol import Route
from aileron_core.console.view_mapping import record_view
from aileron_core.console_port.events import ApprovalUpdated, CoreEvent, CoreLost, IntentRefused
from aileron_core.console_port.intents import Approve, Deny
from aileron_core.core_thread import CoreThread
from aileron_core.errors import HomeError, Unavailable
from aileron_core.home.layout import Home, HomeLock
from aileron_core.runs import Call
from tests.support.core_harness import DRAFT, Mailbox, install_examples, open_session

E = TypeVar("E", bound=CoreEvent)


def next_event(events: "queue.Queue[CoreEvent]", wanted: type[E], state: str = "") -> E:
    while True:
        event = events.get(timeout=60)
        if isinstance(event, wanted) and (
            not state or (isinstance(event, ApprovalUpdated) and event.view.state == state)
        ):
            return event


def test_a_decision_from_another_thread_is_answered_by_events(home: Path, mailbox: Mailbox) -> None:
    install_examples(home)
    route = Route(host="gmail.googleapis.com:443", address="127.0.0.1", port=mailbox.port)
    options = AppOptions(routes=(route,), accept_installed=True)
    core = CoreThread(lambda: App.open(Home(home), options))
    app = core.start()
    try:
        events: queue.Queue[CoreEvent] = queue.Queue()
        snapshot = core.subscribe(events.put)
        assert (snapshot.approvals, snapshot.actions_ready) == ((), 3)
        assert core._loop is not None

        async def ask() -> None:
            session, args = (await open_session(app)).session, {"draft_id": DRAFT}
            await app.gate.run(Call(session=session, action="send-draft", args=args))

        asyncio.run_coroutine_threadsafe(ask(), core._loop).result(10)
        while not (view := next_event(events, ApprovalUpdated).view).digest:
            pass
        core.submit(Approve(approval_id=view.approval_id, digest="0" * 64))
        refused = next_event(events, IntentRefused)
        assert refused.call_id == view.approval_id
        assert "changed" in refused.message
        core.submit(Approve(approval_id=view.approval_id, digest=view.digest))
        next_event(events, ApprovalUpdated, "completed")
        core.submit(Deny(approval_id=view.approval_id))
        refused = next_event(events, IntentRefused)
        assert "the console approved it at" in refused.message
        assert [sent["draft_id"] for sent in mailbox.state()["sent"]] == [DRAFT]
    finally:
        core.stop()
    assert core.failure is None
    core.submit(Deny(approval_id=view.approval_id))  # no effect and no error
    with pytest.raises(Unavailable):
        core.subscribe(events.put)


def test_a_core_that_cannot_start_says_why_and_one_that_dies_is_reported(home: Path) -> None:
    Home(home).prepare()
    lock = HomeLock(Home(home))
    lock.acquire()
    core = CoreThread(lambda: App.open(Home(home), AppOptions()))
    with pytest.raises(HomeError, match="already running"):
        core.start()
    lock.release()
    core = CoreThread(lambda: App.open(Home(home), AppOptions()))
    core.start()
    events: queue.Queue[CoreEvent] = queue.Queue()
    core.subscribe(events.put)
    core._loop.call_soon_threadsafe(core._stop.set)  # it ends, and nobody had asked it to
    next_event(events, CoreLost)
    core.wait()


@pytest.mark.parametrize(
    ("event", "hand"), [("approval.denied", "amber-fox-lantern"), ("device.paired", "")]
)
def test_a_record_names_the_hand_of_an_answer_alone(event: str, hand: str) -> None:
    record = AuditRecord(
        at="2026-10-08T14:02:00.000Z", event=AuditEvent(event), summary="s",
        extra={"hand": "amber-fox-lantern"},
    )  # fmt: skip
    assert record_view(CommittedRecord(seq=1, hash=b"", record=record), "codex").hand == hand
