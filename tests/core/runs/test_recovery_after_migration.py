"""What waits in a home of an earlier version goes on waiting in this one."""

import shutil
import sqlite3
from pathlib import Path

from tests.support.core_harness import Core, install_examples
from tests.support.frozen_clock import FrozenClock

HOMES = Path(__file__).parents[2] / "fast" / "storage" / "homes"


async def test_a_call_that_waited_in_the_first_version_waits_on(home: Path) -> None:
    """Its record says less than today's, and what it says is held against its row."""
    install_examples(home)
    connection = sqlite3.connect(home / "aileron.db")
    connection.executescript((HOMES / "schema-1.sql").read_text(encoding="utf-8"))
    ((asked_at,),) = connection.execute(
        "SELECT requested_at FROM runs WHERE state = 'pending'"
    ).fetchall()
    connection.close()
    (home / "aileron.db").chmod(0o600)
    shutil.copy(HOMES / "schema-1.audit.head", home / "audit.head")
    clock = FrozenClock(asked_at + 60)

    async with Core.open(home, clock=clock) as core:
        states = [view.state for view in (await core.app.console.snapshot()).approvals]
        assert states.count("pending") == 1
