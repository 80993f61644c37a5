"""What other programs leave in a home: a record rewritten or put back, a row of their own, all that an earlier version left."""

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import pytest

from aileron_core.audit.head import JOURNAL
from examples.mailbox.server import Mailbox
from tests.support.core_harness import change_rows
from tests.support.older_home import EXPECTED, write_older_home
from tests.support.processes import eventually
from tests.support.server_harness import Attend, Console, Serve, aileron, aileron_json, query
from tests.support.variants import variants
from tests.support.vaults import KNOWN, PHRASE

PROGRAM = Path(__file__).parent / "rewriting_program.py"
WHOLE_RECORD = ("aileron.db", "aileron.db-wal", "aileron.db-shm", "audit.head")


def run_program(home: Path, *more: str) -> None:
    subprocess.run([sys.executable, "-I", PROGRAM, home, *more], check=True, timeout=60)


def audit_says(home: Path) -> tuple[int, str]:
    done = aileron("audit", "verify", home=home, code=None)
    return done.returncode, " ".join(done.stdout.split())


def assert_found(home: Path, sentence: str) -> None:
    code, said = audit_says(home)
    assert code == 1
    assert sentence in said


def passes_without_a_key(home: Path) -> bool:
    """Return whether `audit verify` finds nothing; a system journal knows more than the home."""
    return JOURNAL.exists() or audit_says(home)[0] == 0


@pytest.fixture
def recorded(unlocked: Console) -> Console:
    for _ in range(2):
        unlocked.session()
    return unlocked


def restart_and_unlock(console: Console) -> None:
    console.start()
    assert console.vault == "locked"
    assert console.unlock(PHRASE).status == 200

    def found() -> bool:
        return "audit.rewritten" in [each["event"] for each in console.records()]

    eventually(found, "the unlock finds it")


@pytest.mark.parametrize("more", variants([("stated",), ()]))
def test_a_record_rewritten_while_the_console_is_stopped_is_found_at_the_unlock(
    home: Path, recorded: Console, more: Sequence[str]
) -> None:
    """Without the key it verifies, before; the unlock names it, and every verification after that."""
    recorded.end()
    run_program(home, *more)
    assert passes_without_a_key(home)
    restart_and_unlock(recorded)
    assert_found(home, "found when the vault was unlocked")


def test_a_record_rewritten_under_a_console_is_found_by_its_next_record(recorded: Console) -> None:
    """The console goes on from what it wrote itself; nobody else can make that fit."""
    run_program(recorded.home)
    recorded.session()
    assert_found(recorded.home, "edited")


def test_an_older_copy_of_the_record_is_found_at_unlock(recorded: Console, tmp_path: Path) -> None:
    """Each byte of it is genuine, the signed head too; the vault knows that there was more."""
    home = recorded.home
    recorded.end()
    for name in WHOLE_RECORD:
        if (home / name).exists():
            shutil.copy(home / name, tmp_path / name)
    recorded.start()
    assert recorded.unlock(PHRASE).status == 200
    recorded.session()
    recorded.session()
    recorded.end()
    for name in WHOLE_RECORD:
        (home / name).unlink(missing_ok=True)
        if (tmp_path / name).exists():
            shutil.copy(tmp_path / name, home / name)
    assert passes_without_a_key(home)
    restart_and_unlock(recorded)
    assert_found(home, "the signed head is an older one")


def test_without_a_vault_a_rewritten_record_is_not_found(home: Path, serve: Serve) -> None:
    console = serve()
    console.session()
    console.end()
    run_program(home)
    assert passes_without_a_key(home)
    console.start()
    console.session()
    assert passes_without_a_key(home)
    if not JOURNAL.exists():
        said = audit_says(home)[1]
        assert "not a program of your own account that rewrites everything" in said


DIGEST = "ab" * 32
ASKED = {"agent": "codex", "path": "/srv/a project", "digest": DIGEST}


def items(console: Console) -> list[dict[str, str]]:
    return console.get("/v1/projects", local=True).json["items"]


def test_a_row_alone_takes_no_project_in(home: Path, serve: Serve) -> None:
    """One pin per agent and folder, in the newest bytes: the record makes it count, and outlives a restart."""
    console = serve()
    assert console.post("/v1/projects", ASKED, local=True).status == 201
    later = {**ASKED, "digest": "cd" * 32}
    assert console.post("/v1/projects", later, local=True).status == 201
    assert console.post("/v1/projects", {**ASKED, "agent": "pi"}, local=True).status == 201
    console.end()
    console.start()
    found = [(each["agent"], each["path"], each["digest"]) for each in items(console)]
    assert found == [("codex", "/srv/a project", "cd" * 32), ("pi", "/srv/a project", DIGEST)]
    said = [each for each in console.records() if each.get("kind") == "project"]
    assert [each["digest"] for each in said] == [DIGEST, "cd" * 32, DIGEST]
    assert {each["event"] for each in said} == {"library.accepted"}
    assert aileron_json("audit", "verify", home=home)["ok"]
    console.end()
    forged = f"UPDATE pins SET digest = '{'ee' * 32}' WHERE kind = 'project'"
    added = f"INSERT INTO pins VALUES('project', 'pi /srv/b', '{DIGEST}', 1.0, 'person', 1)"
    change_rows(home, forged, added)
    console.start()
    assert items(console) == []


def test_nothing_of_an_older_home_is_lost(home: Path, attend: Attend, mailbox: Mailbox) -> None:
    """The record goes on from its head; files, account and contents are as that version said; a call that waited is sent.

    `tests/core/history/test_older_home.py` reads its contents.
    """
    shutil.rmtree(home)
    write_older_home(home)
    console = attend()
    console.unlock(PHRASE)

    assert aileron_json("audit", "verify", home=home)["problems"] == []
    hashes = [each.hex() for (each,) in query(home, "SELECT hash FROM audit ORDER BY seq")]
    assert hashes[: len(EXPECTED["audit"])] == EXPECTED["audit"]
    waiting = [each["approval_id"] for each in aileron_json("status", home=home)["waiting"]]
    assert waiting == EXPECTED["waiting"]
    listed = [aileron_json(kind, "list", home=home)["items"] for kind in ("action", "connector")]
    ready = [each["name"] for each in chain(*listed) if each["state"] == "ready"]
    assert sorted(ready) == EXPECTED["ready"]
    accounts = aileron_json("binding", "list", home=home)["items"]
    for account, expected in zip(accounts, EXPECTED["accounts"], strict=True):
        assert account.items() >= expected.items()
    for run_id, expected in EXPECTED["calls"].items():
        shown = aileron("audit", "show", run_id, "--unseal", "--json", home=home, env=KNOWN).stdout
        assert json.loads(shown)["call"].items() >= expected.items()

    send = EXPECTED["waiting"][1]
    assert console.approve(send)
    assert console.state(send, "completed")
    assert [each["draft_id"] for each in mailbox.state()["sent"]] == ["r-8842189771"]
