"""A core that serves its review page; no test of the gateway may leave a fault in the log."""

import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.core_harness import Core
from tests.support.review_harness import Review, serving


@pytest.fixture(autouse=True)
def quiet(request: pytest.FixtureRequest, caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Fail a test after which the console's log would name a fault."""
    yield
    errors = [each for each in caplog.get_records("call") if each.levelno >= logging.ERROR]
    # The tests beside this file have clients of the routes hang up, which is named there.
    if request.path.parent != Path(__file__).parent:
        assert [each.getMessage() for each in errors] == []


@pytest.fixture
async def review(core: Core) -> AsyncIterator[Review]:
    async with serving(core) as found:
        yield found
