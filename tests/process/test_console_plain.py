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
    def start(self, *more: str) -> None:
        self.pty = Pty([*self._words, "--plain", *more])
        self.process = self.pty.process
        self.pty.until(lambda: ASKS in self.output, "the first question")
        self.pty.until((self.home / "daemon.json").exists, "its address")
        self.url = json.loads((self.home / "daemon.json").read_text())["url"]
        self.port = int(self.url.rpartition(":")[2])

    def ask(self, times: int = 1, **more: object) -> None:
        """Let an agent ask to send the draft, *times* over in a session of its own each."""
        for _ in range(times):
            token = self.session(label="plain")["token"]
            answer = self.run("send-draft", {"draft_id": DRAFT}, token, **more)
            assert answer.status == 202


@pytest.fixture
def plain_console(home: Path, mailbox: Mailbox) -> Iterator[Plain]:
    with contextlib.closing(Plain(home, mailbox)) as running:
        yield running


@pytest.fixture
def brief_sending(home: Path) -> None:
    """The action may take a little longer than a person is kept waiting for its end."""
    brief = SHORT_OF_TIME.replace("wall_seconds = 1", f"wall_seconds = {int(WAIT_SECONDS) + 3}")
    (home / "actions" / "send-draft.md").write_text(brief)


def asked_to_send(console: Plain) -> str:
    """Let an agent ask once and read its call to the question."""
    console.asked()
    console.ask()
    console.read_until("WILL HAPPEN  fetched")
    return console.asked()


def test_a_call_is_read_whole_and_approved_with_a_line(
    plain_console: Plain, mailbox: Mailbox
) -> None:
    """No alternate screen, the whole document, then the question; `a` and Enter approve."""
    page = asked_to_send(plain_console)
    assert "All seen" in page
    for section in ("SENT", "RECORD", "Digest"):
        assert section in page
    plain_console.answer("a")
    plain_console.read_until("✓ Approved: ")
    plain_console.read_until("✓ done: ")
    plain_console.read_until("Nothing is waiting.")
    eventually(lambda: len(mailbox.state()["sent"]) == 1, "one mail is sent")
    assert plain_console.rows("state") == [("completed",)]
    assert "\x1b" not in plain_console.output


def test_what_is_typed_before_the_question_decides_nothing(plain_console: Plain) -> None:
    """Input that waits when an item is printed, or comes while it rests, is thrown away unseen."""
    for _ in range(8):
        plain_console.asked()
        plain_console.pty.type(b"a")  # half an answer, to nothing
        plain_console.ask()
        plain_console.read_until("WILL HAPPEN  fetched")
        plain_console.pty.type(b"d\n")
        while plain_console.pty.read(0.05):
            pass
        if ASKS not in plain_console.output[plain_console.mark :]:
            break
        # The question is there by now: on this busy machine it may have been there before the answer.
        plain_console.pty.settle(1.0)
        if plain_console.rows("state")[-1] == ("pending",):
            plain_console.answer("d now")
        plain_console.read_until("Nothing is waiting.")
    else:
        pytest.fail("this machine is too busy to type before the question")
    output = plain_console.asked()
    plain_console.pty.settle(0.6)
    assert "\nd\n" not in output  # nor is it shown as if it were one
    assert plain_console.output[plain_console.mark :] == ""
    assert plain_console.rows("state")[-1] == ("pending",)
    # The question that stands there works all the same; the agent is told all behind the key.
    plain_console.answer("d not before Thursday, Jörg")
    plain_console.read_until("Denied: Send a draft")
    plain_console.read_until("Nothing is waiting.")
    assert plain_console.rows("state, reason")[-1] == ("denied", "not before Thursday, Jörg")


def test_more_than_one_line_at_once_decides_nothing(plain_console: Plain) -> None:
    """A paste is not an answer, whether its last line is whole or not."""
    asked_to_send(plain_console)
    for pasted in (b"a\na\n", b"a\nb", b"a\n\n", b"d no\na\n"):
        plain_console.pty.type(pasted)
        plain_console.read_until("More than one line arrived at once. Nothing was decided.")
        plain_console.asked()
    assert plain_console.rows("state") == [("pending",)]


def test_a_line_without_its_end_decides_nothing(plain_console: Plain) -> None:
    """The end of input behind a letter is no Enter."""
    asked_to_send(plain_console)
    plain_console.pty.type(b"a\x04")
    plain_console.read_until("Nothing was decided.")
    assert plain_console.rows("state") == [("pending",)]


