"""Real programs on a home that an earlier version left; `tests/core/history/test_older_home.py` reads its contents."""

import json
from pathlib import Path

import pytest

from examples.mailbox.server import Mailbox
from tests.support.older_home import EXPECTED, write_older_home
from tests.support.server_harness import Attend, aileron, aileron_json, query
from tests.support.vaults import KNOWN, PHRASE

DRAFT = "r-8842189771"


@pytest.fixture
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_older_home(tmp_path_factory.mktemp("old", numbered=True) / "home")


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
