"""Reading the audit from the database, with or without a running console: lists, one run, what to verify."""

import json
import sqlite3
import subprocess
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from shutil import which
from typing import Any, cast

from aileron_core.audit.head import parse_head, read_head
from aileron_core.audit.record import StoredHead, content_hash
from aileron_core.audit.verify import ChainProblem, ChainReport, ChainRow, LastRecord, verify
from aileron_core.canonical import canonical
from aileron_core.clock import rfc3339

_FIELDS = ("seq", "at", "event", "run", "session", "action", "actor", "summary")


def _rows(connection: sqlite3.Connection) -> Iterator[ChainRow]:
    for seq, at, event, run, prev, hash_, body in connection.execute(
        "SELECT seq, at, event, run, prev, hash, body FROM audit ORDER BY seq"
    ):
        yield ChainRow(
            seq=seq,
            at=str(at),
            event=str(event),
            run=run,
            prev=_blob(prev),
            hash=_blob(hash_),
            body=str(body),
        )


def _blob(value: object) -> bytes:
    """Return a hash as it stands; what is none (another program wrote it) fits no record."""
    return value if isinstance(value, bytes) else b""


def _last_records(connection: sqlite3.Connection) -> Iterator[LastRecord]:
    # A home of an earlier schema is read as it is: its runs had no progress.
    columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(runs)")}
    # Those of before schema 4 have no key, those of before schema 8 were never edited.
    names = ("progress", "content_key", "asked_args")
    later = [name if name in columns else "NULL" for name in names]
    sealed = _sealed_parts(connection)
    runs = connection.execute(
        "SELECT run_id, last_record, state, args_sha256, args, session_id, action, approval_id, "  # noqa: S608 - constants of this module
        f"digest, output, failure, ended_at, {', '.join(later)} FROM runs"
    )
    for (
        run_id, last, state, content, args, session, action, approval, digest,
        output, failure, ended, progress, key, asked,
    ) in runs:  # fmt: skip
        expected = {"session": session, "action": action, "approval": approval, "digest": digest}
        if progress is not None or args is not None:  # else forgotten, both at once
            expected["progress_sha256"] = _text_hash(progress, key)
            expected["asked_sha256"] = None if asked is None else _args_hash(asked, key)
        if key is not None:  # else it was forgotten, or is of an earlier version
            expected["result_sha256"] = _text_hash(failure if output is None else output, key)
        yield LastRecord(
            kind="run",
            key=run_id,
            last_record=last,
            state=state,
            args_sha256=content if args is None else _args_hash(args, key),
            deleted=""
            if args is not None or (run_id, "arguments") in sealed
            else "everything"
            if (output, failure) == (None, None) and (run_id, "result") not in sealed
            else "arguments",
            ended_at=_time(ended),
            expected_fields=expected,
        )
    sessions = connection.execute(
        "SELECT session_id, last_record, token_hash, opened_by, ended_at FROM sessions"
    )
    for session_id, last, token_hash, opened_by, ended_at in sessions:
        # Only the record of its opening says these, and it is the last one until the end.
        expected = (
            {} if ended_at is not None else {"token_hash": token_hash, "opened_by": opened_by}
        )
        yield LastRecord(kind="session", key=session_id, last_record=last, expected_fields=expected)
    accepted = connection.execute("SELECT kind, name, last_record, digest FROM pins")
    for kind, name, last, digest in accepted:
        yield LastRecord(kind=f"accepted {kind}", key=name, last_record=last, digest=digest)


