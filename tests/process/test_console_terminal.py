"""A console on its terminal: beside the agent in a pane of a real tmux, with the person's pager in its place; what is seen of its start.

That is what a person sees before the first frame, in which look it begins, and what it does not wait for.
`aileron console --plain` is read on a pseudo-terminal as a screen reader reads, from the top.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_core.home.layout import Home
from aileron_tui.plain.output import WAIT_SECONDS
from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.process.tmux import TRIES, Tmux, shell
from tests.support.core_harness import SHORT_OF_TIME
from tests.support.making import program
from tests.support.processes import alive, eventually
from tests.support.server_harness import CLI, DRAFT, ROOT, Console, aileron, aileron_json
from tests.support.terminal import ASKS, PlainText, Pty
from tests.support.variants import variants

AGENT = '#!/bin/sh\necho "the agent is up"\nread line\necho "read $line"\nexit 5\n'


@pytest.fixture
def launching(folder: Path) -> Path:
    for name in ("project", "person", "home"):
        (folder / name).mkdir(mode=0o700)
    program(folder / "bin" / "codex", AGENT)
    return folder


def pane_environment(folder: Path) -> dict[str, str]:
    path = f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}"
    return {"HOME": str(folder / "person"), "PATH": path, "LANG": "C.UTF-8", "SHELL": "/bin/sh"}


def in_tmux(folder: Path) -> Tmux:
    # Panes are what is tried here, and root may try it too.
    launch = ("launch", "codex", "--console", "--no-sandbox", "--home", str(folder / "home"))
    environment = pane_environment(folder)
    return Tmux(folder / "tmux", shell(*CLI, *launch), environment, folder / "project")


def test_a_console_opens_in_a_pane_of_its_own_and_shows_the_session(launching: Path) -> None:
    with contextlib.closing(in_tmux(launching)) as tmux:
        tmux.until(lambda _: tmux.panes() == 2)
        tmux.until("the agent is up", pane=1)
        tmux.until("codex", pane=0)
        tmux.press("y", "Enter", pane=1)
        tmux.until("ended with 5", pane=1)
        assert tmux.panes() == 2


def test_a_console_that_runs_is_used_and_one_that_cannot_start_is_reported(launching: Path) -> None:
    console = Console(launching / "home")
    with contextlib.closing(in_tmux(launching)) as tmux:
        tmux.until("the agent is up")
        assert tmux.panes() == 1
    console.end()
    shutil.rmtree(launching / "home")
    (launching / "home").mkdir(mode=0o700)
    (launching / "home" / "of-another-program").write_text("")
    with contextlib.closing(in_tmux(launching)) as tmux:
        tmux.until("Run `aileron console` to see why")
        tmux.until("ended with 69")


def test_without_tmux_there_is_a_sentence_how(launching: Path) -> None:
    (launching / "home").rmdir()
    env = {**pane_environment(launching), "TMUX": ""}
    done = aileron("launch", "codex", "--console", home=launching / "home", code=69, env=env)
    assert "Start `aileron console` in another window" in done.stderr
    assert not (launching / "home").exists()


@pytest.fixture
def fixture_screen(tmp_path: Path) -> Iterator[Tmux]:
    assert shutil.which("less") is not None, "this test reads in less: install it"
    environment = {**os.environ, "PAGER": "less", "PYTHONPATH": str(ROOT), "LESS": ""}
    command = shell(sys.executable, "-m", "tests.support.screens", "waiting")
    with contextlib.closing(Tmux(tmp_path / "tmux", command, environment, ROOT)) as tmux:
        yield tmux


def children(pid: int) -> list[int]:
    command = ["pgrep", "-P", str(pid)]
    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False).stdout
    return [int(word) for word in found.split()]


def console_pid(console: Tmux) -> int:
    (pid,) = children(int(console._tmux("display-message", "-p", "#{pane_pid}")))
    return pid


def open_pager(console: Tmux) -> None:
    console.until("WILL HAPPEN")
    console.until(" y copy")
    for _ in range(TRIES):
        # A key that is read with a late answer of the terminal's is dropped; in less it goes to the top.
        console.press("p")
        with contextlib.suppress(AssertionError):
            console.until(
                lambda shown: "WILL HAPPEN" not in shown and "Hi all," in shown, patience=5
            )
            return
    raise AssertionError(console.pane())


def leave(console: Tmux) -> None:
    """Quit `less` with its own key, once it reads keys again, and wait for the console's screen.

    What `less` has read when the signal of Ctrl-C comes is lost with it; once it has answered a later
    key, the signal is behind it.
    """

    def answers(shown: str) -> bool:
        if re.search(r"lines \d+-\d+", shown):
            return True
        console.press("=")  # which lines these are, however often it is asked
        return False

    console.until(answers)
    console.press("q")
    console.until("Body was shown in less, as shown here.")


def test_the_pager_shows_a_field_as_drawn_and_the_console_is_unarmed(fixture_screen: Tmux) -> None:
    """Its keys are its own: what decides in the console decides nothing here, nor afterwards.

    Shell, pipe and editor of `less` are off: a person may press any key over a hostile text.
    """
    open_pager(fixture_screen)
    for key in ("!", "|", "v"):
        fixture_screen.type(key)
        fixture_screen.until("not available")
        fixture_screen.press("Enter")
        fixture_screen.until(lambda shown: "not available" not in shown)
    fixture_screen.press("a", "d", "t", "C-c")
    leave(fixture_screen)
    shown = fixture_screen.until(lambda shown: "Waiting" in shown and "WILL HAPPEN" in shown)
    assert "Approved" not in shown
    assert "will read it" not in shown


def test_an_ended_console_ends_its_pager_and_gives_the_terminal_back(fixture_screen: Tmux) -> None:
    open_pager(fixture_screen)
    pid = console_pid(fixture_screen)
    (pager,) = children(pid)
    os.kill(pid, signal.SIGTERM)
    fixture_screen.until("ended with 0")
    eventually(lambda: pager not in alive(), "it has ended")


@pytest.mark.parametrize("paging", [False, True])
def test_a_console_whose_terminal_goes_ends(fixture_screen: Tmux, paging: bool) -> None:
    """Nothing waits for ever for a terminal that takes no more; the home's lock is free again."""
    fixture_screen.until("WILL HAPPEN")
    if paging:
        open_pager(fixture_screen)
    pid = console_pid(fixture_screen)
    fixture_screen.close()
    eventually(lambda: pid not in alive(), "it has ended")


