"""Publishes every change in the core to the front ends, as events in order."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from heapq import nsmallest
from typing import Literal, TypeAlias

from aileron_core.audit.record import ChainHead, CommittedRecord
from aileron_core.clock import Clock
from aileron_core.console.view_mapping import (
    WaitingAgents,
    approval_view,
    record_view,
    session_view,
)
from aileron_core.console_port.events import (
    ApprovalsRead,
    ApprovalUpdated,
    CoreEvent,
    LibraryUpdated,
    Recorded,
    SessionsUpdated,
)
from aileron_core.console_port.view_models import (
    WAITING_STATES,
    ApprovalView,
    SessionView,
    ToolCallsView,
    TrafficView,
)
from aileron_core.events import EventBus
from aileron_core.hash_words import two_words
from aileron_core.library.home_library import HomeLibrary
from aileron_core.runs import LiveRun
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.transitions import RunState
from aileron_core.sessions.registry import SessionRegistry

_Kind: TypeAlias = Literal["waiting", "running"]
_KINDS: dict[RunState, _Kind] = {
    RunState.PENDING: "waiting",
    RunState.AWAITING_VAULT: "waiting",
    RunState.CHECKING: "waiting",
    RunState.APPROVED: "running",
    RunState.EXECUTING: "running",
}


class RunCounts:
    """Counts kept up to date run by run: nothing here goes through all of them."""

    def __init__(self) -> None:
        self._kinds: dict[str, _Kind] = {}
        self._counts: Counter[tuple[str, _Kind]] = Counter()

    def update(self, run: LiveRun) -> bool:
        """Count *run* by its present state; return whether a count changed."""
        run_id, session_id = run.row.run_id, run.row.session_id
        before, now = self._kinds.get(run_id), _KINDS.get(run.row.state)
        if run.is_in_background and now == "waiting":
            now = "running"
        if before == now:
            return False
        if before is not None:
            self._counts[session_id, before] -= 1
            if not self._counts[session_id, before]:
                del self._counts[session_id, before]
        if now is None:
            del self._kinds[run_id]
        else:
            self._kinds[run_id] = now
            self._counts[session_id, now] += 1
        return True

    def waiting(self, session_id: str) -> int:
        return self._counts.get((session_id, "waiting"), 0)

    def running(self, session_id: str) -> int:
        return self._counts.get((session_id, "running"), 0)


APPROVALS_AT_ONCE = 250
"""Approvals that are published at once: more than a screen shows, few enough not to delay a call."""
_COUNTS_SECONDS = 0.25
"""How long changed counts of sessions wait for more of them: calls may come by the hundred."""


class EventPublisher:
    """Turns changes of runs, sessions, files and the audit into events.

    Args:
        events: where they are published, on the core's loop.
        preview_seconds: how long a preview may take, for the screen.
    """

    def __init__(
        self,
        events: EventBus[CoreEvent],
        registry: RunRegistry,
        sessions: SessionRegistry,
        clock: Clock,
        *,
        preview_seconds: float,
        can_undo: Callable[[str], bool],
        traffic: Callable[[str], TrafficView | None],
        waits_for_vault: Callable[[str], bool] = lambda _: False,
        tool_calls: Callable[[str], ToolCallsView | None] = lambda _: None,
    ) -> None:
        self._events = events
        self._registry = registry
        self._sessions = sessions
        self.waiters = WaitingAgents(clock, self._waiting_changed)
        """The agents that wait for an answer to their call."""
        self._counts = RunCounts()
        self._counts_due = False
        self._preview_seconds = preview_seconds
        self._can_undo = can_undo
        self._traffic = traffic
        self._waits_for_vault = waits_for_vault
        self._tool_calls = tool_calls
        self._loop = asyncio.get_running_loop()

    def approvals(self) -> tuple[ApprovalView, ...]:
        """Return every approval in memory, in order of arrival."""
        return tuple(self.view(run) for run in self._ordered())

    def first_approvals(self) -> tuple[tuple[ApprovalView, ...], int]:
        """Return the ended approvals and the open ones that came first, and how many more are open."""
        every = self._ordered()
        first = [run for run in every if not run.is_final][:APPROVALS_AT_ONCE]
        published = [run for run in every if run.is_final] + first
        return tuple(self.view(run) for run in published), len(every) - len(published)

    def first_waiting(self) -> tuple[tuple[ApprovalView, ...], int]:
        """Return the calls that wait for an answer and came first, and how many more wait."""
        waiting = [
            run
            for run in self._registry
            if run.row.approval_id
            and str(run.row.state) in WAITING_STATES
            and not run.is_in_background
        ]
        first = nsmallest(APPROVALS_AT_ONCE, waiting, key=_order)
        return tuple(self.view(run) for run in first), len(waiting) - len(first)

    async def publish_approvals_after(
        self, requested_at: float, run_id: str, events: EventBus[CoreEvent]
    ) -> None:
        """Publish on *events* every open approval after that of *run_id*, in batches, each as it is at that time.

        In order of arrival; calls that arrive meanwhile come last.
        """
        after, left = (requested_at, run_id), 1
        while left:
            behind = [run for run in self._ordered() if _order(run) > after and not run.is_final]
            published, left = behind[:APPROVALS_AT_ONCE], len(behind[APPROVALS_AT_ONCE:])
            views = tuple(self.view(run) for run in published)
            events.publish(ApprovalsRead(views=views, remaining=left))
            after = _order(published[-1]) if published else after
            await asyncio.sleep(0)  # so that calls are answered in between

    def _ordered(self) -> list[LiveRun]:
        return sorted((run for run in self._registry if _is_shown(run)), key=_order)

    def sessions(self) -> tuple[SessionView, ...]:
        return tuple(
            session_view(
                session,
                self._sessions,
                waiting=self._counts.waiting(session.session_id),
                running=self._counts.running(session.session_id),
                traffic=self._traffic(session.session_id),
                waits_for_vault=self._waits_for_vault(session.session_id),
                tool_calls=self._tool_calls(session.session_id),
            )
            for session in self._sessions.all()
        )

    def view(self, run: LiveRun) -> ApprovalView:
        """Return *run* as front ends draw it now."""
        can_undo = self._can_undo(run.row.run_id)
        return approval_view(
            run, self._sessions, self.waiters, self._preview_seconds, can_undo=can_undo
        )

    # Changes

    def run_changed(self, run: LiveRun) -> None:
        """Publish a run that is new or differs, if a person sees it, and count it."""
        if self._counts.update(run) and not self._counts_due:
            self._counts_due = True
            self._loop.call_later(_COUNTS_SECONDS, self._tell_counts)
        if _is_shown(run):
            self._events.publish(ApprovalUpdated(view=self.view(run)))

    def undo_forgotten(self, run_id: str) -> None:
        """Publish a run that cannot be taken back any more."""
        if (run := self._registry.get(run_id)) is not None:
            self.run_changed(run)

    def _tell_counts(self) -> None:
        self._counts_due = False
        self.sessions_changed()

    def _waiting_changed(self, approval_id: str) -> None:
        """An agent stopped waiting for an answer, or waits for it again."""
        run = self._registry.by_approval(approval_id)
        if run is not None:
            self.run_changed(run)

    def runs_recovered(self) -> None:
        """Count the runs of an earlier process, which were not published one by one."""
        for run in self._registry:
            self._counts.update(run)

    def sessions_changed(self) -> None:
        self._events.publish(SessionsUpdated(sessions=self.sessions()))

    def library_changed(self, library: HomeLibrary) -> None:
        self._events.publish(
            LibraryUpdated(
                not_accepted=library.not_accepted(),
                problems=library.problems_and_alarms(),
                actions_ready=len(library.ready()),
                library=library.items(),
                settings_accepted=library.settings_accepted,
            )
        )

    async def sweep(self) -> None:
        """Notice the agents that have stopped waiting. Called every half second."""
        self.waiters.sweep(self._is_open)

    def _is_open(self, approval_id: str) -> bool:
        run = self._registry.by_approval(approval_id)
        return run is not None and not run.is_final

    def records_committed(self, head: ChainHead, committed: Sequence[CommittedRecord]) -> None:
        """Publish records that were committed. Called on the writer's thread."""
        with suppress(RuntimeError):  # the loop has ended, and no front end is left
            self._loop.call_soon_threadsafe(self._publish_records, head, tuple(committed))

    def _publish_records(self, head: ChainHead, committed: Sequence[CommittedRecord]) -> None:
        words = two_words(head.hash)
        for each in committed:
            session = self._sessions.get(each.record.session or "")
            agent = session.agent if session else ""
            self._events.publish(Recorded(record=record_view(each, agent), head_words=words))


def _is_shown(run: LiveRun) -> bool:
    """Return whether a person sees *run* in the waiting list or among the decisions."""
    if run.row.state is RunState.UNKNOWN or (run.read_back and run.read_back.waits_to_be_seen):
        return True
    return run.row.approval_id is not None and not run.is_in_background


def _order(run: LiveRun) -> tuple[float, str]:
    return run.row.requested_at, run.row.run_id
