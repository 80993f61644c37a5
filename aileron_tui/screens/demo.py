"""One screen on fixtures: `python -m aileron_tui.screens.waiting` and its neighbours."""

from aileron_tui.app import AileronApp
from aileron_tui.presenters.situation import View
from aileron_tui.screens.fixture_port import FixturePort

__all__ = ["show"]


def show(view: View) -> int:
    """Show *view* on fixtures until the person quits; return the exit code."""
    return AileronApp(FixturePort(), start_view=view).run_to_end()
