"""A terminal that is written and read line by line: no screen of its own, no cursor that moves.

Between two questions it listens in silence, so that what is typed ahead is seen and thrown away. More
than one line at once is no answer.
While it asks, the kernel edits the line, as every program for dumb terminals and screen readers does.
"""

import os
import select
import termios
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

from aileron_core.clock import Clock
from aileron_core.vault.secret import Secret

TICK_SECONDS = 0.5
"""How long a wait lasts at most: a signal may have been handed to another thread, which wakes nothing."""
LINE_BYTES = 65536
_INPUT, _LOCAL, _CONTROLS = 0, 3, 6
"""Places in what `tcgetattr` returns."""
_COLUMNS = 80


class EndOfInput(Exception):
    """The person ended the input, or the terminal is gone."""


class SeveralLines(Exception):
    """More came than one line, or a line without its end: it decides nothing."""


class LineTerminal:
    """The terminal of two file descriptors; as a context it is given back as it was."""

    def __init__(
        self, source: int, target: int, clock: Clock, *, silence: float, charset: str = ""
    ) -> None:
        """Read *source* and write *target*.

        Args:
            silence: seconds without input behind a line, without which it is not one line.
            charset: the encoding, empty for UTF-8.
        """
        self._silence = silence
        self._source, self._target, self._clock = source, target, clock
        self._encoding = charset or "utf-8"
        self._before = termios.tcgetattr(source)
        self._wakes, self._waker = os.pipe()
        for end in (self._wakes, self._waker):
            os.set_blocking(end, False)

    def __enter__(self) -> Self:
        """Begin in silence."""
        self._be(quiet=True, drop=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Restore the terminal; discard what was typed for the console, which is no command for the shell."""
        with suppress(termios.error, OSError):  # it may be gone
            termios.tcsetattr(self._source, termios.TCSAFLUSH, self._before)

    @property
    def columns(self) -> int:
        """How many columns the terminal has, 80 where it does not say; at least 40."""
        try:
            columns = os.get_terminal_size(self._target).columns
        except OSError:
            columns = 0
        return max(40, columns or _COLUMNS)

    def wake(self) -> None:
        """End the present wait. For any thread, and for handlers of signals."""
        with suppress(BlockingIOError):  # it is full of this already
            os.write(self._waker, b"!")

    def send(self, text: str) -> None:
        """Write *text* and wait until it has left.

        Raises:
            EndOfInput: the terminal is gone.
        """
        left = text.encode(self._encoding, "replace")
        try:
            while left:
                left = left[os.write(self._target, left) :]
            termios.tcdrain(self._target)
        except (OSError, termios.error) as gone:
            raise EndOfInput from gone

    def wait_quietly(self, seconds: float, interrupted: Callable[[], bool]) -> bool:
        """Wait until *seconds* have passed without a key; return whether nothing interrupted.

        Raises:
            EndOfInput: the terminal is gone.
        """
        self._be(quiet=True)
        until = self._clock.monotonic() + seconds
        while (left := until - self._clock.monotonic()) > 0:
            came = self._comes(left)
            if interrupted():
                return False
            if came:
                self._take()
                until = self._clock.monotonic() + seconds
        return True

    def read_line(self, prompt: str, interrupted: Callable[[], bool]) -> str | None:
        """Ask with *prompt* and return the line that is typed after it; None where interrupted.

        Raises:
            EndOfInput: the person ended the input, or the terminal is gone.
            SeveralLines: more came than one line.
        """
        typed = self._ask(prompt, interrupted)
        # Not every blank: `ctrl+k` types one of those that Python knows.
        return typed.decode(self._encoding, "replace").strip(" \t\r\n") if typed else None

    def read_secret(self, prompt: str, interrupted: Callable[[], bool]) -> Secret | None:
        """Ask with *prompt* and return the line that is typed unseen; None where interrupted, or not one line.

        Raises:
            EndOfInput: the person ended the input, or the terminal is gone.
        """
        try:
            typed = self._ask(prompt, interrupted, hidden=True)
        except SeveralLines:
            return None
        return Secret(typed.rstrip(b"\r\n")) if typed else None

    def _ask(
        self, prompt: str, interrupted: Callable[[], bool], *, hidden: bool = False
    ) -> bytes | None:
        """Return the one line that is typed after *prompt*, with its end."""
        self._be(quiet=False, drop=True, hidden=hidden)
        self.send(prompt)
        try:
            came = False
            while not came:
                came = self._comes(TICK_SECONDS)
                if interrupted():
                    self.send("\n")  # leave the line of the question
                    return None
            typed = self._take()
        finally:
            self._be(quiet=True)
        if not typed.endswith(b"\n") or self._more():
            raise SeveralLines
        return typed

    def _more(self) -> bool:
        """Return whether anything follows at once; it is thrown away."""
        more = False
        while self._comes(self._silence, woken=False):
            self._take()
            more = True
        return more

    def _comes(self, seconds: float, *, woken: bool = True) -> bool:
        """Wait for input, or to be *woken*; return whether there is input."""
        watched = [self._source, self._wakes] if woken else [self._source]
        ready, _, _ = select.select(watched, [], [], min(seconds, TICK_SECONDS))
        if self._wakes in ready:
            with suppress(BlockingIOError):
                os.read(self._wakes, LINE_BYTES)
        return self._source in ready

    def _take(self) -> bytes:
        try:
            data = os.read(self._source, LINE_BYTES)
        except OSError as gone:
            raise EndOfInput from gone
        if not data:
            raise EndOfInput
        return data

    def _be(self, *, quiet: bool, drop: bool = False, hidden: bool = False) -> None:
        """Read without echo, byte by byte, or have the kernel edit and echo a line; *hidden*: only its end.

        *drop*: what was typed until now is thrown away, in the same moment.
        """
        wanted = list(self._before)
        wanted[_INPUT] |= termios.ICRNL
        editing = termios.ICANON | termios.ECHO | termios.ECHOE | termios.ECHOK
        controls = list(wanted[_CONTROLS])
        controls[termios.VSUSP] = b"\0"  # a stopped console would keep every agent waiting
        if quiet:
            wanted[_LOCAL] &= ~(editing | termios.ECHONL)
            controls[termios.VMIN], controls[termios.VTIME] = 1, 0
        else:
            wanted[_LOCAL] |= editing
        if hidden:
            wanted[_LOCAL] &= ~(termios.ECHO | termios.ECHOE | termios.ECHOK)
            wanted[_LOCAL] |= termios.ECHONL
        wanted[_LOCAL] |= termios.ISIG
        wanted[_CONTROLS] = controls
        when = termios.TCSAFLUSH if drop else termios.TCSANOW
        try:
            termios.tcsetattr(self._source, when, wanted)
        except termios.error as gone:
            raise EndOfInput from gone
