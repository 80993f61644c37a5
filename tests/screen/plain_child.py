"""The console without a screen on fixtures, for tests that drive it through a pseudo-terminal.

    python plain_child.py INTENTS [LOCK_SECONDS [restless]]

Each intent becomes a line of the file INTENTS, and is answered. The call `Post a message` ends so that
nobody knows how, and waits to be acknowledged; a look at the service again bumps the call's version, as it does in the core. Record
13 cannot be read. With `restless` the first call changes all the time.
"""

import os
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from aileron_core.clock import SystemClock
from aileron_core.console_port import (
    AccountNeedView,
    AccountView,
    Acknowledge,
    ApprovalUpdated,
    ApprovalView,
    Approve,
    CoreEvent,
    Intent,
    IntentRefused,
    LookView,
    PreviewView,
    ReadRecord,
    Recorded,
    RecordView,
    RefetchPreview,
    Snapshot,
    VaultStatus,
)
from aileron_core.settings import NotifySettings
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.input.commands import DEFAULT_REGISTRY
from aileron_tui.plain.console import PlainConsole
from aileron_tui.plain.terminal import LineTerminal
from aileron_tui.terminal.notifications import Notifier
from tests.screen.bound_accounts import ANA, accounts
from tests.screen.fake_port import RecordingPort
from tests.support.screens.calls import approval, snapshot

LOCKED = VaultStatus(state="locked", entries=2)

OLDER = 1_100
FIRST_RECORDS = 30
"""Records that the console is told at the start; the others it has to ask for."""


def old(number: int, now: float) -> RecordView:
    return RecordView(
        seq=number,
        at=now - 9_000 + number,
        event="call.completed",
        run_id=None,
        session_id=None,
        action="read-mail",
        actor="agent",
        agent="codex",
        summary=f"Old record {number}",
    )


def ended_unknown(view: ApprovalView, seq: int) -> RecordView:
    summary = f"{view.title}: outcome unknown"
    now = SystemClock().now()
    return replace(old(seq, now), at=now, event="run.unknown", run_id=view.run_id, summary=summary)


def not_looked_at(view: ApprovalView) -> ApprovalView:
    """A call that can be looked at again, where nobody knows how it ended, and was not yet."""
    if view.state != "unknown" or view.ended_at is None:
        return view
    preview = replace(view.preview, updated_at=view.ended_at - 20)
    return replace(view, can_fetch_again=True, preview=preview)


def waiting_for_accounts(now: float) -> tuple[ApprovalView, ...]:
    """A call that waits for the vault, and one of which a person has to pick the account."""
    work = AccountView(name="api_key/mail/work", account="ana@example.com")
    home = AccountView(name="api_key/mail/home", account="ana@home.example")
    needs = (
        AccountNeedView(reason="locked", connector="mail", kind="api_key", candidates=(work,)),
        AccountNeedView(reason="choice", connector="mail", kind="api_key", candidates=(work, home)),
    )
    nothing = PreviewView(status="none")
    return tuple(
        replace(
            approval(number, now), state="awaiting_vault", preview=nothing, digest="", words=None,
            account_need=need,
        )
        for number, need in enumerate(needs, start=1)
    )  # fmt: skip


class PlainPort(RecordingPort):
    """Keeps intents in a file, and answers them."""

    def __init__(self, intents: Path) -> None:
        now = SystemClock().now()
        start = snapshot(now)
        if "vault" in sys.argv:
            start = replace(start, approvals=waiting_for_accounts(now), vault=LOCKED)
        if "builtin" in sys.argv:
            first, *others = start.approvals
            start = replace(start, approvals=(replace(first, can_be_remembered=True), *others))
        if "accounts" in sys.argv:
            start = replace(start, accounts=accounts(ANA))
        numbered = [replace(each, seq=OLDER + at) for at, each in enumerate(start.records, 1)]
        before = [old(number, now) for number in range(1, OLDER + 1)]
        approvals = tuple(map(not_looked_at, start.approvals))
        unknown = next((each for each in approvals if each.state == "unknown"), approvals[0])
        last = ended_unknown(unknown, OLDER + len(numbered) + 1)
        self._views = {each.approval_id: each for each in approvals}
        self._seq = last.seq
        self._file = intents
        records = (*before, *numbered, last)
        super().__init__(replace(start, approvals=approvals, records=records), answers=True)

    def subscribe(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        return replace(super().subscribe(sink), records=self.snapshot.records[-FIRST_RECORDS:])

    def submit(self, intent: Intent) -> None:
        with self._file.open("a") as opened:
            opened.write(f"{intent}\n")
        view = self._views.get(getattr(intent, "approval_id", getattr(intent, "call_id", "")))
        now = SystemClock().now()
        if isinstance(intent, RefetchPreview) and view is not None:
            looked = replace(
                view,
                version=view.version + 1,
                look=LookView(preview=replace(view.preview, updated_at=now)),
            )
            self._views[view.approval_id] = self._core._views[view.approval_id] = looked
            self.tell(ApprovalUpdated(view=looked))
        elif isinstance(intent, Acknowledge) and view is not None:
            self._views[view.approval_id] = replace(view, awaits_acknowledgement=False)
            self.tell(ApprovalUpdated(view=self._views[view.approval_id]))
        elif intent == ReadRecord(seq=13):
            self.tell(IntentRefused(call_id="", message="Record 13 lies under a cup."))
        elif isinstance(intent, Approve) and view is not None and view.title == "Post a message":
            lost = replace(
                view,
                state="unknown",
                decided_at=now,
                ended_at=now,
                can_fetch_again=True,
                awaits_acknowledgement=True,
                outcome="A request had been sent, and no answer came.",
            )
            self._views[view.approval_id] = self._core._views[view.approval_id] = lost
            self._seq += 1
            record = ended_unknown(view, self._seq)
            self._core._records.append(record)
            self.tell(
                ApprovalUpdated(view=replace(view, state="executing", decided_at=now)),
                Recorded(record=record, head_words=("olive", "pixel")),
                ApprovalUpdated(view=lost),
            )
        else:
            super().submit(intent)

    def change_all_the_time(self) -> None:
        first = next(iter(self._views.values()))
        for version in range(2, 10_000):
            self.tell(ApprovalUpdated(view=replace(first, version=version)))
            threading.Event().wait(0.1)


def main() -> int:
    port = PlainPort(Path(sys.argv[1]))
    if "restless" in sys.argv:
        threading.Thread(target=port.change_all_the_time, daemon=True).start()
    clock = SystemClock()
    terminal = LineTerminal(0, 1, clock)
    notifier = Notifier(
        NotifySettings(),
        os.environ,
        bell=False,
        ring=lambda: None,
        write=terminal.send,
        failed=lambda _: None,
    )
    return PlainConsole(
        port,
        terminal,
        clock=clock,
        arm_seconds=0.4,
        registry=DEFAULT_REGISTRY,
        glyphs=Glyphs(),
        notifier=notifier,
        first_frame=lambda: None,
        lock_seconds=float(sys.argv[2]) if len(sys.argv) > 2 else 0.0,
    ).run()


raise SystemExit(main())
