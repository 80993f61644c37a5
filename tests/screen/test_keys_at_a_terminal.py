"""Keys that cannot misfire, with real bytes at a real pseudo-terminal and in real time."""

import os
import signal
import sys
import termios
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests.support.processes import eventually
from tests.support.terminal import Pty, stop_process
from tests.support.variants import variants

CHILD = str(Path(__file__).with_name("terminal_child.py"))
REST = 0.9
"""Seconds of a hand at rest: 0.4 and what a busy machine adds."""
SILENCE = 0.6
"""Seconds after which a press would have decided."""
AT_REST = 0.3
"""Seconds after which a hand may count as one at rest: 0.4, less what a console reads late."""
TRIES = 16
"""How often a busy machine may be too slow for what is to come in one breath."""
KEY_FILLED = ";48;2;95;201;184"
"""Ink on teal: the very next press decides."""
NOTHING = "Nothing was decided."
ASKED = "(codex will read it)"


@contextmanager
def before_others() -> Iterator[None]:
    """Run before every other process, where this one may: keys come from outside a busy machine."""
    with suppress(PermissionError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


class Person:
    """Sits at a console; `decided` is what the core was asked to do."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self._intents, self._control = folder / "intents", folder / "control"
        self._intents.touch()
        os.mkfifo(self._control)
        command = [sys.executable, "-I", CHILD, str(self._intents), str(self._control)]
        # So tall that a call is whole on screen whatever was decided before: else nothing is armed.
        self.pty = Pty(command, size=(120, 60), **options)
        self.type, self.wait = self.pty.type, self.pty.settle

    @property
    def decided(self) -> list[str]:
        return self._intents.read_text().splitlines()

    @property
    def cells(self) -> str:
        return self.pty.cells.text

    def make(self, happen: str) -> None:
        self._control.write_text(f"{happen}\n")

    @contextmanager
    def stalled(self) -> Iterator[None]:
        """No thread of the console runs meanwhile, as on a machine that is busy with something else."""
        mark = self._control.with_name("stalled")
        self.make("stall")
        eventually(mark.exists)
        try:
            yield
        finally:
            mark.unlink()

    @property
    def threads(self) -> Counter[str]:
        tasks = Path(f"/proc/{self.pty.process.pid}/task").glob("*/comm")
        return Counter(each.read_text().strip() for each in tasks)

    def said(self, since: int, *sentences: str) -> bool:
        """Whether one of them was drawn since then: it stands there for some seconds only."""
        return any(self.pty.drew(each, since) for each in sentences)

    @property
    def armed(self) -> bool:
        row, column = len(self.pty.cells.lines) - 1, self.pty.cells.lines[-1].find(" a ")
        style = self.pty.cells.style(column + 1, row)
        return column >= 0 and KEY_FILLED in f";{style}"

    def rest(self) -> None:
        self.pty.until(lambda: self.armed, "armed")
        self.wait(0.2)

    def press(self, key: bytes, done: Callable[[], bool], what: str) -> float:
        return self.pty.press(key, done, what, rest=REST)

    def burst(self, keys: bytes, gap: float) -> float:
        """Send the bytes one by one, *gap* seconds apart; return the longest gap that there may have been."""
        with before_others():
            longest, last = 0.0, monotonic()
            for at, byte in enumerate(keys):
                if at:  # a process that sleeps is woken in time, one that spins loses its turn
                    sleep(max(0.0, last + gap - monotonic()))
                began = monotonic()
                self.type(bytes([byte]))
                # From before the one was sent until the other was: it may stand still between.
                longest = max(longest, monotonic() - last)
                last = began
        return longest


@pytest.fixture
def person(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Person]:
    person = Person(tmp_path, **getattr(request, "param", {}))
    yield person
    person.pty.close()


def test_a_single_key_at_rest_decides_one_item_and_the_next_starts_unarmed(person: Person) -> None:
    """One press, one decision; a press right after it falls on an item that nobody has looked at."""
    for _ in range(TRIES):
        person.rest()
        before = len(person.decided)
        at = person.press(b"a", lambda count=before: len(person.decided) > count, "a decision")
        person.pty.shows("✓ Approved")
        person.type(b"a")
        if monotonic() < at + AT_REST:
            break
        person.wait(SILENCE)  # on this busy machine the hand may have rested between
    else:
        pytest.fail("this machine is too busy for a press right after another")
    person.wait(SILENCE)
    assert len(person.decided) == before + 1
    person.rest()
    person.press(b"a", lambda: len(person.decided) == before + 2, "another decision")
    assert len(set(person.decided)) == len(person.decided)


@pytest.mark.parametrize("gap", variants([0.002, 0.0, 0.010]))
@pytest.mark.parametrize("keys", [b"aa", b"a ok use it\r", b"aaaaaaaaaa", b"ad\r", b"a\ra\r"])
def test_a_burst_decides_nothing_and_is_reported(person: Person, keys: bytes, gap: float) -> None:
    """Its first byte came after a rest; what came with it shows that no hand pressed it."""
    for _ in range(TRIES):
        person.rest()
        before, since = person.decided, len(person.pty.raw)
        if person.burst(keys, gap) < 0.018:
            person.pty.until(lambda at=since: person.said(at, NOTHING, ASKED), "a word")
            if person.said(since, NOTHING):
                break
        person.wait(SILENCE)  # this busy machine sent or read them slower than a burst is
        person.type(b"\x1b")  # and may have taken one of them for a key that asks
        person.wait(SILENCE)
    else:
        pytest.fail("this machine is too busy for a burst")
    person.wait(SILENCE)
    assert person.decided == before


def test_pastes_decide_nothing_with_and_without_brackets(person: Person) -> None:
    bracketed = b"\x1b[200~a\x1b[201~", b"\x1b[200~approve\r\x1b[201~a\x1b[201~"
    for paste in (*bracketed, b"a\na\na\n", b"d\rwrong list\r"):
        person.rest()
        person.type(paste)
        person.wait(SILENCE)
        assert person.decided == []
        person.type(b"\x1b")
        person.wait(0.3)


def test_keys_typed_ahead_of_the_first_frame_decide_nothing(person: Person) -> None:
    """What was typed into the shell while the console started is not an answer."""
    rested, last = 0, monotonic()
    for _ in range(20):
        began = monotonic()
        person.type(b"a")
        rested += monotonic() - last > AT_REST  # this process stood still: that was one key at rest
        last = began
        person.wait(0.15)
    person.wait(SILENCE)
    person.type(b"a\r")
    person.wait(SILENCE)
    assert len(set(person.decided)) == len(person.decided) <= 1 + rested


def test_escape_and_a_pane_without_focus_leave_the_call_waiting(person: Person) -> None:
    person.rest()
    person.press(b"d", lambda: "will read it" in person.cells, "the panel")
    person.wait(REST)
    person.burst(b"no", 0.1)
    person.wait(REST)
    person.type(b"\x1b")
    person.pty.until(lambda: "will read it" not in person.cells, "the panel closed")
    person.wait(REST)
    person.type(b"\r")
    person.wait(SILENCE)
    assert person.decided == []
    person.rest()
    person.type(b"\x1b[O")
    person.wait(0.15)
    for _ in range(2):
        person.type(b"a")
        person.wait(REST)
    assert person.decided == []
    person.type(b"\x1b[I")
    person.press(b"a", lambda: bool(person.decided), "a decision")


@pytest.mark.parametrize("person", [{"answers": True}], ids=["answers"], indirect=True)
def test_what_the_terminal_has_not_drawn_yet_cannot_be_decided(person: Person) -> None:
    """On a slow line the next item is chosen long before it is seen: the key waits for the terminal."""
    person.rest()
    person.type(b"j")
    sleep(1.5)  # the line stands still: nothing of what was written arrives
    person.type(b"a")
    person.wait(SILENCE)
    assert person.decided == []
    person.press(b"a", lambda: bool(person.decided), "a decision")
    assert person.decided == [f"Approve act-20261008T140152-{2:016x}"]


def test_a_key_that_was_read_late_decides_nothing(person: Person) -> None:
    """The console stood still: nobody knows when it was pressed, or on what. One that decides nothing is not lost."""
    person.rest()
    since = len(person.pty.raw)
    with person.stalled():
        person.type(b"a")
        sleep(0.6)
    person.pty.until(lambda: person.said(since, NOTHING), NOTHING)
    person.wait(SILENCE)
    assert person.decided == []
    person.press(b"a", lambda: bool(person.decided), "a decision")
    person.rest()
    with person.stalled():
        person.type(b"2")
        sleep(0.6)
    person.pty.shows("Newest first")


def test_what_is_typed_while_the_process_is_stopped_is_dropped(person: Person) -> None:
    person.rest()
    before = person.threads
    for _ in range(3):
        stop_process(person.pty.process.pid)
        person.type(b"aq2")
        sleep(0.6)
        since = len(person.pty.raw)
        person.pty.process.send_signal(signal.SIGCONT)
        person.pty.until(lambda at=since: person.said(at, "\x1b[?1049h"), "the terminal set up")
        person.rest()
    assert (person.decided, person.threads) == ([], before)
    person.press(b"q", lambda: person.pty.process.poll() is not None, "its end")
    modes = termios.tcgetattr(person.pty.slave)[3]
    assert modes & termios.ICANON
    assert modes & termios.ECHO


def test_a_fault_of_the_screen_is_said_and_restores_the_terminal(person: Person) -> None:
    """No traceback and none of its values: they would print what agents and services said."""
    person.rest()
    person.make("fault")
    assert person.pty.ended() == 70
    tail = person.pty.raw.rpartition(b"\x1b[?1049l")[2].decode()
    assert "What was waiting still waits; nothing was decided." in " ".join(tail.split())
    assert "Traceback" not in tail
    assert b"a secret" not in person.pty.raw
    assert person.decided == []


def test_a_page_is_drawn_again_and_sigterm_restores_the_terminal(person: Person) -> None:
    """Going to and fro leaves no page that stands still; Pilot draws by itself, a terminal does not."""
    pty = person.pty
    pty.shows("WILL HAPPEN")
    for key, activity in 2 * [(b"2", True), (b"1", False)]:
        pty.press(key, lambda a=activity: ("Newest first" in person.cells) is a, "the other page")
        assert ("WILL HAPPEN" in person.cells) is not activity
    pty.process.send_signal(signal.SIGTERM)
    assert pty.ended() == 0
    assert b"\x1b[?1049l" in pty.raw
    assert termios.tcgetattr(pty.slave)[3] == pty.before[3]
