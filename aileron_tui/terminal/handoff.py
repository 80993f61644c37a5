"""An application that hands text to the terminal's clipboard, and lends the terminal to a pager."""

import asyncio
import base64
import os
import signal
from abc import abstractmethod
from collections.abc import Generator, Mapping
from contextlib import contextmanager, suppress

from rich.console import RenderableType
from textual.app import App, SuspendNotSupported

from aileron_core.ids import APPROVAL_ID
from aileron_tui import words
from aileron_tui.messages import CopyRequested, OpenRequested, PagerRequested
from aileron_tui.terminal.browser import browser_command, open_in_browser
from aileron_tui.terminal.multiplexer import wrap_for_multiplexer
from aileron_tui.terminal.pager import pager_command, pager_environment, start_pager


class TerminalHandoffApp(App[int], inherit_bindings=False):
    """Everything that leaves by way of the terminal itself was drawn before: it holds no control."""

    environment: Mapping[str, str] = os.environ
    _pager: asyncio.subprocess.Process | None = None

    def copy_to_clipboard(self, text: str) -> None:
        """Hand *text* to the terminal's clipboard (OSC 52), to that around tmux or screen as well."""
        super().copy_to_clipboard(text)
        content = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
        sequence = f"\x1b]52;c;{content}\x07"
        wrapped = wrap_for_multiplexer(sequence, self.environment)
        if wrapped != sequence:
            # A multiplexer takes the first for itself, where it is told to; this one it hands on.
            self.send(wrapped)

    def on_copy_requested(self, message: CopyRequested) -> None:
        """Copy what a screen drew."""
        self.copy_to_clipboard(message.text)

    async def on_pager_requested(self, message: PagerRequested) -> None:
        """Lend the terminal to the pager; afterwards every key that decides rests anew."""
        message_after = await self.lend(message.text, message.name)
        self.say(message_after)
        self.looks_changed()

    def on_open_requested(self, message: OpenRequested) -> None:
        """Open the page of an approval, whose address is made here and of nobody else's words."""
        base = self.address
        if not base or not APPROVAL_ID.fullmatch(message.approval_id):
            return
        url = f"{base}/review/{message.approval_id}"
        program = browser_command(self.environment)
        if program is None:
            self.say(words.terminal.no_browser(url))
            return

        def done(worked: bool) -> None:
            outcome = words.terminal.opened(url) if worked else words.terminal.no_browser(url)
            with suppress(RuntimeError):  # nobody is there any more
                self.call_from_thread(self.say, outcome)

        open_in_browser(program, url, done)

    @abstractmethod
    def send(self, sequence: str) -> None:
        """Send *sequence*, which is ours, to the terminal."""

    @property
    @abstractmethod
    def address(self) -> str:
        """The console's own address, as far as it has one."""

    @abstractmethod
    def say(self, message: str) -> None:
        """Let the status line report *message*, our own words."""

    @abstractmethod
    def looks_changed(self) -> None:
        """What stands on screen was covered: draw it anew; every key that decides rests anew."""

    async def lend(self, text: str, name: str) -> str:
        """Show *text* in the person's pager, in the console's place; return the message for the status line.

        Nothing is drawn meanwhile, and no key of the pager's reaches the console.
        """
        command = pager_command(self.environment)
        try:
            with self.batch_update(), self.suspend(), _keeps_interrupts():
                self._pager = await start_pager(command, pager_environment(self.environment))
                await self._pager.communicate(text.encode("utf-8", "replace"))
        except SuspendNotSupported:
            return words.terminal.cannot_suspend()
        except OSError:
            return words.terminal.no_pager(command[0])
        finally:
            self._pager = None
        return words.terminal.paged(name, command[0])

    def exit(
        self,
        result: int | None = None,
        return_code: int = 0,
        message: RenderableType | None = None,
    ) -> None:
        """End; a pager that holds the terminal ends first."""
        if self._pager is not None and self._pager.returncode is None:
            self._pager.terminate()
        super().exit(result, return_code, message)


@contextmanager
def _keeps_interrupts() -> Generator[None, None, None]:
    """Let `ctrl+c` mean what it means to the pager: the console is in its process group as well."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