SCREEN = b"\x1b[?1049h"
"""Textual's alternate screen begins."""


def opened_console(home: Path, *options: str) -> Pty:
    return Pty([*CLI[:2], *options, *CLI[2:], "console", "--home", str(home)])


def test_a_line_comes_before_anything_heavy_is_imported(home: Path) -> None:
    """-X importtime prints a line for each import, on the same terminal and in order."""
    with contextlib.closing(opened_console(home, "-X", "importtime")) as pty:
        pty.until(lambda: SCREEN in pty.raw, "the screen")
        before, _, after = pty.raw.partition(f"aileron: opening {home} ...".encode())
        for heavy in (b" textual.app\r", b" aileron_core.app\r"):
            assert heavy not in before
            assert heavy in after


def test_the_line_is_gone_before_the_screen_and_after_a_refusal(home: Path) -> None:
    """It says nothing once something else does.

    Port and socket are taken before the screen is drawn: a request may wait, it is not refused.
    """
    with contextlib.closing(opened_console(home)) as first:
        first.shows("not accepted")
        assert Home(home).socket.exists()
        assert aileron_json("status", home=home)["running"] is True
        text = f"aileron: opening {home} ..."
        assert f"{text}\r{' ' * len(text)}\r".encode() in first.raw.partition(SCREEN)[0]
        second = opened_console(home)
        said = second.text_at_end(1)
        assert b"opening" in second.raw
        assert "opening" not in said
        assert "A console is already running" in said


def test_neither_a_reader_of_lines_nor_a_file_gets_the_line(home: Path) -> None:
    with contextlib.closing(Pty([*CLI, "console", "--plain", "--home", str(home)])) as pty:
        pty.shows("Keys: ")
        assert b"opening" not in pty.raw
    done = aileron("console", home=home, code=None)
    assert "needs a terminal" in done.stderr
    assert "opening" not in done.stdout + done.stderr


def test_a_console_whose_standard_error_is_a_file_draws_on_the_terminal(folder: Path) -> None:
    """It drew into the file: blind, with keys that counted."""
    errors = folder / "errors"
    command = f"{shell(*CLI, 'console', '--home', str(folder / 'home'))} 2> {errors}"
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    with contextlib.closing(Tmux(folder / "tmux", command, environment, folder)) as tmux:
        tmux.until("Nothing is waiting.")
        # A key that comes in one breath with the terminal's first answers does nothing.
        tmux.until(lambda shown: "Nothing is waiting." not in shown or tmux.press("2") is True)
        tmux.press("q")
        tmux.until("ended with 0")
        assert errors.read_text() == ""


