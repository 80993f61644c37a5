"""What several tests of runs share: the service that scripted guests ask, and how far a restart looks back."""

from collections.abc import Iterator

import pytest

from aileron_core.runs import run_table
from tests.support.scripted_guest import ScriptedService, scripted_service


@pytest.fixture
def service() -> Iterator[ScriptedService]:
    with scripted_service() as running:
        yield running


@pytest.fixture
def three_are_recent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A console that starts is given the newest three calls that are over, and not the newest fifty."""
    recently_ended = run_table.recently_ended
    monkeypatch.setattr(run_table, "recently_ended", lambda c, _limit: recently_ended(c, 3))
