"""A home that keeps its history; see `kept`."""

from pathlib import Path

import pytest

from tests.core.history.kept import Kept
from tests.support.core_harness import Mailbox, install_examples


@pytest.fixture
def kept(home: Path, mailbox: Mailbox) -> Kept:
    """The examples and their mailbox, with keys outside of the home."""
    install_examples(home)
    return Kept(home, mailbox)
