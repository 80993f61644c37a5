"""The page on accounts, typed line by line: from nothing to an approved call of a real account.

The service is a small Todoist behind TLS, in the console's process; the connector is the real one.
"""

import json
import re
import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aileron_core.home.owner import lock_owner
from tests.process.test_accepting import accept
from tests.process.tmux import PATIENCE, Tmux, shell
from tests.support.making import program
from tests.support.server_harness import ROOT, eventually

PAGE = (ROOT / "docs" / "accounts.md").read_text(encoding="utf-8")
KEY, PHRASE = "canary-0123456789abcdef-token", "canary-horse-battery"
ACCOUNT = "ana@example.com"
PROMISED = 180.0
"""Seconds, from `binding setup` to a first approved call; a person also has to read and to think."""
AMPLE = 60.0
"""Seconds that the machine and a quick typist may take of them."""


def typed_lines() -> list[str]:
    return [line[4:].rstrip() for line in PAGE.splitlines() if line.startswith("    ")]


class Pane:
    """A shell in a terminal of its own."""

    def __init__(
        self, folder: Path, name: str, cwd: Path = ROOT, patience: float = PATIENCE, **more: str
    ) -> None:
        environment = {
            "HOME": str(folder), "LANG": "C.UTF-8",
            "PATH": f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin", **more,
        }  # fmt: skip
        words = shell("bash", "--norc", "-i")
        self.terminal = Tmux(folder / name, words, environment, cwd, size=(120, 40))
        self._patience = patience
        self._line = 0
        self.sees(r"[$#] *$")

    def types(self, line: str) -> None:
        """Type *line*; what ends it has a number of its own, so that no earlier end is taken for it."""
        self._line += 1
        self.terminal.type(f"clear; {line}; echo exit-{self._line}=$?")
        self.terminal.press("Enter")

    def enters(self, prompt: str, text: str) -> None:
        self.sees(prompt)
        self.terminal.type(text)
        self.terminal.press("Enter")

    def sees(self, pattern: str) -> str:
        return self.terminal.until(re.compile(pattern, re.MULTILINE), patience=self._patience)

    def ends(self, code: int = 0) -> str:
        # A key too many may stand before it, and blanks behind.
        shown = self.sees(rf"exit-{self._line}=\d+ *$")
        assert f"exit-{self._line}={code}" in shown, shown
        assert "Traceback" not in shown
        return shown


@pytest.fixture
def folder(folder: Path) -> Path:
    """A person's home folder, with an `aileron` whose console has the service beside it."""
    (folder / "service").mkdir()
    (folder / "service" / "key").write_text(KEY)
    entry = ROOT / "tests" / "process" / "todoist_console.py"
    words = shell(sys.executable, "-I", str(entry), str(folder / "service"))
    program(folder / "bin" / "aileron", f'#!/bin/sh\nexec {words} "$@"\n')
    return folder


@pytest.fixture
def panes(folder: Path) -> Iterator[tuple[Pane, ...]]:
    made = tuple(Pane(folder, f"t{number}") for number in range(3))
    yield made
    for pane in made:
        pane.terminal.close()
    eventually(lambda: lock_owner(folder / "aileron-trial") is None, "nobody holds the home")


def requests_seen(folder: Path) -> list[Any]:
    """Return the requests that the service got: method, path, and whether it had the key."""
    file = folder / "service" / "seen"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def approve(console: Pane) -> str:
    """Go to the call, read it to its end, and press the key; return what was on the screen."""
    terminal = console.terminal
    terminal.press_at_rest("j", "THE AGENT WANTS")
    shown = terminal.read_on()
    assert "Water the plants" in shown
    terminal.press_at_rest("a", "Approved")
    return shown


def status(pane: Pane) -> str:
    pane.types("aileron status")
    shown = pane.ends()
    return "" if "No calls are waiting" in shown else shown


@pytest.mark.timeout(400)
def test_the_page_leads_from_nothing_to_an_approved_call_of_a_real_account(
    folder: Path, panes: tuple[Pane, ...]
) -> None:
    """Each line as it is written, each prompt answered, each promise of the page looked at."""
    console, person, third = panes
    lines = iter(typed_lines())
    home = next(lines)
    assert home == "export AILERON_HOME=$HOME/aileron-trial"
    for pane in (console, person):
        pane.types(home)
        pane.ends()
    for line in lines:
        console.types(line)
        if line == "aileron console":
            break
        console.ends()
    accept(console.terminal, "connector local://aileron/todoist@0.1.0")
    console.terminal.until("Accept these 3 actions?")
    console.terminal.read_on()
    console.terminal.press_at_rest("t", "Accepted: 3 actions.")

    began = time.monotonic()
    person.types(next(lines))
    shown = person.sees("Passphrase for a new vault")
    assert "in the header Authorization" in shown
    assert "sent to  api.todoist.com:443" in shown
    person.enters("Passphrase for a new vault", PHRASE)
    person.enters("The same again", PHRASE)
    person.enters("Your name for this account", ACCOUNT)
    person.enters(r"Key \(not shown\)", KEY)
    assert f"{ACCOUNT} (api_key/todoist/default) is bound" in person.ends()
    person.types(next(lines))
    assert "Water the plants" in person.ends()
    person.types(next(lines))
    assert f"{ACCOUNT} (api_key/todoist/default)" in approve(console)
    assert "6X7rM8997g3RQmvh" in person.ends()
    took = time.monotonic() - began
    assert took < AMPLE < PROMISED
    asked = requests_seen(folder)
    assert ["POST", "/api/v1/tasks/6X7rM8997g3RQmvh/close", True] in asked
    assert all(had_key for _, _, had_key in asked)

    person.types(next(lines))
    assert "The vault is locked" in person.ends()
    person.types(next(lines))  # a call, which waits
    for line in ("export ", "aileron status"):
        third.types(next(lines))
        assert third.ends(), line
    said = eventually(lambda: status(third), "the call waits for the vault")
    assert "for the vault: `aileron vault unlock`" in said
    assert requests_seen(folder) == asked
    third.types(next(lines))
    third.enters("Passphrase of the vault", PHRASE)
    third.ends()
    assert "next_cursor" in person.ends()
    assert len(requests_seen(folder)) == len(asked) + 1
    for line in ("aileron binding list", "aileron binding inspect api_key/todoist/default"):
        person.types(next(lines))
        assert ACCOUNT in person.ends(), line
    person.types(next(lines))
    person.enters(r"Delete .* from the vault\?", "y")
    assert "was deleted" in person.ends()
    assert [*lines] == []

    # Of all that there is, only the service's own folder has the key, and nothing the passphrase.
    shutil.rmtree(folder / "service")
    for path in (folder / "aileron-trial").rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path
            assert PHRASE.encode() not in path.read_bytes(), path
    for pane in panes:
        assert KEY not in pane.terminal.pane()
