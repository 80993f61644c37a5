"""`aileron demo`, as a person plays it in one terminal: each scene, each answer, and what came of it."""

import contextlib
import json
import os
import re
import signal
import subprocess
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.process.tmux import Tmux, shell
from tests.support.server_harness import CLI, aileron, aileron_json
from tests.support.variants import variants

ALL_SEEN = r"^ ✓ All seen\. "


class Demo:
    """The demo in a terminal of *size*, and somebody at its keyboard."""

    def __init__(self, folder: Path, size: tuple[int, int] = (120, 48), **environment: str) -> None:
        self.folder = folder
        person = {"HOME": str(folder / "person"), "AILERON_HOME": str(folder / "real")}
        machine = {"PATH": os.environ["PATH"], "TMPDIR": str(folder), "LANG": "C.UTF-8"}
        everything = {**person, **machine, **environment}
        self.terminal = Tmux(folder / "t", shell(*CLI, "demo"), everything, folder, size=size)

    @property
    def home(self) -> Path:
        (found,) = self.folder.glob("aileron-demo-*/home")
        return found

    def state(self) -> dict[str, Any]:
        found = re.search(r"is answered by (127\.0\.0\.1:\d+)", self.terminal.pane())
        assert found, self.terminal.pane()
        with urllib.request.urlopen(f"http://{found[1]}/_state", timeout=30) as answer:
            return json.load(answer)

    def console_pid(self) -> int:
        return json.loads((self.home / "daemon.json").read_text())["pid"]

    def sent(self) -> list[str]:
        return [mail["subject"] for mail in self.state()["sent"]]

    def press(self, key: str, *patterns: str) -> str:
        """Press *key*, wait until all of *patterns* are on the screen, and return the screen."""
        return self.terminal.press_at_rest(key, matches_all(*patterns))

    def sees(self, *patterns: str) -> str:
        return self.terminal.until(matches_all(*patterns))

    def close(self) -> None:
        self.terminal.close()
        assert not list(self.folder.glob("aileron-demo-*")), "it left its home behind"
        assert not (self.folder / "real").exists()
        assert not (self.folder / "person").exists()


@pytest.fixture
def demo(folder: Path) -> Iterator[Demo]:
    with contextlib.closing(Demo(folder)) as running:
        yield running


def matches_all(*patterns: str) -> Callable[[str], bool]:
    return lambda screen: all(re.search(each, screen, re.MULTILINE) for each in patterns)


def test_a_person_plays_every_scene_and_sees_what_came_of_each_answer(demo: Demo) -> None:
    demo.sees(
        "1 of 6  A plain mail", "WILL HAPPEN", ALL_SEEN,
        r"\A.*  3 agents ",
        r"To +┃ Anna Brandt <anna\.brandt@nordlicht\.example>",
        r"Subject +┃ Q3 numbers",
    )  # fmt: skip
    assert demo.sent() == []
    demo.press(
        "a", r"1 of 6  Approved, and it ran\. S continues\.",
        r'service +┃ sent "Q3 numbers" to Anna Brandt.*\(1 sent, 5 drafts\)',
        r'agent +┊ mail-agent: completed, \{"id": ".*"SENT"',
    )  # fmt: skip
    assert demo.sent() == ["Q3 numbers"]

    demo.press("S", "2 of 6  This draft changes while you read it", r"14\.80 EUR", ALL_SEEN)
    demo.press(
        "a", "CHANGED  nothing has run",
        r"┃ − our offer 2291: 1,200 valves at 14\.80 EUR\.",
        r"┃ \+ our offer 2291: 1,200 valves at 11\.20 EUR\.",
    )  # fmt: skip
    assert demo.sent() == ["Q3 numbers"]
    demo.press("space", r"Changed\. Press a to send")
    demo.press("a", r"Changed after you looked: Body\. Press a again to send")
    demo.press("a", r"2 of 6  Approved, and it ran\.")
    assert "11.20 EUR" in demo.state()["sent"][1]["body"]

    demo.press(
        "S", "3 of 6  This mail has hidden characters", r"^ ▲ Hidden text in Subject: RLI, PDI",
        "5 hidden characters", "1 look-alike name", "invoice‹RLO›fdp.exe",
        r"┃ ✓ All seen\. This was approved before\. Press a\.",
    )  # fmt: skip
    demo.press("d", "will read it")
    demo.press("Enter", r"3 of 6  Denied\. Nothing ran", r"agent +┊ mail-agent: denied: ")
    assert demo.sent() == ["Q3 numbers", "Offer 2291"]

    demo.press(
        "S", "4 of 6 .*A change: ", ALL_SEEN,
        r"To +┃ − everyone@nordlicht\.example", r"┊ \+ board@nordlicht\.example",
    )  # fmt: skip
    demo.press("a", r"4 of 6  Approved, and it ran\.")
    (changed,) = (each for each in demo.state()["drafts"] if each["id"] == "r-1004")
    assert changed["to"] == "board@nordlicht.example"

    demo.press("S", "5 of 6 .*The service hangs up", ALL_SEEN)
    demo.press(
        "a", "5 of 6  The answer was lost", "OUTCOME  unknown", r"agent +┊ sales-agent: unknown: "
    )
    assert demo.sent() == ["Q3 numbers", "Offer 2291", "Order 5512"]
    demo.press("l", "HOW IT IS NOW")
    demo.press("m", "Acknowledged")

    demo.press("S", "6 of 6 .*This mail should not go out", ALL_SEEN)
    demo.press("d", "will read it")
    demo.terminal.type("Sales must sign it first")
    demo.terminal.until("Sales must sign it first")
    demo.press(
        "Enter", r"6 of 6  Denied\. Nothing ran, and the agent has your answer\.",
        r'office-agent: denied: ".*"Sales must sign it first"',
        r"So I\s*\n? *┊? *leave it alone\.",
    )  # fmt: skip
    assert len(demo.sent()) == 3

    ended = demo.press("S", r"End of the demo\.")
    assert "S next scene" not in ended.splitlines()[-1]
    ended = demo.terminal.quit()
    assert "Traceback" not in ended
    assert 'office-agent: denied: "A person denied this.' in ended
    assert "The mail service sent 3 mails:" in ended
    # In the clone of a newcomer, `make demo` has put no `aileron` on the path.
    command = re.search(r"^    (\S+) launch codex ", ended, re.MULTILINE)
    assert command
    assert subprocess.run([command[1], "version"], cwd=demo.folder, check=False).returncode == 0


