"""No test of the gateway may leave a fault in the log, whatever the other side did."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def quiet(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test after which the console's log would name a fault."""
    yield
    errors = [each for each in caplog.get_records("call") if each.levelno >= logging.ERROR]
    # The tests beside this file have clients of the routes hang up, which is named there.
    if request.path.parent != Path(__file__).parent:
        assert [each.getMessage() for each in errors] == []
