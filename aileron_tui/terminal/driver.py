"""The terminal: what comes from it, byte for byte, and when it has drawn what was written.

Textual's own reader ends the program on a byte that is not UTF-8 and reports keys alone. Whether a
press was a person's is to be judged by everything that came with it: half an escape sequence, the
mouse, the start of a paste, a read that was 0.2 s late.
"""

import os
import re
import select
import sys
from codecs import getincrementaldecoder
from collections import deque
from collections.abc import Callable, Set
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Any, Literal, TextIO, cast

from rich.cells import cell_len, split_graphemes
from textual._time import get_time
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import CursorPosition
from textual.message import Message

from aileron_tui.terminal.background_color import LATE_REPLY

InputKind = Literal["reply", "mouse", "key", "late", "burst"]

_READ = 4096
_TICK_SECONDS = 0.1
"""How often the parser is asked for an escape key that nothing followed."""
_HELD_UP_SECONDS = _TICK_SECONDS + 0.1
"""What is read so long after the terminal was last found empty was not read when it came."""
_TAGS = 9
SILENT_SECONDS = 10.0
"""A terminal that once answered and has not for so long is taken for one that does not answer."""
_UNANSWERED = 8
"""After so many questions without any answer no more are asked."""

_REPLY = re.compile(r"\x1b\[1;(\d+)R")
"""The terminal's answer to where its cursor is, in the row in which it is asked."""
_MOUSE = re.compile(r"(?:\x1b\[<\d+;-?\d+;-?\d+[Mm])+")
_KEY = re.compile(r".|\x1b\[[0-9;:?<]*[ -/]*[@-~]|\x1bO[ -~]", re.DOTALL)
_PASTE_BEGINS, _PASTE_ENDS = "\x1b[200~", "\x1b[201~"
_PASTE_SECONDS = 2.0
"""A paste that went silent for so long has no end: what comes now is typed again."""
_UNSURE = re.compile(
    "[^\x00-~"
    "\u00a1-\u00ac\u00ae-\u02ff\u0370-\u0482\u048a-\u052f"  # Latin, Greek, Cyrillic
    "\u05d0-\u05ea\u0620-\u064a"  # Hebrew and Arabic letters
    "\u2010-\u2027\u2030-\u205e\u20a0-\u20bf\u2190-\u22ff"  # punctuation, currencies, arrows, mathematics
    "\u2500-\u25f7\u2713\u2717"  # boxes, blocks, shapes, our two ticks
    "\u3001-\u3029\u3041-\u3096\u30a1-\u30fa\u4e00-\u9fff\uac00-\ud7a3\uff01-\uff60"  # East Asia
    "]"
)
"""Every character but those of one known width; a list of sure ones ages better than one of doubts."""

_CONTROL = re.compile(r"(\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b.|\n)")
_MOVE = re.compile(r"\x1b\[\d+;(\d+)H")


def split_replies(text: str, asked: Set[int]) -> tuple[list[int], str]:
    """Return what of *text* answers a question, as the columns it names, and what was typed.

    Answers come while somebody types or pastes; they must neither end nor lengthen either.

    Args:
        asked: the columns in which the terminal was asked and has not answered; it says nothing else
            unasked, so anything else that looks like an answer was typed.
    """
    answers: list[int] = []

    def take(match: re.Match[str]) -> str:
        column = int(match[1])
        if column not in asked:
            return match[0]
        answers.append(column)
        return ""

    return answers, _REPLY.sub(take, text)


def input_kind(typed: str, *, whole: bool = True, answers: bool = False) -> InputKind:
    """Return what one read gave: answers alone, the mouse alone, one key, or more at once.

    Args:
        typed: what was read, without answers.
        whole: it does not end within a character.
    """
    if not typed:
        return "reply" if answers and whole else "burst"
    if _MOUSE.fullmatch(typed):
        return "mouse"
    single = whole and typed not in (_PASTE_BEGINS, _PASTE_ENDS) and _KEY.fullmatch(typed)
    return "key" if single else "burst"


@dataclass
class InputReceived(Message, bubble=False):
    """One read from the terminal gave something; it comes before the events made of it."""

    kind: InputKind


class TerminalGone(Message, bubble=False):
    """The terminal hung up: nothing can be read from it any more."""


