"""A clock for tests."""


class FrozenClock:
    """A clock that stands still until the test moves it.

    Wall time and monotonic time move together unless `step` moves the wall clock alone, as an
    administrator or a suspend does. Safe to read from any thread.

    Args:
        now: seconds since the epoch at which it stands first.
    """

    def __init__(self, now: float = 1_791_468_120.0) -> None:
        self._now = now
        self._monotonic = 1000.0

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._monotonic

    def advance(self, seconds: float) -> None:
        """Let *seconds* pass, which are not negative: `step` sets a wall clock back."""
        self._now += seconds
        self._monotonic += seconds

    def step(self, seconds: float) -> None:
        """Set the wall clock forward or back by *seconds*; monotonic time stands still."""
        self._now += seconds
