"""The console on fixtures, for tests that look at it in a pseudo-terminal.

    python -I fixture_child.py (SCREEN | CONFIG_FILE)

SCREEN: as `python -m tests.support.screens` takes it. CONFIG_FILE: the settings that it is shown with.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from aileron_core.settings import load_settings
from aileron_tui.cli.screen import console_app, show
from tests.support.screens.__main__ import SCREENS
from tests.support.screens.port import RecordingPort

what = sys.argv[1]
if what in SCREENS:
    raise SystemExit(SCREENS[what]())
port = RecordingPort(answers=True)
app = console_app(port, load_settings(Path(what)), lambda: None)
raise SystemExit(asyncio.run(show(app)))