def test_scenes_are_skipped_in_80_by_24_ascii_and_an_end_ends_everything(folder: Path) -> None:
    """`S` decides nothing: its agent takes the call back. Each introduction is whole on its line, in ASCII.

    A closed terminal or `kill` ends the demo in any scene: nothing goes on alone, and the home goes.
    """
    plain = {"LANG": "C", "LC_ALL": "C", "NO_COLOR": "1"}
    with contextlib.closing(Demo(folder, (80, 24), **plain)) as demo:
        assert demo.sees("1 of 6", "WILL HAPPEN").isascii()
        for number in range(2, 7):
            screen = demo.press("S", f"{number} of 6", "WILL HAPPEN")
            (line,) = (each for each in screen.splitlines() if f"{number} of 6" in each)
            assert line.rstrip().endswith(".")
            assert "S next scene" in screen
        assert aileron_json("audit", "verify", home=demo.home)["ok"] is True
        listed = aileron("audit", "list", "--json", "-n", "500", home=demo.home).stdout
        assert listed.count('"approval.withdrawn"') == 5
        assert listed.count('"approval.approved"') == 0
        console = demo.console_pid()
        status = Path(f"/proc/{console}/status").read_text()
        parent = int(re.search(r"^PPid:\t(\d+)", status, re.MULTILINE)[1])  # type: ignore[index]
        os.kill(parent, signal.SIGTERM)
        assert "The mail service sent 0 mails." in demo.terminal.until("ended with 0")
        assert not Path(f"/proc/{console}").exists()


@pytest.mark.parametrize(
    ("number", "ended", "said"),
    variants([(signal.SIGKILL, "ended with 137", "The console was killed by signal 9."),
              (signal.SIGTERM, "ended with 0", "Answers that the agents got:")]),
)  # fmt: skip
def test_an_ended_console_leaves_the_shell(demo: Demo, number: int, ended: str, said: str) -> None:
    """SIGKILL leaves the console no time; the alternate screen and raw keys end all the same."""
    demo.terminal.until("WILL HAPPEN")
    os.kill(demo.console_pid(), number)
    shown = demo.terminal.until(ended)
    assert said in shown
    assert "WILL HAPPEN" not in shown


def test_without_a_terminal_it_says_so(folder: Path) -> None:
    for words, code in ((["--json"], 2), ([], 1)):
        done = aileron("demo", *words, home=folder / "real", code=code)
        assert "terminal" in done.stdout + done.stderr
    assert not list(folder.iterdir())
