"""Pausing all calls (`P`), and resuming them, when a person says so.

What a pause does: gated calls become pending as always, ungated ones wait here before they are a
row, and nothing that was approved starts. It lives in memory alone, so no console starts paused.
"""

import asyncio
from collections.abc import Generator
from contextlib import contextmanager

from aileron_core.errors import Paused


class PauseSwitch:
    """Whether calls go on.

    Args:
        hold_seconds: how long an ungated call is held at most.
    """

    def __init__(self, *, hold_seconds: float = 25.0) -> None:
        self.hold_seconds = hold_seconds
        self._paused_since: float | None = None
        self._stopping = 0
        self._may_start = asyncio.Event()
        self._may_start.set()

    @property
    def paused_since(self) -> float | None:
        """Return since when a person holds all calls, in epoch seconds; None while they do not."""
        return self._paused_since

    @property
    def is_on(self) -> bool:
        """Return whether nothing may begin now."""
        return not self._may_start.is_set()

    def pause(self, now: float) -> None:
        """Hold all calls from *now* (epoch seconds) on; an earlier beginning stays."""
        self._paused_since = now if self._paused_since is None else self._paused_since
        self._update()

    def resume(self) -> None:
        self._paused_since = None
        self._update()

    @contextmanager
    def block_starts(self) -> Generator[None]:
        """Let nothing begin while an emergency stop is under way."""
        self._stopping += 1
        self._update()
        try:
            yield
        finally:
            self._stopping -= 1
            self._update()

    def _update(self) -> None:
        if self._paused_since is None and not self._stopping:
            self._may_start.set()
        else:
            self._may_start.clear()

    async def wait_until_off(self, seconds: float) -> float:
        """Wait until calls go on; return what is left of *seconds* seconds of waiting.

        Raises:
            Paused: they did not within that time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + seconds
        try:
            async with asyncio.timeout_at(deadline):
                while self.is_on:  # it may be set and cleared again before this task has its turn
                    await self._may_start.wait()
        except TimeoutError:
            raise Paused(
                f"A person has put all calls on hold. This one waited for {self.hold_seconds:g} s and "
                "did not run. Try again later."
            ) from None
        return max(0.0, deadline - loop.time())

    def require_off(self, message: str) -> None:
        """Raise `Paused` with *message* during a pause."""
        if self.is_on:
            raise Paused(message)
