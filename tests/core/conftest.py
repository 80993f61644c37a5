"""A core of its own for each test that asks for one."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.support.core_harness import Core, Mailbox, install_examples


@pytest.fixture
def mailbox() -> Iterator[Mailbox]:
    """The mail service of the example."""
    with Mailbox() as running:
        yield running


@pytest.fixture
async def core(home: Path, mailbox: Mailbox, request: pytest.FixtureRequest) -> AsyncIterator[Core]:
    """A core on the example and its mailbox; closing it sends nothing."""
    marker = request.node.get_closest_marker("actions")
    install_examples(home, **(marker.kwargs if marker else {}))
    async with Core.open(home, mailbox) as running:
        yield running
        sent = mailbox.state()["sent"]
    assert mailbox.state()["sent"] == sent