def _sealed_parts(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    """Return of which runs something is sealed, and what of each."""
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    for table in {"sealed", "sealed_contents"} & tables:  # the latter until schema 5
        return frozenset(connection.execute(f"SELECT run_id, part FROM {table}"))  # noqa: S608 - either of two
    return frozenset()


def _args_hash(args: str, key: str | None) -> str:
    """Return the hash of a run's arguments as they stand in its row."""
    try:
        return content_hash(canonical(json.loads(args)), key)
    except (ValueError, TypeError, RecursionError):
        return "unreadable"


def _time(at: object) -> str:
    """Return a time of a row as records have it; empty where it is none."""
    try:
        return rfc3339(at) if isinstance(at, int | float) else ""
    except (ValueError, OverflowError, OSError):
        return ""


def _text_hash(text: str | None, key: str | None) -> str | None:
    """Return the hash of another content of a run as it stands in its row."""
    try:
        return None if text is None else content_hash(text.encode("utf-8", "replace"), key)
    except (ValueError, TypeError):
        return "unreadable"


def head_contradiction(connection: sqlite3.Connection, home: Path) -> str:
    """Return what `audit.head` knows and the table does not have, as a sentence; '' if they agree.

    Asked at the start of a console, before its first record overwrites the head.
    """
    row = connection.execute("SELECT seq FROM audit ORDER BY seq DESC LIMIT 1").fetchone()
    last = int(row[0]) if row else 0
    try:
        stored = read_head(home / "audit.head")
    except ValueError as error:
        return f"audit.head cannot be read ({error})"
    if stored is None:
        return (
            "audit.head was missing, so records cut off the end would go unnoticed" if last else ""
        )
    at = connection.execute("SELECT hash FROM audit WHERE seq = ?", (stored.seq,)).fetchone()
    if stored.seq > last:
        return (
            f"audit.head ended at record {stored.seq}, the table at record {last}: "
            f"{stored.seq - last} were cut off"
        )
    if stored.seq and (at is None or _blob(at[0]).hex() != stored.hash):
        return f"record {stored.seq} was not the one that audit.head named"
    return ""


def list_records(
    connection: sqlite3.Connection,
    *,
    limit: int = 100,
    since: str = "",
    wanted: Callable[[Mapping[str, Any]], bool] = lambda _: True,
) -> list[dict[str, Any]]:
    """Return the newest *limit* records that are *wanted*, oldest first, with the fields of `audit list`.

    None of before *since*, as records have times. *wanted* is called with a record's whole body.
    """
    rows = connection.execute(
        "SELECT seq, body FROM audit WHERE COALESCE(at, '') >= ? ORDER BY seq DESC", (since,)
    )
    parsed = ((seq, _parsed(body)) for seq, body in rows)
    listed = (_listed(seq, body) for seq, body in parsed if wanted(body))
    return [*islice(listed, limit)][::-1]


def _parsed(body: object) -> dict[str, Any]:
    """Return a record's body, empty where another program left none (`verify` names it)."""
    try:
        content: Any = json.loads(str(body))
    except (ValueError, RecursionError):
        content = {}
    return cast("dict[str, Any]", content) if isinstance(content, dict) else {}


def _listed(seq: int, body: Mapping[str, Any]) -> dict[str, Any]:
    return {**{field: body.get(field) for field in _FIELDS}, "seq": seq}


def run_records(connection: sqlite3.Connection, run: str) -> list[dict[str, Any]]:
    """Return every record of one run with its whole body and hash; *run* may be an approval's id."""
    row = connection.execute("SELECT run_id FROM runs WHERE approval_id = ?", (run,)).fetchone()
    found = connection.execute(
        "SELECT body, hash FROM audit WHERE run = ? ORDER BY seq", (row[0] if row else run,)
    )
    return [{**_parsed(body), "hash": _blob(hash_).hex()} for body, hash_ in found]


def session_records(connection: sqlite3.Connection, session_id: str) -> list[dict[str, Any]]:
    """Return every record of one session that is of no run, with its whole body and hash."""
    found = connection.execute(
        "SELECT body, hash FROM audit WHERE run IS NULL AND "
        "CASE WHEN json_valid(body) THEN json_extract(body, '$.session') END = ? ORDER BY seq",
        (session_id,),
    )
    return [{**_parsed(body), "hash": _blob(hash_).hex()} for body, hash_ in found]


def journal_head(home: Path) -> StoredHead | None:
    """Return the newest head of *home* in the system journal; None where there is none."""
    if (journalctl := which("journalctl")) is None:
        return None
    try:
        answer = subprocess.run(
            [journalctl, "-q", "-n", "1", "-o", "cat", "--output-fields=AILERON_HEAD",
             "SYSLOG_IDENTIFIER=aileron", f"AILERON_HOME={home}"],
            capture_output=True, text=True, timeout=5, check=False,
        )  # fmt: skip
        return parse_head(answer.stdout, "the system journal") if answer.stdout.strip() else None
    except (OSError, subprocess.TimeoutExpired, ValueError):
        return None


def verify_home(connection: sqlite3.Connection, home: Path) -> ChainReport:
    """Check the whole audit of *home*: table, rows that name records, `audit.head`, journal."""
    # The head first: a record committed in between makes the table longer, which is no problem.
    heads: list[StoredHead] = []
    unreadable: list[ChainProblem] = []
    try:
        stored = read_head(home / "audit.head")
    except ValueError as error:
        message = f"audit.head cannot be read ({error})"
        unreadable.append(ChainProblem(seq=0, kind="edited", message=message))
    else:
        heads += [stored] if stored else []
    journalled = journal_head(home)
    heads += [journalled] if journalled else []
    connection.execute("BEGIN")
    try:
        report = verify(_rows(connection), _last_records(connection), heads)
    finally:
        connection.execute("ROLLBACK")
    if report.records and not (home / "audit.head").exists():
        message = "audit.head is missing, so records cut off the end would go unnoticed"
        unreadable.append(ChainProblem(seq=report.records, kind="cut", message=message))
    return ChainReport(
        records=report.records, head=report.head, problems=(*unreadable, *report.problems)
    )
