"""A port that remembers what it was asked and tells what a test says, on a thread of its own."""

import queue
import threading
from collections.abc import Callable

from aileron_core.control_plane.port import Fact, Intent, Snapshot


class RecordingPort:
    """Implements `ConsolePort`: facts go over on another thread, as the core's do."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.intents: list[Intent] = []
        self._facts: queue.SimpleQueue[Fact | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(self, intent: Intent) -> None:
        self.intents.append(intent)

    def subscribe(self, sink: Callable[[Fact], None]) -> Snapshot:
        self._thread = threading.Thread(target=self._work, args=(sink,), daemon=True)
        self._thread.start()
        return self.snapshot

    def tell(self, *facts: Fact) -> None:
        for fact in facts:
            self._facts.put(fact)

    def close(self) -> None:
        self._facts.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self, sink: Callable[[Fact], None]) -> None:
        while (fact := self._facts.get()) is not None:
            sink(fact)
