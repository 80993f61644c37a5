"""Cleaning up after killed launches while a console runs."""

import asyncio
import os
from pathlib import Path

from aileron_core import tasks
from aileron_core.console_port import CoreEvent, SessionsUpdated
from aileron_core.launch.launch_dir import launch_dir_parents, remove_stale
from aileron_core.launch.protected_paths import finish_sessions
from aileron_core.launch.repositories import import_from_killed_launches, save_notices


class LaunchSweep:
    """Removes what killed launches left behind, such as tokens: at start and whenever a session has ended.

    Their agents' git work is imported, and files planted in their projects are moved aside; notices
    for the person are stored until the next launch. An instance is a listener for the core's
    events.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._open: frozenset[str] = frozenset()
        self._sweep()

    def _sweep(self) -> None:
        tasks.spawn(asyncio.to_thread(self._clear), name="sweep launches")

    def _clear(self) -> None:
        save_notices(
            self._home,
            [
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
