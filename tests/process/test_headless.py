"""The example that embeds the core, as its page has it: shown on a terminal, answered there."""

import subprocess
import sys
from pathlib import Path

import pytest

from examples.mailbox import Mailbox
from tests.support.core_harness import writes
from tests.support.server_harness import ROOT, aileron


@pytest.mark.parametrize(("typed", "status"), [("y\n", "completed"), ("\n", "denied")])
def test_what_the_draft_holds_is_shown_and_the_answer_taken(
    home: Path, mailbox: Mailbox, typed: str, status: str
) -> None:
    aileron("init", "--example", home=home)
    done = subprocess.run(
        [sys.executable, "-m", "examples.headless", str(home), str(mailbox.port)],
        cwd=ROOT, input=typed, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    assert "Subject: 'Q3 numbers'" in done.stdout
    assert f"{status}; " in done.stdout
    assert "problems: 0" in done.stdout
    assert ("POST send" in writes(mailbox)) == (status == "completed")
