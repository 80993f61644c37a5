"""The console on fixtures, for tests that look at it in a pseudo-terminal.

    python -I fixture_child.py CONFIG_FILE

CONFIG_FILE: the settings that it is shown with.
"""

import asyncio
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from aileron_core.settings import load_settings
from aileron_tui.cli.screen import console_app, show
from tests.support.screens.port import RecordingPort

app = console_app(RecordingPort(answers=True), load_settings(Path(sys.argv[1])), lambda: None)
raise SystemExit(asyncio.run(show(app)))
