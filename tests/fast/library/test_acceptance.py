"""Rows of what was accepted count as their records say, and names of publishers that may be taken for accepted ones."""

import json
import sqlite3
from pathlib import Path

import pytest

from aileron_core.library.acceptance import AcceptanceRecord, load_records, load_withdrawn
from aileron_core.library.publishers import publisher_view
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


ACCEPTED = ("github://google/drive", "github://aileron-hq/mail")


def known(name: str, key: str = "SHA256:new") -> tuple[str, tuple[str, ...]]:
    """Return what the publisher *name* resembles, and as whom its key is known."""
    view = publisher_view(name, key, dict.fromkeys(ACCEPTED, "SHA256:theirs"))
    assert view is not None
    return view.resembles, view.known_as


@pytest.mark.parametrize(
    ("name", "resembles"),
    [
        ("github://goog1e/drive", "github://google/drive"),
        ("github://Google/other", "github://google/drive"),
        ("gitlab://google/drive", "github://google/drive"),
        ("github://g00gle/x", "github://google/drive"),
        ("github://googlee/drive", "github://google/drive"),
        ("github://aileron_hq/mail", "github://aileron-hq/mail"),
        ("github://google/gmail", ""),
        ("github://google/drive", ""),
        ("github://linear/drive", ""),
    ],
)
def test_a_name_that_resembles_an_accepted_publisher_is_said(name: str, resembles: str) -> None:
    """The owner's name is what counts: another repository of the same owner is no imitation."""
    assert known(name)[0] == resembles


def test_a_key_is_known_by_the_same_owners_repositories_alone() -> None:
    assert known("github://google/gmail", "SHA256:theirs")[1] == ("github://google/drive",)
    assert known("github://google/gmail")[1] == known("github://goggle/x", "SHA256:theirs")[1] == ()


def test_another_key_of_the_same_owner_is_said() -> None:
    """Of a key that is new: of no file that nobody signed, and not where one of the owner's has this key."""
    keys = {"github://google/drive": "SHA256:theirs", "github://aileron-hq/mail": "SHA256:new"}
    for name, key, other in (
        ("github://google/gmail", "SHA256:new", "github://google/drive"),
        ("github://google/gmail", "SHA256:theirs", ""),
        ("github://google/gmail", "", ""),
        ("github://google/drive", "SHA256:new", ""),
        ("github://linear/drive", "SHA256:new", ""),
    ):
        view = publisher_view(name, key, keys)
        assert view is not None
        assert view.other_key_of == other, (name, key)
