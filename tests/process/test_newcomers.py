"""The pages for a newcomer, typed line by line: README, a connector of one's own, a real account.

The account's service is a small Todoist behind TLS, in the console's process; its connector is the real one.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from aileron_core.home.owner import lock_owner
from tests.process.test_mcp_clients import accept_at_terminal
from tests.process.tmux import PATIENCE, REST, Tmux, shell
from tests.support.making import program
from tests.support.server_harness import CLI, ROOT, eventually, quiet_port
from tests.support.variants import ALL

KEY, PHRASE = "canary-0123456789abcdef-token", "canary-horse-battery"
ACCOUNT = "ana@example.com"
PROMISED, AMPLE = 180.0, 60.0
"""Seconds, from `binding setup` to a first approved call; what the machine and a quick typist may take of them:
a person also has to read and to think."""


def lines_of(page: str) -> list[str]:
    return [line[4:].rstrip() for line in page.splitlines() if line.startswith("    ")]


class Pane:
    def __init__(
        self, folder: Path, name: str, cwd: Path = ROOT, patience: float = PATIENCE, **more: str
    ) -> None:
        path = f"{folder / 'bin'}:/usr/local/bin:/usr/bin:/bin"
        environment = {"HOME": str(folder), "LANG": "C.UTF-8", "PATH": path, **more}
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

    def runs(self, line: str) -> str:
        self.types(line)
        return self.ends()

    def ends(self) -> str:
        # A key too many may stand before it, and blanks behind.
        shown = self.sees(rf"exit-{self._line}=\d+ *$")
        assert f"exit-{self._line}=0" in shown, shown
        assert "Traceback" not in shown
        return shown


Panes = tuple[Pane, ...]


@pytest.fixture
def panes(folder: Path) -> Iterator[Panes]:
    made = tuple(Pane(folder, f"t{number}") for number in range(3))
    yield made
    for pane in made:
        pane.terminal.close()
    for home in (folder / "aileron-trial", folder / "work" / "home"):
        eventually(lambda home=home: lock_owner(home) is None, "nobody holds the home")


def accept_everything_shown(console: Pane, connector: str, actions: int) -> None:
    accept_at_terminal(console.terminal, f"connector local://{connector}@0.1.0")
    console.terminal.until(f"Accept these {actions} actions?")
    console.terminal.read_on()
    console.terminal.press_at_rest("t", f"Accepted: {actions} actions.")


def requests_seen(folder: Path) -> list[Any]:
    file = folder / "service" / "seen"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.timeout(400)
def test_the_page_leads_from_nothing_to_an_approved_call(folder: Path, panes: Panes) -> None:
    (folder / "service").mkdir()
    (folder / "service" / "key").write_text(KEY)
    entry = ROOT / "tests" / "process" / "todoist_console.py"
    words = shell(sys.executable, "-I", str(entry), str(folder / "service"))
    program(folder / "bin" / "aileron", f'#!/bin/sh\nexec {words} "$@"\n')
    console, person, third = panes
    lines = iter(lines_of((ROOT / "docs" / "accounts.md").read_text(encoding="utf-8")))
    home = next(lines)
    assert home == "export AILERON_HOME=$HOME/aileron-trial"
    for pane in (console, person):
        pane.runs(home)
    for line in lines:
        console.types(line)
        if line == "aileron console":
            break
        console.ends()
    accept_everything_shown(console, "aileron/todoist", 3)

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
    assert "Water the plants" in person.runs(next(lines))
    person.types(next(lines))
    terminal = console.terminal
    terminal.press_at_rest("j", "THE AGENT WANTS")
    shown = terminal.read_on()
    assert "Water the plants" in shown
    assert f"{ACCOUNT} (api_key/todoist/default)" in shown
    terminal.press_at_rest("a", "Approved")
    assert "6X7rM8997g3RQmvh" in person.ends()
    took = time.monotonic() - began
    assert took < AMPLE < PROMISED
    asked = requests_seen(folder)
    assert ["POST", "/api/v1/tasks/6X7rM8997g3RQmvh/close", True] in asked
    assert all(had_key for _, _, had_key in asked)

    assert "The vault is locked" in person.runs(next(lines))
    person.types(next(lines))  # a call, which waits
    for line in ("export ", "aileron status"):
        assert third.runs(next(lines)), line

    def waits() -> str:
        shown = third.runs("aileron status")
        return "" if "No calls are waiting" in shown else shown

    said = eventually(waits, "the call waits for the vault")
    assert "for the vault: `aileron vault unlock`" in said
    assert requests_seen(folder) == asked
    third.types(next(lines))
    third.enters("Passphrase of the vault", PHRASE)
    third.ends()
    assert "next_cursor" in person.ends()
    assert len(requests_seen(folder)) == len(asked) + 1
    for line in ("aileron binding list", "aileron binding inspect api_key/todoist/default"):
        assert ACCOUNT in person.runs(next(lines)), line
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


def terminated(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


@pytest.mark.timeout(400)
def test_the_page_leads_from_an_empty_folder_to_an_approved_call_of_ones_own_connector(
    folder: Path, panes: Panes, request: pytest.FixtureRequest
) -> None:
    (folder / "work").mkdir()
    for name, words in (("aileron", CLI), ("python3", (sys.executable,))):
        program(folder / "bin" / name, f'#!/bin/sh\nexec {shell(*words)} "$@"\n')
    page = (ROOT / "docs" / "connectors.md").read_text(encoding="utf-8")
    section = page[page.index("## Your first connector") : page.index("## The program")]
    port = f"{quiet_port()}"
    section = section.replace("service.py &", f"service.py {port} &").replace("8026", port)
    console, person, _ = panes
    for pane in (console, person):
        pane.runs(f"cd {folder / 'work'}")
    lines = iter(lines_of(section))
    for line in lines:
        if line.endswith("&"):
            console.terminal.type(line)  # a line of its own: nothing may follow the &
            console.terminal.press("Enter")
            shown = console.sees(r"Notes at 127\.0\.0\.1:\d+$")
            request.addfinalizer(partial(terminated, int(re.findall(r"\[1\] (\d+)", shown)[-1])))
            continue
        console.types(line)
        if line.startswith("aileron console"):
            break
        console.ends()
    accept_everything_shown(console, "you/my-notes", 2)

    export, edit = next(lines), next(lines)
    person.runs(export)
    person.types(edit)
    console.sees("edit: Groceries")
    console.terminal.press_at_rest("j", "Milk, bread, salt")
    pages = console.terminal.read_on()
    assert "WILL HAPPEN" in pages
    assert "Bread" in pages
    console.terminal.press_at_rest("a", "Approved")
    assert "Milk, bread, salt" in person.ends()
    (read,) = re.findall(r"`(aileron action run get-note[^`]*)`", section)
    assert "Milk, bread, salt" in person.runs(read)
    assert [*lines] == []


# README's first screen of text, by somebody with an empty home

MINUTES = 8 * 60
"""For one command: it fetches some forty packages."""


def readme_commands() -> list[str]:
    lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
    first = "\n".join(lines[:33])  # as many as a screen shows
    return [line.partition("  #")[0].rstrip() for line in lines_of(first)]


def test_the_first_screen_leads_from_the_clone_to_a_console() -> None:
    installs = ["python3 -m venv ~/aileron-venv", ". ~/aileron-venv/bin/activate", "pip install ."]
    begins = ["aileron demo", "aileron init --example", "aileron console"]
    assert readme_commands() == ["make demo", *installs, *begins]


@pytest.fixture
def machine(folder: Path) -> Path:
    """A folder with a clone, as git has it (but in `make test-all` without its tests), and an empty home."""
    (folder / "home").mkdir()
    command = ["git", "ls-files", "-co", "--exclude-standard", "--", "."]
    command += [] if ALL else [":!tests"]
    for name in subprocess.check_output(command, cwd=ROOT, text=True).splitlines():
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
    known = re.compile("PATH|SSL_CERT_FILE|PIP_.*|.*_proxy|.*_PROXY")
    kept = {name: value for name, value in os.environ.items() if known.fullmatch(name)}
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
def test_every_line_of_the_first_screen_works_as_written(shell_pane: Pane, machine: Path) -> None:
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
