"""What a piece of work costs, without a clock: a busy machine counts as an idle one does."""

import sys
from collections.abc import Callable


def calls(work: Callable[[], object]) -> int:
    """Count the function calls, C's too, that *work* makes."""
    count = 0

    def on_event(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(on_event)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count
