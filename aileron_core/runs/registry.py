"""The runs kept in memory: which of them an equal call is attached to, and how many that ended are kept."""

import asyncio
from collections import Counter, OrderedDict
from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

from aileron_core.runs.live_run import LiveRun
from aileron_core.runs.model import RunRecord, args_hash
from aileron_core.runs.transitions import RunState


class RunRegistry:
    """Runs that are open, undelivered, or shown as recent."""

    _MAX_RECENT = 200
    _MAX_UNDELIVERED = 2000
    """Finished runs at most, where agents have not asked after their ends. Beyond it the session that
    has most of them loses its oldest one."""
    _MAX_OTHER_KEYS = 16

    def __init__(self) -> None:
        self._by_run: OrderedDict[str, LiveRun] = OrderedDict()
        self._by_approval: dict[str, LiveRun] = {}
        self._by_call: dict[tuple[str, str, str], LiveRun] = {}
        self._by_key: dict[tuple[str, str], LiveRun] = {}
        self._finished: OrderedDict[str, None] = OrderedDict()
        self._waiting: dict[str, set[str]] = {}

    def add(self, run: LiveRun) -> None:
        """Add *run*; equal calls attach to it while it is open or undelivered."""
        row = run.row
        self._by_run[row.run_id] = run
        if row.approval_id and not run.is_final:
            self._waiting.setdefault(row.session_id, set()).add(row.run_id)
        if row.approval_id:
            self._by_approval[row.approval_id] = run
        if row.idempotency_key:
            self._by_key[row.session_id, row.idempotency_key] = run
        if row.approval_id and not row.delivered and run.args_sha256:
            self._by_call[_call_of(run)] = run

    def add_key(self, run: LiveRun, key: str) -> None:
        """Have *key*, of an equal call, name *run* too, while it is in memory; of many the newest do."""
        session_id = run.row.session_id
        if len(run.other_keys) == self._MAX_OTHER_KEYS:
            self._by_key.pop((session_id, run.other_keys.pop(0)), None)
        run.other_keys.append(key)
        self._by_key[session_id, key] = run

    def discard(self, run: LiveRun) -> None:
        """Forget *run* entirely (its row could not be written)."""
        row = run.row
        self._by_run.pop(row.run_id, None)
        if row.approval_id:
            self._by_approval.pop(row.approval_id, None)
        for key in (row.idempotency_key, *run.other_keys):
            self._by_key.pop((row.session_id, key or ""), None)
        self._waiting.get(row.session_id, set()).discard(row.run_id)
        self.mark_delivered(run)

    def mark_delivered(self, run: LiveRun) -> None:
        """Treat a later equal call as a new one: the agent has received the outcome."""
        if self._by_call.get(_call_of(run)) is run:
            del self._by_call[_call_of(run)]

    def mark_finished(self, run: LiveRun) -> None:
        """Count *run* as finished; the oldest finished runs are dropped from memory (their rows stay).

        One that a person has yet to look at (its outcome is unknown, or the service does not hold
        what was approved) is kept until they did: call this again then.

        Any other that never waited is dropped at once: its key is found in its row, and it must not
        push out one whose end an agent has yet to ask after.
        """
        self._waiting.get(run.row.session_id, set()).discard(run.row.run_id)
        if run.is_kept:
            self._finished.pop(run.row.run_id, None)
            return
        if not run.row.approval_id:
            self.discard(run)
            return
        self._finished[run.row.run_id] = None
        while (evicted := self._next_to_evict()) is not None:
            del self._finished[evicted]
            old = self._by_run.get(evicted)
            if old is not None:
                self.discard(old)

    def _next_to_evict(self) -> str | None:
        """Return the finished run to drop now, preferably the oldest delivered one."""
        if len(self._finished) <= self._MAX_RECENT:
            return None
        for run_id in self._finished:
            if self._is_delivered(run_id):
                return run_id
        if len(self._finished) <= self._MAX_UNDELIVERED:
            return None
        owners = {run_id: self._by_run[run_id].row.session_id for run_id in self._finished}
        ((most, _),) = Counter(owners.values()).most_common(1)
        return next(run_id for run_id, owner in owners.items() if owner == most)

    def _is_delivered(self, run_id: str) -> bool:
        run = self._by_run.get(run_id)
        return run is None or run.row.delivered

    def get(self, run_id: str) -> LiveRun | None:
        return self._by_run.get(run_id)

    @asynccontextmanager
    async def locked(self, run_ids: Iterable[str]) -> AsyncGenerator[list[LiveRun]]:
        """Hold the locks of those of *run_ids* that are in memory: nobody may write back what goes from their rows."""
        # In one order: two that wait for each other would never end.
        live = [run for run_id in sorted(run_ids) if (run := self.get(run_id)) is not None]
        async with AsyncExitStack() as locks:
            for run in live:
                await locks.enter_async_context(run.lock)
            yield live

    def by_approval(self, approval_id: str) -> LiveRun | None:
        return self._by_approval.get(approval_id)

    def by_key(self, session_id: str, key: str) -> LiveRun | None:
        return self._by_key.get((session_id, key))

    def find_equal(self, row: RunRecord) -> LiveRun | None:
        """Return the run that waits or waited, of the same session, action and arguments that is open or undelivered."""
        assert row.args is not None
        return self._by_call.get((row.session_id, row.action, args_hash(row.args, None)))

    def count_waiting(self, session_id: str) -> int:
        return len(self._waiting.get(session_id, ()))

    def count_unacknowledged(self, session_id: str) -> int:
        """Return how many ungated runs of the session ended as `unknown` and wait for a person."""
        return sum(
            run.awaits_acknowledgement and not run.row.gated
            for run in self._by_run.values()
            if run.row.session_id == session_id
        )

    async def wait_for_executing(self, seconds: float) -> int:
        """Wait for effects that have begun, *seconds* at most; return how many go on after that."""
        executing = [run for run in self if run.row.state is RunState.EXECUTING]
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                for run in executing:
                    await run.ended.wait()
        return sum(not run.ended.is_set() for run in executing)

    def __iter__(self) -> Iterator[LiveRun]:
        return iter(tuple(self._by_run.values()))


def _call_of(run: LiveRun) -> tuple[str, str, str]:
    """Return what equal calls share."""
    return run.row.session_id, run.row.action, run.args_sha256
