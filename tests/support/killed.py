"""`python -I killed.py STEP HOME WORDS`: `aileron WORDS`, or `accept` at a console, killed before its change number STEP in the folder HOME.

A change is a file that is opened to be written, moved, made or removed, and a commit of the database,
before which and after which it can be. It exits with 0 where it came to its end before that.
"""

import asyncio
import itertools
import os
import signal
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from aileron_core.console_port.intents import AcceptSuite
from aileron_core.storage.database import Database
from aileron_tui.cli import main as aileron

_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_CHANGES = {"os.rename", "os.mkdir", "os.remove", "os.rmdir", "os.link", "os.truncate"}


def _count_steps(last: int, home: str) -> None:
    steps = itertools.count(1)
    commit = Database._commit

    def step() -> None:
        if next(steps) == last:
            os.kill(os.getpid(), signal.SIGKILL)

    def on_event(event: str, given: tuple[Any, ...]) -> None:
        changes = event in _CHANGES or (event == "open" and given[2] & _WRITES)
        if changes and not isinstance(given[0], int):
            path = os.fsdecode(given[0])
            if path.startswith(home) or "/" not in path:  # named within a folder that is removed
                step()

    def stepped(database: Database, batch: Any) -> None:
        step()
        commit(database, batch)
        step()

    Database._commit = stepped
    sys.addaudithook(on_event)


async def _accept(last: int, home: str) -> None:
    from tests.support.core_harness import Core, unlock  # takes a while

    async with Core.open(Path(home), accept=False) as core:
        if core.app.vault.state == "locked":
            await unlock(core)
        shown = core.app.library.not_accepted()
        assert shown[0].suite is not None
        accept = AcceptSuite(
            suite_id=shown[0].suite.suite_id,
            files=tuple((each.file, each.digest) for each in shown),
            signed_with=tuple((each.file, each.signed_with) for each in shown),
        )
        _count_steps(last, home)
        await core.do(accept)
        os._exit(0)


def _run_step() -> None:
    step, home, *words = sys.argv[1:]
    if words == ["accept"]:
        asyncio.run(_accept(int(step), home))
    sys.argv = ["aileron", *words, "--home", home]
    _count_steps(int(step), home)
    aileron()


if __name__ == "__main__":
    _run_step()
