"""The acceptance records of a home, for commands: with or without a console."""

from contextlib import closing

from aileron_core.home.layout import Home
from aileron_core.library.acceptance import AcceptanceRecord, load_records
from aileron_core.library.removal import read_notes, removed_by_note
from aileron_core.storage.open import open_reader


def load_acceptances(home: Home) -> list[AcceptanceRecord]:
    """Return the acceptance records of *home*, without those of files that a command removed since.

    Raises:
        HomeError: the database cannot be used.
    """
    if not home.database.exists():
        return []  # no console ever ran here
    with closing(open_reader(home.database)) as connection:
        found = load_records(connection)
    gone = removed_by_note(found, read_notes(home.path))
    return [record for record in found if record not in gone]
