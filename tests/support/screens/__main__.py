"""One view on fixtures: `python -m tests.support.screens VIEW`."""

import asyncio
import sys
from dataclasses import replace
from typing import Any

from aileron_core.clock import SystemClock
from aileron_tui.app import AileronApp
from aileron_tui.cli.screen import show
from tests.support.screens.calls import snapshot
from tests.support.screens.home import problems
from tests.support.screens.port import RecordingPort

if __name__ == "__main__":
    view: Any = sys.argv[1]
    state = replace(snapshot(SystemClock().now()), problems=problems())
    app = AileronApp(RecordingPort(state, answers=True), start_view=view)
    raise SystemExit(asyncio.run(show(app)))
