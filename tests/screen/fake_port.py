"""A port that remembers what it was asked and tells what a test says, on a thread of its own.

What reads the audit is answered at once from the records of the snapshot, as the core would; with
`answers` everything else is carried out as well, on the snapshot's own state.
"""

import queue
import threading
from collections.abc import Callable
from dataclasses import replace

from aileron_core.clock import Clock, SystemClock
from aileron_core.console_port.events import CoreEvent, Snapshot
from aileron_core.console_port.intents import (
    ExportAudit,
    Intent,
    ReadApprovals,
    ReadCall,
    ReadRecord,
    ReadRecords,
    VerifyAudit,
)
from tests.support.screens.port import FixtureCore

SNAPSHOT_CALLS = 250
FIRST_RECORDS = 500
"""How many calls, and how many of the newest records, the first snapshot has, as the core's."""


class RecordingPort:
    """Implements `ConsolePort`: events go over on another thread, as the core's do."""

    def __init__(
        self, snapshot: Snapshot, *, clock: Clock | None = None, answers: bool = False
    ) -> None:
        self.snapshot = snapshot
        self.intents: list[Intent] = []
        self.reads: list[Intent] = []
        """What only asked to read; it changes nothing."""
        self._core = FixtureCore(snapshot, clock if clock is not None else SystemClock())
        self._answers = answers
        self.deaf = False
        """Nothing is answered, not even what only reads."""
        self._events: queue.Queue[CoreEvent | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    def submit(self, intent: Intent) -> None:
        reads = isinstance(
            intent,
            ReadApprovals | ReadCall | ReadRecords | ReadRecord | VerifyAudit | ExportAudit,
        )
        (self.reads if reads else self.intents).append(intent)
        if (reads or self._answers) and not self.deaf:
            self.tell(*self._core.answer(intent))

    def subscribe(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        self._thread = threading.Thread(target=self._work, args=(sink,), daemon=True)
        self._thread.start()
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
