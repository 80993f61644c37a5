"""What a console's process does before anything else; standard library only."""

import ctypes
import sys

__all__ = ["close_memory"]

_PR_SET_DUMPABLE = 4


def close_memory() -> None:
    """Close our memory and environment to other programs of this user (Linux; DESIGN 3 and 10)."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
