"""Real browsers of Debian for tests of the review page: Chromium by playwright, Firefox by its Marionette port.

A browser is started in a process group of its own and killed with it, so that no test waits for one to close.
"""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import AsyncGenerator, Generator, Sequence
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, async_playwright

from tests.support.core_harness import PATIENCE

_CHROMIUM = (
    "/usr/bin/chromium", "--headless=new", "--no-sandbox", "--remote-debugging-port=0", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4",
)  # fmt: skip
"""As root it has no sandbox of its own; pages that a test does not look at keep their timers; there is a mouse."""


@contextlib.contextmanager
def started(command: Sequence[str], folder: Path, says: str) -> Generator[str]:
    """Run *command* until the context ends; yields what its file *says* in *folder* once it is there."""
    with (folder / "output").open("wb") as output:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
            env=os.environ | {"HOME": str(folder), "MOZ_CRASHREPORTER_DISABLE": "1"}, start_new_session=True,
        )  # fmt: skip
    try:
        until = time.monotonic() + PATIENCE
        while not (said := (folder / says).read_text() if (folder / says).exists() else ""):
            if process.poll() is not None or time.monotonic() > until:
                raise RuntimeError(
                    f"{command[0]} does not start: {(folder / 'output').read_text()[-2000:]}"
                )
            time.sleep(0.05)
        yield said
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextlib.asynccontextmanager
async def chromium(*arguments: str) -> AsyncGenerator[Browser]:
    """Start Chromium, and drive it; more *arguments* are its own. Without it the test is skipped."""
    if not Path(_CHROMIUM[0]).exists():
        pytest.skip("there is no Chromium")
    with tempfile.TemporaryDirectory(prefix="ail-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        command = (*_CHROMIUM, f"--user-data-dir={folder}", *arguments, "about:blank")
        with started(command, folder, "DevToolsActivePort") as said:
            port, path = said.split()
            async with async_playwright() as playwright:
                yield await playwright.chromium.connect_over_cdp(f"ws://127.0.0.1:{port}{path}")


class Firefox:
    """A page in Firefox, by its Marionette port: commands as JSON, their length before them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer, self._number = reader, writer, 0

    async def read(self) -> Any:
        """Return the next thing that it says."""
        length = await self._reader.readuntil(b":")
        return json.loads(await self._reader.readexactly(int(length[:-1])))

    async def ask(self, command: str, **arguments: Any) -> Any:
        """Return what the browser answers to *command*, without the word `WebDriver:`."""
        self._number += 1
        sent = json.dumps([0, self._number, f"WebDriver:{command}", arguments]).encode()
        self._writer.write(b"%d:" % len(sent) + sent)
        _, number, error, result = await self.read()
        assert (number, error) == (self._number, None), error
        return result

    async def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        return (await self.ask("ExecuteScript", script=f"return ({script});", args=[]))["value"]

    async def until(self, script: str) -> Any:
        """Return the value of an expression in the page once it is true."""
        until = time.monotonic() + PATIENCE
        while not (found := await self.run(script)):
            if time.monotonic() > until:
                text = await self.run("document.body.innerText")
                raise TimeoutError(f"never: {script}\n{text}")
            await asyncio.sleep(0.05)
        return found

    async def press(self, *keys: str, pause: int = 0) -> None:
        """Press *keys* one after the other, *pause* milliseconds apart."""
        actions: list[dict[str, Any]] = []
        for key in keys:
            actions += [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
            actions += [{"type": "pause", "duration": pause}]
        keyboard = {"type": "key", "id": "keyboard", "actions": actions}
        await self.ask("PerformActions", actions=[keyboard])


@contextlib.asynccontextmanager
async def firefox() -> AsyncGenerator[Firefox]:
    """Start Firefox with a profile of its own, and drive it."""
    with tempfile.TemporaryDirectory(prefix="ail-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "user.js").write_text('user_pref("marionette.port", 0);\n')
        command = ("firefox-esr", "--headless", "--no-remote", "--marionette", "--profile", name)
        with started(command, folder, "MarionetteActivePort") as port:
            reader, writer = await asyncio.open_connection("127.0.0.1", int(port), limit=2**24)
            browser = Firefox(reader, writer)
            await browser.read()  # what it is
            await browser.ask("NewSession")
            try:
                yield browser
            finally:
                writer.close()
