"""Whether the terminal's background is light, asked of the terminal itself before anything is drawn.

OSC 11 asks for the colour. It is followed by a question that every terminal answers (DA1), so that
one that does not know the first is not waited for.
"""

import os
import re
import select
import termios
import tty
from time import monotonic
from typing import Final

_SECONDS: Final = 0.25
_QUESTION: Final = b"\x1b]11;?\x1b\\\x1b[c"
_GROUND: Final = re.compile(
    rb"\x1b\]11;rgba?:([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})/([0-9a-fA-F]{1,4})"
)
_LAST: Final = re.compile(rb"\x1b\[\?[0-9;]*c")
_MOST: Final = 4096
LATE_REPLY: Final = re.compile(
    r"\x1b\]11;rgba?:[0-9a-fA-F/]{1,24}(?:\x07|\x1b\\)|\x1b\[\?[0-9;]{0,32}c"
)
"""The answers, where they come after all: no key of anybody's."""


def background_is_light(source: int, target: int, seconds: float = _SECONDS) -> bool | None:
    """Ask the terminal; return None where it does not say.

    What was typed ahead is dropped: it was meant for the program before.
    """
    if not (os.isatty(source) and os.isatty(target)):
        return None
    try:
        before = termios.tcgetattr(source)
        tty.setcbreak(source, termios.TCSAFLUSH)
        try:
            os.write(target, _QUESTION)
            answer = _answer(source, seconds)
        finally:
            termios.tcsetattr(source, termios.TCSAFLUSH, before)
    except (OSError, termios.error):
        return None  # it hung up, or cannot be asked
    match = _GROUND.search(answer)
    if match is None:
        return None
    red, green, blue = (int(part, 16) / (16 ** len(part) - 1) for part in match.groups())
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.5


def _answer(source: int, seconds: float) -> bytes:
    deadline, read = monotonic() + seconds, b""
    while _LAST.search(read) is None and len(read) < _MOST:
        ready, _, _ = select.select([source], [], [], max(0.0, deadline - monotonic()))
        if not ready:
            break
        data = os.read(source, 1024)
        if not data:
            break
        read += data
    return read
