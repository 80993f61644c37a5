"""`aileron demo`, as a person plays it in one terminal: each scene, each answer, and what came of it."""

import json
import os
import re
import signal
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.tmux import Tmux, shell
from tests.support.server_harness import CLI, aileron

REST = 0.6
"""Seconds of a hand at rest: a key counts 400 ms after the item was drawn and after the last key."""


HIDDEN_TEXT = re.compile(r"^ ▲ Hidden text in Subject: RLI, PDI", re.MULTILINE)
ALL_SEEN = re.compile(r"^ ✓ All seen\. ", re.MULTILINE)


class Demo:
    """The demo in a terminal of *size*, and somebody at its keyboard."""

    def __init__(self, folder: Path, size: tuple[int, int], **environment: str) -> None:
        self.folder = folder
        self.terminal = Tmux(
            folder / "t",
            shell(*CLI, "demo"),
            {
                "PATH": os.environ["PATH"],
                "HOME": str(folder / "person"),
                "AILERON_HOME": str(folder / "real"),
                "TMPDIR": str(folder),
                "LANG": "C.UTF-8",
                **environment,
            },
            folder,
            size=size,
        )

    @property
    def home(self) -> Path:
        """The home that it made for itself."""
        (found,) = self.folder.glob("aileron-demo-*/home")
        return found

    def state(self) -> dict[str, Any]:
        """Return what the mail service holds."""
        found = re.search(r"is answered by (127\.0\.0\.1:\d+)", self.terminal.pane())
        assert found, self.terminal.pane()
        with urllib.request.urlopen(f"http://{found[1]}/_state", timeout=30) as answer:
            return json.load(answer)

    def sent(self) -> list[str]:
        """Return the subjects of the mails that went out."""
        return [mail["subject"] for mail in self.state()["sent"]]

    def press(self, key: str, until: str) -> str:
        """Press *key* after a rest of the hand until the screen shows *until*; return the screen."""
        for _ in range(20):
            time.sleep(REST)
            self.terminal.press(key)
            for _ in range(20):
                if until in (shown := self.terminal.pane()):
                    return shown
                time.sleep(0.1)
        raise AssertionError(f"{until} never came after {key}:\n{self.terminal.pane()}")

    def quit(self) -> str:
        """Press `q` until the demo has ended, and return what is then on the terminal."""
        ended = self.press("q", "ended with 0")
        assert "Traceback" not in ended
        return ended

    def close(self) -> None:
        self.terminal.close()
        assert not list(self.folder.glob("aileron-demo-*")), "it left its home behind"
        assert not (self.folder / "real").exists()
        assert not (self.folder / "person").exists()


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket."""
    with tempfile.TemporaryDirectory(prefix="ail-") as made:
        yield Path(made)


@pytest.fixture
def demo(folder: Path) -> Iterator[Demo]:
    running = Demo(folder, (120, 48))
    yield running
    running.close()


def scene(demo: Demo, number: int, *shown: str, rest: re.Pattern[str] = ALL_SEEN) -> str:
    """Wait until scene *number* is there to be decided, with all of *shown*."""
    return demo.terminal.until(
        lambda screen: (
            f"{number} of 6" in screen
            and rest.search(screen) is not None
            and all(each in screen for each in shown)
        )
    )


def test_a_person_plays_every_scene_and_sees_what_came_of_each_answer(demo: Demo) -> None:
    """Three agents, six scenes: the service and the agents end with what the person decided."""
    screen = scene(demo, 1, "A plain mail", "WILL HAPPEN")
    assert re.search(r"To +┃ Anna Brandt <anna\.brandt@nordlicht\.example>", screen)
    assert re.search(r"Subject +┃ Q3 numbers", screen)
    for agent in ("mail-agent", "sales-agent", "office-agent"):
        assert agent in screen.splitlines()[0]
    assert demo.sent() == []
    screen = demo.press("a", "1 of 6  Approved, and it ran. S continues.")
    assert re.search(r'service +┃ sent "Q3 numbers" to Anna Brandt.*\(1 sent, 5 drafts\)', screen)
    assert re.search(r'agent +┊ mail-agent: completed, \{"id": ".*"SENT"', screen)
    assert demo.sent() == ["Q3 numbers"]

    demo.press("S", "This draft changes while you read it")
    scene(demo, 2, "14.80 EUR")
    screen = demo.press("a", "CHANGED  nothing has run")
    assert re.search(r"┃ − our offer 2291: 1,200 valves at 14\.80 EUR\.", screen)
    assert re.search(r"┃ \+ our offer 2291: 1,200 valves at 11\.20 EUR\.", screen)
    assert demo.sent() == ["Q3 numbers"]
    demo.press("a", "2 of 6  Approved, and it ran.")
    assert "11.20 EUR" in demo.state()["sent"][1]["body"]

    demo.press("S", "This mail has hidden characters")
    screen = scene(demo, 3, "5 hidden characters", "1 look-alike name", rest=HIDDEN_TEXT)
    assert "invoice‹RLO›fdp.exe" in screen
    assert re.search(r"┃ ✓ All seen\. This was approved before\. Press a\.", screen)
    demo.press("d", "will read it")
    screen = demo.press("Enter", "3 of 6  Denied. Nothing ran")
    assert re.search(r"agent +┊ mail-agent: denied: ", screen)
    assert demo.sent() == ["Q3 numbers", "Offer 2291"]

    demo.press("S", "A change: ")
    screen = scene(demo, 4)
    assert re.search(r"To +┃ − everyone@nordlicht\.example", screen)
    assert re.search(r"┊ \+ board@nordlicht\.example", screen)
    demo.press("a", "4 of 6  Approved, and it ran.")
    (changed,) = (each for each in demo.state()["drafts"] if each["id"] == "r-1004")
    assert changed["to"] == "board@nordlicht.example"

    demo.press("S", "The service hangs up")
    scene(demo, 5)
    demo.press("a", "5 of 6  The answer was lost")
    screen = demo.terminal.until("OUTCOME  unknown")
    assert re.search(r"agent +┊ sales-agent: unknown: ", screen)
    assert demo.sent() == ["Q3 numbers", "Offer 2291", "Order 5512"]
    demo.press("l", "HOW IT IS NOW")
    demo.press("m", "Acknowledged")

    demo.press("S", "This mail should not go out")
    scene(demo, 6)
    demo.press("d", "will read it")
    demo.terminal.type("Sales must sign it first")
    demo.terminal.until("Sales must sign it first")
    screen = demo.press("Enter", "6 of 6  Denied. Nothing ran, and the agent has your answer.")
    assert re.search(r'office-agent: denied: ".*"Sales must sign it first"', screen)
    assert "So I leave it alone." in re.sub(r"\s*\n +┊ ", " ", screen)
    assert len(demo.sent()) == 3

    assert "S next scene" not in demo.press("S", "End of the demo.").splitlines()[-1]
    ended = demo.quit()
    assert 'office-agent: denied: "A person denied this.' in ended
    assert "The mail service sent 3 mails:" in ended
    assert "    aileron launch codex" in ended


def test_every_scene_can_be_skipped_and_its_agent_takes_the_call_back(demo: Demo) -> None:
    """`S` decides nothing: what waited is withdrawn by the agent that asked."""
    for number in range(1, 7):
        demo.terminal.until(f"{number} of 6")
        demo.terminal.until(lambda shown: "WILL HAPPEN" in shown)
        after = f"{number + 1} of 6" if number < 6 else "End of the demo."
        demo.press("S", after)
    assert demo.sent() == []
    verified = aileron("audit", "verify", "--json", home=demo.home)
    assert json.loads(verified.stdout)["ok"] is True
    listed = aileron("audit", "list", "--json", "-n", "500", home=demo.home).stdout
    assert listed.count('"approval.withdrawn"') == 6
    assert listed.count('"approval.approved"') == 0
    ended = demo.quit()
    assert ended.count('withdrawn: "The request was withdrawn.') == 6
    assert "The mail service sent 0 mails." in ended


def test_a_terminal_of_80_by_24_without_utf_8_and_colour_is_enough(folder: Path) -> None:
    """Each introduction is whole on its line; every sign has a form in ASCII."""
    demo = Demo(folder, (80, 24), LANG="C", LC_ALL="C", NO_COLOR="1")
    try:
        screen = demo.terminal.until(lambda shown: "1 of 6" in shown and "WILL HAPPEN" in shown)
        assert screen.isascii()
        for number in range(2, 7):
            screen = demo.press("S", f"{number} of 6")
            (line,) = (each for each in screen.splitlines() if f"{number} of 6" in each)
            assert line.rstrip().endswith(".")
            assert "S next scene" in screen
        demo.press("S", "End of the demo.")
        demo.quit()
    finally:
        demo.close()


@pytest.mark.parametrize(
    ("number", "ended", "said"),
    [
        (signal.SIGTERM, "ended with 0", "Answers that the agents got:"),
        (signal.SIGKILL, "ended with 137", "The console was killed by signal 9."),
    ],
    ids=["terminated", "killed"],
)
def test_a_console_that_is_ended_leaves_a_terminal_to_type_in(
    demo: Demo, number: int, ended: str, said: str
) -> None:
    """SIGKILL leaves the console no time; the alternate screen and raw keys end all the same."""
    demo.terminal.until("WILL HAPPEN")
    os.kill(json.loads((demo.home / "daemon.json").read_text())["pid"], number)
    shown = demo.terminal.until(ended)
    assert said in shown
    assert "WILL HAPPEN" not in shown


def test_ending_the_demo_ends_its_console_and_its_agents(demo: Demo) -> None:
    """As a closed terminal or `kill` does: nothing goes on alone, and the home goes."""
    demo.terminal.until("WILL HAPPEN")
    console = json.loads((demo.home / "daemon.json").read_text())["pid"]
    status = Path(f"/proc/{console}/status").read_text()
    parent = int(re.search(r"^PPid:\t(\d+)", status, re.MULTILINE)[1])  # type: ignore[index]
    os.kill(parent, signal.SIGTERM)
    demo.terminal.until("ended with 0")
    assert not Path(f"/proc/{console}").exists()


@pytest.mark.parametrize(("words", "code"), [((), 1), (("--json",), 2)])
def test_without_a_terminal_it_says_so(folder: Path, words: tuple[str, ...], code: int) -> None:
    done = aileron("demo", *words, home=folder / "real", code=code)
    assert "terminal" in done.stdout + done.stderr
    assert not list(folder.iterdir())
