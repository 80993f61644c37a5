"""Gives the person's terminal to an agent: raw mode while it runs, every mode reset afterwards.

A killed agent has restored nothing, and a hostile one leaves modes set on purpose. Whatever can be
reset without harm is reset always; what would move the cursor, or be printed by an old terminal,
only if the output shows that it was set. What the terminal still answers to the agent's questions is
read away, so that it does not reach the shell.
"""

import contextlib
import os
import re
import secrets
import select
import termios
import time
import tty
from collections.abc import Generator, Sequence
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
    rb"|(?P<style>\x1b\[[0-9]* q)|(?P<link>\x1b\]8;)|(?P<reset>\x1bc)"
)
_TAIL = 80
"""Bytes of the end of one piece of output that are read again with the next."""
_SCREENS = (1049, 1047, 47)
_ORIGIN = 6

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
        self._modes: set[int] = set()
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
            if match["reset"]:
                self._modes.clear()
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


@contextlib.contextmanager
def raw_terminal(ours: Sequence[int], seen: TerminalState) -> Generator[None, None, None]:
    """Put the person's terminal into raw mode, and restore it afterwards.

    Args:
        ours: the standard descriptors that are the terminal; raw mode applies if 0 is one of them.
        seen: the state that the agent's output was scanned into.
    """
    if not ours:
        yield
        return
    before = termios.tcgetattr(ours[0])
    if 0 in ours:
        tty.setraw(0, termios.TCSAFLUSH)
    try:
        yield
    finally:
        # It may be gone by now, and then there is nothing to put right.
        with contextlib.suppress(OSError, termios.error):
            _put_right(ours, before, seen)


def _put_right(ours: Sequence[int], before: list[Any], seen: TerminalState) -> None:
    if 0 not in ours:
        if os.tcgetpgrp(ours[0]) != os.getpgrp():
            return  # in the background: another program has the terminal now
        tty.setraw(ours[0], termios.TCSAFLUSH)  # answers are not to be echoed
    try:
        if seen.has_control_sequences and os.environ.get("TERM", "dumb") != "dumb":
            _settle(ours[0], ours[-1], seen.reset_sequences())
        else:
            time.sleep(_LINGER)
    finally:
        termios.tcsetattr(ours[0], termios.TCSAFLUSH, before)


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
