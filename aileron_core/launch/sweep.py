"""What launches that were killed left behind, cleared by the console: at its start, and whenever a session has ended."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from aileron_core import tasks
from aileron_core.console_port.events import CoreEvent, SessionsUpdated
from aileron_core.containment.safe_paths import remove_tree


class LaunchSweep:
    """Removes what killed launches left behind, such as tokens. An instance is a listener for the core's events.

    Their agents' git work is imported, and files planted in their projects are moved aside; notices for the
    person are stored until the next launch. Commits that were ended in the middle are taken back.
    """

    def __init__(self, home: Path, record: Callable[[str, str], Awaitable[None]]) -> None:
        """Begin with a look.

        Args:
            record: puts on record, by its session, what became of a commit that was ended in the middle.
        """
        self._home = home
        self._record = record
        self._open: frozenset[str] = frozenset()
        self._one = asyncio.Lock()  # two at once would record a commit twice
        self._sweep()

    def _sweep(self) -> None:
        tasks.spawn(self._clear(), name="sweep launches")

    async def _clear(self) -> None:
        async with self._one:
            for session, sentence in await asyncio.to_thread(_clear_and_list, self._home):
                await self._record(session, sentence)
                # Only now: a console that is killed before records it at its next start.
                await asyncio.to_thread(remove_tree, self._home / "commits" / session)

    def __call__(self, event: CoreEvent) -> None:
        if isinstance(event, SessionsUpdated):
            now = frozenset(each.session_id for each in event.sessions)
            if self._open - now:
                self._sweep()
            self._open = now


def _clear_and_list(home: Path) -> list[tuple[str, str]]:
    runtime = Path(os.environ.get("XDG_RUNTIME_DIR") or "/nonexistent", "aileron")
    folders = (home / "commits", home / "git", home / "aside", home / "run" / "launched", runtime)
    if not any(each.is_dir() and next(each.iterdir(), None) for each in folders):
        return []
    # A console that has no launch behind it does without an agent's git and sandbox: a tenth of what it would load.
    from aileron_core.launch.repositories import clear_leftovers

    return clear_leftovers(home)
