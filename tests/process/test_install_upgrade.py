"""A home that another version wrote, opened by the real programs."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.storage.schema import SCHEMA_VERSION
from tests.support.server_harness import ROOT, Serve, aileron, aileron_json
from tests.support.variants import variants

HOMES = ROOT / "tests" / "fast" / "storage" / "homes"


@pytest.fixture
def old(home: Path) -> Path:
    """A furnished home with the database of the first version; its approvals never expire."""
    with closing(sqlite3.connect(home / "aileron.db")) as database:
        database.executescript((HOMES / "schema-1.sql").read_text(encoding="utf-8"))
    (home / "aileron.db").chmod(0o600)
    (home / "audit.head").write_bytes((HOMES / "schema-1.audit.head").read_bytes())
    (home / "config.toml").write_text("[approval]\nexpires_seconds = 0\n")
    return home


def test_a_home_of_the_first_version_is_opened_and_goes_on(old: Path, serve: Serve) -> None:
    """The call that waited waits, the record goes on and verifies, a copy from before lies there."""
    assert aileron_json("audit", "verify", home=old)["records"] == 30
    console = serve(accept=False)
    assert aileron_json("status", home=old)["pending"] == 1
    events = [record["event"] for record in console.records()[30:]]
    assert events[0] == "storage.migrated"
    assert "console.started" in events
    report = aileron_json("audit", "verify", home=old)
    assert report["problems"] == []
    assert console.end() == 0
    listed = aileron("audit", "list", home=old).stdout
    assert f"The database was upgraded from schema 1 to {SCHEMA_VERSION}" in listed
    (copy,) = (old / "backups").iterdir()
    assert copy.stat().st_mode & 0o777 == 0o600
    serve(accept=False).end()
    events = [record["event"] for record in console.records()]
    assert events.count("storage.migrated") == 1
    assert list((old / "backups").iterdir()) == [copy]


def test_the_first_version_itself_can_read_the_copy(old: Path, serve: Serve) -> None:
    """Going back is putting the copy where the database was: it is one file, whole."""
    serve(accept=False).end()
    (copy,) = (old / "backups").iterdir()
    with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as database:
        dump = "\n".join(database.iterdump())
    original = (HOMES / "schema-1.sql").read_text(encoding="utf-8")
    assert dump.splitlines() == original.splitlines()


@pytest.mark.parametrize(
    "command",
    variants(
        [
            ("serve",),
            ("audit", "list"),
            ("audit", "verify"),
            ("action", "list"),
            ("connector", "list"),
        ],
        2,
    ),
)
def test_a_home_of_a_newer_version_is_refused(old: Path, command: tuple[str, ...]) -> None:
    """Exit 1, one sentence that says what to do, and not a byte is changed."""
    with closing(sqlite3.connect(old / "aileron.db")) as database:
        database.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
        database.commit()
    before = (old / "aileron.db").read_bytes()
    done = aileron(*command, home=old, code=1)
    assert done.stderr.count("\n") == 1
    assert "was written by a newer Aileron (schema 99" in done.stderr
    assert "Nothing was changed. Update Aileron." in done.stderr
    error = json.loads(aileron(*command, "--json", home=old, code=1).stdout)["error"]
    assert error["class"] == "unavailable"
    assert (old / "aileron.db").read_bytes() == before
