"""A tmux server of a test's own: real panes, real keys, the screen as text."""

import contextlib
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

PATIENCE = 60.0
ENDING = 10.0
"""Seconds that what ran in the panes has for its end."""


class Tmux:
    """One session on a private socket."""

    def __init__(
        self,
        socket: Path,
        command: str,
        environment: dict[str, str],
        cwd: Path,
        *,
        size: tuple[int, int] = (120, 48),
    ) -> None:
        if shutil.which("tmux") is None:
            pytest.fail("these tests drive a real terminal: install tmux (.ci/run does)")
        self._socket = socket
        self._environment = {**environment, "TERM": "xterm-256color"}
        self._tmux("-f", "/dev/null", "new-session", "-d", "-x", str(size[0]), "-y", str(size[1]),
                   "-c", str(cwd), f"{command}; echo ended with $?; sleep 600")  # fmt: skip

    def _tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-S", str(self._socket), *words],
            capture_output=True,
            text=True,
            check=True,
            env=self._environment,  # the server's: test runners pin a size of their own
        )
        return done.stdout

    def pane(self, number: int = 0) -> str:
        """Return what pane *number* shows."""
        return self._tmux("capture-pane", "-p", "-J", "-t", f":.{number}")

    def panes(self) -> int:
        """Return how many panes there are."""
        return len(self._tmux("list-panes").splitlines())

    def press(self, *keys: str, pane: int = 0) -> None:
        """Press *keys* in pane *pane*, each after a rest of the hand."""
        for key in keys:
            self._tmux("send-keys", "-t", f":.{pane}", key)

    def type(self, text: str) -> None:
        """Type *text* into the first pane."""
        self._tmux("send-keys", "-l", "-t", ":.0", text)

    def until(
        self, text: str | Callable[[str], bool], pane: int = 0, patience: float = PATIENCE
    ) -> str:
        """Wait until *pane* shows *text*, *patience* seconds at most, and return the screen."""
        holds = (lambda shown: text in shown) if isinstance(text, str) else text
        began = time.monotonic()
        while True:
            shown = self.pane(pane)
            if holds(shown):
                return shown
            waited = time.monotonic() - began
            assert waited < patience, shown
            # tmux has no way to wait for a screen; each look starts a process, so a long wait looks seldom.
            time.sleep(min(0.05 + waited / 50, 0.5))

    def close(self) -> None:
        """End the server and everything in it; what writes at its end does so before its folder goes."""
        panes = subprocess.run(
            ["tmux", "-S", str(self._socket), "list-panes", "-s", "-F", "#{pane_pid}"],
            capture_output=True,
            text=True,
            check=False,
        )
        inside = _with_descendants({int(pid) for pid in panes.stdout.split()})
        subprocess.run(["tmux", "-S", str(self._socket), "kill-server"], check=False)
        deadline = time.monotonic() + ENDING
        while inside & _processes().keys() and time.monotonic() < deadline:
            time.sleep(0.05)  # nothing tells of the end of a process that is no child of ours


def _processes() -> dict[int, int]:
    """Return the parent of every process that has not ended."""
    found: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            state, parent = stat.read_text().rpartition(")")[2].split()[:2]
            if state not in "ZX":
                found[int(stat.parent.name)] = int(parent)
    return found


def _with_descendants(pids: set[int]) -> set[int]:
    parents = _processes()
    while more := {pid for pid, parent in parents.items() if parent in pids} - pids:
        pids = pids | more
    return pids


def shell(*words: str) -> str:
    """Return *words* quoted for a shell."""
    return shlex.join(words)
