"""What front ends are told while the core lives: every change as a fact, in order."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress

from aileron_core.audit.record import ChainHead, CommittedRecord
from aileron_core.clock import Clock
from aileron_core.console.view_mapping import approval_view, record_view, session_view
from aileron_core.console_port import (
    ApprovalsRead,
    ApprovalUpdated,
    ApprovalView,
    CoreEvent,
    LibraryUpdated,
    Recorded,
    SessionsUpdated,
    SessionView,
    TrafficView,
)
from aileron_core.events import EventBus
from aileron_core.hash_words import two_words
from aileron_core.library.home_library import HomeLibrary
from aileron_core.runs import LiveRun
from aileron_core.runs.registry import RunRegistry
from aileron_core.runs.run_counts import RunCounts
from aileron_core.runs.waiting_agents import WaitingAgents
from aileron_core.sessions.registry import SessionRegistry

TOGETHER = 250
"""Approvals that a front end is told at once: more than it draws, and few enough to make in between."""
_COUNTS_SECONDS = 0.25
"""How long changed counts of sessions wait for more of them: calls may come by the hundred."""


class EventPublisher:
    """Turns what happens to runs, sessions and files into events for the console.

    Args:
        facts: where they are published, on the core's loop.
        book: the runs.
        sessions: the sessions.
        clock: the time.
        preview_seconds: how long a preview may take, for the screen.
        traffic: what of a session has passed the gateway.
    """

    def __init__(
        self,
        facts: EventBus[CoreEvent],
        book: RunRegistry,
        sessions: SessionRegistry,
        clock: Clock,
        *,
        preview_seconds: float,
        traffic: Callable[[str], TrafficView | None],
    ) -> None:
        self._facts = facts
        self._book = book
        self._sessions = sessions
        self.waiters = WaitingAgents(clock, self._waiting_changed)
        """The calls that are held for an answer."""
        self._tally = RunCounts()
        self._counts_due = False
        self._preview_seconds = preview_seconds
        self._traffic = traffic
        self._loop = asyncio.get_running_loop()

    def approvals(self) -> tuple[ApprovalView, ...]:
        """Return every approval in memory, in order of arrival."""
        return tuple(self._view(held) for held in self._ordered())

    def first_approvals(self) -> tuple[tuple[ApprovalView, ...], int]:
        """Return the ended approvals and the open ones that came first, and how many more are open."""
        every = self._ordered()
        first = [held for held in every if not held.is_final][:TOGETHER]
        told = [held for held in every if held.is_final] + first
        return tuple(self._view(held) for held in told), len(every) - len(told)

    async def tell_approvals_after(self, requested_at: float, run_id: str) -> None:
        """Tell every open approval behind the one of *run_id*, some at a time, each as it stands then.

        In order of arrival; calls that come meanwhile are the last of them.
        """
        after, left = (requested_at, run_id), 1
        while left:
            behind = [
                held for held in self._ordered() if _place(held) > after and not held.is_final
            ]
            told, left = behind[:TOGETHER], len(behind[TOGETHER:])
            views = tuple(self._view(held) for held in told)
            self._facts.publish(ApprovalsRead(views=views, left=left))
            after = _place(told[-1]) if told else after
            await asyncio.sleep(0)  # agents get their turn

    def _ordered(self) -> list[LiveRun]:
        return sorted((held for held in self._book if held.row.gated), key=_place)

    def sessions(self) -> tuple[SessionView, ...]:
        """Return the open sessions."""
        return tuple(
            session_view(
                session,
                self._sessions,
                waiting=self._tally.waiting(session.session_id),
                running=self._tally.running(session.session_id),
                traffic=self._traffic(session.session_id),
            )
            for session in self._sessions.all()
        )

    def _view(self, held: LiveRun) -> ApprovalView:
        return approval_view(held, self._sessions, self.waiters, self._preview_seconds)

    # What has changed

    def run_changed(self, held: LiveRun) -> None:
        """A run is new or differs."""
        if self._tally.count(held) and not self._counts_due:
            self._counts_due = True
            self._loop.call_later(_COUNTS_SECONDS, self._tell_counts)
        if held.row.gated:
            self._facts.publish(ApprovalUpdated(view=self._view(held)))

    def _tell_counts(self) -> None:
        self._counts_due = False
        self.sessions_changed()

    def _waiting_changed(self, approval_id: str) -> None:
        """An agent stopped waiting for an answer, or waits for it again."""
        held = self._book.by_approval(approval_id)
        if held is not None:
            self.run_changed(held)

    def recovered(self) -> None:
        """Count the runs that an earlier process left in the registry: no event announced them."""
        for held in self._book:
            self._tally.count(held)

    def sessions_changed(self) -> None:
        """A session came, went, or is held or not."""
        self._facts.publish(SessionsUpdated(sessions=self.sessions()))

    def library_changed(self, library: HomeLibrary) -> None:
        """Files came, went or differ."""
        self._facts.publish(
            LibraryUpdated(
                not_accepted=library.not_accepted(),
                problems=library.problems(),
                actions_ready=len(library.ready()),
                library=library.items(),
            )
        )

    async def sweep(self) -> None:
        """Notice the agents that have stopped waiting. Called every half second."""
        self.waiters.sweep(self._is_open)

    def _is_open(self, approval_id: str) -> bool:
        run = self._book.by_approval(approval_id)
        return run is not None and not run.is_final

    def committed(self, head: ChainHead, committed: Sequence[CommittedRecord]) -> None:
        """Records are on disk. Called on the writer's thread."""
        with suppress(RuntimeError):  # the loop has ended: nobody is left to be told
            self._loop.call_soon_threadsafe(self._publish_records, head, tuple(committed))

    def _publish_records(self, head: ChainHead, committed: Sequence[CommittedRecord]) -> None:
        words = two_words(head.hash)
        for each in committed:
            session = self._sessions.get(each.record.session or "")
            agent = session.agent if session else ""
            self._facts.publish(Recorded(record=record_view(each, agent), head_words=words))


def _place(held: LiveRun) -> tuple[float, str]:
    """Return where *held* stands in order of arrival."""
    return held.row.requested_at, held.row.run_id
