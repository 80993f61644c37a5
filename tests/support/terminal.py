"""A terminal of a test's own: real bytes through a real pty, and the cells that they draw.

It obeys only what the console is known to send. Anything else is kept in `strangers`, and nothing
that stands there came from us. Widths are the test's to choose: terminals differ in them.
"""

import base64
import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import unicodedata
from codecs import getincrementaldecoder
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from rich.cells import get_character_cell_size

from tests.support.forked import forked
from tests.support.processes import eventually

PATIENCE = 60.0
ASKS = "\n> "
"""Ends a question of a console without a screen."""

_TOKEN = re.compile(
    r"\x1b\[(?P<csi>[0-9;:?<=>]*[ -/]*[@-~])"
    r"|\x1b\](?P<osc>[^\x07\x1b]*)(?:\x07|\x1b\\)"
    r"|(?P<text>[^\x00-\x1f\x7f\x80-\x9f]+)"
    r"|(?P<control>.)",
    re.DOTALL,
)
_CLOSED = re.compile(r"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*\x07|[^\[\]])")
"""A sequence that has come whole."""
_OURS = re.compile(
    r"\d*(?:;\d+)*m|\d+;\d+H|\d+G|6n|>\d+u|<u|2[23];2t"
    r"|\?(?:7|25|1000|1003|1004|1006|1015|1016|1049|2004|2026|2048)[hl]|\?20(?:26|48)\$p"
)
"""Colours, places, our question for the cursor, the keyboard, the title put aside, Textual's modes."""


@dataclass
class Cells:
    """What stands on a screen of *width* by *height* cells, no line wrapping, as the console sets it."""

    width: int
    height: int
    width_of: Callable[[str], int] = get_character_cell_size
    strangers: list[str] = field(default_factory=list)
    titles: list[str] = field(default_factory=list)
    copied: list[str] = field(default_factory=list)
    """What the person's keys put on the clipboard."""
    bells: int = 0
    asked: list[tuple[int, int]] = field(default_factory=list)
    """Where the cursor stood at each question for it: column and row, from 1."""

    def __post_init__(self) -> None:
        self._rows = [[" "] * self.width for _ in range(self.height)]
        self._styles = [[""] * self.width for _ in range(self.height)]
        self._x = self._y = 0
        self._style = ""

    @property
    def lines(self) -> list[str]:
        """The rows; the second cell of a wide glyph is nothing."""
        return ["".join(row) for row in self._rows]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def row(self, y: int) -> list[str]:
        return self._rows[y]

    def style(self, x: int, y: int) -> str:
        return self._styles[y][x]

    def feed(self, text: str) -> None:
        """Draw what came; it ends between two sequences."""
        for token in _TOKEN.finditer(text):
            if token["text"] is not None:
                for char in token["text"]:
                    self._put(char)
            elif token["csi"] is not None:
                self._obey(token["csi"], token[0])
            elif token["osc"] is not None:
                self._title(token["osc"], token[0])
            elif token[0] == "\n":
                self._y = min(self._y + 1, self.height - 1)
            elif token[0] == "\r":
                self._x = 0
            elif token[0] == "\x07":
                self.bells += 1
            else:
                self.strangers.append(text[token.start() : token.end() + 12])  # and what it began

    def _title(self, body: str, whole: str) -> None:
        if re.fullmatch(r"2;(?:\(\d+\) )?aileron", body):
            self.titles.append(body[2:])
        elif copied := re.fullmatch(r"52;c;([A-Za-z0-9+/=]*)", body):
            self.copied.append(base64.b64decode(copied[1]).decode())
        elif not re.fullmatch(r"22;[a-z-]+", body):  # the mouse pointer's shape, by Textual
            self.strangers.append(whole)

    def _obey(self, body: str, whole: str) -> None:
        if not _OURS.fullmatch(body):
            self.strangers.append(whole)
        elif body.endswith("m"):
            self._style = "" if body in ("m", "0m") else body[:-1]
        elif body.endswith("H"):
            row, column = map(int, body[:-1].split(";"))
            self._x, self._y = min(column, self.width) - 1, min(row, self.height) - 1
        elif body.endswith("G"):
            self._x = min(int(body[:-1]), self.width) - 1
        elif body == "6n":
            self.asked.append((self._x + 1, self._y + 1))

    def _put(self, char: str) -> None:
        size = self.width_of(char)
        if size == 0:
            # It joins what stands before it, as every terminal that knows it does.
            self._rows[self._y][max(self._x - 1, 0)] += char
            return
        if self._x + size > self.width:  # no wrapping: the last cell is drawn over
            self._x = self.width - size
        for offset in range(size):
            self._rows[self._y][self._x + offset] = char if offset == 0 else ""
            self._styles[self._y][self._x + offset] = self._style
        self._x = min(self._x + size, self.width - 1)


def stop_process(pid: int) -> None:
    """Send SIGSTOP and wait until every thread stands still: one that is about to run still does."""
    os.kill(pid, signal.SIGSTOP)

    def states() -> set[str]:
        tasks = Path(f"/proc/{pid}/task").glob("*/stat")
        return {each.read_text().rpartition(")")[2].split()[0] for each in tasks}

    eventually(lambda: states() == {"T"})


_REFUSED = ("Nothing was decided.", "Too soon", "The screen changed as you")
"""What a console says that read a key late, of one that was pressed at rest."""


