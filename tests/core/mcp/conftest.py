"""Consoles for the tests of this folder."""

from collections.abc import Iterator

import pytest

from tests.support.mcp_harness import ThreadConsole


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadConsole]:
    """A console that holds a gated call for two seconds."""
    running = ThreadConsole(tmp_path_factory.mktemp("mcp") / "home", hold_seconds=2.0)
    yield running
    running.stop()


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadConsole]:
    """A console that holds a gated call longer than any of these tests waits."""
    running = ThreadConsole(tmp_path_factory.mktemp("patient") / "home", hold_seconds=50.0)
    yield running
    running.stop()
