"""The console without a screen on fixtures, for tests that drive it through a pseudo-terminal.

    python -I plain_child.py INTENTS [LOCK_SECONDS [restless | vault | devices | grants | undrawable]]

Each intent becomes a line of the file INTENTS, and is answered.
With `restless` the first call changes all the time; with `undrawable` drawing it fails.
"""

import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from aileron_core.clock import SystemClock
from aileron_core.console_port.devices import DevicesUpdated, MakeLink
from aileron_core.console_port.events import ApprovalUpdated, VaultStatus
from aileron_core.console_port.field_views import FieldView
from aileron_core.console_port.intents import Intent
from aileron_core.console_port.view_models import ApprovalView
from aileron_core.settings import NotifySettings
from aileron_tui.draw.glyphs import Glyphs
from aileron_tui.input.arming import AFTER_SECONDS
from aileron_tui.pages.keymap import DEFAULT_REGISTRY
from aileron_tui.plain.console import PlainConsole
from aileron_tui.terminal.line_terminal import LineTerminal
from aileron_tui.terminal.notifications import Notifier
from tests.support.screens.calls import snapshot
from tests.support.screens.home import devices
from tests.support.screens.port import RecordingPort
from tests.support.screens.rules import LUNCH, NO_SAM
from tests.support.screens.states import HOME, WORK, Undrawable, held_call, need

LOCKED = VaultStatus(state="locked", entries=2)


def waiting_for_accounts(now: float) -> tuple[ApprovalView, ...]:
    """A call that waits for the vault, and one of which a person has to pick the account."""
    needs = (need("locked", WORK), need("choice", WORK, HOME))
    return tuple(
        held_call(each, number, requested_at=now, expires_at=now + 300)
        for number, each in enumerate(needs, start=1)
    )


class PlainPort(RecordingPort):
    """Keeps intents in a file, and answers them."""

    def __init__(self, intents: Path) -> None:
        now = SystemClock().now()
        start = snapshot(now)
        if "vault" in sys.argv:
            start = replace(start, approvals=waiting_for_accounts(now), vault=LOCKED)
        if "devices" in sys.argv:
            start = replace(start, devices=devices(now)[:1])
        if "grants" in sys.argv:
            start = replace(start, grants=(NO_SAM, LUNCH))
        if "undrawable" in sys.argv:
            first, *others = start.approvals
            fields = (FieldView(label="Body", value=Undrawable("x"), multiline=True),)
            broken = replace(first, preview=replace(first.preview, fields=fields))
            start = replace(start, approvals=(broken, *others))
        self._file = intents
        super().__init__(start, answers=True)

    def submit(self, intent: Intent) -> None:
        with self._file.open("a") as opened:
            opened.write(f"{intent}\n")
        super().submit(intent)
        if isinstance(intent, MakeLink):  # and somebody redeems it
            made = DevicesUpdated(devices=devices(SystemClock().now()))
            threading.Timer(0.5, self.tell, (made,)).start()

    def change_all_the_time(self) -> None:
        first = self.snapshot.approvals[0]
        for version in range(2, 10_000):
            self.tell(ApprovalUpdated(view=replace(first, version=version)))
            threading.Event().wait(0.1)


def main() -> int:
    port = PlainPort(Path(sys.argv[1]))
    if "restless" in sys.argv:
        threading.Thread(target=port.change_all_the_time, daemon=True).start()
    clock = SystemClock()
    terminal = LineTerminal(0, 1, clock, silence=AFTER_SECONDS)
    notifier = Notifier(
        NotifySettings(), os.environ, bell=False, ring=lambda: None, write=terminal.send,
        failed=lambda _: None,
    )  # fmt: skip
    lock_seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 0.0
    return PlainConsole(
        port, terminal, clock=clock, arm_seconds=0.4, registry=DEFAULT_REGISTRY, glyphs=Glyphs(),
        notifier=notifier, first_frame=lambda: None, lock_seconds=lock_seconds,
    ).run()  # fmt: skip


raise SystemExit(main())
