"""A core of its own for each test that asks for one; the example connectors are compiled once."""

from collections.abc import AsyncIterator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import core_harness as harness
from tests.support.frozen_clock import FrozenClock
from tests.support.vaults import cheap_passphrases


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "core: options of the cores that this test opens")


@pytest.fixture(scope="session", autouse=True)
def _the_examples_are_compiled_once() -> Iterator[None]:
    """Hundreds of cores run the same modules."""
    examples = harness.ROOT / "examples" / "connectors"
    with harness.compiled_once(*examples.glob("*/connector.wasm")):
        yield


@pytest.fixture(scope="session", autouse=True)
def _passphrases_are_tried_quickly() -> Iterator[None]:
    """Real vaults cost a sixth of a second for each."""
    with cheap_passphrases():
        yield


@pytest.fixture(scope="session", autouse=True)
def _certificates_are_read_once() -> Iterator[None]:
    """To read all that the world trusts is half of what a test's first request costs."""
    with harness.certificates_read_once():
        yield


@pytest.fixture
def clock() -> FrozenClock:
    """The clock of the cores of a test that asks for it; those of others have the system's."""
    return FrozenClock()


@pytest.fixture
def library(home: Path, request: pytest.FixtureRequest) -> None:
    """The files of the home: the example, and what the mark `actions` adds. Modules have others."""
    marker = request.node.get_closest_marker("actions")
    harness.install_examples(home, **(marker.kwargs if marker else {}))


@pytest.fixture
async def protected(home: Path, library: None) -> None:
    """A home whose files were accepted under a vault's key; no core accepts others unasked."""
    await harness.protected_home(home)


@pytest.fixture
def start(
    home: Path, mailbox: harness.Mailbox, library: None, request: pytest.FixtureRequest
) -> harness.Start:
    """Opens a core on the home, as often as a test likes, with what the mark `core` says."""
    options: dict[str, Any] = {"accept": False} if "protected" in request.fixturenames else {}
    for marker in request.node.iter_markers("core"):
        options = marker.kwargs | options
    if "clock" in request.fixturenames:
        options["clock"] = request.getfixturevalue("clock")
    return partial(harness.Core.open, home, mailbox, **options)


@pytest.fixture
async def core(start: harness.Start, mailbox: harness.Mailbox) -> AsyncIterator[harness.Core]:
    """A core that runs; closing it sends nothing."""
    async with start() as running:
        yield running
        sent = mailbox.state()["sent"]
    assert mailbox.state()["sent"] == sent
