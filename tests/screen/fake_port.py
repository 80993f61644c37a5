"""A port that remembers what it was asked and tells what a test says, on a thread of its own.

What reads the audit is answered at once from the records of the snapshot, as the core would; with
`answers` everything else is carried out as well, on the snapshot's own state.
"""

import queue
import threading
from collections.abc import Callable
from dataclasses import replace

from aileron_core.clock import Clock, SystemClock
from aileron_core.console_port import (
    CoreEvent,
    ExportAudit,
    Intent,
    ReadApprovals,
    ReadRecord,
    ReadRecords,
    Snapshot,
    VerifyAudit,
)
from tests.support.screens.port import FixtureCore

TOLD_CALLS = 250
TOLD = 500
"""How many calls, and how many of the newest records, a console is told at the start, as by the core."""


class RecordingPort:
    """Implements `ConsolePort`: facts go over on another thread, as the core's do."""

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
        self._facts: queue.Queue[CoreEvent | None] = queue.Queue()
        self._thread: threading.Thread | None = None

    def submit(self, intent: Intent) -> None:
        reads = isinstance(
            intent, ReadApprovals | ReadRecords | ReadRecord | VerifyAudit | ExportAudit
        )
        (self.reads if reads else self.intents).append(intent)
        if (reads or self._answers) and not self.deaf:
            self.tell(*self._core.answer(intent))

    def subscribe(self, sink: Callable[[CoreEvent], None]) -> Snapshot:
        self._thread = threading.Thread(target=self._work, args=(sink,), daemon=True)
        self._thread.start()
        told = self.snapshot.approvals[:TOLD_CALLS]
        return replace(
            self.snapshot,
            approvals=told,
            approvals_left=len(self.snapshot.approvals) - len(told),
            records=self.snapshot.records[-TOLD:],
        )

    def tell(self, *facts: CoreEvent) -> None:
        for fact in facts:
            self._facts.put(fact)

    @property
    def idle(self) -> bool:
        """Everything that was told has gone over."""
        return not self._facts.unfinished_tasks

    def close(self) -> None:
        self._facts.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self, sink: Callable[[CoreEvent], None]) -> None:
        while (fact := self._facts.get()) is not None:
            sink(fact)
            self._facts.task_done()
