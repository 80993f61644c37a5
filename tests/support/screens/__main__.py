"""One screen on fixtures: `python -m tests.support.screens SCREEN`."""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from aileron_core.clock import SystemClock
from aileron_tui.app import AileronApp
from aileron_tui.cli.screen import show as show_app
from aileron_tui.input.commands import View
from aileron_tui.messages import CommandRequested
from tests.support.screens.calls import snapshot
from tests.support.screens.home import problems
from tests.support.screens.port import RecordingPort


def show(view: View, *, first_command: str = "", lock_seconds: float = 0.0) -> int:
    """Show *view* until the person quits; return the exit code.

    *first_command* is asked for at once, as by its key. *lock_seconds*: `AileronApp`'s.
    """

    def begin() -> None:
        if first_command:
            app.post_message(CommandRequested(first_command))

    now = SystemClock().now()
    state = replace(snapshot(now), problems=problems())
    port = RecordingPort(state, answers=True)
    app = AileronApp(port, start_view=view, lock_seconds=lock_seconds, first_frame=begin)
    return asyncio.run(show_app(app))


SCREENS: dict[str, Callable[[], int]] = {
    "waiting": partial(show, "waiting"),
    "activity": partial(show, "activity"),
    "audit": partial(show, "audit"),
    "library": partial(show, "library"),
    "sessions": partial(show, "sessions"),
    "help": partial(show, "waiting", first_command="help"),
    "palette": partial(show, "waiting", first_command="palette"),
    "lock": partial(show, "waiting", lock_seconds=3.0),
}

if __name__ == "__main__":
    if sys.argv[1:] and sys.argv[1] in SCREENS:
        raise SystemExit(SCREENS[sys.argv[1]]())
    raise SystemExit(f"usage: python -m tests.support.screens {{{'|'.join(SCREENS)}}}")
