"""The page on connectors, typed line by line: from `connector new` to an approved call of one's own connector."""

import contextlib
import os
import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from aileron_core.home.owner import lock_owner
from tests.process.test_accepting import accept
from tests.process.test_first_account import Pane
from tests.process.tmux import shell
from tests.support.making import program
from tests.support.server_harness import CLI, ROOT, eventually, quiet_port

PAGE = (ROOT / "docs" / "connectors.md").read_text(encoding="utf-8")
SECTION = PAGE[PAGE.index("## Your first connector") : PAGE.index("## The program")]
NAME = "my-notes"


def section_commands(port: int) -> list[str]:
    """Return every line of the section that is to be typed; the service gets a port that is free."""
    lines = [line[4:].rstrip() for line in SECTION.splitlines() if line.startswith("    ")]
    return [
        line.replace("service.py &", f"service.py {port} &").replace("8026", f"{port}")
        for line in lines
    ]


@pytest.fixture
def folder(folder: Path) -> Path:
    """An empty folder to work in, and the commands `aileron` and `python3` in a folder of the path."""
    (folder / "work").mkdir()
    for name, words in (("aileron", CLI), ("python3", (sys.executable,))):
        program(folder / "bin" / name, f'#!/bin/sh\nexec {shell(*words)} "$@"\n')
    return folder


@pytest.fixture
def two_panes(folder: Path) -> Iterator[tuple[Pane, Pane]]:
    made = Pane(folder, "t0"), Pane(folder, "t1")
    yield made
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        os.kill(int((folder / "service").read_text()), signal.SIGTERM)
    for pane in made:
        pane.terminal.close()
    eventually(lambda: lock_owner(folder / "work" / "home") is None, "nobody holds the home")


@pytest.mark.timeout(400)
def test_the_page_leads_from_an_empty_folder_to_an_approved_call_of_ones_own_connector(
    folder: Path, two_panes: tuple[Pane, Pane]
) -> None:
    """Each line as it is written; the preview shows the note, and a yes edits it."""
    console, person = two_panes
    for pane in two_panes:
        pane.types(f"cd {folder / 'work'}")
        pane.ends()
    lines = iter(section_commands(quiet_port()))
    for line in lines:
        if line.endswith("&"):
            console.terminal.type(line)  # a line of its own: nothing may follow the &
            console.terminal.press("Enter")
            shown = console.sees(r"Notes at 127\.0\.0\.1:\d+$")
            (folder / "service").write_text(re.findall(r"\[1\] (\d+)", shown)[-1])
            continue
        console.types(line)
        if line.startswith("aileron console"):
            break
        console.ends()
    accept(console.terminal, f"connector local://you/{NAME}@0.1.0")
    console.terminal.until("Accept these 2 actions?")
    console.terminal.read_on()
    console.terminal.press_at_rest("t", "Accepted: 2 actions.")

    export, edit = next(lines), next(lines)
    person.types(export)
    person.ends()
    person.types(edit)
    console.sees("edit: Groceries")
    console.terminal.press_at_rest("j", "Milk, bread, salt")
    pages = console.terminal.read_on()
    assert "WILL HAPPEN" in pages
    assert "Bread" in pages
    console.terminal.press_at_rest("a", "Approved")
    assert "Milk, bread, salt" in person.ends()
    (read,) = re.findall(r"`(aileron action run get-note[^`]*)`", SECTION)
    person.types(read)
    assert "Milk, bread, salt" in person.ends()
    assert [*lines] == []
