"""`make demo`, as a person sees it: the whole path once, through the real programs."""

import json
import os
import re
import signal
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.tmux import Tmux, shell

ROOT = Path(__file__).resolve().parents[2]
REST = 0.6
"""Seconds of a hand at rest: a key counts 400 ms after the item was drawn and after the last key."""
ARMED = re.compile(r"^ ✓ All seen\. Press a to ", re.MULTILINE)


def _environment(home: Path) -> dict[str, str]:
    return {
        "AILERON_DEMO_HOME": str(home),
        "PATH": os.environ["PATH"],
        "HOME": str(home.parent),
        "LANG": "C.UTF-8",
    }


@pytest.fixture
def demo(home: Path) -> Iterator[Tmux]:
    terminal = Tmux(
        home.parent / "t", shell(sys.executable, "-m", "examples.demo"), _environment(home), ROOT
    )
    yield terminal
    terminal.close()


def _sent(home: Path) -> list[dict[str, object]]:
    url = json.loads((home / "log" / "ports.json").read_text())["mail"]
    with urllib.request.urlopen(f"{url}/_state", timeout=30) as answer:
        return json.load(answer)["sent"]


def test_the_demo_shows_what_the_mail_service_holds_and_one_key_sends_it(
    demo: Tmux, home: Path
) -> None:
    """To, Subject and Body are the service's; `a` sends; the agent in the other pane hears of it."""
    screen = demo.until(lambda shown: ARMED.search(shown) is not None)
    assert re.search(r"To +┃ Anna Brandt <anna\.brandt@nordlicht\.example>", screen)
    assert re.search(r"Subject +┃ Q3 numbers", screen)
    assert re.search(r"Body +┃ Hi Anna,", screen)
    assert "is answered by 127.0.0.1:" in screen
    assert demo.panes() == 2
    assert _sent(home) == []

    time.sleep(REST)
    demo.press("a")

    # First what stands there for some seconds only.
    demo.until(lambda shown: "✓ Approved" in shown or "✓ done" in shown)
    demo.until("agent: sent.", pane=1)
    (sent,) = _sent(home)
    assert "Q3 numbers" in json.dumps(sent)
    demo.press("q")
    ended = demo.until("ended with 0")
    assert "The mail service sent 1 message." in ended
    assert "agent: sent." in ended


def test_the_reason_of_a_no_reaches_the_agent_and_nothing_is_sent(demo: Tmux, home: Path) -> None:
    """`d` asks for a reason in place of the status line; the agent prints exactly that reason."""
    demo.until(lambda shown: ARMED.search(shown) is not None)
    demo.press("d")
    demo.until("will read it")
    demo.type("wrong numbers, wait for Thursday")
    demo.until("wait for Thursday")
    demo.until(lambda shown: _press_enter(demo, shown))
    demo.until("wrong numbers, wait for Thursday", pane=1)
    assert _sent(home) == []
    demo.press("q")
    assert "The mail service sent 0 messages." in demo.until("ended with 0")


def _press_enter(terminal: Tmux, shown: str) -> bool:
    """Press enter until the panel took it: it counts only after a rest of the hand."""
    if "will read it" not in shown:
        return True
    time.sleep(REST)
    terminal.press("Enter")
    return False


def test_a_terminated_console_gives_the_terminal_back(demo: Tmux, home: Path) -> None:
    """SIGTERM leaves the alternate screen; the demo's lines stand where they were."""
    demo.until(lambda shown: ARMED.search(shown) is not None)
    pid = json.loads((home / "daemon.json").read_text())["pid"]
    os.kill(pid, signal.SIGTERM)
    ended = demo.until("ended with 0")
    assert "home          " in ended
    assert "WILL HAPPEN" not in ended
