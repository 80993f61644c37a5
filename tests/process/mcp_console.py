"""The process of a `ProcessConsole`.

python -I mcp_console.py HOME HOLD_SECONDS
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.support.mcp_harness import be_console

be_console()
