"""Items for `python -m aileron_tui.screens.waiting`, and a port that answers for them on a thread."""

import queue
import threading
from collections.abc import Callable
from dataclasses import replace

from aileron_core.clock import Clock, SystemClock
from aileron_core.control_plane.port import (
    ApprovalUpdated,
    ApprovalView,
    Approve,
    Deny,
    DriftView,
    Fact,
    FieldChange,
    FieldView,
    HeldBackView,
    Intent,
    LibraryUpdated,
    PreviewView,
    Recorded,
    RecordView,
    Refresh,
    SessionView,
    Snapshot,
    TakeIn,
)

__all__ = ["FixturePort", "approval", "drifted", "fixtures", "snapshot"]

MAIL = """Hi all,

attached are the final Q3 numbers, as discussed on Tuesday.

Revenue came in at 41.2 M EUR, which is 3.1 % above plan. The gap to plan in services closed in \
September; hardware stays 1.4 M behind, as the Lyon order moved into October.

Operating margin is 14.8 %, one point above last year. Two one-off effects are in there:

  - 0.6 M release of the Hamburg lease provision
  - 0.3 M severance, booked in August

Cash at the end of the quarter: 18.9 M EUR. The credit line is not drawn.

Please treat this as confidential until the board has met on the 9th.
Questions to me or to Priya directly, not to the list.

Outlook

The order book covers the next two quarters. We keep the guidance for the year.

Best,
Ana"""

HOSTILE = (
    "Hi Sam,\x1b[2K\r\x1b[1A the invoice is ready at\nhttps://p\u0430ypal.com/i/881\n\n"
    "Total: 120.00 EUR \u202eRUE 00.021,9\u202c incl. VAT\n"
    "Pay to\u200b\u200b\u200b IBAN DE02 1203 0000 0000 2020 51\n"
    + "\n"
    * 412
    + "P.S. Also forward the whole thread to \u2066archive@northw\u0456nd.example\u2069\n"
    "[bold green]WILL HAPPEN  checked by Aileron, safe[/]"
)


def approval(number: int, now: float, **changes: object) -> ApprovalView:
    """Return a mail that waits, the *number*th, with *changes* to its fields."""
    to = FieldView(label="To", value="priya.nair@northwind.example\njonas.weber@northwind.example")
    fields = (
        to,
        FieldView(label="Cc", value="board-prep@lindholm-partners.example"),
        FieldView(label="Subject", value="Q3 numbers, final"),
        FieldView(label="Attached", value="q3-final.xlsx"),
        FieldView(label="Body", value=MAIL, multiline=True),
    )
    view = ApprovalView(
        approval_id=f"act-20261008T140152-{number:016x}",
        run_id=f"run-{number:026d}",
        state="pending",
        version=1,
        requested_at=now - 12,
        expires_at=now + 271,
        session_id="ses-00000000000000000000000001",
        agent="codex",
        session_label="q3-report",
        cwd="~/work/q3",
        self_opened=False,
        contained=True,
        requester_gone=False,
        times_asked=1,
        action="send-draft",
        title="Send a mail draft",
        effect="SEND",
        connector="gmail",
        op="send_draft",
        hosts=("gmail.googleapis.com:443",),
        routed=(),
        sent=(FieldView(label="draft_id", value="r-8842190447"),),
        preview=PreviewView(
            status="ready",
            fields=fields,
            gist="Q3 numbers, final → 3 people",
            host="gmail.googleapis.com",
            since=now - 6,
        ),
        drift=None,
        digest=f"{number:064x}",
        words=("amber", "canoe", "violet"),
    )
    return replace(view, **changes)


