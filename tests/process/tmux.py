"""A tmux server of a test's own: real panes, real keys, the screen as text."""

import re
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.processes import alive, with_descendants

PATIENCE = 60.0
ENDING = 10.0
"""Seconds that what ran in the panes has for its end."""
REST = 0.6
"""Seconds of a hand at rest: a key counts 400 ms after the item was drawn and after the last key."""
TRIES = 5
UNSEEN = "not seen yet"
ALL_SEEN = re.compile(r"^ ✓ All seen\. ", re.MULTILINE)
Shown = str | re.Pattern[str] | Callable[[str], bool]
"""What a screen is to show: a text, a pattern, or what says so of a whole screen."""


class Tmux:
    """One session on a private socket."""

    def __init__(
        self,
        socket: Path,
        command: str,
        environment: dict[str, str],
        cwd: Path,
        size: tuple[int, int] = (120, 48),
    ) -> None:
        if shutil.which("tmux") is None:
            pytest.fail("these tests drive a real terminal: install tmux (.ci/run does)")
        self._socket = socket
        self._environment = {**environment, "TERM": "xterm-256color"}
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]),
                   "-c", str(cwd), f"{command}; echo ended with $?; sleep 600")  # fmt: skip

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-S", str(self._socket), *words]
        # The server's environment: test runners pin a size of their own.
        return subprocess.check_output(command, text=True, env=self._environment)

    def pane(self, number: int = 0) -> str:
        return self._tmux("capture-pane", "-p", "-J", "-t", f":.{number}")

    def panes(self) -> int:
        return len(self._tmux("list-panes").splitlines())

    def press(self, *keys: str, pane: int = 0) -> None:
        for key in keys:
            self._tmux("send-keys", "-t", f":.{pane}", key)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-l", "-t", ":.0", text)

    def press_at_rest(self, key: str, wanted: Shown) -> str:
        """Press *key* after a rest of the hand, wait until the first pane shows *wanted*, and return the screen.

        It is pressed again only where the console says that it did not count: on a slow machine a
        second press may come after what the first has opened, and mean something else there.
        """
        label = re.escape(key.lower() if len(key) > 1 else key)
        refused = re.compile(
            rf"^ (Too soon|The screen changed as you|This pane was not in focus).* {label} again\."
            rf"|^ {label} did nothing: |Nothing was decided\.",
            re.MULTILINE,
        )
        for _ in range(TRIES):
            self.until(lambda shown: refused.search(shown) is None)
            time.sleep(REST)
            self.press(key)
            shown = self.until(lambda shown: _holds(wanted, shown) or bool(refused.search(shown)))
            if _holds(wanted, shown):
                return shown
        raise AssertionError(self.pane())

    def read_on(self, end: Shown = ALL_SEEN) -> str:
        """Press space until the first pane shows *end*, and return all that was on the screen."""
        screens = [""]

        def more(shown: str) -> bool:
            return _holds(end, shown) or (UNSEEN in shown and shown != screens[-1])

        screens.append(self.until(more))
        while not _holds(end, screens[-1]):
            time.sleep(REST)
            self.press("Space")
            screens.append(self.until(more))
        return "\n".join(screens)

    def quit(self) -> str:
        deadline = time.monotonic() + PATIENCE
        while "ended with" not in (shown := self.pane()):
            assert time.monotonic() < deadline, shown
            time.sleep(REST)
            self.press("q")
        return self.until("ended with 0")

    def until(self, wanted: Shown, pane: int = 0, patience: float = PATIENCE) -> str:
        """Wait until *pane* shows *wanted*, *patience* seconds at most, and return the screen.

        A console may be in the middle of drawing it: all that is to be there belongs in *wanted*.
        """
        began = time.monotonic()
        while True:
            shown = self.pane(pane)
            if _holds(wanted, shown):
                return shown
            waited = time.monotonic() - began
            assert waited < patience, shown
            # tmux has no way to wait for a screen; each look starts a process, so a long wait looks seldom.
            time.sleep(min(0.05 + waited / 50, 0.5))

    def flags(self, *names: str) -> dict[str, str]:
        """Return what tmux says of the terminal: `alternate_on`, `mouse_any_flag` and the like."""
        wanted = "\n".join(f"{name}=#{{{name}}}" for name in names)
        said = self._tmux("display-message", "-p", wanted)
        return dict(line.split("=") for line in said.split())

    def close(self) -> None:
        """End the server and everything in it; what writes at its end does so before its folder goes."""
        command = ["tmux", "-S", str(self._socket)]
        list_panes = [*command, "list-panes", "-s", "-F", "#{pane_pid}"]
        panes = subprocess.run(list_panes, capture_output=True, check=False)
        inside = with_descendants({int(pid) for pid in panes.stdout.split()})
        subprocess.run([*command, "kill-server"], check=False)
        deadline = time.monotonic() + ENDING
        while inside & alive() and time.monotonic() < deadline:
            time.sleep(0.05)  # nothing tells of the end of a process that is no child of ours


def _holds(wanted: Shown, shown: str) -> bool:
    if isinstance(wanted, str):
        return wanted in shown
    return bool(wanted.search(shown) if isinstance(wanted, re.Pattern) else wanted(shown))


def shell(*words: str) -> str:
    return shlex.join(words)
