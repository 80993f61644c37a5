"""The README's first screen of text, typed line by line by somebody with an empty home."""

import os
import re
import shutil
import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.process.test_first_account import Pane
from tests.process.tmux import REST
from tests.support.server_harness import ROOT
from tests.support.variants import ALL

FIRST_LINES = 33
"""As many lines as a screen shows of a page."""
MINUTES = 8 * 60
"""For one command: it fetches some forty packages."""


def readme_commands() -> list[str]:
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
def machine(folder: Path) -> Path:
    """A folder with a clone, as git has it (but in `make test-all` without its tests), and an empty home."""
    (folder / "home").mkdir()
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "--", ".", *(() if ALL else (":!tests",))],
        cwd=ROOT, capture_output=True, text=True, check=True,
    ).stdout.splitlines()  # fmt: skip
    for name in listed:
        source, target = ROOT / name, folder / "clone" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink() or source.is_file():
            shutil.copy2(source, target, follow_symlinks=False)
    return folder


@pytest.fixture
def shell_pane(machine: Path) -> Iterator[Pane]:
    """A shell in the clone that knows nothing of this process but where packages come from.

    But in `make test-all` they are lent, and nothing is fetched: `make setup` has done that, by the same file.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if name in ("PATH", "SSL_CERT_FILE", "PIP_CACHE_DIR") or name.lower().endswith("_proxy")
        or name.startswith("PIP_")
    }  # fmt: skip
    # Packages are compiled as they are imported: a third of the time is spent on those that are not.
    kept |= {"HOME": str(machine / "home"), "PIP_NO_COMPILE": "1"}
    if not ALL:
        kept |= {"PIP_NO_DEPS": "1", "PIP_NO_BUILD_ISOLATION": "0"}  # 0 is how pip takes the `no`
    pane = Pane(machine, "t", machine / "clone", MINUTES, **kept)
    yield pane
    pane.terminal.close()


def close_console(person: Pane) -> None:
    while re.search("^ aileron ", person.terminal.pane(), re.MULTILINE):
        person.terminal.press("q")
        time.sleep(REST)


@pytest.mark.timeout(3 * MINUTES)
def test_every_line_of_the_first_screen_works_as_it_is_written(
    shell_pane: Pane, machine: Path
) -> None:
    """Each is typed once the one before has ended; a console is closed with `q`.

    What `make demo` does before `aileron demo` is done by whoever types `make test`.
    """
    for command in readme_commands() if ALL else readme_commands()[1:]:
        shell_pane.types(command)
        if command == "make demo":
            shell_pane.sees("^Collecting |^ +━|^Installing collected packages")
        if command.endswith(" demo"):
            shell_pane.sees("1 of 6  A plain mail")
            close_console(shell_pane)
        if command == "aileron console":
            shell_pane.sees("Accept this connector")
            close_console(shell_pane)
        shell_pane.ends()
        if command.startswith("python3 -m venv") and not ALL:
            (packages,) = machine.glob("home/aileron-venv/lib/python*/site-packages")
            (packages / "lent.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    assert (machine / "home" / ".aileron" / "actions" / "send-draft.md").is_file()
