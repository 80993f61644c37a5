"""What `audit verify` finds, each kind of damage at its place; the head in the system journal."""

import hashlib
import json
import socket
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import rfc8785

from aileron_core.audit.events import AuditEvent
from aileron_core.audit.head import HeadFile, SystemJournal, parse_head, read_head
from aileron_core.audit.read import list_records, run_records, verify_home
from aileron_core.audit.record import AuditRecord
from aileron_core.audit.verify import ChainReport
from aileron_core.storage.database import Database, Tx
from aileron_core.storage.open import open_reader
from tests.support.core_harness import change_rows, run

RUN = "run-" + "0" * 26
ARGS = '{"draft_id":"r-1"}'
ARGS_HASH = hashlib.sha256(ARGS.encode()).hexdigest()


def numbered_record(number: int) -> AuditRecord:
    at, summary = f"2026-10-08T14:02:{number:02d}.000Z", f"number {number} – ä"
    run_id = RUN if number in (5, 10) else None
    if number != 10:
        given = {"event": AuditEvent.STORAGE_MENDED, "extra": {"name": "send.md", "digest": "x"}}
        return AuditRecord(at=at, summary=summary, run=run_id, **given)
    extra = {"state": "completed", "args_sha256": ARGS_HASH, "approval": "act-1"}
    given = {"event": AuditEvent.RUN_COMPLETED, "session": "ses-1", "action": "send"}
    return AuditRecord(at=at, summary=summary, run=run_id, extra=extra, **given)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Ten records, one run whose row names the tenth, and `audit.head`."""

    async def make() -> None:
        database = Database(tmp_path / "aileron.db")
        head = HeadFile(tmp_path / "audit.head")
        database.on_commit(head)
        for number in range(1, 11):
            await database.write(lambda tx, n=number: _unit(tx, n))
        database.close()
        head.close()

    run(make())
    return tmp_path


def _unit(tx: Tx, number: int) -> None:
    if number == 10:
        tx.execute(
            "INSERT INTO runs(run_id, approval_id, session_id, action, action_sha256, args, "
            "args_sha256, gated, state, requested_at, times_asked, note, delivered, last_record) "
            "VALUES(?, 'act-1', 'ses-1', 'send', 'x', ?, ?, 1, 'completed', 1.0, 1, '', 1, ?)",
            (RUN, ARGS, ARGS_HASH, tx.next_seq()),
        )
    if number == 1:
        tx.execute("INSERT INTO pins VALUES('action', 'send.md', 'x', 1.0, 'person', 1)")
    tx.record(numbered_record(number))


def rows(home: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(home / "aileron.db")) as connection:
        return connection.execute(query).fetchall()


def verify_report(home: Path) -> ChainReport:
    with closing(open_reader(home / "aileron.db")) as connection:
        return verify_home(connection, home)


def chain_problems(home: Path) -> list[tuple[str, int]]:
    return [(problem.kind, problem.seq) for problem in verify_report(home).problems]


def test_a_whole_chain_is_as_wire_describes_it(home: Path) -> None:
    """JCS bodies, `hash = SHA-256(prev || body)`, first prev 32 zero bytes, no gaps."""
    report = verify_report(home)
    assert report.ok
    assert report.records == 10
    chain = rows(home, "SELECT seq, at, event, run, prev, hash, body FROM audit ORDER BY seq")
    prev = bytes(32)
    for expected, (seq, at, event, run_id, before, digest, body) in enumerate(chain, start=1):
        content = json.loads(body)
        assert rfc8785.dumps(content).decode() == body
        assert [content[each] for each in ("seq", "at", "event", "run")] == [seq, at, event, run_id]
        assert {"session", "action", "actor", "summary"} <= content.keys()
        assert (seq, before) == (expected, prev)
        prev = hashlib.sha256(prev + body.encode()).digest()
        assert digest == prev
    assert report.head == prev.hex()
    head = read_head(home / "audit.head")
    assert (head.seq, head.count, head.hash) == (10, 10, prev.hex())


def rehash(home: Path, *seqs: int, old: str = "number", new: str = "Number") -> None:
    """Change records and make their own hashes fit, as a careful editor does, each after the one before."""
    prev: bytes | None = None
    with closing(sqlite3.connect(home / "aileron.db")) as connection, connection:
        for seq in seqs:
            found = connection.execute("SELECT prev, body FROM audit WHERE seq=?", (seq,))
            before, body = found.fetchone()
            body, before = body.replace(old, new), prev or before
            prev = hashlib.sha256(before + body.encode()).digest()
            change = "UPDATE audit SET body=?, prev=?, hash=? WHERE seq=?"
            connection.execute(change, (body, before, prev, seq))


def reorder(home: Path) -> None:
    for old, new in ((4, 99), (7, 4), (99, 7)):
        change_rows(home, f"UPDATE audit SET seq={new} WHERE seq={old}")


SESSION_OF_ANOTHER_RECORD = """
INSERT INTO sessions(session_id, agent, label, cwd, executable, opened_by, token_hash, gateway_hash,
    opened_at, expires_at, held, last_record)
