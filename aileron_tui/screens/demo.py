"""One screen on fixtures: `python -m aileron_tui.screens.waiting` and its neighbours."""

from dataclasses import replace

from aileron_core.clock import SystemClock
from aileron_tui.app import AileronApp
from aileron_tui.input.situation import View
from aileron_tui.messages import CommandRequested
from aileron_tui.screens.fixture_home import problems
from aileron_tui.screens.fixture_port import FixturePort
from aileron_tui.screens.fixtures import snapshot

__all__ = ["show"]


def show(view: View, *, first_key: str = "", lock_seconds: float = 0.0) -> int:
    """Show *view* on fixtures until the person quits; return the exit code.

    *first_key*: what is asked for at once, as by its key. *lock_seconds*: `AileronApp`'s.
    """

    def begin() -> None:
        if first_key:
            app.post_message(CommandRequested(first_key))

    now = SystemClock().now()
    state = replace(snapshot(now), problems=problems())
    app = AileronApp(
        FixturePort(state), start_view=view, lock_seconds=lock_seconds, first_frame=begin
    )
    return app.run_to_end()
