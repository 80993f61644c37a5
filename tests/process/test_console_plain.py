"""`aileron console --plain` on a real pseudo-terminal: it is read as a screen reader reads, from the top."""

import contextlib
import json
import signal
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_tui.plain.output import WAIT_SECONDS
from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.support.core_harness import SHORT_OF_TIME
from tests.support.server_harness import DRAFT, eventually
from tests.support.terminal import ASKS, PlainText, Pty
from tests.support.variants import variants


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
def test_more_than_one_line_at_once_decides_nothing(console: Plain) -> None:
    """A paste is not an answer, whether its last line is whole or not."""
    for pasted in (b"a\na\n", b"a\nb", b"a\n\n", b"d no\na\n"):
        console.pty.type(pasted)
        console.read_until("More than one line arrived at once. Nothing was decided.")
        console.asked()
    assert console.rows() == [("pending",)]


@pytest.mark.usefixtures("asked")
def test_a_line_without_its_end_decides_nothing(console: Plain) -> None:
    """The end of input behind a letter is no Enter; without one it quits, and decides nothing either."""
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