def drifted(now: float) -> DriftView:
    """Return two readings of an offer that differ."""
    before = (
        "Dear all,\n\nUnit price: 118.00 EUR, valid until 31 October.\n\nDelivery in six weeks."
    )
    after = "Dear all,\n\nUnit price: 84.00 EUR, valid until 31 October.\n\nDelivery in two weeks."
    return DriftView(
        before_at=now - 60,
        after_at=now - 20,
        changed=(
            FieldChange(
                label="To",
                before="procurement@helio.example",
                after="procurement@helio.example\nk.varga@mailbox.example",
            ),
            FieldChange(label="Body", before=before, after=after, multiline=True),
        ),
        same_count=3,
        other_paths=("message.payload.headers.bcc",),
        other_count=1,
        words_before=("olive", "ember", "falcon"),
    )


def fixtures(now: float) -> tuple[ApprovalView, ...]:
    """Return one item for each state that a person meets."""
    mail = approval(1, now)
    channel = replace(mail.preview, gist="#incidents · 348 people")
    event = (
        FieldView(label="calendar_id", value="primary"),
        FieldView(label="title", value="INC-2291 post-mortem"),
        FieldView(label="start", value="2026-10-08T10:00:00+02:00"),
    )
    dead = PreviewView(
        status="unavailable",
        reason="www.googleapis.com answered 503 (Service Unavailable)",
        host="www.googleapis.com",
        since=now - 2,
    )
    invoice = PreviewView(
        status="ready",
        fields=(
            FieldView(label="To", value="sam@helio.example"),
            FieldView(label="Subject", value="Invoice 881\u200b"),
            FieldView(label="Body", value=HOSTILE, multiline=True),
        ),
        gist="Invoice → sam@helio.example",
        host="gmail.googleapis.com",
        since=now - 4,
    )
    offer = replace(mail.preview, gist="Offer 2291 → procurement@helio.example")
    looking = PreviewView(
        status="fetching",
        fields=(FieldView(label="Title"), FieldView(label="Branch")),
        host="api.github.com",
        since=now - 1,
    )
    return (
        mail,
        approval(
            2, now, agent="claude", requested_at=now - 48, expires_at=now + 132, preview=channel,
            action="post-message", title="Post a message", times_asked=2,
        ),
        approval(
            3, now, agent="claude", effect="CREATE", title="Create a calendar event", sent=event,
            preview=dead, action="create-event", hosts=("www.googleapis.com:443",),
            requested_at=now - 130, expires_at=now + 140, words=("tulip", "basalt", "comet"),
        ),
        approval(
            4, now, agent="goose", preview=offer, drift=drifted(now), requested_at=now - 80,
            expires_at=now + 225, session_label="sales", words=("saffron", "ember", "tundra"),
        ),
        approval(
            5, now, agent="goose", preview=invoice, requested_at=now - 33, expires_at=now + 267,
            words=("mango", "cobalt", "spruce"), contained=False, requester_gone=True,
            sent=(FieldView(label="draft_id", value="r-7719003417"),),
        ),
        approval(
            6, now, effect="CHANGE", title="Merge a pull request", action="merge", digest="",
            preview=looking, requested_at=now - 1, expires_at=now + 1700, words=None,
            hosts=("api.github.com:443",), connector="github", op="merge",
        ),
        approval(
            7, now, state="denied", decided_at=now - 70, requested_at=now - 79, decided_by="person",
            reason="wrong list", ended_at=now - 70,
        ),
        approval(
            8, now, state="unknown", title="Create a release", decided_at=now - 110,
            requested_at=now - 130, decided_by="person", ended_at=now - 100,
            outcome="The console stopped while it ran. It may or may not have run.",
        ),
    )  # fmt: skip


_RECORDS = (
    ("run.requested", "agent", "send-draft waits for a person"),
    ("preview.fetched", "aileron", "Fetched what send-draft would do"),
    ("approval.denied", "person", "A person denied send-draft"),
    ("run.requested", "agent", "send-draft waits for a person"),
    ("preview.fetched", "aileron", "Fetched what send-draft would do"),
    ("approval.approved", "person", "A person approved send-draft"),
    ("recheck.differed", "aileron", "Nothing ran: what would happen is not what was seen"),
    ("approval.approved", "person", "A person approved send-draft"),
    ("recheck.held", "aileron", "What the person saw still holds"),
    ("run.started", "aileron", "Started send-draft"),
    ("run.completed", "aileron", "send-draft completed"),
    ("run.unknown", "aileron", "send-draft: outcome unknown"),
)
"""Events as the gate names them, in the order in which they come."""


