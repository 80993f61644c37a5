"""When a key may decide: only for a person at rest before a screen that is drawn.

A pure machine: every method takes the time at which its event happened (monotonic seconds).
It never learns what is decided, only whether the press counts.

*Rest* is the time without input and without change on screen before a press; a press *settles* once
silence follows it; a *burst* is keys too close together to come from a hand. That the item is drawn
whole is found in `screens/reading.py`, and late reading of the terminal in `terminal/driver.py`.
"""

from collections.abc import Hashable

AFTER_SECONDS = 0.02
"""Keys closer than this come from a paste or a script: measured 0 to 2.5 ms there, 30 ms for key repeat."""

_NEVER = float("-inf")


class Arming:
    """Asks for *rest* seconds without input before a press, and `AFTER_SECONDS` of silence after it."""

    def __init__(self, *, rest: float = 0.4) -> None:
        self.rest = rest
        self._drawn: Hashable = None
        self._drawn_at: float | None = None
        self._key_at = _NEVER
        self._focused = True
        self._focus_at = _NEVER
        self._stirred_at = _NEVER
        self._press: tuple[Hashable, float] | None = None
        self._burst = 0
        self._dropped = False

    def drawn(self, token: Hashable, at: float) -> None:
        """*token* names the whole content that now stands on screen; the same token changes nothing."""
        if token != self._drawn or self._drawn_at is None:
            self._drawn, self._drawn_at = token, at
            self._press = None

    def changed(self) -> None:
        """What stands on screen moved, was covered or is about to differ: rest starts anew."""
        self._drawn, self._drawn_at = None, None
        self._press = None

    def key(self, at: float) -> None:
        """Note any key. It cancels a press that has not settled yet."""
        self._burst = self._burst + 1 if self.in_burst(at) else 1
        self.heard()
        self._key_at = max(at, self._key_at)

    def burst(self, at: float) -> None:
        """More than one key came in one read: each key that follows from it is in one burst."""
        self._burst = self._burst if self.in_burst(at) else 0
        self.heard()
        self._key_at = max(at, self._key_at)

    def stirred(self, at: float) -> None:
        """Note other input, from the mouse: a press within `AFTER_SECONDS` of it does not count."""
        self.heard()
        self._stirred_at = max(at, self._stirred_at)

    def heard(self) -> None:
        """Note that input was read, whatever it will turn out to be: it cancels a press that has not settled.

        The time does not matter: where the reader was held up, a byte is read long after it was sent.
        """
        if self._press is not None:
            self._press = None
            self._dropped = True

    def refused(self) -> None:
        """Note that a decide key came in a burst and was dropped unread, so that the person is told."""
        self._dropped = True

    def paste(self, at: float) -> None:
        """A bracketed paste counts as a key and decides nothing."""
        self.key(at)
        self._press = None

    def focus(self, focused: bool, at: float) -> None:
        """The terminal says whether the pane has the focus."""
        self._focused, self._focus_at = focused, at
        self._press = None

    def armed(self, token: Hashable, at: float) -> bool:
        """Return whether a press at *at* on what *token* names would count, so far."""
        return (
            self._focused
            and self._drawn_at is not None
            and token == self._drawn
            and at - self._drawn_at >= self.rest
            and at - self._key_at >= self.rest
            and at - self._focus_at >= self.rest
            and at - self._stirred_at >= AFTER_SECONDS
        )

    def arms_in(self, token: Hashable, at: float) -> float | None:
        """Return the seconds until `armed`, if nothing happens; None where that cannot be."""
        if not self._focused or self._drawn_at is None or token != self._drawn:
            return None
        rested = max(self._drawn_at, self._key_at, self._focus_at) + self.rest
        return max(0.0, max(rested, self._stirred_at + AFTER_SECONDS) - at)

    def press(self, token: Hashable, at: float) -> bool:
        """A decide key went down. Call it in place of `key`. Return whether it may come to count."""
        counts = self.armed(token, at) and self._press is None
        self.key(at)
        if counts:
            self._press = (token, at)
        return counts

    def settled(self, at: float) -> Hashable | None:
        """Return the token that was pressed once `AFTER_SECONDS` have passed in silence, once.

        *at*: when nothing lay unread; to be taken before one looks whether anything does.
        """
        if self._press is None or at - self._press[1] < AFTER_SECONDS:
            return None
        token, _ = self._press
        self._press = None
        return token

    @property
    def unsettled(self) -> bool:
        """A press waits for its silence, or a burst for its end."""
        return self._press is not None or self._dropped

    def in_burst(self, at: float) -> bool:
        """Return whether a key at *at* follows another within `AFTER_SECONDS`."""
        return at - self._key_at < AFTER_SECONDS

    def take_dropped(self, at: float) -> int:
        """Return, once a burst that took a press back has ended, how many keys it had; else 0."""
        if not self._dropped or self.in_burst(at):
            return 0
        self._dropped = False
        return max(self._burst, 1)
