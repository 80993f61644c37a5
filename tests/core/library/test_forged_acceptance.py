"""Only an acceptance with a record of it in the audit counts."""

import hashlib
import sqlite3
from pathlib import Path

import pytest

from tests.support.core_harness import Core, install_examples


@pytest.mark.parametrize(
    "forgery",
    [
        "INSERT INTO pins VALUES('action', 'evil.md', :digest, 1.0, 'person', 1)",
        "INSERT INTO pins SELECT 'action', 'evil.md', :digest, 1.0, 'person', last_record FROM pins",
        "UPDATE pins SET name='evil.md', digest=:digest WHERE name='get-draft.md'",
        "UPDATE OR IGNORE pins SET digest=:digest WHERE kind='action'",
    ],
)
async def test_a_row_in_the_database_alone_accepts_nothing(home: Path, forgery: str) -> None:
    """An inserted or edited row is not an acceptance."""
    install_examples(home)
    text = (home / "actions" / "get-draft.md").read_text(encoding="utf-8")

    async with Core.open(home) as core:
        assert core.app.library.not_accepted() == ()
    evil = text.replace('"get-draft"', '"evil"').replace("actions/get-draft@", "actions/evil@")
    (home / "actions" / "evil.md").write_text(evil, encoding="utf-8")
    connection = sqlite3.connect(home / "aileron.db")
    with connection:
        digest = hashlib.sha256(evil.encode()).hexdigest()
        if "SELECT" in forgery:
            connection.execute(forgery + " LIMIT 1", {"digest": digest})
        else:
            connection.execute(forgery, {"digest": digest})
    connection.close()
    async with Core.open(home, accept=False) as core:
        assert "evil" not in [action.name for action in core.app.library.ready()]
        assert "evil" in [view.name for view in core.app.library.not_accepted()]
