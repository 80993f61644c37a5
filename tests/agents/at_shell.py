"""A person's interactive shell in a real tmux, where launches are jobs."""

import os
import re
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tests.process.tmux import Tmux, shell

READY = "READY>"
"""The shell's prompt."""
_SHELLS = {
    "bash": ("bash --norc --noprofile -i", f"PS1='{READY} '"),
    "zsh": ("zsh -f -i", f"PROMPT='{READY} '"),
    "fish": ("fish --private --no-config -i", f"function fish_prompt; echo -n '{READY} '; end"),
}
"""Each with what sets its prompt."""
SHELLS = (*_SHELLS,)


class Shell:
    """One interactive shell on a terminal of its own."""

    def __init__(
        self,
        name: str,
        folder: Path,
        environment: Mapping[str, str],
        *,
        cwd: Path,
        under: tuple[str, ...] = (),
    ) -> None:
        """Start the shell *name*, with its socket in *folder*, *under* what an ordinary user's program is run under."""
        if shutil.which(name) is None:
            pytest.fail(f"these tests drive a real shell: install {name} (.ci/run does)")
        self.folder, (words, prompt) = folder, _SHELLS[name]
        # A command of its own, so that the shell is a session's leader as in any terminal.
        command = f"exec {shell(*under, *words.split())}"
        given = {**environment, "SHELL": "/bin/sh", "LANG": "C.UTF-8", "HISTFILE": os.devnull}
        self.tmux = Tmux(folder / "tmux", command, given, cwd, size=(100, 40))
        self.tmux.type(prompt)
        self.tmux.press("Enter")
        self.at_prompt()

    def run(self, command: str) -> None:
        self.tmux.press("C-l")
        self.at_prompt(alone=True)
        self.tmux.type(command)
        self.tmux.press("Enter")

    def at_prompt(self, *, alone: bool = False, seconds: float = 60) -> str:
        """Wait until the shell waits for a command (on an otherwise *alone* screen); return the screen."""

        def waits(shown: str) -> bool:
            lines = [line for line in shown.splitlines() if line.strip()]
            return bool(lines) and lines[-1].strip() == READY and (len(lines) == 1 or not alone)

        return self.tmux.until(waits, patience=seconds)

    def until(self, text: str | Callable[[str], bool], seconds: float = 60) -> str:
        return self.tmux.until(text, patience=seconds)

    def until_stopped(self) -> str:
        """Wait until the shell says that its job has stopped; return the screen at its prompt."""

        def told(shown: str) -> bool:
            if re.search("topped|suspended", shown):
                return True
            self.press("Enter")  # bash says so before its next prompt
            return False

        self.until(told)
        return self.at_prompt()

    def press(self, *keys: str) -> None:
        self.tmux.press(*keys)

    def flags(self, *names: str) -> dict[str, str]:
        return self.tmux.flags(*names)

    def close(self) -> None:
        self.tmux.close()
