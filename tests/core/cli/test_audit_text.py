"""What `aileron audit` prints of records that another program has spoilt."""

import asyncio
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.record import AuditRecord
from aileron_core.home.layout import Home
from aileron_core.storage.database import Database
from tests.support.server_harness import aileron

HOSTILE = "\x1b]52;c;aGk=\x07\x1b[2K\u202e"
RUN = "run-0000000000000000000000000a"


async def _record(home: Home) -> None:
    database = Database(home.database)
    record = AuditRecord(
        at="2026-01-02T03:04:05.000Z", event=AuditEvent.RUN_STARTED, summary="s", run=RUN
    )
    await database.write(lambda tx: tx.record(record))
    await asyncio.to_thread(database.close)


@pytest.mark.parametrize("spoilt", ["at", "event", "actor", "summary", "key", "nothing"])
def test_no_part_of_a_spoilt_record_reaches_the_terminal_raw(home: Path, spoilt: str) -> None:
    """The table can be edited by any program of this user; its text is shown, never obeyed."""
    own = Home(home)
    own.prepare()
    asyncio.run(_record(own))
    with closing(sqlite3.connect(own.database)) as database:
        body = json.loads(database.execute("SELECT body FROM audit").fetchone()[0])
        if spoilt == "nothing":
            body |= {"event": None, "actor": None, "at": 7}
        else:
            body |= {HOSTILE: "v"} if spoilt == "key" else {spoilt: HOSTILE}
        database.execute("UPDATE audit SET body = ?", (json.dumps(body),))
        database.commit()

    printed = "".join(
        aileron("audit", *command, home=home).stdout for command in (("list",), ("show", RUN))
    )

    assert not {"\x1b", "\x07", "\u202e"} & set(printed)
    if spoilt != "nothing":
        assert "‹ESC›" in printed
