"""Gives the person's terminal to an agent: raw mode while it has it, every mode reset when it stops or ends.

A killed agent has restored nothing, and a hostile one leaves modes set on purpose. Whatever can be
reset without harm is reset always; what would move the cursor, or be printed by an old terminal,
only if the output shows that it was set. What the terminal still answers to the agent's questions is
read away, so that it does not reach the shell.
"""

import contextlib
import errno
import os
import re
import secrets
import select
import signal
import termios
import time
import tty
from collections.abc import Sequence
from typing import Any

_LINGER = 0.1
"""Seconds in which a terminal that was asked nothing may still send what was typed last."""
_PATIENCE = 1.5
"""Seconds in which a terminal has to answer us, over a slow line too, before it is taken for one that does not."""
_QUIET = 0.15
"""Seconds without a byte after which a terminal that has answered in part is taken to have finished."""
_LONGEST = 4.0
_CHUNK = 65536

_CONTROL = re.compile(rb"[\x05\x0e\x1b\x80-\x9f]")
_SPOKEN = re.compile(
    rb"(?:\x1b\[|\xc2\x9b)\?(?P<modes>[0-9;]{1,64})(?P<set>[hl])"
    rb"|(?P<style>\x1b\[[0-9]* q)|(?P<link>\x1b\]8;)|(?P<reset>\x1bc)|\x1b(?P<keypad>[=>])"
    rb"|(?P<push>\x1b\[>[0-9]{1,4}u)|\x1b\[<(?P<pop>[0-9]{0,4})u|(?P<keys>\x1b\[>4(?:;[0-9]{1,4})?m)"
)
_TAIL = 80
"""Bytes of the end of one piece of output that are read again with the next."""
_SCREENS = (1049, 1047, 47)
_ORIGIN = 6
_REPLAYED = (*_SCREENS, 1, 5, 9, 1000, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2031, 2048)
"""Modes that an agent finds again as it left them when it goes on."""
_NORMALLY_SET = (7, 25)
"""Wrapping, and a cursor that is seen."""
_MAX_PUSHED = 16
_OTHER_KEYS_RESET = b"\x1b[>4m"

_KEYS = b"\x1b[<99u\x1b[>4m"
"""The kitty keyboard protocol's stack (each screen has one) and modifyOtherKeys."""
_UNDO = (
    _KEYS
    # Reports of mouse, focus, colours and size; brackets around what is pasted.
    + b"\x1b[?9;1000;1002;1003;1005;1006;1015;1016l\x1b[?1004;2004;2031;2048l"
    # Cursor keys, keypad, reversed screen, insertion, line feeds; wrapping and a cursor that is seen.
    + b"\x1b[?1l\x1b>\x1b[?5l\x1b[4l\x1b[20l\x1b[?69l\x1b[?7h\x1b[?25h"
    # G0 is in use, and it is ASCII; no colour. Then the scrolling region, which would move the cursor.
    + b"\x0f\x1b(B\x1b)B\x1b[0m\x1b7\x1b[r\x1b8"
)


class TerminalState:
    """The terminal modes that the agent's output changed, as far as they matter for the reset."""

    def __init__(self) -> None:
        self._touched = self._style = self._link = False
        self._modes: set[int] = {*_NORMALLY_SET}
        self._keypad = self._keys = b""
        self._pushed: list[bytes] = []
        self._tail = b""

    @property
    def has_control_sequences(self) -> bool:
        """Whether the output held any control sequence: without one the terminal owes no answers."""
        return self._touched

    def scan(self, data: bytes) -> None:
        if not self._touched and not _CONTROL.search(data):
            return
        self._touched = True
        data = self._tail + data
        end = 0
        for match in _SPOKEN.finditer(data):
            end = match.end()
            self._style |= match["style"] is not None
            self._link |= match["link"] is not None
            self._keypad = match["keypad"] or self._keypad
            if match["keys"]:
                self._keys = match["keys"].removeprefix(_OTHER_KEYS_RESET)
            if match["push"]:
                self._pushed = [*self._pushed, match["push"]][-_MAX_PUSHED:]
            elif match["pop"] is not None:
                del self._pushed[-int(match["pop"] or 1) or len(self._pushed) :]
            if match["reset"]:
                self._modes = {*_NORMALLY_SET}
                self._pushed, self._keypad, self._keys = [], b"", b""
            elif match["modes"]:
                numbers = {int(each) for each in match["modes"].split(b";") if each}
                self._modes = (
                    self._modes | numbers if match["set"] == b"h" else self._modes - numbers
                )
        self._tail = data[max(end, len(data) - _TAIL) :]

    def reset_sequences(self) -> bytes:
        # The first ends a string that was not finished, so that the rest is not swallowed by it.
        begin = [b"\x1b\\", b"\x1b]8;;\x1b\\" if self._link else b"", b"\x1b[?2026l", _KEYS]
        begin += [b"\x1b[?%dl" % each for each in (*_SCREENS, _ORIGIN) if each in self._modes]
        return b"".join((*begin, _UNDO, b"\x1b[0 q" if self._style else b""))

    def replay_sequences(self) -> bytes:
        """Return what sets the modes that the agent had set, and had not reset itself before it stopped."""
        modes = [b"\x1b[?%dh" % each for each in _REPLAYED if each in self._modes]
        modes += [b"\x1b[?%dl" % each for each in _NORMALLY_SET if each not in self._modes]
        keypad = b"\x1b=" if self._keypad == b"=" else b""
        return b"".join((*modes, keypad, *self._pushed[-1:], self._keys))


