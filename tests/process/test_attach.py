"""`aileron attach` at a real terminal: beside an open console, and at `aileron serve`; one approval by each."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.support.core_harness import writes
from tests.support.server_harness import CLI, DRAFT, Console, Serve, aileron_json, eventually
from tests.support.terminal import Pty
from tests.support.vaults import PHRASE, make_vault

Attach = Callable[..., Pty]


@pytest.fixture
def attach(home: Path) -> Iterator[Attach]:
    opened: list[Pty] = []

    def start(*options: str) -> Pty:
        opened.append(Pty([*CLI, "attach", "--home", str(home), *options]))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def propose(console: Console) -> str:
    """Ask for a call: of a session of this process, below which no console could be attached from then on."""
    token = console.session(label="attached")["token"]
    answer = console.run("send-draft", {"draft_id": DRAFT}, token)
    assert answer.status == 202
    return answer.json["approval_id"]


def approved_by(console: Console) -> list[str]:
    return [each["hand"] for each in console.records() if each["event"] == "approval.approved"]


def read_and_approve(pty: Pty, approved: Callable[[], bool]) -> None:
    """Read to the end and press `a`, as a person does; what was refused is pressed again."""
    pty.shows("Q3 numbers")
    pty.press(b" ", lambda: "All seen" in pty.cells.text, "all of it is read")
    pty.press(b"a", approved, "it is approved")


def test_a_console_attached_beside_the_open_one_approves_as_its_own_hand(
    sit: Callable[..., ScreenConsole], attach: Attach, mailbox: Mailbox
) -> None:
    """Confirmed by its words with a second key; the other screen names its hand; closing it ends nothing."""
    console = sit()
    first, second = console.pty, attach()
    second.shows("The words of this console:")
    words = second.cells.text.partition("The words of this console: ")[2].splitlines()[0].strip()
    first.press(b"5", lambda: "not confirmed" in first.cells.text, "the sessions")
    first.press(b"t", lambda: "Let this console see all" in first.cells.text, "the question")
    assert words in first.cells.text
    assert f"process {second.process.pid}" in first.cells.text
    first.press(b"y", lambda: "can now see and decide" in first.cells.text, "it is confirmed")

    second.shows("Nothing is waiting.")
    second.press(b"P", lambda: "only the console itself" in second.cells.text, "no pause")
    propose(console)
    read_and_approve(second, lambda: bool(approved_by(console)))
    assert approved_by(console) == ["attached 1"]
    eventually(lambda: writes(mailbox).count("POST send") == 1)
    first.press(b"1", lambda: "attached 1" in first.cells.text, "whose answer it was")

    second.press(b"q", lambda: second.process.poll() is not None, "it is closed")
    assert console.process.poll() is None
    eventually(lambda: aileron_json("status", home=console.home)["devices"] == [])


def test_serve_gets_a_console_that_the_vaults_passphrase_confirms(
    home: Path, serve: Serve, attach: Attach, mailbox: Mailbox
) -> None:
    """A wrong passphrase asks again. Killed, its screen says within three seconds that nothing can be decided."""
    make_vault(home, PHRASE)
    console = serve(mailbox)
    assert console.unlock(PHRASE).status == 200
    pty = attach()
    pty.answer("The vault's passphrase:", "another one")
    pty.until(lambda: pty.cells.text.count("The vault's passphrase:") == 2, "it asks again")
    assert PHRASE not in pty.cells.text
    pty.type(PHRASE.encode() + b"\n")
    pty.shows("Nothing is waiting.")
    lines = attach("--plain")
    lines.answer("The vault's passphrase:", PHRASE)
    lines.shows("attached 2")
    propose(console)
    lines.shows("Q3 numbers")
    read_and_approve(pty, lambda: bool(approved_by(console)))
    assert approved_by(console) == ["attached 1"]
    lines.until(lambda: b"approved by attached 1" in lines.raw, "whose answer it was")
    assert aileron_json("audit", "verify", home=home)["problems"] == []
    console.end(9)
    pty.shows("CUT OFF FROM THE SERVER")
    pty.press(b"q", lambda: pty.process.poll() is not None, "it is closed")
