"""`python -m tests.support.screens SCREEN`: one screen on fixtures, in a real terminal."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.terminal import Pty
from tests.support.variants import variants

ROOT = Path(__file__).parents[2]
CHILD = Path(__file__).with_name("fixture_child.py")
SCREENS = {
    "waiting": "WILL HAPPEN",
    "activity": "Newest first.",
    "audit": "not verified since the console started",
    "library": "invalid",
    "sessions": "sessions open",
    "help": "KEYS",
    "palette": "every command by name",
    "lock": "Press any key to show",
}
"""Each screen with what stands on no other."""
LEAVES = {"help": b"q", "palette": b"\x1b", "lock": b"q"}
"""The key that leads from what covers a page to the page."""


def press(terminal: Pty, key: bytes) -> None:
    """Press *key* with a rested hand: two keys within 20 ms are a burst, and are dropped."""
    terminal.settle(0.1)
    terminal.type(key)


def test_no_screen_is_forgotten() -> None:
    """Whoever is told that there is no such screen is told which there are."""
    result = subprocess.run(
        [sys.executable, "-m", "tests.support.screens"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert result.returncode == 1
    assert f"{{{'|'.join(SCREENS)}}}" in result.stderr


@pytest.mark.parametrize("name", variants(SCREENS, 2))
def test_a_screen_is_shown_on_fixtures_and_quits(name: str) -> None:
    """It stands there without a home, a server or an agent, and `q` twice ends it well."""
    terminal = Pty([sys.executable, "-I", str(CHILD), name])
    try:
        terminal.shows(SCREENS[name])
        if name in LEAVES:
            press(terminal, LEAVES[name])
            terminal.until(lambda: SCREENS[name] not in terminal.cells.text, "the page below")
            terminal.shows("? help")
        press(terminal, b"q")
        terminal.shows("q again to quit")
        press(terminal, b"q")
        assert terminal.ended() == 0
    finally:
        terminal.close()
