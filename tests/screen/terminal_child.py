"""The console on fixtures, for tests that drive it through a pseudo-terminal.

    python -I terminal_child.py INTENTS CONTROL

Each intent becomes a line of the file INTENTS. Each line of the pipe CONTROL makes something happen:
`arrive`, `drift`, `theme`, `fault`; at `stall` no thread runs from when the file `stalled` is there
beside it until that is gone. Twenty short calls wait at the start.
"""

import asyncio
import ctypes
import os
import sys
import threading
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from aileron_core.clock import SystemClock
from aileron_core.console_port.events import ApprovalUpdated, SessionsUpdated, Snapshot
from aileron_core.console_port.intents import Approve, Deny, Intent
from aileron_core.console_port.view_models import ApprovalView
from aileron_tui.app import AileronApp
from aileron_tui.cli.screen import show
from tests.support.screens.calls import drifted
from tests.support.screens.port import RecordingPort
from tests.support.screens.states import short, snapshot_of


class Unsayable(str):
    """An agent's name that no presenter can take."""

    __slots__ = ()

    def isascii(self) -> bool:
        raise RuntimeError("a secret that no terminal may show")


class FilePort(RecordingPort):
    def __init__(self, snapshot: Snapshot, intents: Path) -> None:
        super().__init__(snapshot)
        self._file = intents

    def submit(self, intent: Intent) -> None:
        super().submit(intent)
        with self._file.open("a") as opened:
            opened.write(f"{type(intent).__name__} {getattr(intent, 'approval_id', '')}\n")
        if isinstance(intent, Approve | Deny):
            view = next(v for v in self.snapshot.approvals if v.approval_id == intent.approval_id)
            state = "approved" if isinstance(intent, Approve) else "denied"
            now = SystemClock().now()
            decided = replace(view, state=state, decided_at=now, decided_by="person")
            self.tell(ApprovalUpdated(view=decided))


def waiting_item(number: int) -> ApprovalView:
    now = SystemClock().now()
    view = short(number)
    preview = replace(view.preview, updated_at=now)
    return replace(view, requested_at=now, expires_at=now + 600, preview=preview)


def obey(app: AileronApp, port: FilePort, control: Path) -> None:
    arrived = 100
    # Open for writing too: it never ends, and a writer never finds it without a reader.
    with os.fdopen(os.open(control, os.O_RDWR)) as commands:
        for line in map(str.strip, commands):
            now = SystemClock().now()
            match line:
                case "arrive":
                    arrived += 1
                    port.tell(ApprovalUpdated(view=waiting_item(arrived)))
                case "drift":
                    first = port.snapshot.approvals[0]
                    port.tell(ApprovalUpdated(view=replace(first, version=2, drift=drifted(now))))
                case "theme":
                    app.call_from_thread(setattr, app, "theme", "aileron-light")
                case "stall":  # one call, which keeps the interpreter's lock
                    mark = control.with_name("stalled")
                    wait = f"touch {mark}; while [ -e {mark} ]; do sleep 0.01; done"
                    ctypes.PyDLL(None).system(wait.encode())
                case _:
                    session = replace(
                        snapshot_of().sessions[0], agent=Unsayable("x"), connected=True
                    )
                    port.tell(SessionsUpdated(sessions=(session,)))


def main() -> int:
    intents, control = Path(sys.argv[1]), Path(sys.argv[2])
    port = FilePort(snapshot_of(*map(waiting_item, range(1, 21))), intents)
    app = AileronApp(port)
    threading.Thread(target=obey, args=(app, port, control), daemon=True).start()
    return asyncio.run(show(app))


raise SystemExit(main())
