"""The head in the system journal: the native protocol on a real datagram socket."""

import socket
from pathlib import Path

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.head import SystemJournal, parse_head
from aileron_core.audit.record import AuditRecord
from aileron_core.storage.database import Database
from tests.support.core_harness import run

RECORD = AuditRecord(
    at="2026-10-08T14:02:00.000Z",
    event=AuditEvent.STORAGE_MENDED,
    summary="a summary that stays in the database",
)


async def journaled(home: Path, address: Path, times: int) -> list[str]:
    """Write records, whose heads go to the journal at *address*; return the hashes of these."""
    journal = SystemJournal(home, address)
    database = Database(address.parent / "aileron.db")
    database.on_commit(journal)
    hashes: list[str] = []
    for _ in range(times):
        await database.write(lambda tx: tx.record(RECORD))
        hashes.append(database.head.hash.hex())
    database.close()
    journal.close()
    return hashes


def test_each_commit_sends_its_head_in_the_native_protocol(home: Path) -> None:
    """Seq, hash, count and time go to the journal; nothing of the records does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        address = home / "journal"
        server.bind(str(address))
        server.settimeout(5)
        for number, digest in enumerate(run(journaled(home, address, 2)), start=1):
            lines = server.recv(65536).decode().splitlines()
            fields = dict(line.split("=", 1) for line in lines)
            assert fields["SYSLOG_IDENTIFIER"] == "aileron"
            assert fields["AILERON_HOME"] == str(home)
            assert fields["MESSAGE"] == f"aileron audit head {number} {digest}"
            head = parse_head(fields["AILERON_HEAD"], "the system journal")
            assert (head.seq, head.count) == (number, number)
            assert (head.hash, head.at) == (digest, RECORD.at)
            assert not any("summary" in line for line in lines)


def test_a_journal_that_is_gone_or_full_stops_nothing(home: Path) -> None:
    """The journal is a second witness, not a condition."""
    assert len(run(journaled(home, home / "nothing-here", 1))) == 1
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        # Bound and never read: its queue fills up.
        server.bind(str(home / "journal"))
        assert len(run(journaled(home, home / "journal", 600))) == 600


def test_a_home_whose_name_holds_a_line_break_forges_no_field(home: Path) -> None:
    """Hostile names: a line break in a value would be a field of its own in the native protocol."""
    strange = home / "x\nPRIORITY=0"
    strange.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(home / "journal"))
        server.settimeout(5)
        run(journaled(strange, home / "journal", 1))
        lines = server.recv(65536).decode().splitlines()
        assert [line for line in lines if line.startswith("PRIORITY")] == ["PRIORITY=6"]