class PersonTerminal:
    """The person's terminal, which the agent has only while the launcher is in its foreground."""

    def __init__(self, ours: Sequence[int], seen: TerminalState) -> None:
        """Use the terminal without taking it.

        Args:
            ours: the standard descriptors that are the terminal; raw mode applies if 0 is one of them.
            seen: the state that the agent's output was scanned into.
        """
        self._ours = ours
        self._seen = seen
        self._before: list[Any] | None = None
        self._raw: list[Any] | None = None

    @property
    def is_taken(self) -> bool:
        return not self._ours or self._before is not None

    def is_as_left(self) -> bool:
        """Return whether the terminal is still, or still not, the agent's, with its modes as they were set."""
        if not self.is_taken or not self._ours:
            return self.is_taken == self.is_foreground()
        with contextlib.suppress(OSError, termios.error):
            return self.is_foreground() and termios.tcgetattr(self._ours[0]) == self._raw
        return False

    def is_foreground(self) -> bool:
        """Return whether the launcher may take the terminal; where there is no job control it always may."""
        if not self._ours:
            return True
        try:
            return os.tcgetpgrp(self._ours[0]) == os.getpgrp()
        except OSError as error:
            return error.errno == errno.ENOTTY  # a terminal, but not this session's

    def take(self, *, discards_input: bool = False) -> None:
        """Put the terminal into raw mode, and set again what the agent had set when it stopped.

        Args:
            discards_input: what was typed until now is not meant for the agent.
        """
        if not self._ours:
            return
        # If the foreground was lost just now, the kernel stops this process here as it would any other.
        ignored = signal.signal(signal.SIGTTOU, signal.SIG_DFL)
        try:
            before = termios.tcgetattr(self._ours[0])
            if self._before is None or before != self._raw:  # else nobody had it meanwhile
                self._before = before
            if 0 in self._ours:
                tty.setraw(0, termios.TCSAFLUSH if discards_input else termios.TCSADRAIN)
            self._raw = termios.tcgetattr(self._ours[0])
            if replayed := self._seen.replay_sequences():
                os.write(self._ours[-1], replayed)
        finally:
            signal.signal(signal.SIGTTOU, ignored)

    def lose(self) -> None:
        """Note that another program has the terminal now: there is nothing to restore."""
        self._before = None

    def give_back(self) -> None:
        """Reset what the agent has set, and restore the modes of before; without effect if not taken."""
        before, self._before = self._before, None
        if before is None or not self.is_foreground():
            return
        # It may be gone by now, and then there is nothing to put right.
        with contextlib.suppress(OSError, termios.error):
            self._put_right(before)

    def _put_right(self, before: list[Any]) -> None:
        if 0 not in self._ours:
            tty.setraw(self._ours[0], termios.TCSAFLUSH)  # answers are not to be echoed
        try:
            if self._seen.has_control_sequences and os.environ.get("TERM", "dumb") != "dumb":
                _settle(self._ours[0], self._ours[-1], self._seen.reset_sequences())
            else:
                time.sleep(_LINGER)
        finally:
            termios.tcsetattr(self._ours[0], termios.TCSAFLUSH, before)


def _settle(reading: int, writing: int, undo: bytes) -> None:
    """Write *undo*, and discard input until the terminal has answered everything it was asked.

    A terminal answers in order, so our own query comes last: for a mode that does not exist, which
    is echoed with its number. Terminals that do not know that query answer the second one, a status
    report.
    """
    number = b"%d" % (20_000 + secrets.randbelow(40_000))
    os.write(writing, undo + b"\x1b[?" + number + b"$p\x1b[5n")
    answers = b""
    begun = time.monotonic()
    until = begun + _PATIENCE
    while (left := until - time.monotonic()) > 0:
        if not select.select([reading], (), (), left)[0]:
            return
        data = os.read(reading, _CHUNK)
        answers = (answers + data)[-_CHUNK:]
        complete = (
            b"\x1b[?" + number + b";" in answers and b"\x1b[0n" in answers.rpartition(number)[2]
        )
        if complete or not data:
            return
        if b"\x1b[0n" in answers:
            until = min(time.monotonic() + _QUIET, begun + _LONGEST)
