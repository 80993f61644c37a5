"""When a key may decide: only for a person at rest before a screen that is drawn.

A pure machine: every method takes the time at which its event happened (monotonic seconds).
It never learns what is decided, only whether the press counts.

*Rest* is the time without input and without change on screen before a press; a press *settles* once
silence follows it; a *burst* is keys too close together to come from a hand. Whether the item is drawn
whole is known to `pages/reading.py`, and late reading of the terminal to `terminal/driver.py`.
"""

from collections.abc import Hashable
from typing import Literal

AFTER_SECONDS = 0.02
"""Keys closer than this come from a paste or a script: measured 0 to 2.5 ms there, 30 ms for key repeat."""

Obstacle = Literal["unfocused", "refocused", "drawn", "key", "mouse"]
"""Why a press does not count: the pane has no focus or has just got it; what was drawn, another key or
the mouse came too shortly before."""

_NEVER = float("-inf")


class Arming:
    """Asks for *rest* seconds without input before a press, and `AFTER_SECONDS` of silence after it."""

    def __init__(self, *, rest: float = 0.4) -> None:
        self.rest_seconds = rest
        self._drawn: Hashable = None
        self._drawn_at: float | None = None
        self._drawn_before: Hashable = None
        """What was on screen before what is there now."""
        self._key_at = _NEVER
        self._focused = True
        self._focus_at = _NEVER
        self._mouse_at = _NEVER
        self._press: tuple[Hashable, float] | None = None
        self._burst = 0
        self._dropped = False
        self._lost: Obstacle | None = None

    def on_drawn(self, version: Hashable, at: float) -> None:
        """*version* names all that is on screen now; the same version again changes nothing."""
        if version != self._drawn or self._drawn_at is None:
            if version != self._drawn:
                self._drawn_before = self._drawn
            self._drawn, self._drawn_at = version, at
            self._lose_press("drawn")

    def change_before(self, version: Hashable) -> tuple[Hashable, Hashable]:
        """Return the last two different versions that were drawn, the later one *version* where it is to come."""
        if version != self._drawn:
            return self._drawn, version
        return self._drawn_before, self._drawn

    def reset(self) -> None:
        """The screen's content moved, was covered or is about to change: rest starts over."""
        self._drawn_at = None
        self._lose_press("drawn")

    def _lose_press(self, obstacle: Obstacle) -> None:
        """Take back a press that has not settled; `take_lost_press` reports it."""
        if self._press is not None:
            self._press, self._lost = None, obstacle

    def take_lost_press(self) -> Obstacle | None:
        """Return once why a press was taken back after it had counted; None without one."""
        obstacle, self._lost = self._lost, None
        return obstacle

    def on_key(self, at: float) -> None:
        """Note any key. It cancels a press that has not settled yet."""
        self._burst = self._burst + 1 if self.in_burst(at) else 1
        self.on_input()
        self._key_at = max(at, self._key_at)

    def on_burst(self, at: float) -> None:
        """More than one key came in one read: each key that follows from it is in one burst."""
        self._burst = self._burst if self.in_burst(at) else 0
        self.on_input()
        self._key_at = max(at, self._key_at)

    def on_mouse(self, at: float) -> None:
        """Note other input, from the mouse: a press within `AFTER_SECONDS` of it does not count."""
        self.on_input()
        self._mouse_at = max(at, self._mouse_at)

    def on_input(self) -> None:
        """Note that input was read, whatever it will turn out to be: it cancels a press that has not settled.

        It takes no time: a delayed reader reads a byte long after it was sent.
        """
        if self._press is not None:
            self._press = None
            self._dropped = True

    def on_key_dropped(self) -> None:
        """Note that a decide key came in a burst and was dropped: `take_dropped_keys` reports it."""
        self._dropped = True

    def on_paste(self, at: float) -> None:
        """A bracketed paste counts as a key and decides nothing."""
        self.on_key(at)

    def on_focus(self, focused: bool, at: float) -> None:
        self._focused, self._focus_at = focused, at
        self._lose_press("refocused" if focused else "unfocused")

    @property
    def focused(self) -> bool:
        """Whether the pane has the focus, as far as the terminal tells."""
        return self._focused

    def is_armed(self, version: Hashable, at: float) -> bool:
        """Return whether a press at *at* on what *version* names would count, so far."""
        return self.obstacle(version, at) is None

    def obstacle(self, version: Hashable, at: float) -> Obstacle | None:
        """Return what came last of all that keeps a press at *at* on *version* from counting; None where nothing does."""
        if not self._focused:
            return "unfocused"
        if self._drawn_at is None or version != self._drawn:
            return "drawn"
        causes: tuple[tuple[float, Obstacle], ...] = (
            (self._drawn_at, "drawn"),
            (self._focus_at, "refocused"),
            (self._key_at, "key"),
        )
        latest, obstacle = max(causes, key=lambda cause: cause[0])
        if at - latest < self.rest_seconds:
            return obstacle
        return "mouse" if at - self._mouse_at < AFTER_SECONDS else None

    def seconds_until_armed(self, version: Hashable, at: float) -> float | None:
        """Return the seconds until `is_armed`, if nothing happens; None where that cannot be."""
        if not self._focused or self._drawn_at is None or version != self._drawn:
            return None
        rested = max(self._drawn_at, self._key_at, self._focus_at) + self.rest_seconds
        return max(0.0, max(rested, self._mouse_at + AFTER_SECONDS) - at)

    def press(self, version: Hashable, at: float) -> bool:
        """A key that decides was pressed. Call it in place of `on_key`. Return whether it may come to count."""
        counts = self.is_armed(version, at) and self._press is None
        self.on_key(at)
        if counts:
            self._press = (version, at)
        return counts

    def take_settled_press(self, at: float) -> Hashable | None:
        """Return the version that was pressed once `AFTER_SECONDS` have passed in silence, once.

        *at*: a time at which no input was unread; take it before checking for unread input.
        """
        if self._press is None or at - self._press[1] < AFTER_SECONDS:
            return None
        version, _ = self._press
        self._press = None
        return version

    @property
    def awaits_silence(self) -> bool:
        """A press waits to see whether silence follows it, or a burst has not ended yet."""
        return self._press is not None or self._dropped or self._lost is not None

    def in_burst(self, at: float) -> bool:
        """Return whether a key at *at* follows another within `AFTER_SECONDS`."""
        return at - self._key_at < AFTER_SECONDS

    def take_dropped_keys(self, at: float) -> int:
        """Return, once a burst that took a press back has ended, how many keys it had; else 0."""
        if not self._dropped or self.in_burst(at):
            return 0
        self._dropped = False
        return max(self._burst, 1)