_SLOWLY = """
import sys
from aileron_tui.terminal import background_color
background_color.background_is_light.__defaults__ = (20.0,)
sys.argv[0] = "aileron"
from aileron_tui.cli import main
main()
"""
"""The console, with more than its quarter of a second for an answer that a test gives."""
GROUNDS = {"light": b"48;2;251;251;249", "dark": b"48;2;14;18;22"}
WHITE = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\\x1b[?62c"
BLACK = b"\x1b]11;rgb:1010/1010/1010\x07\x1b[?62c"


@pytest.mark.parametrize(("answer", "look"), [(WHITE, "light"), (BLACK, "dark"), (b"", "dark")])
def test_a_console_begins_in_the_look_of_its_terminal(home: Path, answer: bytes, look: str) -> None:
    """Also where nobody answers; what was typed before it drew moves nothing."""
    command = [*((*CLI[:2], "-c", _SLOWLY) if answer else CLI), "console", "--home", str(home)]
    with contextlib.closing(Pty(command, environment={"COLORFGBG": ""})) as pty:
        pty.until(lambda: b"\x1b]11;?\x1b\\\x1b[c" in pty.raw, "the question")
        pty.type(b"5" + answer)
        pty.shows("t accept…")
        assert [each for each, ground in GROUNDS.items() if ground in pty.raw] == [look]
        # What came late is no key either.
        pty.type(b"\x1b]11;rgb:1234/5234/2345\x1b\\\x1b[?1;2c")
        pty.settle(1.0)
        assert "t accept…" in pty.cells.text


class Plain(PlainText, ScreenConsole):
    page = ""
    """What was read of the call that was asked."""

    def start(self, *more: str) -> None:
        self.pty = Pty([*self._words, "--plain", *more])
        self.process = self.pty.process
        self.pty.until(lambda: ASKS in self.output, "the first question")
        self.pty.until((self.home / "daemon.json").exists, "its address")
        self.url = json.loads((self.home / "daemon.json").read_text())["url"]
        self.port = int(self.url.rpartition(":")[2])

    def propose(self) -> tuple[str, str]:
        """Let an agent ask to send the draft; return its token and the approval."""
        token = self.session(label="plain")["token"]
        answer = self.run("send-draft", {"draft_id": DRAFT}, token)
        assert answer.status == 202
        return token, answer.json["approval_id"]

    def settled(self) -> None:
        """Nothing has come but what was read, and the call still waits."""
        assert self.output[self.mark :] == ""
        assert self.rows()[-1] == ("pending",)


@pytest.fixture
def console(home: Path, mailbox: Mailbox) -> Iterator[Plain]:
    with contextlib.closing(Plain(home, mailbox)) as running:
        yield running


@pytest.fixture
def brief_sending(home: Path) -> None:
    """The action may take a little longer than a person is kept waiting for its end."""
    brief = SHORT_OF_TIME.replace("wall_seconds = 1", f"wall_seconds = {int(WAIT_SECONDS) + 3}")
    (home / "actions" / "send-draft.md").write_text(brief)


@pytest.fixture
def asked(console: Plain) -> tuple[str, str]:
    """An agent asked once, and its call was read to the question."""
    console.asked()
    proposed = console.propose()
    console.page = console.read_until("WILL HAPPEN  fetched") + console.asked()
    return proposed


@pytest.mark.usefixtures("asked")
def test_a_call_is_read_whole_and_approved_with_a_line(console: Plain, mailbox: Mailbox) -> None:
    for each in ("All seen", "SENT", "RECORD", "Digest"):
        assert each in console.page
    console.answer("a")
    for each in ("✓ Approved: ", "✓ done: ", "Nothing is waiting."):
        console.read_until(each)
    eventually(lambda: len(mailbox.state()["sent"]) == 1, "one mail is sent")
    assert console.rows() == [("completed",)]
    assert "\x1b" not in console.output


def test_what_is_typed_before_the_question_decides_nothing(console: Plain) -> None:
    """Input that waits when an item is printed, or comes while it rests, is thrown away unseen."""
    for _ in range(8):
        console.asked()
        console.pty.type(b"a")  # half an answer, to nothing
        console.propose()
        console.read_until("WILL HAPPEN  fetched")
        console.pty.type(b"d\n")
        while console.pty.read(0.05):
            pass
        if ASKS not in console.output[console.mark :]:
            break
        # The question is there by now: on this busy machine it may have been there before the answer.
        console.pty.settle(1.0)
        if console.rows()[-1] == ("pending",):
            console.answer("d now")
        console.read_until("Nothing is waiting.")
    else:
        pytest.fail("this machine is too busy to type before the question")
    output = console.asked()
    console.pty.settle(0.6)
    assert "\nd\n" not in output  # nor is it shown as if it were one
    console.settled()
    # The question that stands there works all the same; the agent is told all behind the key.
    console.answer("d not before Thursday, Jörg")
    console.read_until("Denied: Send a draft")
    console.read_until("Nothing is waiting.")
    assert console.rows("state, reason")[-1] == ("denied", "not before Thursday, Jörg")


@pytest.mark.usefixtures("asked")
def test_more_or_less_than_one_whole_line_decides_nothing(console: Plain) -> None:
    """A paste is not an answer, whether its last line is whole or not.

    The end of input behind a letter is no Enter; without one it quits, and decides nothing either.
    """
    for pasted in (b"a\na\n", b"a\nb", b"a\n\n", b"d no\na\n"):
        console.pty.type(pasted)
        console.read_until("More than one line arrived at once. Nothing was decided.")
        console.asked()
    console.pty.type(b"a\x04")
    console.read_until("Nothing was decided.")
    console.asked()
    console.pty.type(b"\x04")
    assert console.pty.ended() == 0
    assert console.rows() == [("pending",)]
    assert termios.tcgetattr(console.pty.slave) == console.pty.before


@pytest.mark.parametrize("number", variants([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
def test_a_signal_ends_it_and_gives_the_terminal_back(console: Plain, number: int) -> None:
    console.asked()
    assert console.end(number) == 0
    assert termios.tcgetattr(console.pty.slave) == console.pty.before


@pytest.mark.usefixtures("asked")
def test_an_answer_to_what_has_changed_decides_nothing(console: Plain, mailbox: Mailbox) -> None:
    mailbox.control(change={"id": DRAFT, "to": "eve@example.com"})
    console.answer("a")
    assert "Approved" not in console.read_until("CHANGED  nothing has run")
    assert "eve@example.com" in console.asked()
    assert console.rows() == [("pending",)]
    console.answer("a")
    assert "▲ Changed after you looked: To. Press a again" in console.asked()
    assert console.rows() == [("pending",)]
    console.answer("a")
    console.read_until("✓ done: ")


def test_a_withdrawn_call_takes_its_question_along(console: Plain, asked: tuple[str, str]) -> None:
    """Half a line that was typed for it is not the begin of an answer to the next."""
    token, approval = asked
    console.pty.type(b"a")
    done = console.post(f"/v1/action-approvals/{approval}/withdraw", {}, token=token)
    assert done.status == 200, done.raw
    console.read_until("The item changed before you answered. Nothing was decided.")
    console.asked()
    console.pty.type(b"\n")
    console.pty.settle(0.3)
    assert console.rows() == [("withdrawn",)]


def test_arrivals_are_counted_and_next_goes_round(console: Plain, mailbox: Mailbox) -> None:
    """Nothing is printed into an answer; `n` goes on, `1` prints the item again.

    `?` tells the keys, and what stands above every screen: as at the start, what was accepted unseen
    and which hosts go elsewhere.
    """
    first = console.asked()
    console.propose()
    console.read_until("WILL HAPPEN  fetched")
    console.asked()
    for _ in range(2):
        console.propose()
    console.pty.settle(0.5)
    console.settled()
    console.answer("1")
    assert "n next (2 more)" in console.asked()
    for _ in range(3):
        console.answer("n")
        console.read_until("WILL HAPPEN  fetched")
        console.asked()
    console.answer("?")
    keys = console.asked()
    assert "d: deny" in keys
    route = f"▲ Test route: gmail.googleapis.com:443 is answered by 127.0.0.1:{mailbox.port}."
    for output in (first, keys):
        assert route in output
        assert "were accepted without review (--accept-installed)" in output
    console.answer("\x1b[A")
    assert "does nothing here now" in console.asked()


@pytest.mark.usefixtures("brief_sending", "asked")
def test_a_late_end_is_announced_and_looked_at_again(console: Plain, mailbox: Mailbox) -> None:
    mailbox.control(hang="send")
    console.answer("a")
    console.read_until("Still running. The result will appear here.")
    console.asked()
    console.read_until("? unknown: ")
    console.asked()
    console.answer("l")
    console.read_until("Looking again …")
    page = console.read_until("HOW IT IS NOW") + console.asked()
    assert "m acknowledges." in page
    console.answer("a")
    assert "a does nothing here now." in console.asked()
    console.answer("m")
    console.read_until("✓ Acknowledged: Send a draft")
    console.asked()
    assert console.rows() == [("unknown",)]