VALUES('ses-9','a','','','','relay','t','g',1.0,9.0,0,3)"""


@pytest.mark.parametrize(
    ("damage", "expected"),
    [
        ("UPDATE audit SET body=replace(body,'number 3','number 8') WHERE seq=3", ("edited", 3)),
        ("UPDATE audit SET at='2020-01-01T00:00:00.000Z' WHERE seq=6", ("edited", 6)),
        ("UPDATE audit SET run='run-other' WHERE seq=5", ("edited", 5)),
        ("UPDATE audit SET hash=randomblob(32) WHERE seq=6", ("edited", 6)),
        ("UPDATE audit SET prev=randomblob(32) WHERE seq=6", ("edited", 6)),
        ("UPDATE audit SET body='{' WHERE seq=6", ("edited", 6)),
        ("UPDATE audit SET body=CAST(x'7bff' AS TEXT) WHERE seq=6", ("edited", 6)),
        ("UPDATE audit SET body=NULL, hash=12345678901, prev='text' WHERE seq=6", ("edited", 6)),
        ("DELETE FROM audit WHERE seq=4", ("missing", 4)),
        ("DELETE FROM audit WHERE seq BETWEEN 1 AND 3", ("missing", 1)),
        (reorder, ("reordered", 4)),
        (lambda home: rehash(home, 6), ("edited", 6)),
        (lambda home: rehash(home, 10), ("edited", 10)),
        ("DELETE FROM audit WHERE seq > 8", ("cut", 9)),
        ("UPDATE runs SET state='pending'", ("orphan", 10)),
        ("UPDATE runs SET last_record=5", ("orphan", 5)),
        ("UPDATE runs SET run_id='run-other'", ("orphan", 10)),
        ("""UPDATE runs SET args='{"draft_id":"r-2"}'""", ("orphan", 10)),
        ("UPDATE runs SET args_sha256='x', args=NULL", ("orphan", 10)),
        ("UPDATE runs SET args=NULL", ("orphan", 10)),
        ("UPDATE pins SET digest='y'", ("orphan", 1)),
        ("INSERT INTO pins VALUES('action','evil.md','x',1.0,'person',3)", ("orphan", 3)),
        (SESSION_OF_ANOTHER_RECORD, ("orphan", 3)),
    ],
)
def test_each_kind_of_damage_is_found_and_named(
    home: Path, damage: str | Callable[[Path], None], expected: tuple[str, int]
) -> None:
    """Edited, missing, reordered, cut records and orphan rows, each at its number."""
    change_rows(home, damage) if isinstance(damage, str) else damage(home)
    report = verify_report(home)
    assert not report.ok
    assert expected in [(problem.kind, problem.seq) for problem in report.problems]
    assert all(problem.message for problem in report.problems)


def test_a_head_behind_the_table_is_no_problem(home: Path) -> None:
    """A console that stopped between commit and head has done nothing wrong."""
    head = home / "audit.head"
    ((digest,),) = rows(home, "SELECT hash FROM audit WHERE seq=7")
    changed = {"seq": 7, "count": 7, "hash": digest.hex()}
    head.write_text(json.dumps(json.loads(head.read_text()) | changed))
    assert chain_problems(home) == []


@pytest.mark.parametrize("text", ["", "null", '{"seq":"x"}', "\x00" * 256])
def test_an_unreadable_head_is_named(home: Path, text: str) -> None:
    (home / "audit.head").write_text(text, encoding="utf-8")
    assert ("edited", 0) in chain_problems(home)


def test_a_rewritten_chain_is_found_by_the_head_alone(home: Path) -> None:
    """Rewrite everything after an edit and the table is whole again; the head is not."""
    rehash(home, *range(1, 11), old="number 3", new="number X")
    assert chain_problems(home) == [("edited", 10)]
    (home / "audit.head").unlink()  # without it a cut would not be seen, so that is a problem too
    assert chain_problems(home) == [("cut", 10)]


def test_the_head_is_one_short_line_however_often_it_is_written(home: Path) -> None:
    """Overwritten in place; an old longer head leaves no rest behind."""
    data = (home / "audit.head").read_bytes()
    assert len(data) == 512
    assert data.endswith(b"\n")
    assert (home / "audit.head").stat().st_mode & 0o777 == 0o600


def test_damaged_records_are_still_listed(home: Path) -> None:
    """A person who looks after damage sees the rest, and the damaged one by its number."""
    for seq, body in ((9, "'{'"), (10, "CAST(x'7bff' AS TEXT)")):
        change_rows(home, f"UPDATE audit SET body={body} WHERE seq={seq}")
    with closing(open_reader(home / "aileron.db")) as connection:
        listed = list_records(connection, limit=3)
        of_run = run_records(connection, "act-1")
    assert [each["seq"] for each in listed] == [8, 9, 10]
    assert listed[0]["summary"] == "number 8 – ä"
    assert [each.get("seq") for each in of_run] == [5, None]


async def journaled(home: Path, address: Path, times: int) -> list[str]:
    """Write records, whose heads go to the journal at *address*; return the hashes of these."""
    journal = SystemJournal(home, address)
    database = Database(address.parent / "aileron.db")
    database.on_commit(journal)
    hashes: list[str] = []
    for _ in range(times):
        await database.write(lambda tx: tx.record(numbered_record(1)))
        hashes.append(database.head.hash.hex())
    database.close()
    journal.close()
    return hashes


def test_each_commit_sends_its_head_in_the_native_protocol(folder: Path) -> None:
    """Seq, hash, count and time go to the journal; nothing of the records does."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        address = folder / "journal"
        server.bind(str(address))
        server.settimeout(5)
        for number, digest in enumerate(run(journaled(folder, address, 2)), start=1):
            lines = server.recv(65536).decode().splitlines()
            fields = dict(line.split("=", 1) for line in lines)
            assert fields["SYSLOG_IDENTIFIER"] == "aileron"
            assert fields["AILERON_HOME"] == str(folder)
            assert fields["MESSAGE"] == f"aileron audit head {number} {digest}"
            head = parse_head(fields["AILERON_HEAD"], "the system journal")
            assert (head.seq, head.count) == (number, number)
            assert (head.hash, head.at) == (digest, numbered_record(1).at)
            assert not any("number 1" in line for line in lines)


def test_a_journal_that_is_gone_or_full_stops_nothing(folder: Path) -> None:
    """The journal is a second witness, not a condition."""
    assert len(run(journaled(folder, folder / "nothing-here", 1))) == 1
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        # Bound and never read: its queue fills up.
        server.bind(str(folder / "journal"))
        assert len(run(journaled(folder, folder / "journal", 600))) == 600


def test_a_home_whose_name_holds_a_line_break_forges_no_field(folder: Path) -> None:
    """Hostile names: a line break in a value would be a field of its own in the native protocol."""
    strange = folder / "x\nPRIORITY=0"
    strange.mkdir()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as server:
        server.bind(str(folder / "journal"))
        server.settimeout(5)
        run(journaled(strange, folder / "journal", 1))
        lines = server.recv(65536).decode().splitlines()
        assert [line for line in lines if line.startswith("PRIORITY")] == ["PRIORITY=6"]