class _Parser:
    """Textual's parser, made anew after bytes that it fails on and after a paste without an end."""

    def __init__(self, *, debug: bool) -> None:
        self._debug = debug
        self._parser = XTermParser(debug)
        self._tail = ""
        self._pasting = False
        self._came_at = 0.0

    def take(self, text: str, at: float) -> list[Message]:
        """Return the events that *text*, read at *at* (monotonic seconds), completes."""
        seen = self._tail + text
        begins, ends = seen.rfind(_PASTE_BEGINS), seen.rfind(_PASTE_ENDS)
        if begins != ends:
            self._pasting = begins > ends
        self._tail, self._came_at = seen[1 - len(_PASTE_BEGINS) :], at
        return self._safely(lambda: list(self._parser.feed(text)))

    def tick(self, at: float) -> list[Message]:
        """Return the events that the time completes: an escape key that nothing followed.

        They have the time at which it came. What came in one breath with another key is no answer to
        what the console said about that.
        """
        if self._pasting and at - self._came_at > _PASTE_SECONDS:
            self._anew()
        events = self._safely(lambda: list(self._parser.tick()))
        for event in events:
            event.time = self._came_at
        return events

    def _safely(self, work: Callable[[], list[Message]]) -> list[Message]:
        try:
            return work()
        except Exception:  # noqa: BLE001 - a foreign parser on bytes that anybody may send
            self._anew()
            return []

    def _anew(self) -> None:
        old, self._parser = self._parser, XTermParser(self._debug)
        self._parser.mouse_pixels = old.mouse_pixels
        self._parser.terminal_size = old.terminal_size
        self._parser.terminal_pixel_size = old.terminal_pixel_size
        self._tail, self._pasting = "", False


class _Output:
    """The terminal as a file that takes everything, also once it has hung up.

    Textual's writer ends at a write that fails; then whoever writes on, or ends, waits for ever.
    """

    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        with suppress(OSError, ValueError):  # EIO: the other end is closed
            return self._file.write(text)
        return len(text)

    def flush(self) -> None:
        with suppress(OSError, ValueError):
            self._file.flush()

    def fileno(self) -> int:
        return self._file.fileno()


def screen_file() -> TextIO | None:
    """Return what the console draws on: standard error as Textual does, or output where that is no terminal."""
    streams = (sys.__stderr__, sys.__stdout__)
    terminals = (each for each in streams if each is not None and each.isatty())
    return next(terminals, sys.__stderr__)


