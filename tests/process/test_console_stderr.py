"""`aileron console` with its errors sent to a file: people do so to keep them."""

import contextlib
import os
from pathlib import Path

from tests.process.tmux import Tmux, shell
from tests.support.server_harness import CLI


def test_a_console_whose_standard_error_is_a_file_draws_on_the_terminal(folder: Path) -> None:
    """It drew into the file: blind, with keys that counted."""
    errors = folder / "errors"
    command = f"{shell(*CLI, 'console', '--home', str(folder / 'home'))} 2> {errors}"
    environment = {"HOME": str(folder), "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
    with contextlib.closing(Tmux(folder / "tmux", command, environment, folder)) as tmux:
        tmux.until("Nothing is waiting.")
        # A key that comes in one breath with the terminal's first answers does nothing.
        tmux.until(lambda shown: "Nothing is waiting." not in shown or tmux.press("2") is True)
        tmux.press("q")
        tmux.until("ended with 0")
        assert errors.read_text() == ""
