"""Which edits of rows `audit verify` names; what it cannot see without a vault is told by nothing here."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from aileron_core.audit.read import verify_home
from aileron_core.audit.verify import ChainReport
from aileron_core.home.layout import Home
from aileron_core.storage.open import open_reader
from tests.support.core_harness import Core, Mailbox, install_examples


def _verified(home: Path) -> ChainReport:
    with closing(open_reader(Home(home).database)) as connection:
        return verify_home(connection, home)


@pytest.mark.parametrize(
    "edit",
    [
        "UPDATE runs SET session_id = 'ses-other'",
        "UPDATE runs SET action = 'list-drafts'",
        "UPDATE runs SET approval_id = 'act-20260101T000000-0000000000000000'",
        "UPDATE runs SET digest = 'sha256:00'",
        "UPDATE runs SET state = 'denied'",
        'UPDATE runs SET args = \'{"draft_id":"r-1"}\'',
        "UPDATE runs SET args = NULL, args_sha256 = 'x'",
        "UPDATE runs SET run_id = session_id",
        "UPDATE runs SET last_record = last_record - 1",
        "UPDATE sessions SET token_hash = 'mine'",
        "UPDATE sessions SET opened_by = 'launch'",
        "UPDATE sessions SET session_id = 'ses-other'",
        "UPDATE pins SET digest = 'sha256:00' WHERE kind = 'connector'",
        "UPDATE pins SET name = 'other.md' WHERE name = 'send-draft.md'",
    ],
)
async def test_an_edited_row_is_an_orphan(home: Path, mailbox: Mailbox, edit: str) -> None:
    """A run, session or pin that says something else than its record is named."""
    install_examples(home)

    async with Core.open(home, mailbox) as core:
        view = await core.ask()
        await core.approve(view)
        await core.ended(view)
    assert _verified(home).problems == ()
    with closing(sqlite3.connect(Home(home).database)) as other, other:
        other.execute(edit)
    assert {problem.kind for problem in _verified(home).problems} == {"orphan"}