class ConsoleDriver(LinuxDriver):
    """Textual's driver with a reader that survives any bytes and says what came together."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)  # pyright: ignore[reportUnknownMemberType]
        self._file = cast("IO[str]", _Output(screen_file() or self._file))
        self._arrivals = 0
        self._tag = 0
        self._asked: deque[tuple[int, float, Callable[[], None] | None]] = deque()
        self._answers = False
        self._open: frozenset[int] = frozenset()
        """Columns of questions that are out; replaced whole, for the reader's thread."""

    def _get_terminal_size(self) -> tuple[int, int]:
        """Return what the terminal says: COLUMNS and LINES may be those of an outer one."""
        try:
            columns, rows = os.get_terminal_size(self.fileno)
        except OSError:
            return super()._get_terminal_size()
        return (columns, rows) if columns and rows else super()._get_terminal_size()

    def _sigcont_application(self, *_: object) -> None:
        # Not here: what this signal interrupted may hold a lock that it would need.
        with suppress(RuntimeError):  # its loop has ended, and the terminal's modes with it
            self._loop.call_soon_threadsafe(self._set_up_again)

    def _set_up_again(self) -> None:
        """Set the terminal up anew, also where this process was stopped without being asked to suspend.

        Textual would then start a second reader, which does not know for how long nobody read, and take
        the terminal's modes of now for those from before the console. Keys typed meanwhile are dropped.
        """
        if self._auto_restart:
            if not self._must_signal_resume:
                self.suspend_application_mode()
            self.resume_application_mode()

    # Input, on the reader's thread

    def run_input_thread(self) -> None:
        """Read until the driver stops, or until the terminal hangs up."""
        parser = _Parser(debug=self._debug)
        decoder = getincrementaldecoder("utf-8")("replace")
        empty_at = get_time()
        while not self.exit_event.is_set():
            looked_at = get_time()
            if not self._waits(0.0):
                empty_at = looked_at
            if self._waits(_TICK_SECONDS):
                # Before the read: input that is read and not yet reported must not look like silence.
                self._arrivals += 1
                read_at = get_time()
                held_up, empty_at = read_at - empty_at > _HELD_UP_SECONDS, read_at
                data = self._read()
                if not data:
                    self.send_message(TerminalGone())
                    return
                answers, text = split_replies(decoder.decode(data), self._open)
                whole = not decoder.getstate()[0]
                kind = input_kind(text, whole=whole, answers=bool(answers))
                # When a key was pressed that is read late, and what came with it, nobody knows.
                received = InputReceived("late" if held_up and kind == "key" else kind)
                received.time = read_at
                self.send_message(received)
                for column in answers:
                    self.process_message(CursorPosition(column - 1, 0))
                text = LATE_REPLY.sub("", text)
                for event in parser.take(text, read_at) if text else ():
                    # One read, one time: a thread that stands still in between makes no silence.
                    event.time = read_at
                    self.process_message(event)
            for event in parser.tick(get_time()):
                self.process_message(event)

    def _waits(self, seconds: float) -> bool:
        """Return whether input waits, once it does or *seconds* are over."""
        ready, _, _ = select.select([self.fileno], [], [], seconds)
        return bool(ready)

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, _READ)
        except OSError:  # EIO: the other end is closed
            return b""

    def has_unread(self, handled: int) -> bool:
        """Return whether input waits that is not among the *handled* arrivals."""
        # In this order: what leaves the terminal's buffer in between is counted before it does.
        return self._waits(0.0) or self._arrivals != handled

    # Output, on the application's loop

    def write(self, data: str) -> None:
        """Write *data*, glyphs of unsure width held in their cells."""
        super().write(pin_glyphs(data))

    def call_when_drawn(self, then: Callable[[], None], at: float, cursor: tuple[int, int]) -> None:
        """Call *then* once the terminal says that it got as far as what was written until now.

        It is asked where its cursor is, after the cursor was put to a place that names the question.
        A terminal that never answered is believed to draw at once.

        Args:
            then: called here, or from `answered`.
            at: now, monotonic seconds.
            cursor: column and row, from 0, that the cursor goes back to.
        """
        if self._answers and self._asked and at - self._asked[0][1] > SILENT_SECONDS:
            self._answers = False
            self._release(len(self._asked))
        if not self._answers:
            then()
            if len(self._asked) >= _UNANSWERED:
                return
        self._tag = self._tag % _TAGS + 1
        self._asked.append((self._tag, at, then if self._answers else None))
        self._note_open()
        # A field that has scrolled may have its cursor to the left of the pane.
        x, y = max(cursor[0], 0), max(cursor[1], 0)
        self.write(f"\x1b[1;{self._tag}H\x1b[6n\x1b[{y + 1};{x + 1}H")

    def on_cursor_reply(self, x: int, y: int) -> None:
        """Take the terminal's answer: its cursor stood in column *x*, row *y*, from 0."""
        tags = [tag for tag, _, _ in self._asked]
        if y == 0 and x + 1 in tags:
            self._answers = True
            self._release(tags.index(x + 1) + 1)
            self._note_open()

    def _note_open(self) -> None:
        # Before the first answer nobody knows that the terminal answers at all.
        asked = (tag for tag, _, _ in self._asked) if self._answers else ()
        self._open = frozenset(asked)

    def _release(self, count: int) -> None:
        for _ in range(count):
            _, _, then = self._asked.popleft()
            if then is not None:
                then()


def pin_glyphs(sequence: str) -> str:
    """Return *sequence*, a frame as Textual writes it, with every glyph of unsure width held in its cells.

    Programs and terminals disagree on how wide an emoji with a modifier, a flag, a vowel sign or a
    conjoining letter is; zero-width for one is two cells for the other. What stands right of such a
    glyph would move, and text from outside would reach a reserved column. So each such
    glyph is put on blanks of its own, and the cursor is set by number behind it.

    A frame sets the cursor by row and column before each run of text; text before the first such
    place is left as it is.
    """
    if _UNSURE.search(sequence) is None:
        return sequence
    parts: list[str] = []
    column: int | None = None
    for index, part in enumerate(_CONTROL.split(sequence)):
        if index % 2:
            parts.append(part)
            if placed := _MOVE.fullmatch(part):
                column = int(placed[1])
        elif column is None or not part:
            parts.append(part)
        else:
            parts.append(part if _UNSURE.search(part) is None else _held(part, column))
            column += cell_len(part)
    return "".join(parts)


def _held(text: str, column: int) -> str:
    """Return *text*, which begins in *column* (from 1), with its unsure glyphs held."""
    parts: list[str] = []
    spans, _ = split_graphemes(text)
    for start, end, cells in spans:
        glyph = text[start:end]
        if _UNSURE.search(glyph) is None:
            parts.append(glyph)
        else:
            # The blanks: a terminal that draws it narrower must not leave an old cell in sight.
            parts.append(f"{' ' * cells}\x1b[{column}G{glyph}\x1b[{column + cells}G")
        column += cells
    return "".join(parts)
