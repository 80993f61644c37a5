"""A home that the version before this one left: a vault, accepted files, calls that wait, calls that ended.

`homes/schema-5/home` is its folder and `aileron.sql` its database, written by real programs at commit
1badba7c (the example's files, a connector with an account, four calls that wait, four that ended and
were sealed); `expected.json` is what that version's own commands said of it.
"""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from examples.mailbox.server import Mailbox
from tests.support.server_harness import Attend, aileron, aileron_json, query
from tests.support.vaults import KNOWN, PHRASE

OLD = Path(__file__).parent / "homes" / "schema-5"
EXPECTED: dict[str, Any] = json.loads((OLD / "expected.json").read_text())
DRAFT = "r-8842189771"


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of it, with the modes that it had."""
    path = tmp_path_factory.mktemp("old", numbered=True) / "home"
    shutil.copytree(OLD / "home", path)
    with closing(sqlite3.connect(path / "aileron.db")) as database:
        database.executescript((OLD / "aileron.sql").read_text(encoding="utf-8"))
    for each in (path, *path.rglob("*")):
        each.chmod(0o700 if each.is_dir() else 0o600)
    return path


def test_nothing_of_it_is_lost(home: Path, attend: Attend, mailbox: Mailbox) -> None:
    """The record goes on from its head; files, account and contents are as that version said; a call that waited is sent."""
    console = attend()
    console.unlock(PHRASE)

    assert aileron_json("audit", "verify", home=home)["problems"] == []
    chain = [each.hex() for (each,) in query(home, "SELECT hash FROM audit ORDER BY seq")]
    assert chain[: len(EXPECTED["audit"])] == EXPECTED["audit"]
    waiting = [each["approval_id"] for each in aileron_json("status", home=home)["waiting"]]
    assert waiting == EXPECTED["waiting"]
    listed = [
        each
        for kind in ("action", "connector")
        for each in aileron_json(kind, "list", home=home)["items"]
    ]
    assert sorted(each["name"] for each in listed if each["state"] == "ready") == EXPECTED["ready"]
    accounts = aileron_json("binding", "list", home=home)["items"]
    for account, expected in zip(accounts, EXPECTED["accounts"], strict=True):
        assert account.items() >= expected.items()
    for run_id, expected in EXPECTED["calls"].items():
        shown = aileron(
            "audit", "show", run_id, "--unseal", "--json",
            home=home, env=KNOWN,
        )  # fmt: skip
        assert json.loads(shown.stdout)["call"].items() >= expected.items()

    send = EXPECTED["waiting"][1]
    assert console.approve(send)
    assert console.state(send, "completed")
    assert [each["draft_id"] for each in mailbox.state()["sent"]] == [DRAFT]
