"""No test of augment mode may leave a fault in the log, whatever its model and agent did."""

import logging
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test after which the console's log would name a fault."""
    yield
    errors = [each for each in caplog.get_records("call") if each.levelno >= logging.ERROR]
    # A mailbox that loses an answer, as a test had it do, says so on its own thread.
    assert [each.getMessage() for each in errors if each.threadName != "mailbox"] == []