def test_the_end_of_input_quits_and_decides_nothing(plain_console: Plain) -> None:
    asked_to_send(plain_console)
    plain_console.pty.type(b"\x04")
    assert plain_console.pty.ended() == 0
    assert plain_console.rows("state") == [("pending",)]
    assert termios.tcgetattr(plain_console.pty.slave) == plain_console.pty.before


@pytest.mark.parametrize("number", variants([signal.SIGTERM, signal.SIGINT, signal.SIGHUP]))
def test_a_signal_ends_it_and_gives_the_terminal_back(plain_console: Plain, number: int) -> None:
    plain_console.asked()
    assert plain_console.end(number) == 0
    assert termios.tcgetattr(plain_console.pty.slave) == plain_console.pty.before


def test_an_answer_to_what_changed_meanwhile_decides_nothing(
    plain_console: Plain, mailbox: Mailbox
) -> None:
    """What changed is printed again, and only an answer to that counts."""
    asked_to_send(plain_console)
    mailbox.control(change={"id": DRAFT, "to": "eve@example.com"})
    plain_console.answer("a")
    output = plain_console.read_until("CHANGED  nothing has run")
    assert "Approved" not in output
    assert "eve@example.com" in plain_console.asked()
    assert plain_console.rows("state") == [("pending",)]
    plain_console.answer("a")
    assert "▲ Changed after you looked: To. Press a again" in plain_console.asked()
    assert plain_console.rows("state") == [("pending",)]
    plain_console.answer("a")
    plain_console.read_until("✓ done: ")


def test_a_call_that_is_withdrawn_takes_its_question_along(plain_console: Plain) -> None:
    """Half a line that was typed for it is not the begin of an answer to the next."""
    plain_console.asked()
    token = plain_console.session(label="plain")["token"]
    answer = plain_console.run("send-draft", {"draft_id": DRAFT}, token)
    plain_console.read_until("WILL HAPPEN  fetched")
    plain_console.asked()
    plain_console.pty.type(b"a")
    approval = answer.json["approval_id"]
    done = plain_console.post(f"/v1/action-approvals/{approval}/withdraw", {}, token=token)
    assert done.status == 200, done.raw
    plain_console.read_until("The item changed before you answered. Nothing was decided.")
    plain_console.asked()
    plain_console.pty.type(b"\n")
    plain_console.pty.settle(0.3)
    assert plain_console.rows("state") == [("withdrawn",)]


def test_arrivals_are_counted_between_questions_and_next_goes_round(
    plain_console: Plain, mailbox: Mailbox
) -> None:
    """Nothing is printed into an answer; `n` goes on, `1` prints the item again.

    `?` tells the keys, and what stands above every screen: as at the start, what was accepted unseen
    and which hosts go elsewhere.
    """
    first = plain_console.asked()
    plain_console.ask()
    plain_console.read_until("WILL HAPPEN  fetched")
    plain_console.asked()
    plain_console.ask(2)
    plain_console.pty.settle(0.5)
    assert plain_console.output[plain_console.mark :] == ""
    plain_console.answer("1")
    assert "n next (2 more)" in plain_console.asked()
    for _ in range(3):
        plain_console.answer("n")
        plain_console.read_until("WILL HAPPEN  fetched")
        plain_console.asked()
    plain_console.answer("?")
    keys = plain_console.asked()
    assert "d: deny" in keys
    route = f"▲ Test route: gmail.googleapis.com:443 is answered by 127.0.0.1:{mailbox.port}."
    for output in (first, keys):
        assert route in output
        assert "were accepted without review (--accept-installed)" in output
    plain_console.answer("\x1b[A")
    assert "does nothing here now" in plain_console.asked()


def test_a_late_end_is_announced_unasked_and_an_unknown_one_is_looked_at_again(
    brief_sending: None, plain_console: Plain, mailbox: Mailbox
) -> None:
    """The service never answered; `l` reads how it is there now, and sends nothing."""
    asked_to_send(plain_console)
    mailbox.control(hang="send")
    plain_console.answer("a")
    plain_console.read_until("Still running. The result will appear here.")
    plain_console.asked()
    plain_console.read_until("? unknown: ")
    plain_console.asked()
    plain_console.answer("l")
    plain_console.read_until("Looking again …")
    page = plain_console.read_until("HOW IT IS NOW") + plain_console.asked()
    assert "m acknowledges." in page
    plain_console.answer("a")
    assert "a does nothing here now." in plain_console.asked()
    plain_console.answer("m")
    plain_console.read_until("✓ Acknowledged: Send a draft")
    plain_console.asked()
    assert plain_console.rows("state") == [("unknown",)]
