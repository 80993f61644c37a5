"""What a console's process does first: closes its memory to other programs, drops variables that could press keys."""

import os
import sys

_PR_SET_DUMPABLE = 4


def close_memory() -> None:
    """Close memory and environment to other programs of this user, on Linux (docs/architecture.md#the-process)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def drop_key_variables() -> None:
    """Drop the variables by which an environment could press keys or load code in the console.

    `TEXTUAL_PRESS` presses keys, `TEXTUAL_DRIVER` imports a module, `TEXTUAL_LOG` and `TEXTUAL_SCREENSHOT`
    write what is on screen to a file, `ESCDELAY` moves keys in time. A folder's own settings (direnv)
    may set them without anybody looking.
    """
    for name in [name for name in os.environ if name.startswith("TEXTUAL") or name == "ESCDELAY"]:
        del os.environ[name]
