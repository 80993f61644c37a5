"""A real console on a real pseudo-terminal, over a real core: the screen, the keys, the wire, the rows."""

import json
import signal
from pathlib import Path
from typing import Any

from examples.mailbox.server import Mailbox
from tests.support.server_harness import CLI, Console
from tests.support.terminal import Pty


class ScreenConsole(Console):
    """`aileron console` with somebody, or something, at its keyboard."""

    def __init__(self, home: Path, mailbox: Mailbox, *words: str, **terminal: Any) -> None:
        """Open the console of *home*, by *words* if there are any."""
        self.home = home
        self.stderr = home.parent / "console.stderr"
        self.stderr.touch()
        # A pager and a browser that end by themselves, whatever key calls them.
        self._terminal = {"environment": {"PAGER": "cat", "BROWSER": "true"}, **terminal}
        self._words = [*words] or [
            *CLI, "console", "--home", str(home), "--accept-installed",
            "--route", f"gmail.googleapis.com:443=127.0.0.1:{mailbox.port}",
        ]  # fmt: skip
        self.start()

    def start(self, *more: str) -> None:
        (self.home / "daemon.json").unlink(missing_ok=True)
        self.pty = Pty([*self._words, *more], **self._terminal)
        self.process = self.pty.process  # type: ignore[assignment]
        daemon_file = self.home / "daemon.json"
        self.pty.until(daemon_file.exists, "it listens")
        self.url = json.loads(daemon_file.read_text())["url"]
        self.port = int(self.url.rpartition(":")[2])
        self.pty.until(lambda: "aileron" in self.pty.cells.text, "the first page")

    def end(self, number: int = signal.SIGTERM, seconds: float = 20) -> int:
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.pty.ended()

    def close(self) -> None:
        self.pty.close()
        log = self.home / "log" / "aileron.log"
        assert "Traceback" not in (log.read_text() if log.exists() else "")
