"""Cleaning up after killed launches while a console runs."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from aileron_core import tasks
from aileron_core.console_port.events import CoreEvent, SessionsUpdated
from aileron_core.launch.launch_dir import launch_dir_parents, remove_stale
from aileron_core.launch.protected_paths import finish_sessions
from aileron_core.launch.repositories import import_from_killed_launches, save_notices
from aileron_core.launch.tools.commit_recovery import recover_commits, take_outcomes


class LaunchSweep:
    """Removes what killed launches left behind, such as tokens: at start and whenever a session has ended.

    Their agents' git work is imported, and files planted in their projects are moved aside; notices
    for the person are stored until the next launch. Commits that were ended in the middle are taken back. An instance is a listener for the core's
    events.
    """

    def __init__(
        self, home: Path, record: Callable[[str, str], Awaitable[None]] | None = None
    ) -> None:
        """Begin with a look.

        Args:
            record: puts on record, by its session, what became of a commit that was ended in the middle.
        """
        self._home = home
        self._record = record
        self._open: frozenset[str] = frozenset()
        self._sweep()

    def _sweep(self) -> None:
        tasks.spawn(self._clear_and_record(), name="sweep launches")

    async def _clear_and_record(self) -> None:
        await asyncio.to_thread(self._clear)
        if self._record is not None:
            for session, sentence in take_outcomes(self._home):
                await self._record(session, sentence)

    def _clear(self) -> None:
        save_notices(
            self._home,
            [
                *recover_commits(self._home),  # before what they are made of is imported or removed
                *remove_stale(launch_dir_parents(self._home, os.environ)),
                *import_from_killed_launches(self._home),
                *finish_sessions(self._home),
            ],
        )

    def __call__(self, event: CoreEvent) -> None:
        if isinstance(event, SessionsUpdated):
            now = frozenset(each.session_id for each in event.sessions)
            if self._open - now:
                self._sweep()
            self._open = now
