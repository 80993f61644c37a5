"""Holding all calls at a person's word, and letting them go on.

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
        self._since: float | None = None
        self._stopping = 0
        self._going_on = asyncio.Event()
        self._going_on.set()

    @property
    def since(self) -> float | None:
        """Return since when a person holds all calls, in epoch seconds; None while they do not."""
        return self._since

    @property
    def is_on(self) -> bool:
        """Return whether nothing may begin now."""
        return not self._going_on.is_set()

    def begin(self, now: float) -> None:
        """Hold all calls from *now* (epoch seconds) on; an earlier beginning stays."""
        self._since = now if self._since is None else self._since
        self._judge()

    def end(self) -> None:
        self._since = None
        self._judge()

    @contextmanager
    def while_stopping(self) -> Generator[None]:
        """Let nothing begin while a person's word to stop everything is carried out."""
        self._stopping += 1
        self._judge()
        try:
            yield
        finally:
            self._stopping -= 1
            self._judge()

    def _judge(self) -> None:
        if self._since is None and not self._stopping:
            self._going_on.set()
        else:
            self._going_on.clear()

    async def wait_until_off(self, left: float) -> float:
        """Wait until calls go on; return what is left of *left* seconds of waiting.

        Raises:
            Paused: they did not within that time.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + left
        try:
            async with asyncio.timeout_at(deadline):
                while self.is_on:  # it may be set and cleared again before this task has its turn
                    await self._going_on.wait()
        except TimeoutError:
            raise Paused(
                f"A person holds all calls. This one waited for {self.hold_seconds:g} s and did not "
                "run. Try again later."
            ) from None
        return max(0.0, deadline - loop.time())

    def require_answers(self) -> None:
        """Let no yes be given that would run something later, when the person looks elsewhere.

        Raises:
            Paused: all calls are held.
        """
        if self.is_on:
            raise Paused("All calls are held, so nothing was decided. Let them go on first.")

    def require_starts(self) -> None:
        """Let no approved run begin.

        Raises:
            Paused: all calls are held.
        """
        if self.is_on:
            raise Paused(
                "All calls were held before it began. Nothing ran on your yes; answer again."
            )
