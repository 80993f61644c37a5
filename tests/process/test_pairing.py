"""`O` at a real terminal: a browser is led to the link, confirmed by its words, ended by `x`; where its secret is not."""

import os
import re
from collections.abc import Callable
from pathlib import Path

from tests.process.attended import ScreenConsole
from tests.support.making import program
from tests.support.paired_devices import Device


async def test_a_browser_is_paired_by_a_link_whose_secret_stays_out_of_arguments_and_files(
    sit: Callable[..., ScreenConsole], tmp_path: Path
) -> None:
    """The words on both sides are the same, and so is the program that the kernel knows."""
    page = tmp_path / "page"
    program(tmp_path / "bin/xdg-open", f'#!/bin/sh\ncp "$1" {page}.new && mv {page}.new {page}\n')
    path = f"{tmp_path / 'bin'}:{os.environ['PATH']}"
    console = sit(environment={"DISPLAY": ":0", "PATH": path})
    pty, text = console.pty, lambda: console.pty.cells.text
    pty.press(b"5", lambda: "Connected agents" in text() or "No agent" in text(), "the sessions")
    pty.press(b"O", lambda: "This link pairs one browser" in text(), "a link")
    pty.until(page.exists, "the browser is opened")
    found = re.search(r'location\.replace\("(.*)/review#(.*)"\)', page.read_text())
    assert found is not None
    secret = found[2]
    assert not [each for each in _arguments() if secret in each]

    device = Device(url=found[1])
    assert (await device.redeem(secret)).status_code == 200
    assert (await device.show_key()).status_code == 200
    pty.shows(" · ".join(device.words))
    pty.shows(f"process {os.getpid()}")
    pty.press(b"y", lambda: "can now see and decide" in text(), "it is confirmed")
    assert (await device.post("wait", {})).json() == {"confirmed": True}
    files = [each for each in console.home.rglob("*") if each.is_file()]
    assert not [each for each in files if secret.encode() in each.read_bytes()]

    pty.press(b"x", lambda: "has ended." in text(), "it is ended")
    assert (await device.post("wait", {})).status_code == 401


def _arguments() -> list[str]:
    """Return the arguments of every program that runs."""
    found: list[str] = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            found.append(each.read_text(errors="replace"))
        except OSError:
            continue  # it has ended
    return found