class Pty:
    """A program on a pseudo-terminal; what it writes is kept whole and drawn into `cells`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        size: tuple[int, int] = (120, 36),
        environment: Mapping[str, str] | None = None,
        answers: bool = False,
        width_of: Callable[[str], int] = get_character_cell_size,
        cwd: str | None = None,
    ) -> None:
        """Start *command*; *answers*: say where the cursor is when asked, as terminals do."""
        self.master, slave = pty.openpty()
        self._resize(size)
        # Test runners pin a size and looks of their own.
        foreign = ("COLUMNS", "LINES", "NO_COLOR", "TMUX")
        given = {k: v for k, v in os.environ.items() if k not in foreign}
        given |= {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LANG": "C.UTF-8"}
        given["COLORFGBG"] = "15;0"  # so that nobody asks for the ground and waits for an answer
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.process = forked(
            list(command),
            env={**given, **(environment or {})},
            start_new_session=True,
            cwd=cwd,
            **dict.fromkeys(("stdin", "stdout", "stderr"), slave),
        )
        self.raw = b""
        self.cells = Cells(*size, width_of=width_of)
        self._decode = getincrementaldecoder("utf-8")().decode  # strict: ours is always UTF-8
        self._pending = ""
        self._answers = answers
        self._answered = 0

    def _resize(self, size: tuple[int, int]) -> None:
        packed = struct.pack("HHHH", size[1], size[0], 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, packed)

    def resize(self, size: tuple[int, int]) -> None:
        self.cells = Cells(*size, width_of=self.cells.width_of, strangers=self.cells.strangers)
        self._answered = 0
        self._resize(size)
        os.kill(self.process.pid, signal.SIGWINCH)

    def read(self, seconds: float = 0.2) -> bool:
        ready, _, _ = select.select([self.master], [], [], seconds)
        if not ready:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:  # EIO: the program has ended
            return False
        self.raw += data
        self._draw(data)
        return bool(data)

    def _draw(self, data: bytes) -> None:
        whole = self._pending + self._decode(data)
        opened = whole.rfind("\x1b")
        end = opened if opened >= 0 and not _CLOSED.match(whole, opened) else len(whole)
        self._pending = whole[end:]
        self.cells.feed(whole[:end])
        if self._answers:
            for x, y in self.cells.asked[self._answered :]:
                os.write(self.master, f"\x1b[{y};{x}R".encode())
            self._answered = len(self.cells.asked)

    def until(self, holds: Callable[[], bool], what: str = "") -> None:
        deadline = monotonic() + PATIENCE
        while not holds():
            shown = f"{self.cells.text}\n{self.raw[-500:]!r}"
            assert monotonic() < deadline, f"never came: {what}\n{shown}"
            self.read(0.1)

    def shows(self, text: str) -> None:
        self.until(lambda: text in self.cells.text, text)

    def drew(self, text: str, since: int) -> bool:
        """Return whether *text* was drawn after the first *since* bytes; it may be gone again."""
        return text.encode() in self.raw[since:]

    def settle(self, seconds: float) -> None:
        end = monotonic() + seconds
        while (left := end - monotonic()) > 0:
            if not self.read(left) and self.process.poll() is not None:
                return

    def type(self, keys: bytes) -> None:
        os.write(self.master, keys)

    def answer(self, prompt: str, text: str) -> None:
        self.shows(prompt)
        self.type(text.encode() + b"\n")

    def text_at_end(self, code: int = 0) -> str:
        """Wait until the program ends with *code*, and return what then stands on the screen."""
        assert self.ended() == code, self.cells.text
        self.close()
        return self.cells.text

    def press(self, key: bytes, done: Callable[[], bool], what: str, rest: float = 0.7) -> float:
        """Press *key* after a rest until it is *done*, and return when it was pressed, by the monotonic clock.

        What a busy console reads at once is a burst: it is pressed again where the console says that it
        did not count, or nothing for long.
        """
        at = monotonic()
        for _ in range(16):
            self.settle(rest)
            if done():
                return at
            since, at = len(self.raw), monotonic()
            self.type(key)
            while not done() and monotonic() < at + 5:
                if any(self.drew(each, since) for each in _REFUSED):
                    break
                self.read(0.1)
            if done():
                return at
        raise AssertionError(f"never came: {what}\n{self.cells.text}")

    def ended(self) -> int:
        deadline = monotonic() + PATIENCE
        while self.process.poll() is None:
            assert monotonic() < deadline, self.cells.text
            self.read(0.1)
        while self.read(0.05):
            pass
        return self.process.wait()

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


class PlainText:
    """What a console without a screen writes to its `pty`, read from the top; what was read once is not read again."""

    pty: Pty
    mark = 0
    """How far its words were read."""

    @property
    def output(self) -> str:
        """Everything that was written so far, as lines."""
        return self.pty.raw.decode(errors="ignore").replace("\r\n", "\n").replace("\a", "")

    def read_until(self, text: str) -> str:
        """Wait for *text* behind what was read already; return what was written up to its end."""
        self.pty.until(lambda: text in self.output[self.mark :], text)
        begin, self.mark = self.mark, self.output.index(text, self.mark) + len(text)
        return self.output[begin : self.mark]

    def asked(self) -> str:
        """Wait for the next question; return what stands before it."""
        return self.read_until(ASKS)

    def answer(self, line: str) -> None:
        self.pty.type(line.encode() + b"\n")


def joins_nothing(char: str) -> int:
    """A terminal on which modifiers, vowel signs and flags have cells of their own."""
    size = get_character_cell_size(char)
    if 0x1F1E6 <= ord(char) <= 0x1F3FF:
        return 2
    return 1 if unicodedata.category(char) == "Mc" or 0x1160 <= ord(char) <= 0x11FF else size
