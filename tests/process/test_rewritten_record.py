"""Another program rewrites the whole record of a home, or puts an older one back: what finds it, and when."""

import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from aileron_core.audit.head import JOURNAL
from tests.support.server_harness import Console, Serve, aileron, eventually
from tests.support.variants import variants
from tests.support.vaults import PHRASE, make_vault

PROGRAM = Path(__file__).parent / "rewriting_program.py"
WHOLE_RECORD = ("aileron.db", "aileron.db-wal", "aileron.db-shm", "audit.head")


def run_program(home: Path, *more: str) -> None:
    subprocess.run([sys.executable, "-I", PROGRAM, home, *more], check=True, timeout=60)


def audit_says(home: Path) -> tuple[int, str]:
    done = aileron("audit", "verify", home=home, code=None)
    return done.returncode, " ".join(done.stdout.split())


def passes_without_a_key(home: Path) -> bool:
    """Return whether `audit verify` finds nothing; a system journal knows more than the home."""
    return JOURNAL.exists() or audit_says(home)[0] == 0


def with_sessions(console: Console, count: int = 2) -> None:
    for _ in range(count):
        console.session()


@pytest.fixture
def signed(home: Path, serve: Serve) -> Console:
    """A console whose record is signed: its vault is unlocked."""
    make_vault(home, PHRASE)
    console = serve()
    assert console.unlock(PHRASE).status == 200
    with_sessions(console)
    return console


def restart_and_unlock(console: Console) -> None:
    console.start()
    assert console.vault == "locked"
    assert console.unlock(PHRASE).status == 200
    eventually(
        lambda: "audit.rewritten" in [each["event"] for each in console.records()],
        "the unlock finds it",
    )


@pytest.mark.parametrize("more", variants([("stated",), ()]))
def test_a_record_rewritten_while_the_console_is_stopped_is_found_at_the_unlock(
    home: Path, signed: Console, more: Sequence[str]
) -> None:
    """Without the key it verifies, before; the unlock names it, and every verification after that."""
    signed.end()
    run_program(home, *more)
    assert passes_without_a_key(home)
    restart_and_unlock(signed)
    code, said = audit_says(home)
    assert code == 1
    assert "found when the vault was unlocked" in said


def test_a_record_rewritten_under_a_running_console_is_found_by_its_next_record(
    home: Path, signed: Console
) -> None:
    """The console goes on from what it wrote itself; nobody else can make that fit."""
    run_program(home)
    signed.session()
    code, said = audit_says(home)
    assert code == 1
    assert "edited" in said


def test_an_older_copy_of_the_whole_record_is_found_at_the_unlock(
    home: Path, signed: Console, tmp_path: Path
) -> None:
    """Each byte of it is genuine, the signed head too; the vault knows that there was more."""
    signed.end()
    for name in WHOLE_RECORD:
        if (home / name).exists():
            shutil.copy(home / name, tmp_path / name)
    signed.start()
    assert signed.unlock(PHRASE).status == 200
    with_sessions(signed)
    signed.end()
    for name in WHOLE_RECORD:
        (home / name).unlink(missing_ok=True)
        if (tmp_path / name).exists():
            shutil.copy(tmp_path / name, home / name)
    assert passes_without_a_key(home)
    restart_and_unlock(signed)
    code, said = audit_says(home)
    assert code == 1
    assert "the signed head is an older one" in said


def test_without_a_vault_a_rewritten_record_is_not_found(home: Path, serve: Serve) -> None:
    """So README and threat model say; `audit verify` says it itself."""
    console = serve()
    with_sessions(console)
    console.end()
    run_program(home)
    assert passes_without_a_key(home)
    console.start()
    console.session()
    assert passes_without_a_key(home)
    if not JOURNAL.exists():
        said = audit_says(home)[1]
        assert "not a program of your own account that rewrites everything" in said
