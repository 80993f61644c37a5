"""The README's first screen of text, typed line by line by somebody with an empty home."""

import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.tmux import REST, Tmux, shell
from tests.support.server_harness import ROOT
from tests.support.variants import ALL

FIRST_LINES = 33
"""As many lines as a screen shows of a page."""
PROMPT = r"[$#] *$"
MINUTES = 8 * 60
"""For one command: it fetches some forty packages."""
ENDED = r"exit=\d+ *$"
"""What is printed where a line has ended; a `q` too many may stand before it."""


def readme_commands() -> list[str]:
    """Return every command line on the first screen of the README."""
    page = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()[:FIRST_LINES]
    return [line[4:].partition("  #")[0].rstrip() for line in page if line.startswith("    ")]


def test_the_first_screen_leads_from_the_clone_to_a_console() -> None:
    assert readme_commands() == [
        "make demo",
        "python3 -m venv ~/aileron-venv",
        ". ~/aileron-venv/bin/activate",
        "pip install .",
        "aileron demo",
        "aileron init --example",
        "aileron console",
    ]


@pytest.fixture
def machine() -> Iterator[Path]:
    """A folder with a clone, as git has it, and an empty home."""
    with tempfile.TemporaryDirectory(prefix="ail-") as made:
        folder = Path(made)
        (folder / "home").mkdir()
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT, capture_output=True, text=True, check=True,
        ).stdout.splitlines()  # fmt: skip
        for name in listed:
            source, target = ROOT / name, folder / "clone" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            if source.is_symlink() or source.is_file():
                shutil.copy2(source, target, follow_symlinks=False)
        yield folder


@pytest.fixture
def terminal(machine: Path) -> Iterator[Tmux]:
    """A shell in the clone that knows nothing of this process but where packages come from."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "SSL_CERT_FILE", "PIP_CACHE_DIR") or name.lower().endswith("_proxy")
        or name.startswith("PIP_")
    }  # fmt: skip
    running = Tmux(
        machine / "t",
        shell("bash", "--norc", "-i"),
        # Packages are compiled as they are imported: a third of the time is spent on those that are not.
        {**kept, "HOME": str(machine / "home"), "LANG": "C.UTF-8", "PIP_NO_COMPILE": "1"},
        machine / "clone",
        size=(100, 40),
    )
    yield running
    running.close()


class Newcomer:
    """Types a line, waits for what it does, and goes on."""

    def __init__(self, terminal: Tmux) -> None:
        self._terminal = terminal

    def types(self, command: str) -> None:
        self._terminal.type(f"clear; {command}; echo exit=$?")
        self._terminal.press("Enter")

    def sees(self, text: str) -> str:
        """Wait until *text*, a pattern, is on the screen, and return the screen."""
        return self._terminal.until(re.compile(text, re.MULTILINE), patience=MINUTES)

    def closes(self) -> None:
        """Press `q` until the console has ended."""
        while re.search("^ aileron ", self._terminal.pane(), re.MULTILINE):
            self._terminal.press("q")
            time.sleep(REST)


@pytest.mark.timeout(3 * MINUTES)
def test_every_line_of_the_first_screen_works_as_it_is_written(
    terminal: Tmux, machine: Path
) -> None:
    """Each is typed once the one before has ended; a console is closed with `q`.

    What `make demo` does before `aileron demo` is done by whoever types `make test`.
    """
    person = Newcomer(terminal)
    person.sees(PROMPT)
    for command in readme_commands() if ALL else readme_commands()[1:]:
        person.types(command)
        if command == "make demo":
            person.sees("^Collecting |^ +━|^Installing collected packages")
        if command.endswith(" demo"):
            person.sees("1 of 6  A plain mail")
            person.closes()
        if command == "aileron console":
            person.sees("Accept this connector")
            person.closes()
        shown = person.sees(ENDED)
        assert "exit=0" in shown, (command, shown)
        assert "Traceback" not in shown
    assert (machine / "home" / ".aileron" / "actions" / "send-draft.md").is_file()
