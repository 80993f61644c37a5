"""What the console hands to other programs: a text to the clipboard or the pager, a page to the browser.

The pager is the person's own, run in the console's place on a text that was made harmless before. The text
goes over a pipe, never through a file. `less` must start no other program: what stands on its screen came
from outside, and a person may press any key there.
"""

import asyncio
import base64
import shlex
import signal
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from textual.app import App, SuspendNotSupported

from aileron_core.text import escape
from aileron_tui import words
from aileron_tui.terminal.browser import browser_command, open_in_browser, write_link_file
from aileron_tui.terminal.notifications import wrap_for_multiplexer

_DEFAULT_PAGER = "less"
_WITHOUT = frozenset({"LESSOPEN", "LESSCLOSE", "LESSKEYIN", "LESSKEY"})
"""Programs and key tables that less would take from the environment."""


def pager_command(environment: Mapping[str, str]) -> list[str]:
    """Return `$PAGER` as words, `less` where there is none or none that can be read."""
    try:
        words = shlex.split(environment.get("PAGER", ""))
    except ValueError:
        words = []
    return words or [_DEFAULT_PAGER]


def pager_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """Return *environment* for the pager: nothing of Aileron's, and less as a reader alone."""
    kept = {
        name: value
        for name, value in environment.items()
        if not name.startswith("AILERON_") and name not in _WITHOUT
    }
    return {**kept, "LESSSECURE": "1", "LESSHISTFILE": "-"}


async def start_pager(
    command: list[str], environment: Mapping[str, str]
) -> asyncio.subprocess.Process:
    """Start the pager, which reads its text from its standard input; return it, running.

    Raises:
        OSError: it cannot be started.
    """
    return await asyncio.create_subprocess_exec(
        *command, stdin=asyncio.subprocess.PIPE, env=dict(environment)
    )


def clipboard_through_multiplexer(text: str, environment: Mapping[str, str]) -> str:
    """Return the sequence (OSC 52) that hands *text* to the terminal around tmux or screen; empty without one.

    A multiplexer keeps the plain sequence for itself, if it is set to; this one it passes on.
    """
    content = base64.b64encode(text.encode("utf-8", "replace")).decode("ascii")
    sequence = f"\x1b]52;c;{content}\x07"
    wrapped = wrap_for_multiplexer(sequence, environment)
    return wrapped if wrapped != sequence else ""


class TerminalHandoff:
    """Lends the application's terminal to a pager, and opens pages in the browser.

    A text that is handed over was rendered before: it holds no control character.
    """

    def __init__(
        self, app: App[int], environment: Mapping[str, str], *, say: Callable[[str], None]
    ) -> None:
        """*environment* names the person's programs; *say* shows a message in the status line."""
        self._app = app
        self._environment = environment
        self._say = say
        self._pager: asyncio.subprocess.Process | None = None
        self._link = ""
        self._kept: Path | None = None
        """A link's file that could not be deleted."""

    def open_link(self, url: str) -> None:
        """Open *url*, an address that a person was shown, and say what came of it.

        Another machine may have sent it: what is not `https` in ASCII is not opened.
        """
        if not (url.isascii() and url.startswith("https://")):
            self._say(words.terminal.LINK_NOT_OPENED)
            return
        program = browser_command(self._environment)
        if program is None:
            self._app.copy_to_clipboard(url)
            self._say(words.terminal.LINK_COPIED)
            return

        def done(worked: bool) -> None:
            outcome = words.terminal.LINK_OPENED if worked else words.terminal.LINK_NOT_OPENED
            with suppress(RuntimeError):  # the application has ended
                self._app.call_from_thread(self._say, outcome)

        open_in_browser(program, url, done)

    def follow_link(self, url: str, file: Path, opened: Callable[[bool], object]) -> None:
        """Open *url*, the link that pairs a device now, in the browser, once, by way of *file*.

        *file* is deleted where *url* is empty: the link was redeemed, or is over. *opened* is called with
        whether the browser took it; never where there is none.
        """
        program = browser_command(self._environment)
        if url == self._link or program is None:
            return
        if not url and not self._is_deleted(file):
            return
        self._link = url
        if not url:
            return

        def done(worked: bool) -> None:
            with suppress(RuntimeError):  # the application has ended
                self._app.call_from_thread(opened, worked)

        try:
            write_link_file(file, url)
        except OSError:
            opened(False)
        else:
            open_in_browser(program, str(file), done)

    def _is_deleted(self, file: Path) -> bool:
        """Delete *file*, and tell whether it is gone; that it cannot be is said once, and tried on every call."""
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            if file != self._kept:
                self._say(words.terminal.link_not_deleted(escape(str(file)), error.strerror or ""))
            self._kept = file
            return False
        self._kept = None
        return True

    async def show_in_pager(self, text: str, name: str) -> str:
        """Show *text* in the person's pager, in the console's place; return the message for the status line.

        Nothing is drawn meanwhile, and no key of the pager's reaches the console.
        """
        command = pager_command(self._environment)
        try:
            with self._app.batch_update(), self._app.suspend(), _keeps_interrupts():
                self._pager = await start_pager(command, pager_environment(self._environment))
                await self._pager.communicate(text.encode("utf-8", "replace"))
        except SuspendNotSupported:
            return words.terminal.cannot_suspend()
        except OSError:
            return words.terminal.no_pager(command[0])
        finally:
            self._pager = None
        return words.terminal.paged(name, command[0])

    def end_pager(self) -> None:
        if self._pager is not None and self._pager.returncode is None:
            self._pager.terminate()


@contextmanager
def _keeps_interrupts() -> Generator[None, None, None]:
    """Let `ctrl+c` mean what it means to the pager: the console is in its process group as well."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