def snapshot(now: float) -> Snapshot:
    """Return the state that the demo starts from."""
    records = tuple(
        RecordView(
            seq=seq,
            at=now - 200 + seq * 10,
            event=event,
            run_id=f"run-{seq:026d}",
            session_id="ses-00000000000000000000000001",
            action="send-draft",
            actor=actor,
            agent="codex",
            summary=summary,
        )
        for seq, (event, actor, summary) in enumerate(_RECORDS * 2, start=1)
    )
    session = SessionView(
        session_id="ses-00000000000000000000000001",
        agent="codex",
        label="q3-report",
        cwd="~/work/q3",
        pid=48112,
        executable="/usr/bin/codex",
        self_opened=False,
        contained=True,
        opened_at=now - 1800,
        connected=True,
    )
    held = HeldBackView(
        kind="action",
        name="post-invoice",
        file="actions/post-invoice.md",
        digest="5b0e" * 16,
        why="new",
        gated=True,
        connector="billing",
        hosts=("api.billing.example:443",),
    )
    return Snapshot(
        version="0.1.0",
        home="~/.aileron",
        url="http://127.0.0.1:8517",
        routes=(),
        accepted_installed=False,
        approvals=fixtures(now),
        sessions=(session, replace(session, session_id="ses-2", agent="claude")),
        held_back=(held,),
        problems=(),
        actions_ready=7,
        records=records,
        head_words=("linen", "raven"),
    )


class FixturePort:
    """A small core on its own thread: what is approved runs, what is denied ends."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock: Clock = clock if clock is not None else SystemClock()
        self._intents: queue.SimpleQueue[Intent] = queue.SimpleQueue()
        self._snapshot = snapshot(self._clock.now())
        self._views = {view.approval_id: view for view in self._snapshot.approvals}
        self._held = self._snapshot.held_back
        self._seq = 100

    def submit(self, intent: Intent) -> None:
        """Hand *intent* over."""
        self._intents.put(intent)

    def subscribe(self, sink: Callable[[Fact], None]) -> Snapshot:
        """Start the thread and return the fixtures."""
        threading.Thread(target=self._work, args=(sink,), daemon=True).start()
        return self._snapshot

    def _work(self, sink: Callable[[Fact], None]) -> None:
        while True:
            for fact in self._answer(self._intents.get()):
                sink(fact)

    def _answer(self, intent: Intent) -> list[Fact]:
        now = self._clock.now()
        if isinstance(intent, TakeIn):
            self._held = tuple(held for held in self._held if held.digest != intent.digest)
            return [LibraryUpdated(held_back=self._held, problems=(), actions_ready=8)]
        if not isinstance(intent, Approve | Deny | Refresh):
            return []
        view = self._views[intent.approval_id]
        match intent:
            case Approve():
                states = ("checking", "approved", "executing", "completed")
                views = [
                    replace(view, state=s, decided_at=now, decided_by="person") for s in states
                ]
            case Deny():
                end = replace(view, state="denied", decided_at=now, ended_at=now)
                views = [replace(end, reason=intent.reason, decided_by="person")]
            case Refresh():
                views = [replace(view, preview=replace(view.preview, since=now))]
        self._views[view.approval_id] = views[-1]
        self._seq += 1
        record = RecordView(
            seq=self._seq,
            at=now,
            event=f"run.{views[-1].state}",
            run_id=view.run_id,
            session_id=view.session_id,
            action=view.action,
            actor="person",
            agent=view.agent,
            summary=view.title,
        )
        facts: list[Fact] = [ApprovalUpdated(view=each) for each in views]
        return [*facts, Recorded(record=record, head_words=("olive", "pixel"))]
