"""Hostile agents, a hostile service and hostile files at the real console, on a real terminal.

Everything comes over the wire that it comes over in earnest: sessions and calls over HTTP, previews
from the service, files from the home. The terminal obeys nothing but what the console is known to
send, and sees some glyphs wider than the console does.
"""

from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

from examples.mailbox.server import Mailbox
from tests.process.attended import ScreenConsole
from tests.process.test_hostile_cli import action_file, toml_string
from tests.support.attacks import ATTACKS, everything, harmless
from tests.support.server_harness import DRAFT
from tests.support.terminal import joins_nothing
from tests.support.variants import variants

SIZES = ((120, 36), (80, 24), (200, 60))
DRAWN = 0.2
"""Seconds after a key until what it opens is on the terminal; what comes later is looked at with the next key."""


def sendable(text: str) -> str:
    """Return *text* as JSON over HTTP carries it: without lone surrogates."""
    return text.encode("utf-8", "replace").decode()


def spoil_draft(mailbox: Mailbox, text: str) -> None:
    """Let the service's draft say *text* wherever a mail can."""
    head = " ".join(text.splitlines())[:2_000]
    mailbox.control(change={"id": DRAFT, "to": head, "subject": head, "body": text})


def install_attacks(home: Path) -> None:
    """Put files into the home that say attacks: headings, labels, descriptions, names, problems."""
    turn = cycle(ATTACKS)
    for number in range(4):
        text = sendable(next(turn).text).replace("\n", " ")
        name = f"spoilt-{number}"
        written = action_file(name, head=f"# {text}\n").replace(
            'label = "Draft"', f"label = {toml_string(text)}"
        )
        (home / "actions" / f"{name}.md").write_text(written)
        broken = action_file(f"broken-{number}", f"{toml_string(next(turn).text)} = 1")
        (home / "actions" / f"broken-{number}.md").write_text(broken)


def check_terminal(console: ScreenConsole) -> None:
    """Check what stands on the terminal now, and all that was ever sent to it."""
    cells = console.pty.cells
    assert cells.strangers == []
    assert cells.copied == []
    drawn = {char for line in cells.lines for char in line}
    assert [char for char in drawn if not harmless(char) and char not in "\ufe0e\ufe0f"] == []


@pytest.mark.timeout(300)
@pytest.mark.parametrize("size", variants(SIZES))
def test_a_hostile_world_is_shown_and_never_obeyed(
    sit: Callable[..., ScreenConsole], home: Path, mailbox: Mailbox, size: tuple[int, int]
) -> None:
    """Calls, previews, sessions, files and records that say attacks; every page, every item."""
    install_attacks(home)
    console = sit(size=size, width_of=joins_nothing, answers=True)
    turn = cycle(ATTACKS)
    for number in range(6):
        spoil_draft(mailbox, sendable(everything(600) if number == 0 else next(turn).text))
        agent, label = sendable(next(turn).text)[:64], sendable(next(turn).text)[:128]
        opened = console.session(agent=agent, label=label, cwd="/" + sendable(next(turn).text))
        args = {"draft_id": DRAFT if number % 3 else sendable(next(turn).text)}
        asked = console.run("send-draft", args, opened["token"])
        assert asked.status == 202
    console.pty.until(lambda: " 6 " in console.pty.cells.lines[0], "all wait")
    for key in (b"j", b"j", b"k", b" ", b"j", b" ", b"j", b"j"):
        console.pty.type(key)
        console.pty.settle(DRAWN)
        check_terminal(console)
    for page in (b"2", b"3", b"4", b"5", b"1"):
        for key in (page, b"\r", b"j", b"\x1b", b"?", b"\x1b"):
            console.pty.type(key)
            console.pty.settle(DRAWN)
            check_terminal(console)
    console.pty.resize((size[0] + 10, size[1] + 4))
    console.pty.settle(1.0)
    check_terminal(console)
    assert all(
        title in ("", "aileron") or title.endswith(") aileron")
        for title in console.pty.cells.titles
    )
    assert {state for (state,) in console.rows("state")} == {"pending"}
