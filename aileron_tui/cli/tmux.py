"""`launch --console`: a console in a new tmux pane, where none runs yet."""

import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from aileron_core.errors import AileronError, ConsoleUnavailable
from aileron_core.home.client import HomeClient
from aileron_core.home.owner import OwnerNotVerified, lock_owner
from aileron_tui.cli.output import EXIT, CliError

_SECONDS = 30.0
"""How long a console may take until it answers."""
_WIDE = 160
"""Columns from which two panes stand side by side."""


def open_console(home: Path, env: Mapping[str, str]) -> bool:
    """Open a console on *home* in a new tmux pane and wait until it answers; False if one runs.

    Raises:
        CliError: there is no tmux around this terminal, or the console did not come up.
        ConsoleAbsent: the home or its console belongs to another user, or its owner is unknown.
    """
    try:
        if lock_owner(home) is not None:
            return False
    except OwnerNotVerified as error:
        raise ConsoleUnavailable(str(error)) from error
    tmux = shutil.which("tmux", path=env.get("PATH"))
    if not env.get("TMUX") or tmux is None:
        raise CliError(
            EXIT.NO_CONSOLE,
            f"No console is running on {home}, and --console opens one only inside tmux. Start "
            "`aileron console` in another window of your terminal, or run this inside tmux.",
        )
    pane = _split(tmux, env, home)
    console, deadline = HomeClient(home), time.monotonic() + _SECONDS
    while True:
        try:
            console.request("GET", "/v1/status")
        except AileronError:
            if not _lives(tmux, env, pane):
                raise CliError(
                    EXIT.NO_CONSOLE,
                    "The console stopped right after it started. Run `aileron console` to see why.",
                ) from None
            if time.monotonic() > deadline:
                raise CliError(
                    EXIT.NO_CONSOLE,
                    f"The console in the new pane did not answer within {_SECONDS:g} seconds.",
                ) from None
            time.sleep(0.1)
        else:
            return True


def _split(tmux: str, env: Mapping[str, str], home: Path) -> str:
    """Open a pane before this one, which keeps the keyboard; return its id."""
    at = ["-t", env["TMUX_PANE"]] if env.get("TMUX_PANE") else []
    width = _tmux(tmux, env, "display-message", "-p", *at, "#{window_width}").strip()
    side = ["-h"] if width.isdigit() and int(width) >= _WIDE else ["-v"]
    command = [sys.executable, "-I", "-m", "aileron_tui.cli", "console", "--home", str(home)]
    how = ["split-window", "-d", "-b", *side, *at, "-c", str(Path.home()), "-P", "-F", "#{pane_id}"]
    return _tmux(tmux, env, *how, *command).strip()


def _lives(tmux: str, env: Mapping[str, str], pane: str) -> bool:
    return pane in _tmux(tmux, env, "list-panes", "-a", "-F", "#{pane_id}").split()


def _tmux(tmux: str, env: Mapping[str, str], *words: str) -> str:
    done = subprocess.run(
        [tmux, *words], capture_output=True, text=True, timeout=10, check=False, env=dict(env)
    )
    if done.returncode != 0:
        raise CliError(EXIT.FAILED, f"tmux {words[0]} failed: {done.stderr.strip()}")
    return done.stdout
