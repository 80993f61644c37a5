"""Rows of what was accepted count as far as the newest record of their name accounts for them."""

import json
import sqlite3
from pathlib import Path

import pytest

from aileron_core.library.acceptance import AcceptanceRecord, load_records, load_withdrawn
from aileron_core.library.removal import find_removed


def database(*events: tuple[str, str], digest: str = "d1") -> sqlite3.Connection:
    """A row for `a.md` with *digest*, and a record for each (event, digest)."""
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE pins(kind, name, digest, taken_at, taken_by)")
    connection.execute("CREATE TABLE audit(seq INTEGER PRIMARY KEY, run, event, body)")
    connection.execute("INSERT INTO pins VALUES('action', 'a.md', ?, 1.0, 'person')", (digest,))
    for event, said in events:
        body = json.dumps({"kind": "action", "name": "a.md", "digest": said})
        connection.execute("INSERT INTO audit(event, body) VALUES(?, ?)", (event, body))
    return connection


@pytest.mark.parametrize("accepted", ["library.accepted", "library.taken_in"])
@pytest.mark.parametrize("ended", ["library.withdrawn", "library.held_back"])
def test_records_count_under_their_present_and_their_older_names(accepted: str, ended: str) -> None:
    counts = database((accepted, "d1"))
    assert [(each.name, each.digest) for each in load_records(counts)] == [("a.md", "d1")]
    assert load_withdrawn(counts) == set()
    over = database((accepted, "d1"), (ended, "d1"))
    assert load_records(over) == []
    assert load_withdrawn(over) == {("action", "a.md", "d1")}
    again = database((accepted, "d1"), (ended, "d1"), (accepted, "d1"))
    assert len(load_records(again)) == 1
    assert load_withdrawn(again) == set()


def test_a_name_that_no_file_can_have_is_not_gone(tmp_path: Path) -> None:
    """Another program may have put it on record; nor does it stop the looking."""
    record = AcceptanceRecord(
        kind="action", name="x\0.md", digest="", accepted_at=0, accepted_by=""
    )
    assert find_removed(tmp_path, [record]) == []
